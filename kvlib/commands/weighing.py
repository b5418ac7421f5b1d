"""How a command weighs a model: what the user said, else as the checkpoint stores it where kvlib knows how, else bf16."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from kvlib.commands import options as opt
from kvlib.errors import SpecError
from kvlib.i18n import T
from kvlib.readers import INNER
from kvlib.sources import find_config
from kvlib.spec import ModelSpec


class Weighed(NamedTuple):
    """A model whose weights are counted where that can be done. dtype: how they are stored; None: their bytes were given."""

    spec: ModelSpec
    dtype: str | None
    nbytes: int | None


def weigh(model: str, weight_dtype: str | None, weight_gb: float | None, mtp: bool, encoder_tokens: int | None,
          set_fields: list[str] | None) -> Weighed:  # fmt: skip
    """The model of the command line. Raises SpecError as `options.load`."""
    spec = opt.load(model, mtp, encoder_tokens, set_fields)
    if weight_gb is not None:
        return Weighed(spec, None, opt.to_bytes("--weight-gb", weight_gb))
    by_transformers = spec.weights is None and not (weight_dtype == "stored" and spec.quantization)  # its names are not ours
    if by_transformers:
        spec = _counted(spec, {**find_config(model)[2], **opt.overrides(set_fields)})
    if weight_dtype is not None or not spec.quantization:
        return Weighed(spec, str(weight_dtype or "bf16"), None)
    try:
        if by_transformers:
            raise SpecError(T("這個模型的權重排列不在 kvlib 裡", "how this model lays out its weights is not known to kvlib"))
        spec.weight_bytes("stored")
    except SpecError as error:
        return Weighed(replace(spec, notes=(*spec.notes, _not_stored(spec, error))), "bf16", None)
    return Weighed(spec, "stored", None)


def _counted(spec: ModelSpec, config: Mapping) -> ModelSpec:
    """The same with weights that transformers counts; as it is where transformers is missing or cannot build the model."""
    from kvlib.weights_by_transformers import with_counted_weights

    while inner := next((config[k] for k in INNER if isinstance(config.get(k), Mapping)), None):
        config = inner
    try:
        return with_counted_weights(spec, config)
    except SpecError:
        return spec


def _not_stored(spec: ModelSpec, error: SpecError) -> str:
    """Why the weights are taken as bf16 although the checkpoint is quantised."""
    if n := spec.quantization.get("n_files"):
        why = T(f"只看到 {n} 個檔案裡的第一個", f"only the first of {n} files was seen")
    else:
        why = str(error).partition(": give the bytes")[0].partition("; give the bytes")[0]
    return T(f"檢查點有量化，但不知道占多少（{why}）；權重照 bf16 算，或用 --weight-gb 給定",
             f"the checkpoint is quantised, and how many bytes that takes is not known ({why}); weights are counted in bf16: "
             "--weight-gb gives them")  # fmt: skip

"""How a command weighs a model: what the user said, else as the checkpoint stores it where it is quantised, else bf16."""

from typing import NamedTuple

from kvlib.commands import options as opt
from kvlib.config.decoder import decoder_config
from kvlib.errors import SpecError
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
    dtype = str(weight_dtype or ("stored" if spec.quantization else "bf16"))
    if spec.weights is None and not (dtype == "stored" and spec.quantization):  # whose lists do not know transformers' names
        spec = _counted(spec, model, opt.overrides(set_fields))
    return Weighed(spec, dtype, None)


def _counted(spec: ModelSpec, model: str, overrides: dict[str, object]) -> ModelSpec:
    """The same with weights that transformers counts; as it is where transformers is missing or cannot build the model."""
    from kvlib.weights_by_transformers import with_counted_weights

    try:
        return with_counted_weights(spec, decoder_config(find_config(model)[2], overrides))
    except SpecError:
        return spec

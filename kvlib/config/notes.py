"""What a person should know about how a config was read."""

from collections.abc import Mapping

from kvlib.config.decoder import INNER
from kvlib.config.families import GENERIC, Family
from kvlib.config.fields import Fields
from kvlib.errors import short
from kvlib.i18n import T
from kvlib.spec import ModelSpec


def mtp_layers(fields: Fields) -> int:
    """Layers for multi-token prediction, which come after the others."""
    return fields.optional("num_nextn_predict_layers", minimum=0) or 0


def nested_note(config: Mapping) -> str:
    """Of a multi-modal config: what is left out; else nothing."""
    if not any(isinstance(config.get(k), Mapping) for k in INNER):
        return ""
    return T("只算文字解碼器，影像與聲音的部分沒算", "the text decoder only; the parts for images and sound are not counted")


def idle_note(field: str) -> str:
    """Of an override that decides nothing."""
    return T(f"改寫 {field} 沒有改變任何數字", f"replacing {field} changes no number here")


def reading_notes(fields: Fields, family: Family, spec: ModelSpec, mtp: bool) -> list[str]:
    """What was assumed, and what is not counted. mtp: are the layers for multi-token prediction counted?"""
    notes = []
    if family is GENERIC:
        unknown = short(fields.text("model_type"))
        notes.append(T(f"不認得 model_type {unknown}，照一般的欄位讀", f"model_type {unknown} is unknown and was read generically"))
        if fields.get("num_key_value_heads") is None and fields.get("block_configs") is None:
            notes.append(T("沒寫 KV 頭數，當作每個查詢頭各有一個", "KV heads are absent, read as one per query head"))
    if not mtp and (n_mtp := mtp_layers(fields)):
        field = fields.key("num_nextn_predict_layers")
        layers = f"{n_mtp} layer" + "s" * (n_mtp > 1)
        notes.append(T(f"另有 {n_mtp} 層多 token 預測（{field}）沒算；要算：mtp=True 或 --mtp",
                       f"{layers} for multi-token prediction ({field}) not counted; mtp=True or --mtp counts them"))  # fmt: skip
    parts = [part for layer in spec.layers for part in layer.state_parts]
    if parts and fields.get("dtype") is None:
        notes.append(T("config 沒寫型別（dtype），遞迴狀態當作 bf16", "dtype is absent; the recurrent state is taken as bf16"))
    if any(part.matrix for part in parts) and fields.get("mamba_ssm_dtype") is None and family.state_dtype is None:
        notes.append(T("config 沒寫遞迴狀態的型別，照模型的型別算；引擎可能用 fp32（--set mamba_ssm_dtype=float32）",
                       "the dtype of the recurrent state is not given; counted in the model's; an engine may keep fp32 "
                       "(--set mamba_ssm_dtype=float32)"))  # fmt: skip
    if fields.get("window_unwritten") is True and fields.get("sliding_window") is None:  # said by kvlib.gguf
        notes.append(T("這種 .gguf 不寫滑動視窗；模型若有視窗（例如 Mistral-7B v0.1），請給它的 config.json",
                       "a .gguf of this architecture says nothing of sliding windows; if the model has one (Mistral-7B v0.1), give "
                       "its config.json"))  # fmt: skip
    if mtp and mtp_layers(fields):
        notes.append(T("多 token 預測的層只算了快取，沒算權重", "of the layers for multi-token prediction only the cache is counted, not the "
                       "weights"))  # fmt: skip
    return notes

"""What several reports say about a model: how its weights are stored, what cards repeat, where an engine's number differs."""

from kvlib.budget import Budget
from kvlib.i18n import T
from kvlib.memory import kv_bytes, kv_growth
from kvlib.spec import ModelSpec
from kvlib.units import format_bytes


def params(spec: ModelSpec) -> tuple[int | None, int | None]:
    """Parameters, and those that one token uses; None where they cannot be counted."""
    return (None, None) if spec.weights is None else (spec.n_params, spec.n_active_params)


def stored_as(spec: ModelSpec, weight_dtype: str | None) -> str:
    """The dtype of the weights in a word: the method of the checkpoint where they are as stored."""
    if weight_dtype != "stored":
        return weight_dtype or ""
    return str((spec.quantization or {}).get("quant_method") or spec.dtype or "stored")


def stored_words(spec: ModelSpec, weight_dtype: str | None) -> str:
    """The same in words: "mxfp4, as stored"; empty where the bytes of the weights were given."""
    if weight_dtype != "stored":
        return weight_dtype or ""
    where = T("，照檔案的存法", ", as stored in the file") if stored_as(spec, "stored") == "gguf" else T("，照檢查點的存法", ", as stored")
    return stored_as(spec, "stored") + where


def repeated(budget: Budget) -> str:
    """Why one sequence takes more bytes over all cards than on one; empty where it does not."""
    n, layers = budget.n_gpus, budget.spec.layers
    own = [layer for layer in layers if layer.shared_with is None]
    why = [T("每張卡都留整個潛在向量", "every card keeps the whole latent")] if any(layer.latent for layer in own) else []
    why += [T(f"{heads} 個 KV 頭，每個在 {n // heads} 張卡上各留一份", f"each of {heads} KV heads is on {n // heads} cards")
            for heads in sorted({layer.n_kv_heads for layer in own}) if 0 < heads < n]  # fmt: skip
    if any(layer.index_bytes for layer in own) and not any(layer.latent for layer in own):
        why.append(T("每張卡都留全部的索引鍵", "every card keeps all index keys"))
    if any(n * layer.rank_state_bytes(n) > layer.state_bytes for layer in own):
        why.append(T("遞迴狀態有幾份是重複的", "parts of the recurrent state are on several cards"))
    if n == 1 or budget.kv_per_sequence(1) <= kv_bytes(budget.spec, 1, kv_dtype=budget.kv_dtype):
        return ""
    return T("，", ", ").join(why)


def one_sequence(budget: Budget, n_tokens: int) -> str:
    """The bytes of one sequence by card: "8 × 8.58 GiB: every card keeps the whole latent"; empty where nothing is repeated."""
    why = repeated(budget)
    return why and f"{budget.n_gpus} × {format_bytes(budget.kv_per_sequence(n_tokens) // budget.n_gpus)}{T('：', ': ')}{why}"


def engine_note(spec: ModelSpec, kv_dtype: str) -> str:
    """Where to find an engine's number, for a model whose layers keep different things; empty for the others."""
    growth = kv_growth(spec, kv_dtype)
    if not (growth.capped or growth.constant):
        return ""
    return T("KV 是理想值；有視窗或狀態的模型，引擎預留的可能差很多：kvlib estimate --engine vllm",
             "KV is the ideal; for windows and states an engine reserves another number: kvlib estimate --engine vllm")

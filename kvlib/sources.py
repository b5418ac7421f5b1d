"""Where a model's config comes from: a preset, a file or folder, a .gguf file, a Hub id, or a mapping."""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from kvlib.errors import SpecError

MODELS = Path(__file__).parent / "models"


def presets() -> list[str]:
    """Names of the models shipped with kvlib, sorted."""
    return sorted(path.stem for path in MODELS.glob("*.json"))


def shipped(preset: str) -> dict:
    """What kvlib ships of one preset: name, hub_id, source (where each fact was read) and config (as published)."""
    return json.loads((MODELS / f"{preset}.json").read_text(encoding="utf-8"))


def find_config(model: str | Path | Mapping) -> tuple[str, str, Mapping]:
    """A model's name, where its config was found, and the config.

    Raises SpecError when `model` names nothing, and for a file that is not a config.
    """
    if isinstance(model, Mapping):
        return str(model.get("_name_or_path") or model.get("model_type") or "config"), "mapping", model
    if not isinstance(model, str | Path):
        raise SpecError(f"model is {model!r}; expected a preset's name, a path, a Hub id, or a mapping of config fields")
    if isinstance(model, str) and model.lower() in presets():  # a folder of that name: give a Path, or "./name"
        return _preset(model.lower())
    path = Path(model)
    try:
        path = path / "config.json" if path.is_dir() else path
        if path.is_file():
            return _file(path)
    except OSError as error:  # a name too long for a path, a folder that may not be read
        raise SpecError(f"model is {str(model)[:80]!r}: {error.strerror}; give a preset's name or a readable path") from error
    model = str(model)
    if model.startswith(("https://huggingface.co/", "https://hf.co/")):
        model = "/".join(model.split("/")[3:5])
    if _is_hub_id(model):
        same = next((p for p in presets() if shipped(p)["hub_id"].lower() == model.lower()), None)
        return _preset(same) if same else _from_hub(model)
    raise SpecError(f"model is {model!r}: neither a file, nor a folder with a config.json, nor a preset{_near(model)}")


def _near(text: str) -> str:
    """The preset that was probably meant, or where to find one."""
    near = get_close_matches(text.rpartition("/")[2].lower(), presets(), n=1)
    return f"; did you mean the preset {near[0]}?" if near else "; `kvlib models` lists the presets"


def _preset(name: str) -> tuple[str, str, Mapping]:
    data = shipped(name)
    return data["name"], data["source"], data["config"]


def _file(path: Path) -> tuple[str, str, Mapping]:
    if path.suffix.lower() == ".gguf":
        from kvlib.gguf import read_gguf

        return path.stem, str(path), read_gguf(path)
    return path.resolve().parent.name if path.name == "config.json" else path.stem, str(path), _json(path)


def _json(path: Path) -> Mapping:
    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError) and text.lstrip().startswith("<"):
            raise SpecError(f"{path} is an HTML page, as a gated model's link gives without a login; download the config.json "
                            "itself") from error  # fmt: skip
        raise SpecError(f"{path} is not JSON ({error}); give the model's config.json") from error
    if not isinstance(data, Mapping):
        raise SpecError(f"{path} holds a {type(data).__name__}; a config.json holds one object with named fields")
    if isinstance(data.get("config"), Mapping) and "hub_id" in data:  # a file of kvlib/models
        return data["config"]
    return data


def _is_hub_id(text: str) -> bool:
    """ "organisation/name", and not a path that was mistyped."""
    organisation, slash, name = text.partition("/")
    if not (slash and organisation and name) or {"/", "\\", " ", ":"} & set(name + organisation):
        return False
    return not name.endswith((".json", ".gguf")) and organisation not in (".", "..", "~") and not Path(organisation).is_dir()


def _from_hub(repo: str) -> tuple[str, str, Mapping]:
    """The config.json of a Hub repository by the hub client, with its cache, token, proxies and offline mode; one attempt."""
    way_out = "download its config.json and give the path of that file"
    try:
        from huggingface_hub import get_session, hf_hub_url, try_to_load_from_cache
        from huggingface_hub.utils import build_hf_headers
    except ImportError as error:
        raise SpecError(f"model is {repo!r}: neither a file nor a preset; to read it from the Hub, pip install huggingface_hub, "
                        f"or {way_out}{_near(repo)}") from error  # fmt: skip
    try:
        cached = try_to_load_from_cache(repo, "config.json")
        if isinstance(cached, str):
            config = _json(Path(cached))
        else:
            answer = get_session().get(hf_hub_url(repo, "config.json"), headers=build_hf_headers(), timeout=10)
            answer.raise_for_status()
            config = answer.json()
    except Exception as error:  # its own errors and those of the network, all of one meaning here
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise SpecError(f"model is {repo!r}: neither a file nor a preset, and the Hub did not give its config.json "
                        f"({reason}); {way_out}{_near(repo)}") from error  # fmt: skip
    if not isinstance(config, Mapping):
        raise SpecError(f"config.json of {repo} holds a {type(config).__name__}; expected one object with named fields")
    return repo.partition("/")[2], f"config.json of {repo}", config

"""Asks the other calculators, in their own environment (benchmarks/peers.txt): jobs as JSON on stdin, answers as JSON on stdout.

A job is {"name", "config", "n_tokens", "tensors"}. Both tools run the code that their command line runs; what they would fetch
from the Hub is handed to them, and this process may open no connection. One favour: accelerate allocates a tensor before it
drops it, 30 GB for DeepSeek-V3's experts; here everything starts on the meta device, so that a small machine does not fail it.
"""

import contextlib
import io
import json
import os
import socket
import struct
import sys
import tempfile
import warnings
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path

os.environ |= {"HF_HUB_OFFLINE": "1", "ACCELERATE_USE_CPU": "1"}

import accelerate
import hf_mem
import httpx2
import torch
import transformers
from accelerate.commands import estimate
from accelerate.utils import calculate_maximum_sizes
from cache_truth import build

CLIENT = httpx2.AsyncClient


class Repository:
    """A model repository as the Hub would serve it to hf-mem: a listing, config.json, and the header of model.safetensors."""

    def __init__(self, config: dict, tensors: dict[str, list[int]]) -> None:
        header = json.dumps({name: {"dtype": "BF16", "shape": shape} for name, shape in tensors.items()}).encode()
        self.files = {"config.json": json.dumps(config).encode(), "model.safetensors": struct.pack("<Q", len(header)) + header}

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        if "/tree/" in request.url.path:
            return httpx2.Response(200, json=[{"type": "file", "path": name} for name in self.files])
        data = self.files[request.url.path.rpartition("/")[2]]
        if "Range" not in request.headers:
            return httpx2.Response(200, content=data)
        first, last = map(int, request.headers["Range"].removeprefix("bytes=").split("-"))
        return httpx2.Response(206, content=data[first : last + 1])


def with_hf_mem(job: dict) -> dict:
    """hf_mem.run(model_id, experimental=True, max_model_len=N, kv_cache_dtype="bfloat16"): its documented entry point."""
    httpx2.AsyncClient = partial(CLIENT, transport=httpx2.MockTransport(Repository(job["config"], job["tensors"]).answer))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = hf_mem.run(f"bench/{job['name']}", experimental=True, max_model_len=job["n_tokens"],
                                kv_cache_dtype="bfloat16")  # fmt: skip
    return {"kv": result.kv_cache, "weights": result.memory, "said": " ".join(str(w.message) for w in said)[:300]}


def with_accelerate(job: dict) -> dict:
    """`accelerate estimate-memory FOLDER --library_name transformers --dtypes float16`; weights only, it has no KV cache."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(job["config"]), encoding="utf-8")
        estimate.verify_on_hub = lambda *_: Namespace(library_name="transformers", config=job["config"])
        arguments = Namespace(model_name=folder, library_name="transformers", trust_remote_code=False, dtypes=["float16"])
        with torch.device("meta"):
            [(_, _, total, _)] = estimate.gather_data(arguments)
    return {"kv": None, "weights": int(total)}


def with_accelerate_functions(job: dict) -> dict:
    """accelerate.utils.calculate_maximum_sizes of the causal LM, head included, built under init_empty_weights and tied."""
    with accelerate.init_empty_weights():
        model = build(job["config"])
    model.tie_weights()
    return {"kv": None, "weights": calculate_maximum_sizes(model)[0]}


TOOLS = {"hf-mem": with_hf_mem, "accelerate": with_accelerate, "accelerate, LM": with_accelerate_functions}


def asked(tool: Callable[[dict], dict], job: dict) -> dict:
    """What a tool answers, or how it failed: that is a result too."""
    try:
        return tool(job)
    except Exception as error:  # noqa: BLE001
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300]}


def no_connection(*_: object) -> None:
    raise OSError("this benchmark opens no connection")


def main() -> None:
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    socket.socket.connect = no_connection
    jobs = json.load(sys.stdin)
    with contextlib.redirect_stdout(io.StringIO()):
        answers = {job["name"]: {name: asked(tool, job) for name, tool in TOOLS.items()} for job in jobs}
    packages = ("hf-mem", "accelerate", "transformers", "torch")
    how = {name: " ".join(tool.__doc__.split()) for name, tool in TOOLS.items()}
    json.dump({"how": how, "versions": {p: version(p) for p in packages}, "answers": answers}, sys.stdout)


if __name__ == "__main__":
    main()

"""The CUDA C++ twin (`split_k.cu`): compiled by nvcc for one size at a time, loaded and started through the driver.

    cubin = compile_cubin("sm_90", torch.bfloat16, head_dim=128, group=8)     # needs nvcc, no GPU
    out = decode_attention(q, k, v, lengths)                                  # needs both

No build system and no extension module: what happens between a .cu file and a running kernel is the few calls below.
"""

import ctypes
import shutil
import subprocess
import tempfile
from functools import lru_cache
from importlib.util import find_spec
from math import sqrt
from pathlib import Path

import torch
from torch import Tensor

from kvlib.errors import SpecError, whole
from kvlib.kernels import check_decode

SOURCE = Path(__file__).with_name("split_k.cu")
C_NAMES = {torch.float32: "float", torch.float16: "__half", torch.bfloat16: "__nv_bfloat16"}
THREADS = 128  # per block, as in the source
STRIDES = ("q_row", "q_head", "k_row", "k_head", "k_token", "v_row", "v_head", "v_token")


class Strides(ctypes.Structure):
    """As in the source."""

    _fields_ = [(name, ctypes.c_longlong) for name in STRIDES]


def find_nvcc() -> Path | None:
    """nvcc on PATH, else in the pip package nvidia-cuda-nvcc, else None."""
    if found := shutil.which("nvcc"):
        return Path(found)
    package = find_spec("nvidia")
    roots = [Path(p) for p in package.submodule_search_locations] if package else []
    return next((path for root in roots for path in sorted(root.glob("*/bin/nvcc"))), None)


@lru_cache
def compile_cubin(architecture: str, dtype: torch.dtype, head_dim: int, group: int) -> bytes:
    """The machine code of both kernels for one architecture (sm_90) and size; about a second.

    Raises SpecError without nvcc, for a group whose queries do not fit in shared memory, or with the compiler's words.
    """
    if group * head_dim > 2048:
        raise SpecError(f"group · head_dim is {group} · {head_dim}; the CUDA kernel holds at most 2048 numbers of q")
    nvcc = find_nvcc()
    if nvcc is None:
        raise SpecError("nvcc is not on PATH; install the CUDA toolkit, or pip install nvidia-cuda-nvcc")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "split_k.cubin"
        sizes = [f"-DDTYPE={C_NAMES[dtype]}", f"-DHEAD_DIM={head_dim}", f"-DGROUP={group}"]
        command = [nvcc, "-cubin", f"-arch={architecture}", *sizes, "-o", target, SOURCE]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise SpecError(f"{nvcc} failed for {architecture}, {' '.join(sizes)}:\n{run.stderr}{run.stdout}")
        return target.read_bytes()


def decode_attention(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor, n_splits: int | None = None) -> Tensor:
    """As `split_k.decode_attention`: same arguments, same meaning, same errors.

    Needs nvcc and a CUDA device, and K and V whose pointers and strides are multiples of 16 bytes.
    """
    check_decode(q, k, v, lengths)
    if not q.is_cuda:
        raise SpecError(f"q is on {q.device}; the CUDA kernel runs on a CUDA device only")
    batch, n_heads, _, head_dim = q.shape
    n_kv_heads, kv_len = k.shape[1:3]
    strides = Strides(*q.stride()[:2], *k.stride()[:3], *v.stride()[:3])
    if any(x.data_ptr() % 16 or any(s * x.element_size() % 16 for s in x.stride()[:3]) for x in (k, v)):
        raise SpecError(f"k and v have strides {k.stride()} and {v.stride()}; expected multiples of 16 bytes, and "
                        "pointers aligned to 16: copy them with .contiguous()")  # fmt: skip
    if n_splits is None:  # about eight blocks of this kernel's size fill an SM
        n_sms = torch.cuda.get_device_properties(q.device).multi_processor_count
        n_splits = min(max(1, 8 * n_sms // (batch * n_kv_heads)), max(1, kv_len // 128), 128)
    part = torch.empty(batch, n_heads, whole("n_splits", n_splits), head_dim, dtype=torch.float32, device=q.device)
    lse = torch.empty(batch, n_heads, n_splits, dtype=torch.float32, device=q.device)
    out = torch.empty(batch, n_heads, 1, head_dim, dtype=q.dtype, device=q.device)
    with torch.cuda.device_of(q):
        split, merge = _load(q.device.index, q.dtype, head_dim, n_heads // n_kv_heads)
        scale = ctypes.c_float(1 / sqrt(head_dim))
        arguments = q, k, v, lengths, part, lse, scale, ctypes.c_int(kv_len), strides
        _launch(split, (n_splits, n_kv_heads, batch), THREADS, *arguments)
        _launch(merge, (batch * n_heads, 1, 1), head_dim, part, lse, out, ctypes.c_int(n_splits))
    return out


@lru_cache
def _load(device: int, dtype: torch.dtype, head_dim: int, group: int) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
    """Both kernels as handles of the driver, in torch's context of this device. The module stays loaded."""
    major, minor = torch.cuda.get_device_capability(device)
    module, split, merge = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    _call("cuModuleLoadData", ctypes.byref(module), compile_cubin(f"sm_{major}{minor}", dtype, head_dim, group))
    _call("cuModuleGetFunction", ctypes.byref(split), module, b"split_k")
    _call("cuModuleGetFunction", ctypes.byref(merge), module, b"merge_splits")
    return split, merge


def _launch(kernel: ctypes.c_void_p, grid: tuple[int, int, int], threads: int, *arguments: object) -> None:
    """Start a kernel on torch's stream. A tensor goes as its address; the driver reads arguments through pointers."""
    values = [ctypes.c_void_p(x.data_ptr()) if isinstance(x, Tensor) else x for x in arguments]
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(x) for x in values))
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    _call("cuLaunchKernel", kernel, *grid, threads, 1, 1, 0, stream, pointers, None)


def _call(name: str, *arguments: object) -> None:
    code = getattr(_driver(), name)(*arguments)
    if code:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(code, ctypes.byref(text))
        raise RuntimeError(f"{name} failed with {code}: {(text.value or b'unknown error').decode()}")


@lru_cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")

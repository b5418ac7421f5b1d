"""The CUDA twin without a GPU: nvcc compiles it, and g++ runs its source on the CPU, thread for thread."""

import ctypes
import shutil
import subprocess
from math import sqrt
from pathlib import Path

import pytest
import torch

from kvlib.errors import SpecError
from kvlib.kernels import cuda
from tests.kernels.decode_cases import case, int32, oracle

HERE = Path(__file__).parent
needs_nvcc = pytest.mark.skipif(cuda.find_nvcc() is None, reason="nvcc is not here (pip: nvidia-cuda-nvcc)")
needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not here")
FP32, FP16 = torch.float32, torch.float16
SIZES = [(FP32, 64, 2), (FP16, 80, 7), (FP16, 256, 1), (FP32, 256, 2), (FP32, 96, 3)]


@needs_nvcc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("head_dim", [80, 128])
def test_nvcc_compiles_it_without_spills(architecture, head_dim):
    cubin = cuda.compile_cubin(architecture, torch.bfloat16, head_dim, 8)
    assert cubin[:4] == b"\x7fELF"
    pytest.importorskip("triton", reason="cuobjdump comes with triton (Linux only)")
    from kvlib.kernels.ahead import resources

    assert resources(cubin)["stack"] == 0


@needs_nvcc
@pytest.mark.parametrize(("dtype", "head_dim", "group"), SIZES, ids=str)
def test_nvcc_compiles_every_dtype_and_shape_of_tile(dtype, head_dim, group):
    assert cuda.compile_cubin("sm_90", dtype, head_dim, group)[:4] == b"\x7fELF"


@pytest.fixture(scope="module", params=SIZES, ids=str)
def emulated(request, tmp_path_factory):
    """Compile the source for one size with g++ → a function with the launcher's arguments."""
    dtype, head_dim, group = request.param
    library = tmp_path_factory.mktemp("cuda") / "split_k.so"
    name = {torch.float32: "float", torch.float16: "_Float16"}[dtype]
    sizes = [f"-DDTYPE={name}", f"-DHEAD_DIM={head_dim}", f"-DGROUP={group}"]
    flags = ["-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", *sizes]
    command = ["g++", *flags, "-o", library, HERE / "emulated_cuda.cpp"]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    if run.returncode and "_Float16" in run.stderr:
        pytest.skip("this g++ has no _Float16")
    assert run.returncode == 0, run.stderr
    code = ctypes.CDLL(str(library))

    def decode(q, k, v, lengths, n_splits):
        def address(x):
            return ctypes.c_void_p(x.data_ptr())

        batch, n_heads = q.shape[:2]
        part = torch.full((batch, n_heads, n_splits, head_dim), torch.nan)
        lse, out = torch.full(part.shape[:3], torch.nan), torch.full_like(q, torch.nan)
        strides = cuda.Strides(*q.stride()[:2], *k.stride()[:3], *v.stride()[:3])
        scale, kv_len = ctypes.c_float(1 / sqrt(head_dim)), k.shape[2]
        pointers = map(address, (q, k, v, lengths, part, lse))
        code.run_split(n_splits, k.shape[1], batch, *pointers, scale, kv_len, ctypes.byref(strides))
        code.run_merge(batch * n_heads, address(part), address(lse), address(out), n_splits)
        return out

    decode.size = request.param
    return decode


@needs_gxx
@pytest.mark.parametrize("n_splits", [1, 3])
def test_its_source_computes_attention(emulated, n_splits):
    """Ragged lengths, an empty row, empty splits, a strided cache that holds NaN behind the lengths."""
    dtype, head_dim, group = emulated.size
    q, k, v = case(4, 2 * group, 2, 150, head_dim, dtype)
    k, v = k[:, :, :140], v[:, :, :140]
    lengths = int32(0, 1, 65, 1000)
    expected = oracle(q, k, v, int32(0, 1, 65, 140))
    for row, length in enumerate(lengths.tolist()):
        k[row, :, length:] = v[row, :, length:] = torch.nan
    rtol = 0 if dtype == torch.float32 else 2**-11
    torch.testing.assert_close(emulated(q, k, v, lengths, n_splits).double(), expected, rtol=rtol, atol=2e-6)


def test_what_is_missing_is_said(monkeypatch):
    q, k, v = case(1, 2, 1, 8, 64)
    with pytest.raises(SpecError, match="runs on a CUDA device only"):
        cuda.decode_attention(q, k, v, int32(8))
    with pytest.raises(SpecError, match="at most 2048"):
        cuda.compile_cubin("sm_90", torch.float32, 256, 16)
    monkeypatch.setattr(cuda, "find_nvcc", lambda: None)
    with pytest.raises(SpecError, match="nvidia-cuda-nvcc"):
        cuda.compile_cubin("sm_90", torch.float32, 96, 5)


@needs_nvcc
def test_nvcc_speaks_for_itself():
    with pytest.raises(SpecError, match="sm_1"):
        cuda.compile_cubin("sm_1", torch.float32, 64, 1)

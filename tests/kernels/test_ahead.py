"""The Triton kernels compiled for GPUs that are not here: what their machine code promises. Nothing runs."""

import os
import subprocess
import sys

import pytest
import torch

pytest.importorskip("triton", reason="triton is not installed (Linux only)")
if os.environ.get("TRITON_INTERPRET") == "1":
    pytest.skip("a process that interprets cannot compile", allow_module_level=True)

from kvlib.errors import SpecError
from kvlib.kernels import HEAD_DIMS, ahead, available
from kvlib.kernels.ahead import ARCHITECTURES, compile_ahead
from kvlib.kernels.split_k import CONFIGS, PROGRAMS_PER_SM, dim

BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32
SM_SHARED = {"sm_80": 163, "sm_90": 227, "sm_100": 227}  # KiB of shared memory that programs on an SM can have together
REGISTERS = {2: 128, 4: 255}  # per thread, by bytes per element; 128 leave room for four programs of 128 threads


@pytest.mark.parametrize(("head_dim", "itemsize"), CONFIGS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_configuration_loads_wide_and_spills_nothing(architecture, head_dim, itemsize):
    check_contract(architecture, {2: BF16, 4: FP32}[itemsize], head_dim, group=8)


@pytest.mark.parametrize(("dtype", "group"), [(FP16, 8), (BF16, 1), (BF16, 7), (BF16, 16)], ids=str)
def test_so_do_other_groups_and_float16(dtype, group):
    check_contract("sm_90", dtype, 128, group)


@pytest.mark.parametrize("head_dim", set(HEAD_DIMS) - {d for d, _ in CONFIGS})
def test_so_do_padded_head_dims(head_dim):
    check_contract("sm_90", BF16, head_dim, group=8)


def check_contract(architecture, dtype, head_dim, group):
    report = compile_ahead(architecture, dtype, head_dim, group)
    split, merge = report["split"], report["merge"]
    config, threads = CONFIGS[dim(head_dim), dtype.itemsize], 32 * CONFIGS[dim(head_dim), dtype.itemsize].warps
    assert split.stack == merge.stack == 0
    assert split.registers <= REGISTERS[dtype.itemsize] and merge.registers <= 64
    per_tile = config.block * dim(head_dim) * dtype.itemsize // (16 * threads)  # 16-byte loads per thread, of K or of V
    assert split.vector_loads >= 2 * per_tile * (config.stages - 1) and "cp.async" in split.ptx
    assert split.narrow_loads == 1  # the length
    assert merge.vector_loads > 0
    programs = PROGRAMS_PER_SM if dtype.itemsize == 2 and architecture != "sm_80" else 1
    assert programs * (split.shared + 1024) <= SM_SHARED[architecture] * 1024
    assert ("mma" in split.ptx) and ("bf16.bf16" in split.ptx) == (dtype == BF16)


def test_the_contract_can_fail(monkeypatch):
    """Without knowing that pointers and strides are multiples of 16, the compiler loads two bytes at a time."""
    monkeypatch.setattr(ahead, "MULTIPLES_OF_16", [])
    split = compile_ahead("sm_90", BF16, 128, 8)["split"]
    assert split.narrow_loads > 100


def test_what_cannot_be_compiled_is_refused():
    with pytest.raises(SpecError, match="architecture is 'sm_1'"):
        compile_ahead("sm_1", BF16, 128, 8)


def test_available_tells_the_truth_here():
    assert available().where == ("cuda" if torch.cuda.is_available() else None)
    assert available().reason


def test_kernels_can_be_imported_and_asked_without_triton():
    code = """
import sys; sys.modules["triton"] = None
import torch
from kvlib.attention import attention
from kvlib.kernels import available
assert not available() and "pip install triton" in available().reason
x = torch.zeros(1, 1, 1, 64)
assert attention(x, x, x).shape == x.shape
try: attention(x, x, x, impl="triton")
except ValueError as error: assert "pip install triton" in str(error), error
else: raise AssertionError
"""
    run = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr

"""Compile the Triton kernels for a GPU that is not here, and read from the machine code what it will ask of that GPU.

    report = compile_ahead("sm_90", torch.bfloat16, head_dim=128, group=8)["split"]
    report.registers, report.stack, report.shared, report.vector_loads, report.narrow_loads

What this can say: registers, spills, shared memory, how wide the loads are. What it cannot say: how fast the kernel is.
A process with TRITON_INTERPRET=1 cannot compile.
"""

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kvlib.errors import SpecError
from kvlib.kernels.split_k import CONFIGS, INTERPRETED, dim, merge_kernel, specialise, split_kernel

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
MULTIPLES_OF_16 = [["tt.divisibility", 16]]  # what the launcher finds out about a pointer or stride before it compiles
NAMES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}


@dataclass(frozen=True, slots=True)
class Report:
    """One kernel for one architecture. registers, stack (bytes spilled): per thread. shared: bytes per program.

    vector_loads: instructions that fetch 16 bytes per thread from global memory (cp.async or ld.global.v4): all of K
    and V in the split kernel. narrow_loads: those that fetch fewer, which only lengths and log-sum-exps may need.
    """

    registers: int
    stack: int
    shared: int
    vector_loads: int
    narrow_loads: int
    ptx: str


def compile_ahead(architecture: str, dtype: torch.dtype, head_dim: int, group: int) -> dict[str, Report]:
    """Compile both kernels as `split_k.decode_attention` would, for strides and pointers that are multiples of 16.

    Raises SpecError under the interpreter and for an unknown architecture.
    """
    if INTERPRETED:
        raise SpecError("TRITON_INTERPRET=1 is set in this process; compile in another one, without it")
    if architecture not in ARCHITECTURES:
        raise SpecError(f"architecture is {architecture!r}; expected one of {', '.join(ARCHITECTURES)}")
    target = GPUTarget("cuda", int(architecture[3:]), 32)
    config, x = CONFIGS[dim(head_dim), dtype.itemsize], NAMES[dtype]
    tensors = {"q": f"*{x}", "k": f"*{x}", "v": f"*{x}", "lengths": "*i32", "out": "*fp32", "lse": "*fp32"}
    strides = ("q_row", "q_head", "k_row", "k_head", "k_token", "v_row", "v_head", "v_token")
    split = tensors | {"scale": "fp32", "kv_len": "i32"} | dict.fromkeys(strides, "i32")
    merge = {"part": "*fp32", "lse": "*fp32", "out": f"*{x}", "n_splits": "i32"}
    split_sizes = specialise(dtype, head_dim, group) | {"BLOCK": config.block}
    merge_sizes = {"HEAD_DIM": head_dim, "DIM": dim(head_dim), "BLOCK": 16}
    return {
        "split": _compile(split_kernel, split, split_sizes, target, config.options),
        "merge": _compile(merge_kernel, merge, merge_sizes, target, {"enable_fp_fusion": True}),
    }


def _compile(kernel, types: dict[str, str], constants: dict, target: GPUTarget, options: dict) -> Report:
    names, free = kernel.arg_names, ("scale", "kv_len", "n_splits")  # the values that are no pointers and no strides
    aligned = {(names.index(n),): MULTIPLES_OF_16 for n in types if n not in free}
    source = ASTSource(
        fn=kernel,
        signature={n: types.get(n, "constexpr") for n in names},
        constexprs={(names.index(n),): value for n, value in constants.items()},
        attrs=aligned,
    )
    built = triton.compile(source, target=target, options=options)
    ptx = built.asm["ptx"]
    loads = re.findall(r"ld\.global\S*|cp\.async\.c[ag]\.shared\.global \[[^]]*\], \[[^]]*\], 0x\w+", ptx)
    wide = sum(bool(re.search(r"v4\.b32|v2\.b64|v4\.f32|, 0x10$", load)) for load in loads)
    used = resources(built.asm["cubin"])
    return Report(**used, shared=built.metadata.shared, vector_loads=wide, narrow_loads=len(loads) - wide, ptx=ptx)


def resources(cubin: bytes) -> dict[str, int]:
    """registers and stack bytes of the one kernel in a cubin, read with the cuobjdump in triton's wheel."""
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        text = subprocess.run([tool, "--dump-resource-usage", path], check=True, capture_output=True, text=True).stdout
    found = dict(re.findall(r"(REG|STACK):(\d+)", text))
    return {name: int(found[key]) for name, key in (("registers", "REG"), ("stack", "STACK"))}

"""Run a notebook in this environment's Python, and clean what the run left behind.

Invariant: two runs of the same deterministic notebook leave the same bytes. Timings,
widget models and the kernel's description are not kept; text, images and their alternative
texts are.
"""

import re
from collections.abc import Callable
from pathlib import Path

import ipykernel.kernelspec
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

CELL_TIMEOUT = 120  # seconds; nbval is given the same
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class CellFailed(Exception):
    """A cell raised, took too long or killed its kernel. Says which, with its source."""

    def __init__(self, number: int, total: int, source: str, error: str) -> None:
        super().__init__(f"cell {number}/{total}: {error}")
        self.number, self.total, self.source, self.error = number, total, source, error


class _ThisPython(KernelSpecManager):
    """Always the running interpreter, whatever kernels this user has registered."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        quiet = ["--log-level=ERROR"]  # no advice about transports on the author's terminal
        return KernelSpec(**ipykernel.kernelspec.get_kernel_dict(extra_arguments=quiet))


def run(nb: NotebookNode, cwd: Path, progress: Callable[[int, int], None]) -> None:
    """Execute ``nb`` in place with ``cwd`` as working folder; raises CellFailed.

    ``progress(k, n)`` is called as the k-th of n code cells starts.
    """
    code = [index for index, cell in enumerate(nb.cells) if cell.cell_type == "code"]
    current = 0

    def started(cell: NotebookNode, cell_index: int) -> None:
        nonlocal current
        if cell_index in code:
            current = code.index(cell_index) + 1
            progress(current, len(code))

    client = NotebookClient(
        nb,
        km=AsyncKernelManager(kernel_spec_manager=_ThisPython()),
        timeout=CELL_TIMEOUT,
        record_timing=False,
        store_widget_state=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(cwd)}},
        on_cell_start=started,
    )
    # As under nbval, there is no front end: what a widget captures shows below the cell, too.
    client.comm_open_handlers["jupyter.widget"] = lambda message: None
    try:
        client.execute()
    except CellExecutionError as error:
        trace = "\n".join(nb.cells[code[current - 1]].outputs[-1].traceback)
        cause = f"{error.ename}: {error.evalue}\n{_ANSI.sub('', trace)}"
    except CellTimeoutError:
        cause = f"still running after {CELL_TIMEOUT} s; make it smaller"
    except DeadKernelError:
        cause = "the kernel died (out of memory, or a crash in native code)"
    else:
        return clean(nb)
    source = nb.cells[code[current - 1]].source if current else ""
    raise CellFailed(current, len(code), source, cause)


def clean(nb: NotebookNode) -> None:
    """Remove what differs between two runs, or is of no use without the kernel that ran."""
    nb.metadata.pop("language_info", None)
    nb.metadata.pop("widgets", None)
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "text/plain" in data:  # a reader then sees the text, not "model not found"
                data.pop(WIDGET_VIEW, None)

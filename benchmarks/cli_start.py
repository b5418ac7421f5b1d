"""How long the command line takes to answer, as whole processes, side by side in one run.

    python benchmarks/cli_start.py [ROUNDS]

The commands take turns, so that a busy machine slows all of them alike; compare the ratios, not the milliseconds.
"""

import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import record
from rich.console import Console
from rich.table import Table

BIN = Path(sys.executable).parent
BASE = "python -c pass"
COMMANDS = {
    BASE: [sys.executable, "-c", "pass"],
    "kvlib estimate": [str(BIN / "kvlib"), "estimate", "llama-2-70b", "--tokens", "4096"],
    "kvlib estimate --json": [str(BIN / "kvlib"), "estimate", "llama-2-70b", "--tokens", "4096", "--json"],
    "kvlib budget": [str(BIN / "kvlib"), "budget", "llama-2-70b", "--gpus", "2"],
    "kvlib --help": [str(BIN / "kvlib"), "--help"],
}
PEER = shutil.which("hf-mem", path=str(BIN.parent / "peers" / BIN.name)) or shutil.which("hf-mem")


def milliseconds(command: list[str]) -> float:
    """One run of `command`, output thrown away. Raises CalledProcessError when it fails."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return 1e3 * (time.perf_counter() - start)


def main(rounds: int) -> None:
    commands = COMMANDS | ({"hf-mem --help": [PEER, "--help"]} if PEER else {})
    for command in commands.values():
        milliseconds(command)  # warm the disk cache
    times = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(milliseconds(command))
    base = statistics.median(times[BASE])
    rows = {
        name: {"min_ms": round(min(t), 1), "median_ms": round(statistics.median(t), 1),
               "times_python": round(statistics.median(t) / base, 2)}
        for name, t in times.items()
    }  # fmt: skip
    path = record.write("cli_start", {"rounds": rounds, "commands": rows, "hf-mem": "run" if PEER else "not run"},
                        "kvlib", "typer", "rich")  # fmt: skip
    _show(rows, path)


def _show(rows: dict, path: Path) -> None:
    table = Table("command", "min, ms", "median, ms", f"÷ {BASE}", title=f"{path.parent.name}/{path.name}")
    for name, row in rows.items():
        table.add_row(name, *(f"{row[key]}" for key in ("min_ms", "median_ms", "times_python")))
    Console().print(table)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)

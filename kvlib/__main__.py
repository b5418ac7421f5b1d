"""`python -m kvlib` is `kvlib`."""

from kvlib.cli import run

run()

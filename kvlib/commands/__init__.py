"""The commands of `kvlib`: arguments in, a report out. The reports are in `reports`, the arithmetic elsewhere.

Invariant: a command imports what only it needs when it runs, so that an estimate answers at once.
"""

from kvlib.commands import budget, compare, estimate, explain_log, fit, models  # noqa: F401
from kvlib.commands.app import app

__all__ = ["app"]

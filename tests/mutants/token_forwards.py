"""Wrong solutions of `token-forwards`."""

from kvgrade.exercises import Mutant

MUTANTS = [Mutant(f"m{k}", {"zh-TW": "x", "en": "y"}, (("p + n - 1", f"p + n + {k}"),)) for k in range(5)]

"""How the weights of a decoder are laid out: `LAYOUTS`, one row of facts per `model_type`, and the tensors they stand for.

facts: what a row may say. table: the rows. blocks, mixers, extras: the tensors of one block.
"""

from kvlib.layouts.facts import Experts, Layout
from kvlib.layouts.table import LAYOUTS

__all__ = ["LAYOUTS", "Experts", "Layout"]

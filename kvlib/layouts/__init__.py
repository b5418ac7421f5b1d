"""How the weights of a decoder are laid out: `LAYOUTS`, one row of facts per `model_type`, and the tensors they stand for.

facts: what a row may say. table: the rows. rules: numbers that a class computes. blocks and mixers: the tensors of one layer.
encoders and stacks: whole stacks of layers that are not alike. extras: what only a few families have.
"""

from kvlib.layouts.facts import Experts, Layout
from kvlib.layouts.table import LAYOUTS

__all__ = ["LAYOUTS", "Experts", "Layout"]

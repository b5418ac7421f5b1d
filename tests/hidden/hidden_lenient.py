"""What judges a value apart from its type, so that one slip in a type costs the property that is about types and no other;
and words in place of "the value differs".

Invariant: nothing here makes a wrong value right; `whole` and `cast` are never used in the property that judges the type.
"""

import torch

from kvgrade.testing import Failed


def whole(got):
    """A float that is a whole number as that number; anything else as it is."""
    return int(got) if type(got) is float and got.is_integer() else got


def cast(got, dtype=torch.float32):
    """A tensor of another floating dtype in this one; anything else as it is."""
    return got.to(dtype) if isinstance(got, torch.Tensor) and got.is_floating_point() else got


def close_or_say(t, got, want, dtype=torch.float32, times=1.0, *, zh, en):
    """`t.close`, but where the value differs (or is NaN) the learner reads these words."""
    try:
        t.close(got, want, dtype, times)
    except Failed as failed:
        if failed.id not in ("value", "nan"):
            raise
        t.expect(False, zh=zh, en=en)

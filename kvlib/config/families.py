"""What a config.json leaves to the code that loads it: the facts of a model's class that decide its cache.

A published config does not say everything: that every sixth Gemma-3 layer is a full one, or that an absent head_dim means
256, stands only in the class. `family_table` has one row per `model_type`; what decides the weights is in `layouts`.
"""

from dataclasses import dataclass

from kvlib.config.fields import Fields
from kvlib.errors import MissingField

FEATURES = (
    "sliding_window_pattern", "kv_lora_rank", "v_head_dim", "multi_query", "num_kv_shared_layers", "use_cla",
    "attention_chunk_size", "decoder_layers", "num_decoder_layers", "decoder_attention_heads", "num_decoder_attention_heads",
)  # fmt: skip
"""Fields that only some classes know; in the config of another one they change nothing."""


@dataclass(frozen=True, slots=True)
class Family:
    """Class facts of one model type.

    own: fields to which the class gives a number of its own when they are absent, so they must be given.
    reads: which of `FEATURES` the class looks at besides those in `own`; in the others they are decoys.
    windows: does the class have sliding windows at all? If not, a `sliding_window` contradicts it.
    window_switch: does the window count only with `use_sliding_window: true`?
    full_below: are the layers below `max_window_layers` full ones?
    full_every, full_at: with a window or chunk and no pattern, layer i is full when i % full_every == full_at (default: the
    last of each group); None: no layer is full.
    kind: the kind of every layer when neither a pattern nor a window says otherwise; None: a pattern must be given.
    attention: the kind that a pattern means when it says full attention (a layer may slide or hold a state all the same).
    per_layer: attentions per layer, each with a cache of its own.
    sliding_kv_heads: how many times `num_key_value_heads` a sliding layer has when `swa_num_key_value_heads` is absent.
    window_beside_query: does `sliding_window_size` count the earlier tokens only, the query's own one coming on top?
    ignored: fields that the class does not look at, though other classes do.
    renamed: (name here, name elsewhere) of fields that go by another name in other classes.
    state_dtype: the dtype of a recurrent state when `mamba_ssm_dtype` is absent; None: the model's.
    state_heads: does a recurrent layer keep one head_dim × head_dim matrix per query head (lightning attention)?
    cross: has every layer cross-attention unless `is_encoder_decoder` is false?
    encoder: does it read in both directions, so that it keeps no cache unless `is_decoder` is true?
    expands: does the class of transformers copy K and V to every query head before it caches them? A name: where that
    field is true.
    """

    own: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    windows: bool = False
    window_switch: bool = False
    full_below: bool = False
    full_every: int | None = None
    full_at: int = -1
    kind: str | None = "full_attention"
    attention: str = "full_attention"
    per_layer: int = 1
    sliding_kv_heads: int = 1
    window_beside_query: bool = False
    ignored: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    state_dtype: str | None = None
    state_heads: bool = False
    cross: bool = False
    encoder: bool = False
    expands: bool | str = False

    @property
    def unseen(self) -> tuple[str, ...]:
        """Fields that the class does not look at."""
        return (*self.ignored, *(name for name in FEATURES if name not in self.own + self.reads))

    def expanded(self, fields: Fields) -> bool:
        """Does the cache of transformers keep a copy of K and V per query head?"""
        return fields.flag(self.expands, default=False) if isinstance(self.expands, str) else self.expands

    def needs(self, fields: Fields, name: str) -> None:
        """Raise MissingField when `name` is absent or null and the class has a number of its own for it."""
        if name in self.own:
            state = "null" if name in fields.config else "absent"
            raise MissingField(f"{fields.where}: {name} is {state} and this model_type has a default of its own; add it")


GENERIC = Family(reads=FEATURES, windows=True, window_switch=True)
"""An unknown model type whose config has the ordinary fields, and none that may change the cache and is not read."""

"""All layers of models with an encoder: its stack, and a decoder's with cross-attention into it.

Each rule takes the fields and the decoder's layers and returns the tensors of both stacks; the decoder's own embeddings,
its last norm and its head are facts of the `Layout` like everybody's.
"""

from kvlib.config.fields import Fields
from kvlib.layouts.blocks import feed_forward, linear, norm
from kvlib.layouts.facts import Uncounted
from kvlib.spec import Layer, Weight


def bart(fields: Fields, layers: tuple[Layer, ...], *, more_positions: int = 2, embedding_norm: bool = True,
         last_norm: bool = False, key_bias: bool = True, positions: str = "max_position_embeddings",
         shared: bool = True) -> list[Weight]:  # fmt: skip
    """Learned positions, biases everywhere, a plain feed-forward block (BART)."""
    _usual_stacks(fields)
    hidden = fields.integer("hidden_size")
    stacks = [("encoder", 1, fields.integer("encoder_layers")), ("decoder", 2, len(layers))]
    weights = [Weight("encoder.embed_positions", "embedding", (fields.integer(positions) + more_positions, hidden))]
    if shared and not fields.flag("tie_word_embeddings", default=True):  # then each stack has an embedding of its own
        weights += [Weight("embed_tokens", "embedding", (fields.integer("vocab_size"), hidden), 2)]
    weights += norm("encoder.embedding_norm", hidden, bias=True) if embedding_norm else []
    weights += norm("encoder.norm", hidden, bias=True) if last_norm else []
    for stack, n_attentions, n_layers in stacks:
        inner = fields.integer(f"{stack}_ffn_dim")
        for name in "qkvo":
            weights += linear(f"{stack}.{name}_proj", "attention", hidden, hidden, name != "k" or key_bias, n_attentions * n_layers)
        weights += feed_forward(f"{stack}.mlp", inner, hidden, gated=False, bias=True, count=n_layers)
        weights += norm(f"{stack}.layer norms", hidden, bias=True) * (n_attentions + 1) * n_layers
    return weights


def mbart(fields: Fields, layers: tuple[Layer, ...]) -> list[Weight]:
    """BART with a norm after the last layer."""
    return bart(fields, layers, last_norm=True)


def pegasus(fields: Fields, layers: tuple[Layer, ...]) -> list[Weight]:
    """BART with a norm after the last layer and none after the embedding."""
    return bart(fields, layers, more_positions=0, embedding_norm=False, last_norm=True)


def marian(fields: Fields, layers: tuple[Layer, ...]) -> list[Weight]:
    """BART without the norms after embedding and last layer."""
    return bart(fields, layers, more_positions=0, embedding_norm=False)


def whisper(fields: Fields, layers: tuple[Layer, ...]) -> list[Weight]:
    """Two convolutions over the mel spectrogram in front; keys have no bias."""
    hidden, mels = fields.integer("hidden_size"), fields.integer("num_mel_bins")
    convolutions = [
        *(Weight("encoder.conv", "embedding", (hidden, width, 3)) for width in (mels, hidden)),
        Weight("encoder.conv.bias", "embedding", (hidden,), 2),
    ]
    return convolutions + bart(fields, layers, more_positions=0, embedding_norm=False, last_norm=True, key_bias=False,
                               positions="max_source_positions", shared=False)  # fmt: skip


def t5(fields: Fields, layers: tuple[Layer, ...]) -> list[Weight]:
    """Relative positions in the first layer of each stack, no biases, heads as wide as d_kv says."""
    _usual_stacks(fields)
    hidden, n_heads = fields.integer("hidden_size"), fields.integer("num_attention_heads")
    queries, inner = n_heads * fields.integer("head_dim"), fields.integer("d_ff")
    gated = fields.flag("is_gated_act", default=(fields.text("feed_forward_proj") or "relu").startswith("gated"))
    weights = [Weight("relative_attention_bias", "attention", (fields.integer("relative_attention_num_buckets"), n_heads), 2)]
    weights += norm("encoder.norm", hidden)
    for stack, n_attentions, n_layers in (("encoder", 1, fields.integer("num_layers")), ("decoder", 2, len(layers))):
        count = n_attentions * n_layers
        weights += [w for name in "qkv" for w in linear(f"{stack}.{name}_proj", "attention", queries, hidden, count=count)]
        weights += linear(f"{stack}.o_proj", "attention", hidden, queries, count=count)
        weights += feed_forward(f"{stack}.mlp", inner, hidden, gated=gated, count=n_layers)
        weights += [Weight(f"{stack}.layer norms", "norm", (hidden,), (n_attentions + 1) * n_layers)]
    return weights


def _usual_stacks(fields: Fields) -> None:
    """Raise Uncounted where a flag says that the model is not the usual pair of stacks."""
    for name, usual in (("is_encoder_decoder", True), ("share_encoder_decoder_embeddings", True), ("use_prompt", False)):
        if fields.flag(name, default=usual) is not usual:
            raise Uncounted(f"{fields.where}: {name} is {not usual}, and what that changes in the weights is not known")

"""The wire: what goes in comes out, tensors bit for bit; whatever else comes in raises WireError and nothing else."""

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvgrade.worker import wire

QUICK = settings(max_examples=60, deadline=None)


def same(a, b) -> bool:
    """Equal in value and type; tensors bit for bit, NaN included."""
    if isinstance(a, torch.Tensor):
        if not isinstance(b, torch.Tensor) or a.dtype != b.dtype or a.shape != b.shape:
            return False
        return a.numel() == 0 or torch.equal(a.contiguous().reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8))
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a.items(), b.items(), strict=True))
    return a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b))


def travel(value):
    """Pack, write, read, unpack: as between two processes."""
    data, blobs = wire.pack(value)
    return wire.unpack(wire.loads(wire.dumps(data)), blobs)


@st.composite
def tensors(draw):
    dtype = draw(st.sampled_from(sorted(wire.DTYPES.values(), key=str)))
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    seed = draw(st.integers(0, 2**32))
    values = torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * 50
    if dtype.is_floating_point and values.numel():
        values.reshape(-1)[0] = draw(st.sampled_from([0.0, -0.0, float("nan"), float("inf"), -float("inf")]))
    tensor = values.abs().to(dtype) if dtype == torch.uint8 else values.to(dtype)
    return tensor.transpose(0, -1) if tensor.dim() > 1 and draw(st.booleans()) else tensor


text = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
plain = st.none() | st.booleans() | st.integers(-(10**60), 10**60) | st.floats() | text | st.sampled_from(list(wire.DTYPES.values()))
keys = st.integers() | text | st.booleans() | st.tuples(st.integers(), text)
values = st.recursive(plain | tensors(), lambda v: st.lists(v, max_size=3) | st.lists(v, max_size=3).map(tuple)
                      | st.dictionaries(keys, v, max_size=3), max_leaves=8)  # fmt: skip


@QUICK
@given(values)
def test_what_is_sent_arrives(value):
    assert same(travel(value), value)


@QUICK
@given(tensors())
def test_a_tensor_that_arrives_shares_no_memory_and_can_be_written(tensor):
    data, blobs = wire.pack(tensor)
    arrived = wire.unpack(data, blobs)
    arrived.zero_()
    assert same(wire.unpack(data, blobs), tensor)


@pytest.mark.parametrize("dtype", wire.DTYPES.values(), ids=str)
def test_scalars_and_empty_tensors_of_every_dtype_arrive(dtype):
    for shape in ((), (0,), (3, 0, 2), (1,)):
        tensor = torch.ones(shape, dtype=dtype)
        assert same(travel(tensor), tensor)


def test_a_tensor_that_needs_a_gradient_arrives_without():
    assert not travel(torch.ones(2, requires_grad=True)).requires_grad


def test_a_subclass_that_lies_arrives_as_what_it_holds():
    class Liar(int):
        __eq__ = __ne__ = lambda self, other: True
        __hash__ = int.__hash__
        __int__ = __index__ = lambda self: 999

    class Text(str):
        __str__ = __repr__ = lambda self: "lie"

    class Real(float):
        __float__ = lambda self: 1.5

    arrived = travel([Liar(3), Text("truth"), Real(2.5)])
    assert arrived == [3, "truth", 2.5]
    assert [type(x) for x in arrived] == [int, str, float]


def test_an_object_that_is_no_data_stays_where_it_is():
    ref = wire.Ref(7, "Thing")
    data, blobs = wire.pack([object()], lambda thing: ref)
    assert wire.unpack(wire.loads(wire.dumps(data)), blobs) == [ref]
    assert wire.unpack(data, blobs, lambda found: "here" if found == ref else None) == ["here"]
    with pytest.raises(wire.WireError):
        wire.pack(object())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(["tensor", "list", "tuple", "dict", "ref", "dtype", "float32", "bool", "uint8"]),
    lambda v: st.lists(v, max_size=4) | st.dictionaries(
        st.sampled_from(["$", "items", "dtype", "shape", "blob", "id", "type", "name"]) | st.text(max_size=3), v, max_size=5),
    max_leaves=12)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(json_values, st.lists(st.binary(max_size=16), max_size=3))
def test_a_malformed_value_raises_wire_error_and_nothing_else(data, blobs):
    try:
        wire.unpack(data, blobs)
    except wire.WireError:
        pass


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(list(wire.DTYPES)), st.lists(st.integers(-2, 1 << 40) | st.floats() | st.text(max_size=2), max_size=4),
       st.integers(-3, 3) | st.none(), st.lists(st.binary(max_size=16), max_size=3))  # fmt: skip
def test_a_malformed_tensor_raises_wire_error_and_nothing_else(dtype, shape, blob, blobs):
    try:
        tensor = wire.unpack({"$": "tensor", "dtype": dtype, "shape": shape, "blob": blob}, blobs)
        assert tensor.numel() * tensor.element_size() <= 16
    except wire.WireError:
        pass


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40))
def test_bytes_that_are_no_json_raise_wire_error_and_nothing_else(text):
    try:
        wire.loads(text)
    except wire.WireError:
        pass


@pytest.mark.parametrize("text", [b"[" * 200_000, b"9" * 5000, b"\xff", b'{"a":', b"[" * 90_000 + b"]" * 90_000])
def test_hostile_json_raises_wire_error(text):
    with pytest.raises(wire.WireError):
        wire.loads(text)


def test_texts_that_arrive_can_be_written_anywhere():
    with pytest.raises(wire.WireError):
        wire.loads(wire.dumps(["half of a pair: \ud800"]))
    assert travel("a whole pair: \U0001f600") == "a whole pair: \U0001f600"
    named = wire.unpack({"$": "ref", "id": 1, "type": "\x1b[2J\ud800Cache\n" + "x" * 500}, [])
    assert named.type.isprintable() and len(named.type) <= 100


def test_what_is_too_deep_or_too_large_is_refused_before_it_is_copied():
    deep: list = []
    for _ in range(wire.MAX_DEPTH + 2):
        deep = [deep]
    wide = torch.zeros(1, dtype=torch.uint8).expand(wire.MAX_BLOBS + 1)  # a byte that claims to be many
    for value in (deep, wide, [torch.zeros(1).expand(wire.MAX_BLOBS // 8)] * 3, 10**5000, torch.zeros(2, dtype=torch.complex64)):
        with pytest.raises(wire.WireError):
            data, _ = wire.pack(value)
            wire.dumps(data)
    with pytest.raises(wire.WireError):
        wire.dumps("x" * (wire.MAX_HEADER + 1))


def test_the_bytes_of_a_message_make_one_tensor_each():
    one = {"$": "tensor", "dtype": "uint8", "shape": [4], "blob": 0}
    with pytest.raises(wire.WireError):
        wire.unpack({"$": "list", "items": [one, one]}, [b"abcd"])


def test_a_bool_tensor_holds_no_other_byte_than_0_and_1():
    tensor = wire.unpack({"$": "tensor", "dtype": "bool", "shape": [4], "blob": 0}, [bytes([0, 1, 2, 255])])
    assert tensor.view(torch.uint8).tolist() == [0, 1, 1, 1]


def test_a_header_is_plain_json():
    data, blobs = wire.pack({"x": (1, torch.ones(2)), 3: wire.Ref(1, "T")})
    assert json.loads(wire.dumps(data)) == data
    assert blobs == [torch.ones(2).numpy().tobytes()]

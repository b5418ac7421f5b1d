"""What a hidden test and a public check are written with: properties, and the trial that each is given.

    TITLE = …
    @prop(4, zh="與 float64 參考答案一致", en="agrees with the float64 reference")
    def agrees(t):
        q = t.normal(2, 8, 1, 16)
        t.close(t.answer(q, k, v), oracle(q, k, v))

A property is a function of a `Trial`. It asks the answer for values and compares them with a reference that it computes
afterwards from its own copies. Invariant: the same seed gives the same requests, on any machine.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any

import torch
from torch import Tensor

from kvgrade.session import AnswerRaised, Session
from kvgrade.worker import wire
from kvgrade.worker.work import Work

# How far an answer may be from the float64 reference, relative to the largest value: chosen from the spacing of each dtype,
# with room for sums in any order.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5, torch.bfloat16: 2e-2, torch.float16: 4e-3}


def seed_of(seed: str, exercise: str, prop: str) -> str:
    """The seed of one property: each has its own, so adding one moves no other's questions."""
    return f"{seed}/{exercise}/{prop}"


class Failed(Exception):
    """A property does not hold. `id`: a message of the catalogue; `fields`: what it is filled with; `value`: what was
    compared, and `check`: the how-manieth comparison it was, for naming a wrong variant."""

    def __init__(self, id: str, value: Any, check: int, fields: dict[str, Any]) -> None:
        super().__init__(f"{id} {fields}")
        self.id, self.value, self.check, self.fields = id, value, check, fields


class Enough(Exception):
    """A trial of so many comparisons is over."""


@dataclass(frozen=True)
class Property:
    """One thing that a right answer does. `needs`: properties that must hold first; where one does not, this is skipped."""

    name: str
    points: int
    title: dict[str, str]  # per language
    needs: tuple[str, ...]
    test: Callable[["Trial"], None]


def prop(points: int, *, zh: str, en: str, needs: Sequence[str] | None = None) -> Callable[[Callable], Property]:
    """Make a property of a function. `needs=None`: the module's first property (which needs nothing)."""

    def decorate(test: Callable[["Trial"], None]) -> Property:
        wanted = ("*first*",) if needs is None else tuple(needs)
        return Property(test.__name__.replace("_", "-"), points, {"zh-TW": zh, "en": en}, wanted, test)

    return decorate


def properties(module: Any) -> tuple[Property, ...]:
    """The properties of a test module, in the order in which they stand, with the first as what the others need."""
    found = [value for value in vars(module).values() if isinstance(value, Property)]
    first = found[0].name if found else ""

    def resolved(p: Property) -> Property:
        needs = tuple(first if name == "*first*" else name for name in p.needs)
        return Property(p.name, p.points, p.title, tuple(name for name in needs if name != p.name), p.test)

    return tuple(resolved(p) for p in found)


@dataclass(frozen=True)
class Kept:
    """An object on the answer's side: an instance of the learner's class, or a value held there."""

    ref: wire.Ref
    _session: Session = field(repr=False)

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method; the result as a value, or as a `Kept` when it is no data."""
        return _wrap(self._session.call(self.ref, args, kwargs, method=method)[0], self._session)

    def keep(self, method: str, *args: Any, **kwargs: Any) -> "Kept":
        """Call a method and leave the result where it is: to look whether it is a view, or was changed later."""
        return _wrap(self._session.call(self.ref, args, kwargs, method=method, keep=True)[0], self._session)

    def counted(self, method: str, *args: Any, lines: int | None = None, **kwargs: Any) -> tuple[Any, Work]:
        """Call a method and count its work; see `Answer.counted`."""
        value, work = self._session.call(self.ref, args, kwargs, method=method, count={"lines": lines})
        return _wrap(value, self._session), _work(work)

    def attr(self, *names: str) -> Any:
        """The value of an attribute (of an attribute …)."""
        return _wrap(self._session.get(self.ref, [("attr", name) for name in names]), self._session)

    def item(self, *keys: Any) -> Any:
        """The value under a key or index (under a key …): `held.item("k", 0)`."""
        return _wrap(self._session.get(self.ref, [("item", key) for key in keys]), self._session)

    def value(self) -> Any:
        """All of it, as data."""
        return _wrap(self._session.get(self.ref, []), self._session)


class Answer:
    """The function or class that the exercise asks for."""

    def __init__(self, session: Session, entry: str) -> None:
        self._session, self._entry = session, entry

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it: the result as a value, or as a `Kept` when it is an object."""
        return _wrap(self._session.call(self._entry, args, kwargs)[0], self._session)

    def keep(self, *args: Any, **kwargs: Any) -> Kept:
        """Call it and leave the result where it is."""
        return _wrap(self._session.call(self._entry, args, kwargs, keep=True)[0], self._session)

    def counted(self, *args: Any, lines: int | None = None, **kwargs: Any) -> tuple[Any, Work]:
        """Call it and count the work of torch operations. With `lines`, also the lines of Python that run, and the answer is
        stopped (AnswerRaised, TooMuchWork) above that many."""
        value, work = self._session.call(self._entry, args, kwargs, count={"lines": lines})
        return _wrap(value, self._session), _work(work)

    def named(self, name: str) -> "Answer":
        """Another name that the answer (or the exercise's given code) defines."""
        return Answer(self._session, name)


class Trial:
    """One run of one property: seeded randomness, the answer, and comparisons that raise `Failed`."""

    def __init__(self, session: Session, entry: str, seed: str, upto: int | None = None) -> None:
        self.answer = Answer(session, entry)
        self.rng = random.Random(seed)
        self._torch_rng = torch.Generator().manual_seed(self.rng.getrandbits(63))
        self._session = session
        self.checks, self.upto = 0, upto

    # inputs

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> Tensor:
        """Normal random numbers."""
        return (torch.randn(shape, generator=self._torch_rng, dtype=torch.float64) * scale).to(dtype)

    def tokens(self, *shape: int, vocab: int) -> Tensor:
        """Random int64 token ids below `vocab`."""
        return torch.randint(vocab, shape, generator=self._torch_rng)

    def choice(self, *options: Any) -> Any:
        """One of the options."""
        return self.rng.choice(options)

    def integer(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return self.rng.randint(low, high)

    def hold(self, value: Any) -> Kept:
        """Copy a value to the answer's side, to pass it and to look afterwards what became of it."""
        return Kept(self._session.hold(value), self._session)

    # comparisons

    def equal(self, got: Any, want: Any) -> None:
        """The same value of the same type, all the way down (1.0 is not 1, True is not 1); tensors bit for bit, with dtype."""
        self._count()
        if not self._same(got, want, got):
            self._fail("value", got)

    def close(self, got: Any, want: Tensor | float, dtype: torch.dtype | None = torch.float32, times: float = 1.0) -> None:
        """A tensor of want's shape and of `dtype` within `times` × TOLERANCE of want; for a float want, a number within 1e-9.
        `want` is the reference, in float64. `dtype=None`: whatever want's is."""
        self._count()
        if not isinstance(want, Tensor):
            if isinstance(got, bool) or not isinstance(got, (int, float)):
                self._fail("type", got, got=_type(got), want="float")
            if isinstance(got, int) and got.bit_length() > 1000:  # beyond any float
                self._fail("value", got)
            if not abs(got - want) <= 1e-9 * times * max(1.0, abs(want)):
                self._fail("nan" if isnan(got) else "value", float(got))
            return
        dtype = dtype or want.dtype
        if not isinstance(got, Tensor):
            self._fail("type", got, got=_type(got), want="torch.Tensor")
        if got.shape != want.shape:
            self._fail("shape", got, got=str(tuple(got.shape)), want=str(tuple(want.shape)))
        if got.dtype != dtype:
            self._fail("dtype", got, got=str(got.dtype), want=str(dtype))
        got64, want64 = got.double(), want.double()
        if not torch.isfinite(got64[torch.isfinite(want64)]).all():
            self._fail("nan", got)
        both = got64 == want64  # infinities of the same sign, among others
        far = ((got64 - want64).abs() > times * TOLERANCE[dtype] * max(1.0, float(want64[want64.isfinite()].abs().max()
               if want64.isfinite().any() else 1.0))) & ~both  # fmt: skip
        if far.any():
            self._fail("value", got)

    def unchanged(self, held: Kept, original: Any, what: str) -> None:
        """A held argument is still what it was: `what` names it for the learner."""
        self._count()
        now = held.value()
        same = torch.equal(now, original) if isinstance(original, Tensor) else now == original
        if not same:
            self._fail("changed-input", None, what=what)

    def raises(self, bases: str | Sequence[str], call: Callable[[], Any], *, zh: str, en: str) -> None:
        """The call raises an exception of one of these classes, by name. `zh`, `en`: when it must, in words ("寫超過容量時",
        "when written past its capacity")."""
        self._count()
        wanted = (bases,) if isinstance(bases, str) else tuple(bases)
        try:
            call()
        except AnswerRaised as error:
            if error.type in ("NotImplementedError", "NameMissing"):  # not written yet, whatever it is a subclass of
                raise
            if not set(wanted) & set(error.bases):
                self._fail("wrong-error", None, got=error.type, want=" / ".join(wanted), when={"zh-TW": zh, "en": en})
        else:
            self._fail("no-error", None, want=" / ".join(wanted), when={"zh-TW": zh, "en": en})

    def expect(self, holds: bool, *, zh: str, en: str, got: Any = None) -> None:
        """Something else that must hold; where it does not, the learner reads the text: what was seen, never what was asked."""
        self._count()
        if not holds:
            self._fail("text", got, text={"zh-TW": zh, "en": en})

    def _count(self) -> None:
        self.checks += 1
        if self.upto is not None and self.checks > self.upto:
            raise Enough

    def _same(self, got: Any, want: Any, whole: Any) -> bool:
        """Whether the values agree; fails the trial where they cannot be compared: another type, shape or dtype."""
        if isinstance(want, Tensor):
            if not isinstance(got, Tensor):
                self._fail("type", whole, got=_type(got), want="torch.Tensor")
            if got.shape != want.shape:
                self._fail("shape", whole, got=str(tuple(got.shape)), want=str(tuple(want.shape)))
            if got.dtype != want.dtype:
                self._fail("dtype", whole, got=str(got.dtype), want=str(want.dtype))
            return torch.equal(got, want)
        if type(got) is not type(want):
            self._fail("type", whole, got=_type(got), want=_type(want))
        if isinstance(want, dict):
            return got.keys() == want.keys() and all(self._same(got[key], want[key], whole) for key in want)
        if isinstance(want, (list, tuple)):
            return len(got) == len(want) and all(self._same(a, b, whole) for a, b in zip(got, want, strict=True))
        return got == want

    def _fail(self, id: str, value: Any, **fields: Any) -> None:
        raise Failed(id, value, self.checks, fields)


def _wrap(value: Any, session: Session) -> Any:
    return Kept(value, session) if isinstance(value, wire.Ref) else value


def _work(work: Work | None) -> Work:
    return work or Work()


def _type(value: Any) -> str:
    if isinstance(value, Tensor):
        return "torch.Tensor"
    return value.ref.type if isinstance(value, Kept) else type(value).__name__

"""Which other lines of a notebook an answer needs: what binds or changes the names that it uses, and so on.

Invariant: nothing is executed. A call of the answer on its slice gives what it gives in the notebook, run from the top to the
answer's cell: of several definitions of a name the last above the answer counts, and all that changed it since. From below comes a
name that nothing above defines, and what changes (not: binds anew) what is used. The statements keep the notebook's order.
"""

import ast
import bisect
import builtins
import sys
from dataclasses import dataclass

from kvgrade.submission.cells import Cell
from kvgrade.submission.definitions import MAX_STEPS, Definitions, Place, Statement, statements


@dataclass(frozen=True)
class Needed:
    """An answer's cell with what it needs of other cells. `dropped`: lines of the cell that were. `left_out`: statements that change
    what it uses and cannot be taken, with the name. `whole`: False where the search was given up, and the cell stands alone."""

    source: str
    dropped: tuple[str, ...] = ()
    left_out: tuple[tuple[Statement, str], ...] = ()
    whole: bool = True


def with_needs(book: Definitions, cell: Cell, own: list[Statement] | None, given: str = "",
               entry: str = "") -> Needed:  # fmt: skip
    """The text of an answer's cell with what it needs of other cells.

    `own`: the cell's statements, of this file. Names that `given` defines are there already. `entry`: the answer's name.
    """
    if own is None:
        return Needed(cell.text)
    gone = [s for s in own if s.imports("kvgrade") or (isinstance(s.node, ast.Expr) and s.names.now & book.ours)]
    left_out = {s.place for s in gone} | {s.place for s in own if s.is_future}
    text = _without(cell.text, own, [s for s in own if s.place in left_out])
    search = _Search(book, cell.key, [s for s in own if s.place not in left_out], _bound(given), entry)
    try:
        search.run()
    except _GivenUp:
        return Needed("\n".join([*book.futures, text]), tuple(s.text for s in gone), whole=False)
    taken = [search.taken[place] for place in sorted(search.taken)]
    above = [s.text for s in taken if s.place < search.answer]
    below = [s.text for s in taken if s.place > search.answer]
    parts = [*book.futures, *above, text, *below]
    source = "\n".join(part.strip("\n") for part in parts) + "\n"
    return Needed(source, tuple(s.text for s in gone), tuple(search.left_out.values()))


class _GivenUp(Exception):
    """The search takes too long."""


class _Search:
    """What one answer needs. A name is wanted as it is at a place, and what hangs on it as it is when it is called."""

    def __init__(self, book: Definitions, key: tuple[int, int], own: list[Statement], given: frozenset[str], entry: str) -> None:
        self.book, self.key, self.own, self.given, self.entry = book, key, own, given, entry
        self.answer: Place = (key, 0)
        self.end: Place = (key, sys.maxsize)
        self.used = book.used_by([entry] if any(entry in s.binds for s in own) else [n for s in own for n in s.binds])
        self.taken: dict[Place, Statement] = {}
        self.left_out: dict[tuple[Place, str], tuple[Statement, str]] = {}
        self.settled: dict[str, bool] = {}  # names wanted as of the answer, and whether something above or in the cell binds them
        self._todo: list[tuple[str, Place, Place]] = []
        self._seen: set[tuple[str, Place, Place]] = set()
        self._done: set[tuple[Place, Place]] = set()
        self._events: dict[str, tuple[list[Place], list[Statement]]] = {}
        self._steps = 0

    def run(self) -> None:
        bound: frozenset[str] = self.given
        for s in self.own:
            for name in s.names.now - bound:
                self._want(name, self.answer, self.end)
            for name in s.names.later:
                self._want(name, self.end, self.end)
            bound |= s.names.sure
            self.settled |= dict.fromkeys(s.names.binds, True)
        self._work()
        tried: set[Place] = set()
        while changes := [(s, name) for name in list(self.settled) for s in self._changed_below(name) if s.place not in tried]:
            for s, name in sorted(changes, key=lambda change: change[0].place):
                tried.add(s.place)
                self._try(s, name)

    def _want(self, name: str, at: Place, call: Place) -> None:
        if name in self.given:
            return
        want = (name, at, call if name in self.book.moving else at)
        if want not in self._seen:
            self._seen.add(want)
            self._todo.append(want)

    def _work(self) -> None:
        while self._todo:
            name, at, call = self._todo.pop()
            for s in self._reaching(name, at, call):
                if self.book.takes(s, name):
                    self._take(s, name, call)
                else:
                    self.left_out[s.place, name] = s, name

    def _take(self, s: Statement, name: str, call: Place) -> None:
        self.taken[s.place] = s
        call = max(call, self.end) if s.place > self.end else call
        if (s.place, call) in self._done:
            return
        self._done.add((s.place, call))
        for other in s.names.now:
            if other != name or name in s.binds:  # what changed a name before is on the way already
                self._want(other, s.place, s.place)
                self._want(other, s.place, call)
        for other in s.names.later:
            self._want(other, call, call)

    def _reaching(self, name: str, at: Place, call: Place) -> list[Statement]:
        """What decides on a name at a place, and on its object until it is used."""
        places, events = self._of(name)
        found, bound = [], False
        for n in range(bisect.bisect_left(places, at) - 1, -1, -1):
            self._step()
            s, mine = events[n], places[n][0] == self.key  # the cell itself is there already
            found += [] if mine else [s]
            counts = mine or self.book.takes(s, name)
            bound |= counts and name in s.binds
            if counts and name in s.names.sure:
                break
        start = bisect.bisect_left(places, at)
        for s in events[start : bisect.bisect_left(places, min(call, self.answer))]:
            self._step()
            found += [s] if _changes(s, name) else []
            if name in s.names.sure and not isinstance(s.node, ast.AugAssign):
                break
        if at in (self.answer, self.end) or call == self.end:
            self.settled[name] = self.settled.get(name, False) or bound
        if not bound:
            found += self._below(name)
        return found

    def _below(self, name: str) -> list[Statement]:
        """What defines it below the answer, until it is defined anew."""
        if hasattr(builtins, name):
            return []
        places, events = self._of(name)
        found: list[Statement] = []
        bound = False
        for s in events[bisect.bisect_right(places, self.end) :]:
            self._step()
            if bound and name in s.names.sure:
                break
            found.append(s)
            bound |= name in s.binds and self.book.takes(s, name)
        return found if bound else [*found, *self.book.stars]

    def _changed_below(self, name: str) -> list[Statement]:
        """What changes it below the answer, although it is defined above or in it; until it is bound anew."""
        if not self.settled[name]:
            return []
        places, events = self._of(name)
        found = []
        for s in events[bisect.bisect_right(places, self.end) :]:
            self._step()
            if s.place not in self.taken and _changes(s, name):
                found.append(s)
            if name in s.binds and not isinstance(s.node, ast.AugAssign):
                break
        return found

    def _try(self, s: Statement, name: str) -> None:
        """Take a change below along, unless it tries the answer out, or binds what the answer uses as it is above."""
        before = self.taken.copy(), self.settled.copy(), self._seen.copy(), self._done.copy(), self.left_out.copy()
        fits = self.book.takes(s, name) and not (self.entry in s.names.now and self.entry not in s.names.changes)
        self._step(len(self.taken))
        if fits:
            self._take(s, name, self.end)
            self._work()
            new = [t for place, t in self.taken.items() if place not in before[0] and place > self.end]
            fits = not any(before[1].get(x) and not isinstance(t.node, ast.AugAssign) for t in new for x in t.binds)
        if not fits:
            self.taken, self.settled, self._seen, self._done, self.left_out = before
            self._todo = []
            self.left_out[s.place, name] = s, name

    def _of(self, name: str) -> tuple[list[Place], list[Statement]]:
        if name not in self._events:
            events = self.book.events(name, self.used, self._step)
            self._events[name] = [s.place for s in events], events
        return self._events[name]

    def _step(self, n: int = 1) -> None:
        self._steps += n
        if self._steps > MAX_STEPS:
            raise _GivenUp


def _changes(s: Statement, name: str) -> bool:
    """Whether an event of this name is more than that it is bound."""
    return name in s.names.changes or name in s.names.methods or name not in s.binds


def _bound(source: str) -> frozenset[str]:
    return frozenset(name for s in statements(Cell(0, "code", source)) or () for name in s.binds)


def _without(text: str, every: list[Statement], gone: list[Statement]) -> str:
    """The text with `pass` where these statements stood, line for line."""
    lines = text.split("\n")
    uses = [0] * (max((s.last for s in every), default=0) + 1)
    for s in every:
        for line in range(s.first, s.last + 1):
            uses[line] += 1
    for s in gone:
        if any(uses[line] > 1 for line in range(s.first, s.last + 1)):
            continue  # it shares a line with another: rare, and it will say so itself
        lines[s.first - 1 : s.last] = ["pass"] + [""] * (s.last - s.first)
    return "\n".join(lines)

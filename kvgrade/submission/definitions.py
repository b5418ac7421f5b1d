"""The statements of a file, ready to be looked up by the names that they bind or change.

Invariant: nothing is executed; a cell that does not parse defines nothing and hurts nobody.
"""

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kvgrade.submission.cells import Cell
from kvgrade.submission.effects import Effects, effects

OURS = ("kvgrade", "kvlib")  # an answer's process has neither; a line beside the answer that looks with them is dropped
MAX_STATEMENTS = 10_000  # of a file
MAX_STEPS = 400_000  # of one answer's search
Place = tuple[tuple[int, int], int]  # a cell's key, and the statement in it from 1

TOO_MUCH = (SyntaxError, ValueError, RecursionError, MemoryError)  # what a parser may answer to hostile text

_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign,
                ast.AugAssign, ast.If, ast.Try)  # fmt: skip


@dataclass(frozen=True)
class Statement:
    """One statement at the top of a cell. `where`: the cell in words. `barred`: it is not the learner's to bring along."""

    place: Place
    text: str
    names: Effects
    first: int  # its first and last line in the cell
    last: int
    node: ast.stmt
    where: dict[str, str]
    barred: bool = False

    @property
    def binds(self) -> frozenset[str]:
        return self.names.binds

    @property
    def counts(self) -> bool:
        """Whether it may matter to another cell."""
        return not self.imports("kvgrade") and not self.is_future

    @property
    def is_future(self) -> bool:
        return isinstance(self.node, ast.ImportFrom) and self.node.module == "__future__"

    def imports(self, *packages: str) -> bool:
        """Whether it imports from these packages alone."""
        if isinstance(self.node, ast.Import):
            return all(alias.name.partition(".")[0] in packages for alias in self.node.names)
        return isinstance(self.node, ast.ImportFrom) and (self.node.module or "").partition(".")[0] in packages

    @property
    def is_star(self) -> bool:
        return isinstance(self.node, ast.ImportFrom) and any(alias.name == "*" for alias in self.node.names)


def statements(cell: Cell, barred: bool = False) -> list[Statement] | None:
    """The statements of a cell, or None where it does not parse."""
    try:
        body = ast.parse(cell.text).body
        lines = cell.text.split("\n")
        spans = [(min([n.lineno, *(d.lineno for d in getattr(n, "decorator_list", ()))]), n.end_lineno or n.lineno) for n in body]
        found = []
        for n, (node, (first, last)) in enumerate(zip(body, spans, strict=True)):
            shared = n and spans[n - 1][1] == first or n + 1 < len(body) and spans[n + 1][0] == last
            text = ast.unparse(node) if shared else "\n".join(lines[first - 1 : last])
            found.append(Statement((cell.key, n + 1), text, effects(node, text), first, last, node, cell.where, barred))
        return found
    except TOO_MUCH:
        return None


def count_statements(cell: Cell) -> int:
    """How many there are, before anything is made of them."""
    try:
        return len(ast.parse(cell.text).body)
    except TOO_MUCH:
        return 0


class Definitions:
    """Every statement of a file, ready to be looked up by the names that it binds or changes."""

    def __init__(self, every: Iterable[Statement]) -> None:
        self._every = sorted(every, key=lambda s: s.place)
        self.ours = _ours([s for s in self._every if not s.barred])
        self.futures = dict.fromkeys(s.text for s in self._every if s.is_future and not s.barred)
        self._counting = [s for s in self._every if s.counts]
        self.stars = [s for s in self._counting if s.is_star and not s.barred]
        self._binders = _table(self._counting, lambda s: s.names.binds)
        self._changers = _table(self._counting, lambda s: s.names.changes)
        self._methods = _table(self._counting, lambda s: s.names.methods)
        self._readers = _table(self._counting, lambda s: s.names.now)
        self._passers = _table(self._counting, lambda s: {name for _, name in s.names.passes})
        parts = {name: {x for s in found for x in s.names.holds} for name, found in self._binders.items()}
        self._aliases: dict[str, list[str]] = {}  # names whose change changes what a name holds
        steps = 0
        for changed in self._changers:
            for name in (reached := _reach([changed], parts)) if steps < MAX_STEPS else (changed,):
                self._aliases.setdefault(name, []).append(changed)
            steps += len(reached)
        self._users = _inverse(self._binders, lambda s: s.names.holds | s.names.later)
        self._putters = _inverse(self._binders, lambda s: s.names.puts)
        self._fillers = _reach([name for name, found in self._binders.items() if any(s.names.fills for s in found)], self._users)
        self._waiting = [name for name, found in self._binders.items() if any(s.names.later for s in found)]
        self._moving: frozenset[str] | None = None

    def takes(self, s: Statement, name: str) -> bool:
        """Whether it can come along for what it does to this name."""
        plain = isinstance(s.node, _DEFINITIONS) and name in s.binds
        return not s.barred and (plain or not s.names.now & self.ours)

    def events(self, name: str, used: frozenset[str], step: Callable[[int], None]) -> list[Statement]:
        """What binds or changes it, in order. A call of a function that the answer uses itself (`used`) is only a try of it."""
        found = {s.place: s for s in self._binders.get(name, ())}
        for alias in self._aliases.get(name, ()):
            found |= {s.place: s for s in self._changers.get(alias, ())}
        if not self._imported(name):
            found |= {s.place: s for s in self._methods.get(name, ())}
        for s in self._passers.get(name, ()):
            if any(function in self._fillers - used for function, passed in s.names.passes if passed == name):
                found[s.place] = s
        callers = _reach(self._putters.get(name, ()), self._users)
        for caller in callers - used - {name}:
            found |= {s.place: s for s in self._readers.get(caller, ())}
        step(len(found) + len(callers))
        return [found[place] for place in sorted(found)]

    @property
    def moving(self) -> frozenset[str]:
        """Names whose values may change, or read other names, after they were bound."""
        if self._moving is None:
            filled = [name for s in self._counting for function, name in s.names.passes if function in self._fillers]
            begin = [*self._waiting, *self._aliases, *self._methods, *self._putters, *filled]
            users = _inverse(self._binders, lambda s: s.names.now)
            self._moving = frozenset(_reach(begin, users))
        return self._moving

    def used_by(self, names: Iterable[str]) -> frozenset[str]:
        """These names, and those that their functions use."""
        edges = {name: {x for s in found for x in s.names.holds | s.names.later} for name, found in self._binders.items()}
        return frozenset(_reach(names, edges))

    def _imported(self, name: str) -> bool:
        return all(isinstance(s.node, ast.Import | ast.ImportFrom) for s in self._binders.get(name, [None]) if s is not None)


def _table(every: list[Statement], names: Callable[[Statement], Iterable[str]]) -> dict[str, list[Statement]]:
    table: dict[str, list[Statement]] = {}
    for s in every:
        for name in names(s):
            table.setdefault(name, []).append(s)
    return table


def _inverse(binders: dict[str, list[Statement]], names: Callable[[Statement], Iterable[str]]) -> dict[str, set[str]]:
    """Which names are bound with the help of a name."""
    table: dict[str, set[str]] = {}
    for name, found in binders.items():
        for s in found:
            for other in names(s):
                table.setdefault(other, set()).add(name)
    return table


def _reach(names: Iterable[str], edges: dict[str, set[str]]) -> set[str]:
    found, todo = set(names), list(names)
    while todo:
        new = edges.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


def _ours(every: list[Statement]) -> set[str]:
    """Names that come from our packages, and those assigned from such names."""
    readers = _table([s for s in every if isinstance(s.node, ast.Assign | ast.AnnAssign)], lambda s: s.names.now)
    edges = {name: {bound for s in found for bound in s.binds} for name, found in readers.items()}
    return _reach([name for s in every if s.imports(*OURS) for name in s.binds], edges)

"""Which other lines of a notebook an answer needs: imports, functions, classes and assignments, found by name.

Invariant: nothing is executed; a cell that does not parse defines nothing and hurts nobody. Where a name is defined more than
once, the last definition above the answer counts, as when the notebook is run from the top; only when there is none, the first
below it. The statements keep the notebook's order.
"""

import ast
import bisect
import builtins
import symtable
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kvgrade.cells import Cell

OURS = ("kvgrade", "kvlib")  # an answer's process has neither; a line beside the answer that looks with them is dropped
Place = tuple[tuple[int, int], int]  # a cell's key, and the statement in it from 1

TOO_MUCH = (SyntaxError, ValueError, RecursionError, MemoryError)  # what a parser may answer to hostile text

_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign,
                ast.AugAssign, ast.If, ast.Try)  # fmt: skip


@dataclass(frozen=True)
class Statement:
    """One statement at the top of a cell: the names that it binds and those that it reads from outside itself."""

    place: Place
    text: str
    binds: frozenset[str]
    reads: frozenset[str]
    now: frozenset[str]  # of these, what is read when the statement runs, not when a function of it is called
    first: int  # its first and last line in the cell
    last: int
    node: ast.stmt

    @property
    def defines(self) -> bool:
        """Whether it may be taken along for another cell's sake."""
        return isinstance(self.node, _DEFINITIONS) and not self.imports("kvgrade") and not self.is_future

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


def statements(cell: Cell) -> list[Statement] | None:
    """The statements of a cell, or None where it does not parse."""
    try:
        body = ast.parse(cell.text).body
        lines = cell.text.split("\n")
        return [_statement(cell, lines, n, node) for n, node in enumerate(body)]
    except TOO_MUCH:
        return None


class Definitions:
    """Every statement of a file, ready to be looked up by the names that it binds. Invariant: a lookup takes no walk over the file,
    so that a file of many lines costs what its lines cost and no more."""

    def __init__(self, every: Iterable[Statement]) -> None:
        self._every = sorted(every, key=lambda s: s.place)
        self._ours = _ours(self._every)
        self._futures = dict.fromkeys(s.text for s in self._every if s.is_future)
        self._stars = [s for s in self._every if s.is_star and s.defines]
        self._by_name: dict[str, tuple[list[Place], list[Statement]]] = {}
        for s in self._every:
            for name in s.binds if s.defines else ():
                places, found = self._by_name.setdefault(name, ([], []))
                places.append(s.place)
                found.append(s)

    def with_needs(self, cell: Cell, own: list[Statement] | None, given: str = "") -> tuple[str, list[str]]:
        """The text of an answer's cell with what it needs of other cells; and the lines of it that were dropped.

        `own`: the cell's statements, of this file. Names that `given` defines are there already.
        """
        if own is None:
            return cell.text, []
        gone = [s for s in own if s.imports("kvgrade") or (isinstance(s.node, ast.Expr) and s.reads & self._ours)]
        left_out = {s.place for s in gone} | {s.place for s in own if s.is_future}
        text = _without(cell.text, own, [s for s in own if s.place in left_out])
        above, below = self._closure(cell.key, [s for s in own if s.place not in left_out], _bound(given))
        parts = [*self._futures, *(s.text for s in above), text, *(s.text for s in below)]
        return "\n".join(part.strip("\n") for part in parts) + "\n", [s.text for s in gone]

    def _closure(self, key: tuple[int, int], own: list[Statement], given: frozenset[str]
                 ) -> tuple[list[Statement], list[Statement]]:  # fmt: skip
        """What the answer in the cell `key` needs: the part above it and the part below it."""
        answer = (key, 0)
        whole_cell = frozenset(name for s in own for name in s.binds)
        bound = set(given)
        wanted: list[tuple[str, Place]] = []  # a name, and the place above which it is looked for
        for s in own:
            wanted += [(name, answer) for name in (s.now - bound) | (s.reads - s.now - whole_cell - given)]
            bound |= s.binds
        seen = set(wanted)
        taken: dict[Place, Statement] = {}
        while wanted:
            for s in self._definition(*wanted.pop(), key):
                if s.place in taken:
                    continue
                taken[s.place] = s
                for other in s.reads - given:
                    want = (other, s.place if other in s.binds else answer)
                    if want not in seen:
                        seen.add(want)
                        wanted.append(want)
        ordered = [taken[place] for place in sorted(taken)]
        return [s for s in ordered if s.place < answer], [s for s in ordered if s.place > answer]

    def _definition(self, name: str, place: Place, key: tuple[int, int]) -> list[Statement]:
        places, found = self._by_name.get(name, ([], []))
        above = bisect.bisect_left(places, place) - 1
        if above >= 0 and places[above][0] == key:
            above = bisect.bisect_left(places, (key, 0)) - 1
        if above >= 0:
            return [found[above]]
        below = bisect.bisect_right(places, (key, sys.maxsize))
        if place == (key, 0) and below < len(found):
            return [found[below]]
        return [] if hasattr(builtins, name) else self._stars


def _ours(every: list[Statement]) -> set[str]:
    """Names that come from our packages, and those assigned from such names."""
    readers: dict[str, list[Statement]] = {}
    for s in every:
        for name in s.now if isinstance(s.node, ast.Assign | ast.AnnAssign) else ():
            readers.setdefault(name, []).append(s)
    found, todo = set(), [name for s in every if s.imports(*OURS) for name in s.binds]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += [bound for s in readers.get(name, ()) for bound in s.binds]
    return found


def _statement(cell: Cell, every: list[str], position: int, node: ast.stmt) -> Statement:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    last = node.end_lineno or first
    text = "\n".join(every[first - 1 : last])
    if node.col_offset or len(ast.parse(text).body) != 1:  # two on one line
        text = ast.unparse(node)
    binds, now, later = _names(text)
    return Statement((cell.key, position + 1), text, binds, now | (later - binds), now, first, last, node)


def _names(text: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """What a statement binds, reads at once, and reads when its functions are called."""
    table = symtable.symtable(text, "answer", "exec")
    binds = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    now = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    now |= {node.target.id for node in ast.parse(text).body
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)}  # fmt: skip
    later = {s.get_name() for scope in _scopes(table) if scope is not table for s in scope.get_symbols() if s.is_global()}
    return frozenset(binds), frozenset(now), frozenset(later)


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    stack = [table]
    while stack:
        scope = stack.pop()
        yield scope
        stack += scope.get_children()


def _bound(source: str) -> frozenset[str]:
    return frozenset(name for s in statements(Cell(0, "code", source)) or () for name in s.binds)


def _without(text: str, every: list[Statement], gone: list[Statement]) -> str:
    """The text with `pass` where these statements stood, line for line."""
    lines = text.split("\n")
    for s in gone:
        if any(s is not other and other.first <= s.last and s.first <= other.last for other in every):
            continue  # it shares a line with another: rare, and it will say so itself
        lines[s.first - 1 : s.last] = ["pass"] + [""] * (s.last - s.first)
    return "\n".join(lines)

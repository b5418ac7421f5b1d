"""Which other lines of a notebook an answer needs: imports, functions, classes and assignments, found by name.

Invariant: nothing is executed; a cell that does not parse defines nothing and hurts nobody. Where a name is defined more than
once, the last definition above the answer counts, as when the notebook is run from the top; only when there is none, the first
below it. The statements keep the notebook's order.
"""

import ast
import builtins
import symtable
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kvgrade.cells import Cell

OURS = ("kvgrade",)  # an answer's process does not have it; a call of check() beside an answer is dropped
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
        return isinstance(self.node, _DEFINITIONS) and not self.is_ours and not self.is_future

    @property
    def is_future(self) -> bool:
        return isinstance(self.node, ast.ImportFrom) and self.node.module == "__future__"

    @property
    def is_ours(self) -> bool:
        """An import of the grader."""
        if isinstance(self.node, ast.Import):
            return all(alias.name.partition(".")[0] in OURS for alias in self.node.names)
        return isinstance(self.node, ast.ImportFrom) and (self.node.module or "").partition(".")[0] in OURS

    @property
    def is_star(self) -> bool:
        return isinstance(self.node, ast.ImportFrom) and any(alias.name == "*" for alias in self.node.names)


def statements(cell: Cell) -> list[Statement] | None:
    """The statements of a cell, or None where it does not parse."""
    try:
        body = ast.parse(cell.text).body
        return [_statement(cell, n, node) for n, node in enumerate(body)]
    except TOO_MUCH:
        return None


def with_needs(cell: Cell, others: Iterable[Statement], given: str = "") -> tuple[str, list[str]]:
    """The text of an answer's cell with what it needs of other cells' statements; and the lines of it that were dropped.

    Names that `given` defines are there already.
    """
    own = statements(cell)
    if own is None:
        return cell.text, []
    everything = sorted((s for s in others if s.place[0] != cell.key), key=lambda s: s.place)
    graders = {name for s in (*own, *everything) if s.is_ours for name in s.binds}
    gone = [s for s in own if s.is_ours or (isinstance(s.node, ast.Expr) and s.reads & graders)]
    futures = {s.text: None for s in (*everything, *own) if s.is_future}
    text = _without(cell.text, own, [*gone, *(s for s in own if s.is_future)])
    kept = [s for s in own if s not in gone and not s.is_future]
    above, below = _closure(cell.key, kept, [s for s in everything if s.defines], _bound(given))
    parts = [*futures, *(s.text for s in above), text, *(s.text for s in below)]
    return "\n".join(part.strip("\n") for part in parts) + "\n", [s.text for s in gone]


def _closure(key: tuple[int, int], own: list[Statement], defined: list[Statement], given: frozenset[str]
             ) -> tuple[list[Statement], list[Statement]]:  # fmt: skip
    """What of `defined` the answer in the cell `key` needs: the part above it and the part below it."""
    answer = (key, 0)
    whole_cell = frozenset(name for s in own for name in s.binds)
    bound = given
    wanted: list[tuple[str, Place]] = []  # a name, and the place above which it is looked for
    for s in own:
        wanted += [(name, answer) for name in (s.now - bound) | (s.reads - s.now - whole_cell - given)]
        bound |= s.binds
    seen = set(wanted)
    taken: dict[Place, Statement] = {}
    while wanted:
        name, place = wanted.pop()
        for s in _definition(name, place, answer, defined):
            taken[s.place] = s
            for other in s.reads - given:
                want = (other, s.place if other in s.binds else answer)
                if want not in seen:
                    seen.add(want)
                    wanted.append(want)
    ordered = [taken[place] for place in sorted(taken)]
    return [s for s in ordered if s.place < answer], [s for s in ordered if s.place > answer]


def _definition(name: str, place: Place, answer: Place, defined: list[Statement]) -> list[Statement]:
    found = [s for s in defined if name in s.binds]
    if above := [s for s in found if s.place < place]:
        return above[-1:]
    if place == answer and (below := [s for s in found if s.place > answer]):
        return below[:1]
    return [] if hasattr(builtins, name) else [s for s in defined if s.is_star]


def _statement(cell: Cell, position: int, node: ast.stmt) -> Statement:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    last = node.end_lineno or first
    lines = cell.text.split("\n")[first - 1 : last]
    text = "\n".join(lines)
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

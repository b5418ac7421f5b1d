"""What one statement at the top of a cell reads, binds and changes, as far as its text tells.

Invariant: nothing is executed. Where the text does not tell, a method called for nothing but its effect, `table.fill(…)`, counts
as a change, and one whose value is used, `print(table.mean())`, does not.
"""

import ast
import symtable
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_MUTATORS = {"append", "appendleft", "extend", "insert", "add", "update", "setdefault", "pop", "popleft", "popitem", "remove", "discard",
             "clear", "sort", "reverse", "rotate", "move_to_end", "subtract", "register", "__setitem__", "__delitem__", "__setattr__",
             "intersection_update", "difference_update", "symmetric_difference_update"}  # fmt: skip
_READERS = {"get", "items", "keys", "values", "copy", "index", "count", "most_common", "union", "join", "format", "split", "strip", "lower",
            "upper", "replace", "startswith", "endswith", "shape", "size", "dim", "numel", "mean", "sum", "max", "min", "std", "item",
            "tolist", "numpy", "float", "double", "long", "int", "cpu", "head", "tail", "describe", "plot", "hist", "show", "info",
            "cache_info", "parameters", "state_dict"}  # fmt: skip
_CHANGE_ARGUMENT = {"setattr", "delattr", "setitem", "delitem", "heappush", "heapify", "heappop", "heapreplace", "heappushpop", "shuffle",
                    "insort", "insort_left", "insort_right"}  # functions of the standard library  # fmt: skip
_VIEWS = {"zip", "enumerate", "reversed", "iter", "list", "tuple", "sorted", "map", "filter", "chain", "items", "values", "vars", "partial"}

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor)
_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Effects:
    """Names of the file's top that a statement has to do with."""

    binds: frozenset[str]  # binds or deletes
    sure: frozenset[str]  # of these, bound whichever way the statement goes
    now: frozenset[str]  # reads from outside itself when it runs
    later: frozenset[str]  # reads when a function of it is called
    changes: frozenset[str] = _NOTHING  # what they name is changed when it runs: an item or attribute, a method that is known to change
    methods: frozenset[str] = _NOTHING  # a method of what they name is called for its effect
    puts: frozenset[str] = _NOTHING  # bound or changed when a function of it is called
    holds: frozenset[str] = _NOTHING  # what they name is part of what it binds
    passes: frozenset[tuple[str, str]] = _NOTHING  # (function, name handed to it)
    fills: bool = False  # a function of it changes its arguments


def effects(node: ast.stmt, text: str) -> Effects:
    """The effects of a statement with this text."""
    binds, at_once, later, declared = _symbols(text)
    running, called = list(_running(node)), list(_called(node))
    reads: set[str] = set()
    sure = _flow([node], frozenset(), reads)
    deleted = {n.id for n in running if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)}
    added = {n.target.id for n in running if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)}
    if isinstance(node, ast.AnnAssign) and node.value is None:
        binds -= sure or {n.id for n in running if isinstance(n, ast.Name)}
    changes, methods = _changes(running)
    inner, inner_methods = _changes(called)
    globals_bound = {name for n in running + called for name in _through_globals(n)}
    return Effects(
        binds=frozenset(binds | globals_bound), sure=frozenset(sure & binds), now=frozenset((at_once | deleted | added) & reads),
        later=frozenset(later), changes=frozenset(changes), methods=frozenset(methods),
        puts=frozenset(((inner | inner_methods) & later) | declared), holds=frozenset(_held(running)),
        passes=frozenset((n.func.id, name) for n in running if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
                         for value in _arguments(n) for name in _roots(value)),
        fills=any(_fills(f, parent) for f, parent in _functions(node)))  # fmt: skip


def _symbols(text: str) -> tuple[set[str], set[str], set[str], set[str]]:
    """What a statement binds, reads at once, reads when its functions are called, and binds then."""
    top = symtable.symtable(text, "answer", "exec")
    binds = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    now = {s.get_name() for s in top.get_symbols() if s.is_referenced()}
    later: set[str] = set()
    declared: set[str] = set()
    stack = [(scope, False) for scope in top.get_children()]
    while stack:
        scope, waits = stack.pop()
        kind = str(getattr(scope.get_type(), "value", scope.get_type()))
        runs = kind == "class" or scope.get_name().strip("<>") in ("listcomp", "setcomp", "dictcomp", "genexpr")
        waits = waits or not runs
        found = {s.get_name() for s in scope.get_symbols() if s.is_global()}
        (later if waits else now).update(found)
        if scope.get_name().strip("<>") == "genexpr":
            later |= found
        written = {s.get_name() for s in scope.get_symbols() if s.is_declared_global() and s.is_assigned()}
        (declared if waits else binds).update(written)
        stack += [(child, waits) for child in scope.get_children()]
    return binds, now, later, declared


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run when the statement does: not the bodies of functions."""
    stack = [node]
    while stack:
        n = stack.pop()
        yield n
        if isinstance(n, _FUNCTIONS):
            arguments = [a for a in ast.walk(n.args) if isinstance(a, ast.arg)]
            parts = [*n.args.defaults, *n.args.kw_defaults, getattr(n, "returns", None), *(a.annotation for a in arguments)]
            stack += [*getattr(n, "decorator_list", ()), *(part for part in parts if part)]
        else:
            stack += list(ast.iter_child_nodes(n))[::-1]


def _functions(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """Every function in it, with the class that it is a method of."""
    for n in ast.walk(node):
        if isinstance(n, ast.ClassDef):
            yield from ((child, n) for child in n.body if isinstance(child, _FUNCTIONS))
        elif isinstance(n, _FUNCTIONS):
            yield n, None


def _called(node: ast.AST) -> Iterator[ast.AST]:
    for n in _running(node):
        if isinstance(n, _FUNCTIONS):
            for part in n.body if isinstance(n.body, list) else [n.body]:
                yield from ast.walk(part)


def _changes(nodes: list[ast.AST]) -> tuple[set[str], set[str]]:
    """Names whose objects these nodes change, and those a method of which is called for its effect."""
    changes: set[str] = set()
    methods: set[str] = set()
    aliases: dict[str, set[str]] = {}
    for n in nodes:
        for target, value in _bindings(n):
            for name in _names(target):
                aliases.setdefault(name, set()).update(_roots(value, views=True))
        if isinstance(n, ast.Attribute | ast.Subscript) and isinstance(n.ctx, ast.Store | ast.Del):
            changes |= _roots(n)
        elif isinstance(n, ast.Attribute) and (n.attr in _MUTATORS or n.attr.endswith("_") and not n.attr.endswith("__")):
            changes |= _roots(n.value)
        elif isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and not isinstance(n.value, ast.Constant):
            changes.add(n.target.id)
        elif isinstance(n, ast.Call) and n.args and getattr(n.func, "attr", getattr(n.func, "id", "")) in _CHANGE_ARGUMENT:
            changes |= _roots(n.args[0])
        elif isinstance(n, ast.Expr) and isinstance(call := n.value, ast.Call) and isinstance(call.func, ast.Attribute):
            methods |= _roots(call.func.value) if call.func.attr not in _READERS else set()
    for found in (changes, methods):
        todo = list(found)
        while todo:
            new = aliases.get(todo.pop(), set()) - found
            found |= new
            todo += new
    return changes, methods


def _bindings(n: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """What is bound to what."""
    if isinstance(n, ast.Assign):
        yield from ((target, n.value) for target in n.targets)
    elif isinstance(n, ast.AnnAssign | ast.NamedExpr) and n.value is not None:
        yield n.target, n.value
    elif isinstance(n, (*_LOOPS, ast.comprehension)):
        yield n.target, n.iter
    elif isinstance(n, ast.withitem) and n.optional_vars is not None:
        yield n.optional_vars, n.context_expr


def _held(running: list[ast.AST]) -> set[str]:
    found = {name for n in running for _, value in _bindings(n) for name in _roots(value, views=True)}
    for n in running:
        if isinstance(n, _FUNCTIONS):
            found |= {name for value in [*n.args.defaults, *(d for d in n.args.kw_defaults if d)] for name in _roots(value, views=True)}
    return found


def _roots(value: ast.AST, views: bool = False) -> set[str]:
    """The names that an object is reached from. `views`: through zip(…), .items() and the like too."""
    found: set[str] = set()
    stack = [value]
    while stack:
        n = stack.pop()
        if isinstance(n, ast.Name):
            found.add(n.id)
        elif isinstance(n, ast.Attribute | ast.Subscript | ast.Starred | ast.NamedExpr):
            stack.append(n.value)
        elif isinstance(n, ast.Call):
            name = getattr(n.func, "attr", getattr(n.func, "id", ""))
            if isinstance(n.func, ast.Attribute) and (views or name in ("get", "setdefault")):
                stack.append(n.func.value)
            if name in _VIEWS and (views or name == "vars"):
                stack += _arguments(n)
        elif isinstance(n, ast.Tuple | ast.List | ast.Set | ast.BoolOp | ast.IfExp | ast.Dict):
            stack += ast.iter_child_nodes(n)
    return found


def _arguments(call: ast.Call) -> list[ast.AST]:
    return [*call.args, *(k.value for k in call.keywords)]


def _fills(function: ast.AST, parent: ast.AST | None) -> bool:
    """Whether a function changes an argument, its `self` apart."""
    args = function.args
    names = [a.arg for a in (*args.posonlyargs, *args.args)][parent is not None :]
    names += [a.arg for a in (*args.kwonlyargs, args.vararg, args.kwarg) if a]
    body = function.body if isinstance(function.body, list) else [function.body]
    nodes = [n for part in body for n in ast.walk(part)]
    return bool(set.union(*_changes(nodes)) & set(names))


def _through_globals(n: ast.AST) -> Iterator[str]:
    """Names that `globals()["name"] = …` and `globals().update(name=…)` bind."""
    if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) and _is_globals(n.value) and isinstance(n.slice, ast.Constant):
        yield str(n.slice.value)
    elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "update" and _is_globals(n.func.value):
        yield from (k.arg for k in n.keywords if k.arg)


def _is_globals(n: ast.AST) -> bool:
    return isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "globals"


def _names(target: ast.AST) -> set[str]:
    """The names that a target binds."""
    return {n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _flow(body: Iterable[ast.stmt], bound: frozenset[str], reads: set[str]) -> frozenset[str]:
    """What is bound for sure after these statements; what they read before binding it is added to `reads`."""
    for node in body:
        bound = _step(node, bound, reads)
    return bound


def _step(node: ast.stmt, bound: frozenset[str], reads: set[str]) -> frozenset[str]:
    def look(*parts: ast.AST | None) -> None:
        reads.update({n.id for part in parts if part for n in _running(part) if isinstance(n, ast.Name)
                      and not isinstance(n.ctx, ast.Store)} - bound)  # fmt: skip

    if isinstance(node, _LOOPS):
        look(node.iter)
        _flow(node.body, bound | _names(node.target), reads)
        _flow(node.orelse, bound, reads)
        return bound
    if isinstance(node, ast.While | ast.If):
        look(node.test)
        ways = [_flow(node.body, bound, reads), _flow(node.orelse, bound, reads)]
        return frozenset.intersection(*ways) if isinstance(node, ast.If) else bound
    if isinstance(node, ast.With | ast.AsyncWith):
        for item in node.items:
            look(item.context_expr)
            bound |= _names(item.optional_vars) if item.optional_vars else _NOTHING
        return _flow(node.body, bound, reads)
    if isinstance(node, ast.Match):
        look(node.subject)
        ways = []
        for case in node.cases:
            caught = {n.name for n in ast.walk(case.pattern) if isinstance(n, ast.MatchAs | ast.MatchStar) and n.name}
            caught |= {n.rest for n in ast.walk(case.pattern) if isinstance(n, ast.MatchMapping) and n.rest}
            look(case.pattern)
            reads.update({n.id for n in ast.walk(case.guard or ast.Pass()) if isinstance(n, ast.Name)} - bound - caught)
            ways.append(_flow(case.body, bound | caught, reads))
        last = node.cases[-1]
        whole = last.guard is None and isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None
        return frozenset.intersection(*ways) if whole else bound
    if isinstance(node, ast.Try | ast.TryStar):
        ways = [_flow(node.orelse, _flow(node.body, bound, reads), reads)]
        for handler in node.handlers:
            look(handler.type)
            ways.append(_flow(handler.body, bound | ({handler.name} if handler.name else set()), reads))
        return _flow(node.finalbody, bound, reads) | frozenset.intersection(*ways)
    look(node)
    if isinstance(node, ast.AugAssign):
        reads.update(_names(node.target) - bound)
    if isinstance(node, ast.Assign):
        return bound.union(*map(_names, node.targets))
    if isinstance(node, ast.AugAssign) or isinstance(node, ast.AnnAssign) and node.value is not None:
        return bound | _names(node.target)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return bound | {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return bound | {(a.asname or a.name).partition(".")[0] for a in node.names}
    if isinstance(node, ast.Delete):
        return bound - {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return bound

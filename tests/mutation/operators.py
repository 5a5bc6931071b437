"""Automatic mutants: the usual operators, applied to the functions of a syntax tree."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

PACKAGE = Path(__file__).parents[2] / "mxwire"

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
_NOT_CALLED = {"overload", "abstractmethod", "njit"}
"""Decorators of functions without a body in Python."""
_FOR_READERS = {"__repr__", "__str__"}


@dataclass(frozen=True)
class AutomaticMutant:
    """One change of one node in a function."""

    file: str
    """Path below ``mxwire/``."""
    function: str
    """Qualified name of the outermost function."""
    operator: str
    number: int
    """Among those with this operator in this function."""
    line: int
    change: str
    """Text of the node before and after."""
    statement: ast.stmt
    """The innermost statement that is changed."""
    parent: ast.AST
    field: str
    index: int | None
    new: ast.AST

    @property
    def name(self) -> str:
        """The name, which changes elsewhere in the file leave as it is."""
        return f"{self.file}:{self.function}:{self.operator}:{self.number}"

    @property
    def room(self) -> str:
        """The folder of the file."""
        return self.file.partition("/")[0]

    @property
    def module(self) -> str:
        """The module of the file."""
        return "mxwire." + self.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def apply(self) -> None:
        """Change the tree."""
        if self.index is None:
            setattr(self.parent, self.field, self.new)
        else:
            getattr(self.parent, self.field)[self.index] = self.new


def tree_of(file: str) -> ast.Module:
    """Return the syntax tree of a file below ``mxwire/``."""
    return ast.parse((PACKAGE / file).read_text(encoding="utf-8"))


def compiled(file: str, tree: ast.Module) -> CodeType:
    """Return the code of a changed tree; its lines are those of the file."""
    return compile(ast.fix_missing_locations(tree), str(PACKAGE / file), "exec", dont_inherit=True)


def functions_in(code: CodeType) -> Iterator[CodeType]:
    """Return the code of all functions below that of a module."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from functions_in(each)


def mutants_of(file: str, tree: ast.Module | None = None) -> Iterator[AutomaticMutant]:
    """Return the mutants of a file below ``mxwire/``."""
    numbers: Counter[tuple[str, str]] = Counter()
    for name, function in functions_of(tree or tree_of(file)):
        for operator, statement, (parent, field, index), old, new in _changes(function):
            number = numbers[name, operator]
            numbers[name, operator] += 1
            texts = (" ".join(ast.unparse(each).split())[:100] for each in (old, new))
            ast.copy_location(new, old)
            yield AutomaticMutant(
                file, name, operator, number, statement.lineno, " → ".join(texts), statement, parent, field, index, new
            )


def functions_of(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Return the functions of a module and its classes by qualified name, without those inside functions."""

    def below(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
        for each in body:
            if isinstance(each, ast.ClassDef):
                yield from below(each.body, f"{prefix}{each.name}.")
            elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + each.name, each

    yield from below(tree.body, "")


_Place = tuple[ast.AST, str, int | None]
_Change = tuple[str, ast.stmt, _Place, ast.AST, ast.AST]


def _changes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[_Change]:
    decorators = {
        part.id if isinstance(part, ast.Name) else part.attr
        for each in function.decorator_list
        for part in ast.walk(each)
        if isinstance(part, ast.Name | ast.Attribute)
    }
    if not decorators & _NOT_CALLED and function.name not in _FOR_READERS:
        yield from _inside(function, function, "body")


def _inside(statement: ast.stmt, node: ast.AST, *fields: str) -> Iterator[_Change]:
    """Return the changes below a node; ``statement`` is the innermost that has the node."""
    for field in fields or node._fields:
        value = getattr(node, field, None)
        several = isinstance(value, list)
        for index, child in enumerate(value if several else [value]):
            if not isinstance(child, ast.AST) or _is_text(child) or field in ("annotation", "returns"):
                continue
            inner = child if isinstance(child, ast.stmt) else statement
            place = (node, field, index if several else None)
            for operator, new in _replacements(child, node, field):
                yield operator, inner, place, child, new
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
                yield from _inside(inner, child, "body")
            elif not isinstance(child, ast.Raise | ast.Assert):
                yield from _inside(inner, child)


def _is_text(node: ast.AST) -> bool:
    """Return whether a node is a docstring, or text with values in it."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _replacements(node: ast.AST, parent: ast.AST, field: str) -> Iterator[tuple[str, ast.AST]]:
    """Return what takes the place of a node, which keeps its parts."""
    match node:
        case ast.Constant(value=bool() as value):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield "constant", ast.Constant(value + 1)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "boolean", operand
        case ast.BoolOp(op=op, values=values):
            yield "boolean", ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            for index, op in enumerate(ops):
                changed = [*ops[:index], _COMPARISONS[type(op)](), *ops[index + 1 :]]
                yield "comparison", ast.Compare(left, changed, comparators)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            yield "arithmetic", ast.BinOp(left, _ARITHMETIC[type(op)](), right)
        case ast.AugAssign(target=target, op=op, value=value):
            yield "deletion", ast.Pass()
            if type(op) in _ARITHMETIC:
                yield "arithmetic", ast.AugAssign(target, _ARITHMETIC[type(op)](), value)
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield "return", ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "deletion", ast.Pass()
        case ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
            yield "deletion", ast.Pass()
    if not isinstance(node, ast.Constant):
        if field == "test" and isinstance(parent, ast.If | ast.IfExp):
            yield "condition", ast.Constant(True)
            yield "condition", ast.Constant(False)
        elif (field == "test" and isinstance(parent, ast.While)) or field == "ifs":
            yield "condition", ast.Constant(field == "ifs")

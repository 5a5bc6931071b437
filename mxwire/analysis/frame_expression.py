"""Expressions over the fields of frames, such as ``type == PULL and not flags.duplicate``, evaluated on columns.

The syntax is that of Python's expressions, restricted to ``and``, ``or``, ``not``, comparisons, ``in``, field names,
numbers and text. Nothing is executed: the syntax tree is translated into array operations on the columns of
:class:`~mxwire.analysis.table.TableBuilder`, and everything else is refused.

::

    expression = FrameExpression("type == PULL and total_length > 1e6")
    decoded.batch.number[expression.mask(decoded, marker.observe(decoded), decoder.start_ns)]

``source`` and ``destination`` are compared with addresses in any usual notation, and with names of hosts
(``source == 'alpha:0'``), whose addresses :meth:`FrameExpression.resolve` sets.

A comparison with a field that a frame lacks is false, as is ``!=``; ``not`` then makes it true. A field alone is true
unless it is absent, 0 or empty.
"""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeGuard

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations.frame_marks import FLAGS, Role
from mxwire.analysis.host_names import host_choice
from mxwire.analysis.marks import MARK_COLUMNS
from mxwire.analysis.table import COLUMN_NAMES, TableBuilder
from mxwire.analysis.table_columns import TableColumn
from mxwire.errors import MxwireError
from mxwire.ethernet import mac_bytes, mac_text
from mxwire.units import SECOND
from mxwire.wire.enums import PacketType, packet_type_name, packet_type_number
from mxwire.words import suggestion

if TYPE_CHECKING:
    from mxwire.analysis.conversations.frame_marks import FrameMarks
    from mxwire.wire.decoder import DecodedBatch

_PART_OF_ADDRESS: Final = re.compile(r"[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){2,}")
"""Three bytes or more, to distinguish an address from the name and endpoint of a host."""

Columns = Mapping[str, TableColumn]
Mask = NDArray[np.bool_]
Evaluation = Callable[[Columns], Mask]
Value = int | float | str
Compare = Callable[[Any, Any], Any]

_LISTER: Final = "mxwire formats --fields"
_DEEPEST: Final = 50
"""Nesting depth above which an expression is refused, because translation and evaluation recurse."""
_INT64: Final = np.iinfo(np.int64)

_TEXTS: Final = frozenset({"source", "destination", "dialect", "type", "role", "hostname", "malformed_reason"})
_LISTS: Final = {"flags": "flags.NAME, or 'NAME' in flags", "vlan": "5 in vlan"}
"""Fields with several values, and how to test them."""
_TIMES: Final = ("time_s", "time_relative_s")
"""Fields that exist only in JSON, computed from ``time_ns``."""
EXPRESSION_FIELDS: Final = tuple(each for each in (*COLUMN_NAMES, *_TIMES) if each != "file")
"""The fields that an expression can name."""

_OPERATORS: Final[dict[type[ast.cmpop], Compare]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_MIRRORED: Final[dict[Compare, Compare]] = {
    operator.eq: operator.eq,
    operator.ne: operator.ne,
    operator.lt: operator.gt,
    operator.le: operator.ge,
    operator.gt: operator.lt,
    operator.ge: operator.le,
}
_INVALID: Final = "invalid syntax"
_FOREIGN: Final = {"=": "write == to compare", "&": "write and", "|": "write or", "!": "write not"}
"""Advice for operators of other languages, by their first character."""


class NamedHost(str):
    """The name of a host in an expression, equal to the texts of its ``addresses``."""

    addresses: frozenset[str] = frozenset()

    def __eq__(self, other: object) -> bool:
        """Compare with the text of an address."""
        return other in self.addresses

    def __ne__(self, other: object) -> bool:
        """Compare with the text of an address."""
        return other not in self.addresses

    __hash__ = str.__hash__


class FrameExpression:
    """An expression over the fields of frames, ready to evaluate on batches of one or more captures.

    Raises :class:`~mxwire.errors.MxwireError` with the column of the mistake, counted from 1.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        translation = _Translation(text)
        self._evaluate = translation.evaluation
        self.fields = frozenset(translation.fields)
        """The fields that the expression names."""
        self.hosts = tuple(translation.hosts)
        """The hosts that it names, without addresses until :meth:`resolve`."""
        self._builder = TableBuilder(sorted({"time_ns" if each in _TIMES else each for each in self.fields}))

    @property
    def needs_marks(self) -> bool:
        """True if the expression names a field that only the analysis of conversations supplies."""
        return not self.fields.isdisjoint(MARK_COLUMNS)

    def resolve(self, addresses: Callable[[str], Collection[int]]) -> None:
        """Set the addresses of the hosts that the expression names, using a function from names to addresses."""
        for host in self.hosts:
            host.addresses = frozenset(map(mac_text, addresses(str(host))))

    def mask(self, decoded: DecodedBatch, marks: FrameMarks | None = None, start_ns: int | None = None) -> Mask:
        """Return True for each frame of a batch that meets the expression, shape (frames,).

        Without ``marks`` frames have neither message nor flags. ``start_ns`` is the time of the capture's first frame,
        by default that of the batch.
        """
        columns: dict[str, TableColumn] = self._builder.columns(decoded, "", None, marks)
        time_ns = decoded.batch.timestamp_ns
        if "time_s" in self.fields:
            columns["time_s"] = TableColumn("Int64", time_ns / SECOND)
        if "time_relative_s" in self.fields:
            first = start_ns if start_ns is not None else int(time_ns[0]) if len(time_ns) else 0
            columns["time_relative_s"] = TableColumn("Int64", (time_ns - first) / SECOND)
        return self._evaluate(columns)


class _Translation:
    """The translation of one expression: ``evaluation`` maps columns to a mask of the frames that meet it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.fields: set[str] = set()
        self.hosts: list[NamedHost] = []
        try:
            with warnings.catch_warnings():
                # Python prints a warning for spellings such as `5or` on standard error, which would confuse the user.
                warnings.simplefilter("ignore")
                tree = ast.parse(text.replace("\n", " ").replace("\r", " ").lstrip(), mode="eval")
        except SyntaxError as error:
            self._refuse_syntax(error)
        except ValueError as error:  # zero bytes
            raise MxwireError(f"the expression cannot be read: {error}") from None
        except (RecursionError, MemoryError):
            raise MxwireError("the expression is nested too deeply") from None
        self.evaluation = self._condition(tree.body, 0)

    # Errors

    def _refuse(self, node: ast.AST, problem: str) -> NoReturn:
        """Raise the error about ``node``, with its column in characters: the tree counts bytes of UTF-8."""
        indent = len(self._text) - len(self._text.lstrip())
        before = self._text[indent:].encode("utf-8", "surrogatepass")[: getattr(node, "col_offset", 0)]
        raise MxwireError(f"expression, column {indent + len(before.decode('utf-8', 'ignore')) + 1}: {problem}")

    def _refuse_syntax(self, error: SyntaxError) -> NoReturn:
        indent = len(self._text) - len(self._text.lstrip())
        # Python reports the end of the text as offset 0 or as the next line.
        within = error.offset if error.offset and error.offset > 0 and error.lineno == 1 else len(self._text) + 1
        column = min(within + indent, len(self._text) + 1)
        if not self._text.strip():
            raise MxwireError("the expression is empty: write it like 'type == PULL and total_length > 1e6'")
        character = self._text[column - 1 : column]
        advice = _FOREIGN.get(character) or (error.msg or _INVALID).partition(". ")[0]
        if advice == _INVALID:
            word = re.match(r"\w+|\S", self._text[column - 1 :])
            what = f"{word.group()!r} is not expected here" if word else "a value or a condition is missing"
            advice = f"{what}: write it like 'type == PULL and total_length > 1e6'"
        raise MxwireError(f"expression, column {column}: {advice}") from None

    # Conditions

    def _condition(self, node: ast.expr, depth: int) -> Evaluation:
        if depth > _DEEPEST:
            self._refuse(node, f"nested more than {_DEEPEST} levels deep")
        if isinstance(node, ast.BoolOp):
            parts = [self._condition(each, depth + 1) for each in node.values]
            combine = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
            return lambda columns: reduce(combine, (each(columns) for each in parts))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._condition(node.operand, depth + 1)
            return lambda columns: ~inner(columns)
        if isinstance(node, ast.Compare):
            return self._comparisons(node)
        path = _path(node)
        if path is None:
            self._refuse_operand(node, "a comparison or a field, such as type == PULL,")
        flag = self._flag(node, path)
        if flag is not None:
            return flag
        name = self._field(node, path)
        return lambda columns: _tested(columns[name], bool, lambda values: values != 0)

    def _flag(self, node: ast.expr, path: str) -> Evaluation | None:
        base, dot, flag = path.partition(".")
        if base != "flags" or not dot:
            return None
        self._refuse_unknown(node, "flag", flag, FLAGS)
        self.fields.add("flags")
        return lambda columns: _holding(columns["flags"], flag)

    def _field(self, node: ast.expr, path: str) -> str:
        """The column of a field, by its name or its path in JSON."""
        name = path.removeprefix("fields.")
        for group in ("payload.", "malformed."):
            if name.startswith(group):
                name = name.replace(".", "_", 1)
        if name in PacketType.__members__:
            self._refuse(node, f"{name} is a packet type: write type == {name}")
        self._refuse_unknown(node, "field", name, EXPRESSION_FIELDS, f"; {_LISTER} lists them all")
        self.fields.add(name)
        return name

    def _refuse_unknown(
        self, node: ast.expr, noun: str, name: str, known: Sequence[str] | Mapping[str, Any], end: str = ""
    ) -> None:
        if name in known:
            return
        near = suggestion(name, known)
        self._refuse(node, f"no {noun} {name!r}{near}{end or ('' if near else ': ' + ', '.join(known))}")

    def _refuse_operand(self, node: ast.expr, wanted: str) -> NoReturn:
        if isinstance(node, ast.BinOp):
            advice = {ast.BitAnd: "write and, not &", ast.BitOr: "write or, not |"}.get(type(node.op))
            self._refuse(node, advice or "arithmetic is not supported")
        self._refuse(node, f"{wanted} is needed here")

    # Comparisons

    def _comparisons(self, node: ast.Compare) -> Evaluation:
        operands = [node.left, *node.comparators]
        parts = [
            self._comparison(left, op, right)
            for left, op, right in zip(operands[:-1], node.ops, operands[1:], strict=True)
        ]
        return lambda columns: reduce(np.logical_and, (each(columns) for each in parts))

    def _comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Evaluation:
        if isinstance(op, (ast.Is, ast.IsNot)):
            self._refuse(left, "write == or != instead of is; a field alone is true where a frame has it")
        if isinstance(op, (ast.In, ast.NotIn)):
            return self._membership(left, right, negated=isinstance(op, ast.NotIn))
        compare = _OPERATORS[type(op)]
        for each in (left, right):
            if _path(each) is None and _literal(each) is None:
                self._refuse_operand(each, "a number, a text in quotes or a field")
        left_name, right_name = self._side(left, right), self._side(right, left)
        if left_name is None and right_name is None:
            self._refuse(left, "compares no field")
        if left_name is None or right_name is None:
            if left_name is None:
                compare = _MIRRORED[compare]
            name, constant = (left_name, right) if left_name is not None else (right_name, left)
            assert name is not None  # one side is a column, since comparisons without a column were refused
            value = self._constant(constant, name)
            self._refuse_order(left, compare, name)
            return _comparison_with(name, compare, value)
        for name in (left_name, right_name):
            self._refuse_list(left, name)
            self._refuse_order(left, compare, name)
        if (left_name in _TEXTS) != (right_name in _TEXTS):
            self._refuse(left, f"{left_name} and {right_name} cannot be compared: only one of them is text")
        return lambda columns: _pairwise(columns[left_name], columns[right_name], compare)

    def _side(self, node: ast.expr, other: ast.expr) -> str | None:
        """The field that one side of a comparison names; None for a constant.

        A word beside the field of its vocabulary is a constant: ``type == PULL``, ``role == reply``.
        """
        path = _path(node)
        if path is None:
            return None
        if _path(other) in ("type", "role", "dialect") and path not in EXPRESSION_FIELDS:
            return None
        if path.startswith("flags."):
            self._refuse(node, f"{path} is true or false: write it alone, or with not")
        return self._field(node, path)

    def _refuse_list(self, node: ast.expr, name: str) -> None:
        if name in _LISTS:
            self._refuse(node, f"{name} may have several values: write {_LISTS[name]}")

    def _refuse_order(self, node: ast.expr, compare: Compare, name: str) -> None:
        if name in _TEXTS and compare not in (operator.eq, operator.ne):
            self._refuse(node, f"{name} is text, which has no order: compare it with ==, != or in")

    def _membership(self, left: ast.expr, right: ast.expr, *, negated: bool) -> Evaluation:
        if isinstance(right, (ast.Tuple, ast.List, ast.Set)):
            name = self._side(left, right)
            if name is None:
                self._refuse(left, "compares no field")
            values = [self._constant(each, name) for each in right.elts]
            return _membership_of(name, values, negated)
        path = _path(right)
        if path is None:
            self._refuse(right, "in needs a list, such as (PULL, PULL_REPLY), or a field with text or several values")
        name = self._field(right, path)
        value = _literal(left)
        if name == "flags":
            flag = value if isinstance(value, str) else _path(left) or ""
            self._refuse_unknown(left, "flag", flag, FLAGS)
            value = flag
        elif name == "vlan":
            if not _is_number(value):
                self._refuse(left, "a VLAN id is a number")
        elif name not in _TEXTS:
            self._refuse(right, f"{name} is one number: compare it with ==")
        elif not isinstance(value, str):
            self._refuse(left, f"{name} is text: write the text to find in it in quotes")
        return lambda columns: _holding(columns[name], value, negated)

    def _constant(self, node: ast.expr, name: str) -> Value:
        """The constant ``node``, in the form of the column ``name`` that it is compared with."""
        self._refuse_list(node, name)
        path = _path(node)
        value = _literal(node) if path is None else path
        if value is None:
            self._refuse_operand(node, "a number, a text in quotes or a field")
        if name not in _TEXTS:
            if _is_number(value):
                return _bounded(value)
            if path is not None:
                self._field(node, path)
            self._refuse(node, f"{name} is a number, {value!r} is text")
        if name == "type":
            try:
                return packet_type_name(packet_type_number(str(value)))
            except MxwireError as error:
                self._refuse(node, str(error))
        if not isinstance(value, str):
            self._refuse(node, f"{name} is text: write its value in quotes")
        if name in ("source", "destination"):
            return self._host(node, value)
        if name == "role":
            self._refuse_unknown(node, "role", value, list(Role))
        elif path is not None and name != "dialect":
            self._refuse(node, f"write the text {value!r} in quotes")
        return value

    def _host(self, node: ast.expr, text: str) -> str:
        """The text of an Ethernet address, or the host with this name."""
        try:
            if _PART_OF_ADDRESS.fullmatch(text):
                return mac_text(mac_bytes(text))
            choice = host_choice(text)
        except MxwireError as error:
            self._refuse(node, str(error))
        if choice.endpoint is not None:
            self._refuse(node, f"{text!r} has an endpoint: compare the host alone, and src_endpoint or dst_endpoint")
        if choice.address is not None:
            return mac_text(choice.address)
        self.hosts.append(NamedHost(choice.host))
        return self.hosts[-1]


def _path(node: ast.expr) -> str | None:
    """Return the dotted name that ``node`` represents; None if it is not a name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return ".".join([node.id, *parts]) if isinstance(node, ast.Name) else None


def _literal(node: ast.expr) -> Value | None:
    """Return the number or text that ``node`` represents; None if it is not a constant."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _literal(node.operand)
        if not _is_number(value):
            return None
        return -value if isinstance(node.op, ast.USub) else value
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)) else None


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float))


def _bounded(value: int | float) -> int | float:
    """Return a number in a form that compares exactly with int64 columns.

    No column has values near the limits of the range, so a number beyond them may be replaced by the limit.
    """
    if isinstance(value, float) and (abs(value) >= _INT64.max or value.is_integer()):
        value = int(min(max(value, float(_INT64.min)), float(_INT64.max)))
    return min(max(value, int(_INT64.min)), int(_INT64.max)) if isinstance(value, int) else value


# Evaluation


def _tested(column: TableColumn, one: Callable[[Any], bool], many: Callable[[NDArray[Any]], Mask]) -> Mask:
    """Test a column: ``one`` tests each of its distinct values, None for null, ``many`` all its numbers."""
    # A text is tested once per distinct value, not once per row.
    if column.distinct is not None:
        verdicts: Mask = np.fromiter((one(each) for each in column.distinct), np.bool_, len(column.distinct))
        chosen: Mask = verdicts[column.values]
        return chosen
    mask: Mask = many(_numbers(column))
    return mask if column.present is None else mask & column.present


def _numbers(column: TableColumn) -> NDArray[Any]:
    """The values of a column of numbers, signed, so that columns of any width compare exactly."""
    return column.values if column.values.dtype.kind == "f" else column.values.astype(np.int64)


def _comparison_with(name: str, compare: Compare, value: Value) -> Evaluation:
    return lambda columns: _tested(
        columns[name],
        lambda each: each is not None and bool(compare(each, value)),
        lambda values: compare(values, value),
    )


def _membership_of(name: str, values: Sequence[Value], negated: bool) -> Evaluation:
    def many(numbers: NDArray[Any]) -> Mask:
        found: Mask = np.zeros(len(numbers), np.bool_)
        for each in values:
            found |= numbers == each
        return found ^ negated

    return lambda columns: _tested(columns[name], lambda each: each is not None and (each in values) != negated, many)


def _holding(column: TableColumn, value: object, negated: bool = False) -> Mask:
    """Test which lists or texts contain ``value``; a list may be empty, but is never absent."""
    listed = column.kind.startswith("List")

    def one(each: Any) -> bool:
        return negated if each is None and listed else each is not None and (value in each) != negated

    return _tested(column, one, lambda values: np.zeros(len(values), np.bool_))


def _pairwise(left: TableColumn, right: TableColumn, compare: Compare) -> Mask:
    """Compare two columns, both with text or both with numbers, row by row."""
    mask: Mask
    if left.distinct is None and right.distinct is None:
        mask = compare(_numbers(left), _numbers(right))
        for column in (left, right):
            if column.present is not None:
                mask = mask & column.present
        return mask
    pairs = zip(left.to_list(), right.to_list(), strict=True)
    mask = np.fromiter(
        (one is not None and other is not None and bool(compare(one, other)) for one, other in pairs),
        np.bool_,
        len(left.values),
    )
    return mask

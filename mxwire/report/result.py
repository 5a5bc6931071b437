"""Results, declared once: the fields of a dataclass are the keys of its JSON and the columns of its tables.

::

    @result("host")
    class HostVerdict(Result):
        host: str = column(code=True)
        frames: int = column(right=True)
        rules: list[str] = column("rules applied", right=True, text=lambda rules: str(len(rules)))

    json_line(HostVerdict("52:54:00:0a:00:01", 3, ["R-ACK-01"]).record())
    table(HostVerdict, verdicts, "host", "frames")

Values are those of JSON, or further results, so that a checkpoint can keep them (:func:`packed`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Final, Self, TypeVar, dataclass_transform

from mxwire.report.document import Column, Row, Table

_Declared = TypeVar("_Declared", bound="Result")
_CLASSES: Final[dict[str, type[Result]]] = {}
"""The classes of results by name."""
_CLASS: Final = ""
"""The key of the class in a packed result, which no field has."""


class Result:
    """The result of an analysis; subclasses are declared with :func:`result`."""

    __slots__ = ()
    KIND: ClassVar[str] = ""
    """The value of the key ``record``; empty for an object without this key."""

    def record(self) -> dict[str, Any]:
        """Return the result as an object of JSON, without the fields that are :func:`internal`."""
        entry: dict[str, Any] = {"record": self.KIND} if self.KIND else {}
        return entry | {key: _plain(getattr(self, each.name)) for key, each in keys(type(self))}

    @classmethod
    def copied(cls, source: object, **given: Any) -> Self:
        """Return a result with the values ``given``; those of the other fields are attributes of ``source``."""
        names = [each.name for each in _fields(cls)]
        return cls(**{each: given[each] if each in given else getattr(source, each) for each in names})

    @property
    def muted(self) -> bool:
        """True if the row in a table is less important than others."""
        return False


def result_class(name: str) -> type[Result]:
    """Return the class of results with a name."""
    return _CLASSES[name]


def keys(kind: type[Result]) -> Iterator[tuple[str, dataclasses.Field[Any]]]:
    """Yield the keys of results in JSON, except ``record``, with their fields."""
    for each in _fields(kind):
        if not each.metadata.get("internal"):
            yield each.metadata.get("key") or each.name, each


def _fields(kind: type[Result]) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(kind)  # type: ignore[arg-type]  # Result itself has no fields


def _plain(value: Any) -> Any:
    if isinstance(value, Result):
        return value.record()
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value


def packed(value: Any) -> Any:
    """Return results, at any depth of lists, as values of JSON, for :func:`unpacked`."""
    if isinstance(value, Result):
        values = {each.name: packed(getattr(value, each.name)) for each in _fields(type(value))}
        return {_CLASS: type(value).__name__} | values
    return [packed(each) for each in value] if isinstance(value, (list, tuple)) else value


def unpacked(value: Any) -> Any:
    """Undo :func:`packed`; tuples have become lists."""
    if isinstance(value, dict) and _CLASS in value:
        values = {name: unpacked(each) for name, each in value.items() if name != _CLASS}
        return result_class(value[_CLASS])(**values)
    return [unpacked(each) for each in value] if isinstance(value, list) else value


def column(
    heading: str = "",
    *,
    right: bool = False,
    code: bool = False,
    wraps: bool = False,
    short: str = "",
    text: Callable[[Any], str] = str,
    key: str = "",
    internal: bool = False,
    **properties: Any,
) -> Any:
    """A field that may be a column of a table, by default with its name as ``heading``.

    ``text`` formats a value for a cell. ``key`` is the key in JSON, if that is not the name of the field; an
    ``internal`` field has none. Further ``properties`` are those of :func:`dataclasses.field`.
    """
    shown = {"right": right, "code": code, "wraps": wraps, "short": short}
    metadata = {"heading": heading, "column": shown, "text": text, "key": key, "internal": internal}
    return dataclasses.field(metadata=metadata, **properties)


def internal(**properties: Any) -> Any:
    """A field that is not in JSON, but in checkpoints; ``properties`` are those of :func:`dataclasses.field`."""
    return dataclasses.field(metadata={"internal": True}, **properties)


@dataclass_transform(frozen_default=True, field_specifiers=(column, internal))
def result(kind: str = "") -> Callable[[type[_Declared]], type[_Declared]]:
    """Make a class a frozen dataclass of results; ``kind`` is their :attr:`Result.KIND`."""

    def declare(declared: type[_Declared]) -> type[_Declared]:
        made = dataclasses.dataclass(frozen=True, slots=True)(declared)
        made.KIND = kind
        _CLASSES[made.__name__] = made
        return made

    return declare


def table(kind: type[Result], results: Iterable[Result], *names: str) -> Table:
    """A table with a row per result and a column per field in ``names``."""
    by_name = {each.name: each.metadata for each in _fields(kind)}
    shown = [(name, by_name[name]) for name in names]
    columns = (Column(each["heading"] or name.replace("_", " "), **each["column"]) for name, each in shown)
    rows = (Row(tuple(each["text"](getattr(one, name)) for name, each in shown), one.muted) for one in results)
    return Table(tuple(columns), tuple(rows))

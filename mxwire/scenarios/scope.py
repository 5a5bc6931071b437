"""Scope: the lookup of names in a step."""

from __future__ import annotations

from typing import Any

from mxwire.scenarios.description import field_values
from mxwire.scenarios.errors import ScriptError
from mxwire.scenarios.expression import Expression, Scope, Value
from mxwire.scenarios.tester import Tester
from mxwire.scenarios.vocabulary import fields_of, has_field
from mxwire.wire.packets import Frame


class RunScope:
    """The names bound so far, and the state of one tester."""

    def __init__(self, bound: dict[str, Any], tester: Tester) -> None:
        self._bound = bound
        self._tester = tester

    def bound(self, name: str) -> Value | None:
        """Return the value of ``$name`` or ``$frame.field``; None if it is not bound."""
        name, dot, field = name.partition(".")
        value = self._bound.get(name)
        if dot:
            packet = value.layout_name.upper() if isinstance(value, Frame) else ""
            if not isinstance(value, Frame) or not has_field(packet, field):
                return None
            attribute = fields_of(packet).get(field, field)
            return field_values(value, [attribute])[attribute]
        return value if isinstance(value, int | bytes) else None

    def bind(self, name: str, value: Value) -> None:
        """Bind ``$name`` to a value."""
        self._bound[name] = value

    def unbind(self, name: str) -> None:
        """Remove the binding of ``$name``."""
        self._bound.pop(name, None)

    def word(self, name: str) -> Value | None:
        """Return a value of the tester's state."""
        return self._tester.word(name)


def argument_of(expression: Expression, scope: Scope, kind: str) -> Value:
    """Evaluate an argument of a call; raise :class:`~mxwire.scenarios.errors.ScriptError` unless it is of ``kind``."""
    value = expression.value(scope)
    if isinstance(value, int) is not (kind == "n"):
        raise ScriptError(f"{'a number is' if kind == 'n' else 'bytes are'} needed here", expression.place)
    return value

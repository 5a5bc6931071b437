"""Scope: where the names of a step are looked up."""

from __future__ import annotations

from typing import Any

from mxwire.scenarios.describing import field_values
from mxwire.scenarios.errors import ScriptError
from mxwire.scenarios.expression import Expression, Scope, Value
from mxwire.scenarios.tester import Tester
from mxwire.scenarios.vocabulary import fields_of, has_field
from mxwire.wire.packets import Frame


class RunScope:
    """What was bound so far, and what one tester knows."""

    def __init__(self, bound: dict[str, Any], tester: Tester) -> None:
        self._bound = bound
        self._tester = tester

    def bound(self, name: str) -> Value | None:
        """The value of ``$name`` or ``$frame.field``; None where there is none."""
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
        """Give a value to a name."""
        self._bound[name] = value

    def unbind(self, name: str) -> None:
        """Take it back."""
        self._bound.pop(name, None)

    def word(self, name: str) -> Value | None:
        """What the tester knows."""
        return self._tester.word(name)


def argument_of(expression: Expression, scope: Scope, kind: str) -> Value:
    """An argument of a call, which is a number or bytes as the call wants it."""
    value = expression.value(scope)
    if isinstance(value, int) is not (kind == "n"):
        raise ScriptError(f"{'a number is' if kind == 'n' else 'bytes are'} needed here", expression.place)
    return value

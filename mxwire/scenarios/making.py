"""The bytes of a frame that a step sends, broken on purpose where it says so."""

from __future__ import annotations

from mxwire.scenarios.errors import ScriptError
from mxwire.scenarios.expression import Expression, Scope
from mxwire.scenarios.manners import Unmannered, compose
from mxwire.scenarios.steps import Send
from mxwire.scenarios.tester import Tester
from mxwire.wire.codec import Codec
from mxwire.wire.packets import Frame

LONGEST_FRAME = 65_535


def made(step: Send, tester: Tester, scope: Scope, codec: Codec) -> tuple[Frame, bytes]:
    """The frame of a step, and its bytes.

    Raises :class:`~mxwire.scenarios.errors.ScriptError` for values that no frame can have.
    """
    given = {name: each.value(scope) for name, each in step.fields.items()}
    try:
        frame = compose(tester, step.packet, given)
        raw = bytearray(codec.build(frame))
    except (Unmannered, ValueError, TypeError, OverflowError) as error:
        place = next((each.place for each in step.fields.values()), step.place)
        raise ScriptError(f"{step.packet} cannot be made: {error}", place) from None
    tester.sent(frame, given)
    if step.pad is not None:
        raw = raw.ljust(_length(step.pad, scope), b"\0")
    for patch in step.patches:
        value = patch.value.value(scope)
        new = bytes([value & 0xFF]) if isinstance(value, int) else value
        start = patch.offset.number(scope)
        if not 0 <= start <= len(raw) - len(new):
            raise ScriptError(f"the frame has {len(raw)} bytes, none at {start}", patch.offset.place)
        raw[start : start + len(new)] = new
    if step.cut is not None:
        raw = raw[: _length(step.cut, scope)]
    return frame, bytes(raw)


def _length(expression: Expression, scope: Scope) -> int:
    length = expression.number(scope)
    if not 14 <= length <= LONGEST_FRAME:
        raise ScriptError(f"frames have 14 to {LONGEST_FRAME} bytes, not {length}", expression.place)
    return length

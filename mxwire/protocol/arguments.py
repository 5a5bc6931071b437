"""Checks of the arguments of applications, made at the call, so that nothing wrong gets as far as a frame."""

from __future__ import annotations

from operator import index
from typing import Any

from mxwire.ethernet import ADDRESS_SIZE
from mxwire.protocol.errors import ArgumentTypeError, LocalProtocolError
from mxwire.protocol.status import Status


def checked_integer(name: str, value: Any, maximum: int, status: Status = Status.BAD_REQUEST) -> int:
    """Return ``value`` as an int between 0 and ``maximum``; any type with ``__index__`` will do, such as NumPy's.

    Raises :class:`~mxwire.protocol.errors.ArgumentTypeError` for another type, and
    :class:`~mxwire.protocol.errors.LocalProtocolError` with ``status`` for another value; both name the argument.
    """
    if type(value) is int and 0 <= value <= maximum:
        return value
    try:
        number = index(value)
    except TypeError:
        raise ArgumentTypeError(status, f"{name} must be an integer, not {value!r}") from None
    if not 0 <= number <= maximum:
        raise LocalProtocolError(status, f"{name} {number} is not between 0 and {maximum:#x}")
    return number


def ethernet_address(value: Any) -> bytes:
    """Return ``value`` as the six bytes of an Ethernet address.

    Raises :class:`~mxwire.protocol.errors.ArgumentTypeError` for what is not bytes, and
    :class:`~mxwire.protocol.errors.LocalProtocolError` for another length.
    """
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise ArgumentTypeError(Status.BAD_REQUEST, f"{value!r} is not an Ethernet address: pass {ADDRESS_SIZE} bytes")
    if len(bytes(value)) != ADDRESS_SIZE:
        raise LocalProtocolError(
            Status.BAD_REQUEST, f"{value!r} is not an Ethernet address: it has {ADDRESS_SIZE} bytes"
        )
    return bytes(value)

"""What applications give, checked at the call: nothing wrong gets as far as a frame."""

from __future__ import annotations

from operator import index
from typing import Any, Final

from mxwire.protocol.errors import LocalProtocolError
from mxwire.protocol.status import Status

ADDRESS_SIZE: Final = 6


def whole(what: str, value: Any, maximum: int, status: Status = Status.BAD_REQUEST) -> int:
    """``value`` as an int between 0 and ``maximum``; integers of NumPy will do.

    Raises :class:`~mxwire.protocol.errors.LocalProtocolError` with ``status`` for anything else.
    """
    if type(value) is int and 0 <= value <= maximum:
        return value
    try:
        number = index(value)
    except TypeError:
        raise LocalProtocolError(status, f"{what} {value!r} is no whole number") from None
    if not 0 <= number <= maximum:
        raise LocalProtocolError(status, f"{what} {number} is not between 0 and {maximum:#x}")
    return number


def ethernet_address(value: Any) -> bytes:
    """``value`` as the six bytes of an Ethernet address.

    Raises :class:`~mxwire.protocol.errors.LocalProtocolError` for anything else.
    """
    if isinstance(value, (bytes, bytearray, memoryview)) and len(bytes(value)) == ADDRESS_SIZE:
        return bytes(value)
    raise LocalProtocolError(Status.BAD_REQUEST, f"{value!r} is no Ethernet address: give {ADDRESS_SIZE} bytes")

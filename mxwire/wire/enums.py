"""Enumerations of values in MXoE packets (wire format, sections 6 and 6.14), and values as text."""

from __future__ import annotations

from enum import IntEnum

from mxwire.errors import MxwireError
from mxwire.wire.numbers import NUMBER_MASK, SESSION_NUMBER_SHIFT
from mxwire.words import suggestion


class PacketType(IntEnum):
    """First byte of the body of every packet (section 6)."""

    NONE = 0
    RAW = 1
    MFM_NIC_REPLY = 2
    HOST_QUERY = 3
    HOST_REPLY = 4
    ETHER_UNICAST = 32
    ETHER_MULTICAST = 33
    ETHER_NATIVE = 34
    TRUC = 35
    CONNECT = 36
    TINY = 37
    SMALL = 38
    MEDIUM = 39
    RNDV = 40
    PULL = 41
    PULL_REPLY = 42
    NOTIFY = 43
    NACK_LIB = 44
    NACK_MCP = 45


RESERVED_TYPES = frozenset(
    {
        PacketType.MFM_NIC_REPLY,
        PacketType.ETHER_UNICAST,
        PacketType.ETHER_MULTICAST,
        PacketType.ETHER_NATIVE,
    }
)
"""Types of native MX, which an Open-MX host drops as "invalid type" (section 6)."""


class TrucType(IntEnum):
    """Sub-type of a TRUC packet (section 6.4)."""

    ACK = 0x55


class NackType(IntEnum):
    """Reason of a refusal (section 6.14)."""

    NONE = 0
    BAD_ENDPT = 1
    ENDPT_CLOSED = 2
    BAD_SESSION = 3
    BAD_RDMAWIN = 4


class ConnectStatus(IntEnum):
    """Status of a connect reply (section 6.5), in the numbers of MX rather than Open-MX."""

    SUCCESS = 0
    BAD_KEY = 11


def packet_type_name(value: int) -> str:
    """The specification's name of a packet type, or its number in decimal if it has none."""
    try:
        return PacketType(value).name
    except ValueError:
        return str(value)


def packet_type_number(name: str) -> int:
    """Return a packet type by its name in any case, or its number.

    Raises :class:`~mxwire.errors.MxwireError` for an unknown name.
    """
    if name.upper() in PacketType.__members__:
        return int(PacketType[name.upper()])
    try:
        number = int(name, 0)
    except ValueError:
        number = -1
    if not 0 <= number <= 0xFF:
        raise MxwireError(
            f"no packet type {name!r}{suggestion(name, PacketType.__members__, lister='mxwire formats', most=1)}"
        )
    return number


def sequence_text(number: int) -> str:
    """A sequence number: its 14 bits, preceded by the session number unless that is 0, as in ``1/4097``."""
    session = number >> SESSION_NUMBER_SHIFT
    low = number & NUMBER_MASK
    return f"{session}/{low}" if session else str(low)


def hostname_text(raw: bytes) -> str:
    """A host name up to its NUL, with unprintable bytes escaped."""
    text = raw.split(b"\0", 1)[0].decode("ascii", "backslashreplace")
    # Hosts choose their names, and control characters would act on the terminal of the user.
    return "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in text)

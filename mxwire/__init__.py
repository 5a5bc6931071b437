"""mxwire: a packet-level toolkit for Myrinet Express over Ethernet (MXoE) and Open-MX.

The names below are the public interface; everything else may move between releases. Each is imported on first use, so
that a program loads only the parts it needs.

Captures: :func:`open_capture`, :func:`create_capture`, and as data frames :func:`read_frames`, :func:`read_messages`.
Frames: :class:`FrameBatch` holds many, :class:`Decoder` decodes them, :func:`parse` and :func:`build` handle one;
:data:`MXOE` and :func:`omx` are the dialects. Hosts: :class:`Host` and :class:`AsyncHost` with their
:class:`Endpoint`, :class:`AsyncEndpoint` and :class:`Message`; :class:`Node` is the engine without sockets or clock.
Errors: all are :class:`MxwireError`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.9.0"

if TYPE_CHECKING:
    from mxwire.capture import create_capture, open_capture
    from mxwire.errors import MxwireError
    from mxwire.frames import FrameBatch
    from mxwire.host import AsyncEndpoint, AsyncHost, Endpoint, Host, Message
    from mxwire.protocol import Node
    from mxwire.tables import read_frames, read_messages
    from mxwire.wire.codec import build, parse
    from mxwire.wire.decoder import Decoder
    from mxwire.wire.dialect import MXOE, Dialect, omx

_HOMES = {
    "mxwire.capture": ("create_capture", "open_capture"),
    "mxwire.errors": ("MxwireError",),
    "mxwire.frames": ("FrameBatch",),
    "mxwire.host": ("AsyncEndpoint", "AsyncHost", "Endpoint", "Host", "Message"),
    "mxwire.protocol": ("Node",),
    "mxwire.tables": ("read_frames", "read_messages"),
    "mxwire.wire.codec": ("build", "parse"),
    "mxwire.wire.decoder": ("Decoder",),
    "mxwire.wire.dialect": ("MXOE", "Dialect", "omx"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "MXOE",
    "AsyncEndpoint",
    "AsyncHost",
    "Decoder",
    "Dialect",
    "Endpoint",
    "FrameBatch",
    "Host",
    "Message",
    "MxwireError",
    "Node",
    "build",
    "create_capture",
    "omx",
    "open_capture",
    "parse",
    "read_frames",
    "read_messages",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used (PEP 562)."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(home), name)
    return found


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *__all__})

"""mxwire: a packet-level toolkit for Myrinet Express over Ethernet (MXoE) and Open-MX.

The names below are the public interface; everything else may move between releases. Each is imported on first use, so
that a program loads only the parts it needs.

Captures: :func:`open_capture`, :func:`create_capture`, and as data frames :func:`read_frames`, :func:`read_messages`.
Frames: :class:`FrameBatch` holds many, :class:`Decoder` decodes them, :func:`parse` and :func:`build` handle one;
:data:`MXOE` and :func:`omx` are the dialects. Hosts: :class:`Host` and :class:`AsyncHost` with their
:class:`Endpoint`, :class:`AsyncEndpoint` and :class:`Message`; :class:`Node` is the engine without sockets or clock.
Errors: all are :class:`MxwireError`.
"""

from typing import TYPE_CHECKING

from mxwire.first_use import import_on_first_use

__version__ = "0.9.0"

if TYPE_CHECKING:
    from mxwire.analysis.data_frames import read_frames, read_messages
    from mxwire.capture import create_capture, open_capture
    from mxwire.errors import MxwireError
    from mxwire.frames import FrameBatch
    from mxwire.host import AsyncEndpoint, AsyncHost, Endpoint, Host, Message
    from mxwire.protocol import Node
    from mxwire.wire.codec import build, parse
    from mxwire.wire.decoder import Decoder
    from mxwire.wire.dialect import MXOE, Dialect, omx

__getattr__ = import_on_first_use(
    __name__,
    {
        "analysis.data_frames": ("read_frames", "read_messages"),
        "capture": ("create_capture", "open_capture"),
        "errors": ("MxwireError",),
        "frames": ("FrameBatch",),
        "host": ("AsyncEndpoint", "AsyncHost", "Endpoint", "Host", "Message"),
        "protocol": ("Node",),
        "wire.codec": ("build", "parse"),
        "wire.decoder": ("Decoder",),
        "wire.dialect": ("MXOE", "Dialect", "omx"),
    },
)

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


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *__all__})

"""The carriers of channels by name."""

from __future__ import annotations

from typing import Final

from mxwire.bench.channels.cards import CardChannel
from mxwire.bench.channels.channel import Channel, ChannelSetup
from mxwire.bench.channels.hosts import HostChannel, dialect_of
from mxwire.bench.channels.links import LinkChannel
from mxwire.bench.channels.model_queue import QueueChannel
from mxwire.bench.channels.models import ModelChannel
from mxwire.bench.channels.shared_memory import SharedChannel
from mxwire.bench.channels.sockets import FrameChannel, TcpChannel, UdpChannel
from mxwire.bench.channels.virtual import VirtualChannel
from mxwire.bench.models.catalogue import MODELS, VARIANTS, has_card, is_model
from mxwire.errors import MxwireError
from mxwire.ethernet import HEADER_SIZE
from mxwire.wire.dialect import as_dialect
from mxwire.words import suggestion

_CARRIERS: Final[dict[str, type[Channel]]] = {
    "tcp": TcpChannel,
    "udp": UdpChannel,
    "frames": FrameChannel,
    "ring": LinkChannel,
    "xdp": LinkChannel,
    "shared memory": SharedChannel,
}


def is_host(carrier: str) -> bool:
    """Return whether a carrier is a host of mxwire; its dialect may not exist."""
    return carrier.startswith(("mxoe", "omx"))


def check_carrier(carrier: str) -> str:
    """Return the name of a carrier. Raises :class:`~mxwire.errors.MxwireError` if there is none of that name."""
    if carrier not in _CARRIERS and not is_model(carrier):
        if not is_host(carrier):
            names = [*_CARRIERS, *MODELS, *VARIANTS]
            near = suggestion(carrier, names)
            raise MxwireError(f"there is no carrier {carrier!r}{near}: use mx, mxoe, omx:M, {', '.join(names)}")
        as_dialect(dialect_of(carrier))
    return carrier


def mtu_refusal(carrier: str, mtu: int) -> str | None:
    """Return the reason why the hosts of a carrier cannot use a link with an MTU; None if they can."""
    needed = as_dialect(dialect_of(carrier)).frame_limit - HEADER_SIZE
    return f"it needs an MTU of {needed}, not {mtu}" if needed > mtu else None


def open_channel(setup: ChannelSetup) -> Channel:
    """Open one side of a channel, the passive one first.

    Raises :class:`~mxwire.errors.MxwireError` if the carrier cannot be used here.
    """
    if setup.thread is not None:
        return VirtualChannel(setup)
    if is_model(setup.carrier):
        if setup.clients:
            return QueueChannel(setup)
        return (CardChannel if has_card(setup.carrier) else ModelChannel)(setup)
    return _CARRIERS.get(setup.carrier, HostChannel)(setup)

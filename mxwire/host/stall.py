"""Detection of stalled transfers, and of their reason by local evidence.

A wait is checked several times per second for progress (``StallObserver``). Frames are decoded (``PeerObserver``) only
after ``SUSPICIOUS`` seconds without progress, because decoding all the time would be too slow.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final, TypeVar

from mxwire.ethernet import ADDRESS_SIZE, DESTINATION, HEADER_SIZE, SOURCE
from mxwire.frames import FrameBatch
from mxwire.host.core import Core, FrameObserver
from mxwire.host.endpoint import Endpoint
from mxwire.host.errors import HostError, HostTimeoutError
from mxwire.host.mtu import longest_frame, needed_mtu
from mxwire.host.requests import Pending, place_of
from mxwire.link import LinkError
from mxwire.link.interface import read_interface
from mxwire.protocol import Counter, Partner, Peer, Status
from mxwire.protocol.name_search import query
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import Dialect

SLICE: Final = 0.25
"""Seconds between checks for progress."""
SUSPICIOUS: Final = 1.5
"""Seconds without progress after which frames are observed for the reason."""
_OBSERVE_FOR: Final = 1.0
"""Seconds of observation before a likely reason is reported."""
_QUERY_EVERY: Final = 0.5
"""Seconds between host queries, which show whether the peer is alive."""

SHORT: Final = 64 + HEADER_SIZE
"""Maximum length of a frame that fits every MTU, in bytes with the header."""
ENOUGH: Final = 1024
"""Frames to decode; a wrong dialect shows in far fewer."""
OBSERVE_AGAIN: Final = 30.0
"""Seconds after which a dialect monitor decodes another ``ENOUGH`` frames."""
_CONFIDENT: Final = 0.8
"""Minimum confidence at which a detected dialect is accepted."""
_ADVICE: Final = "start both with the same --dialect"

Result = TypeVar("Result")
Silence = float | Callable[[], float | None] | None
"""Seconds without progress until an error, or a function that returns them; None: without limit."""


class PeerObserver(FrameObserver):
    """Keeps the frames that a host receives and sends, up to ``ENOUGH``, for evidence about its peers.

    They are decoded together when evidence is requested: frame by frame this takes longer than a whole round trip.
    Single frames are taken as such, since a batch of one takes as long as its message.
    """

    def __init__(self, core: Core) -> None:
        self._left = ENOUGH
        self._decoder = Decoder()
        self._kept: list[bytes] = []
        """Received frames that are not decoded yet."""
        self.received: defaultdict[bytes, int] = defaultdict(int)
        """Number of frames received, by address of the peer."""
        self.long_received: defaultdict[bytes, int] = defaultdict(int)
        """Number of frames longer than ``SHORT`` received."""
        self.long_sent: defaultdict[bytes, int] = defaultdict(int)
        """Number of frames longer than ``SHORT`` sent."""
        self._longest: dict[bytes, int] = {}
        super().__init__(core, self._count, single=True)

    def _count(self, frames: FrameBatch | list[bytes], sent: bool) -> None:
        self._left -= len(frames)
        place = DESTINATION.start if sent else SOURCE.start
        for frame in frames:
            length = len(frame)
            if sent and length <= SHORT:
                continue
            other = frame[place : place + ADDRESS_SIZE]
            if not sent:
                self._kept.append(frame)
                self.received[other] += 1
                self._longest[other] = max(self._longest.get(other, 0), length)
            if length > SHORT:
                (self.long_sent if sent else self.long_received)[other] += 1
        if self._left <= 0:
            self.close()

    def query(self, peer: Peer) -> None:
        """Send a host query, which any running host with this host in its peer table answers at once (R-HOST-04)."""
        core = self._core
        with core.section:
            for board in core.node.interfaces:
                board.emit(Counter.SEND_HOST_QUERY, query(board.address, peer.address, peer.index, core.node.magic))
            core.transmit()

    def disagreement(self, peer: Peer) -> str | None:
        """Description of a peer that uses another dialect than this host; None without evidence."""
        own = self._core.node.dialect
        self._decoder.decode(FrameBatch.from_frames(self._kept))
        self._kept.clear()
        number = int.from_bytes(peer.address, "big")
        for each in self._decoder.detections():
            remote = each.dialect
            if number in each.hosts and remote is not None and each.confidence >= _CONFIDENT and _differ(own, remote):
                return f"speaks dialect {remote}, and this host {own}: {_ADVICE}"
        longest = self._longest.get(peer.address, 0)
        if longest > longest_frame(own):
            most = longest_frame(own)
            return f"sends frames of {longest} bytes, and dialect {own} has at most {most}: {_ADVICE}"
        return None


class DialectMonitor:
    """Detects hosts of other dialects, from the first ``ENOUGH`` frames of every half minute."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._observer = PeerObserver(core)
        self._again = time.monotonic() + OBSERVE_AGAIN
        self._known: set[bytes] = set()

    def found(self) -> list[str]:
        """Descriptions of the hosts detected since the last call; to be called from time to time."""
        now = time.monotonic()
        texts = self._new(self._observer)
        if now >= self._again:
            self.close()
            self._observer = PeerObserver(self._core)
            self._again = now + OBSERVE_AGAIN
        return texts

    def _new(self, observer: PeerObserver) -> list[str]:
        texts = []
        for peer in self._core.node.peers:
            text = None if peer.address in self._known or peer.own is not None else observer.disagreement(peer)
            if text is not None:
                self._known.add(peer.address)
                texts.append(f"{peer.name or peer.address.hex(':')} {text}")
        return texts

    def close(self) -> None:
        """Stop observing."""
        self._observer.close()


class StallObserver:
    """Detects that transfers between an endpoint and a partner have stalled, and why.

    ``epoch`` is the partner's at the start of the transfer, by default the present one.
    """

    def __init__(self, endpoint: Endpoint, partner: Partner, silence: Silence = None, epoch: int | None = None) -> None:
        self._endpoint = endpoint
        self._partner = partner
        self._silence = silence
        self._epoch = partner.epoch if epoch is None else epoch
        self._signs = self._progress()
        self._since = self._queried = time.monotonic()
        self._observer: PeerObserver | None = None
        self._observing_since = 0.0

    def check(self) -> None:
        """Raise :class:`~mxwire.host.errors.HostError` if the partner was lost, if there was no progress for too long,
        or if progress is impossible."""
        if self._partner.epoch != self._epoch:
            self.close()
            raise restarted(self._partner)
        now = time.monotonic()
        signs = self._progress()
        if signs != self._signs:
            self._signs, self._since = signs, now
            self.close()
        elif now - self._since >= SUSPICIOUS:
            self._investigate(now)

    def close(self) -> None:
        """Stop observing."""
        if self._observer is not None:
            self._observer.close()
            self._observer = None

    def _progress(self) -> tuple[Any, ...]:
        """State that changes with progress, and not with retransmissions."""
        partner = self._partner
        with self._endpoint.host.core.section:
            pulls = [
                (each.handle, each.requested, *(block.missing for block in each.blocks))
                for each in self._endpoint.engine.card.pulls.values()
            ]
            sends = [each.requested for each in partner.large_sends.values()]
            return partner.tx_next, partner.tx_una, partner.rx_next, len(partner.incomplete), *pulls, *sends

    def _investigate(self, now: float) -> None:
        attachment = self._endpoint.host.attachment
        if attachment is not None:
            # The state of the transfer and its frames are the agent's.
            silence = self._allowed()
            if silence is not None and now - self._since >= max(silence, SUSPICIOUS + _OBSERVE_FOR):
                raise HostTimeoutError(
                    f"no progress with {place_of(self._partner)} for {now - self._since:.1f} s: {attachment.agent} has "
                    "the frames (mxwire ss, mxwire diagnose -i)"
                )
            return
        core = self._endpoint.host.core
        if self._observer is None:
            self._observer = PeerObserver(core)
            self._observing_since = now
            self._queried = 0.0
        if now - self._queried >= _QUERY_EVERY:
            self._observer.query(self._partner.peer)
            self._queried = now
        reason = self._dialect() or self._interface()
        lasting = now - self._since
        if reason is not None:
            self.close()
            raise HostError(Status.REMOTE_ENDPOINT_UNREACHABLE, f"{place_of(self._partner)}: {reason}")
        observed = now - self._observing_since >= _OBSERVE_FOR
        silence = self._allowed()
        if silence is not None and lasting >= silence and observed:
            why = self._guess()
            self.close()
            raise HostTimeoutError(f"no progress with {place_of(self._partner)} for {lasting:.1f} s: {why}")

    def _allowed(self) -> float | None:
        silence = self._silence
        return silence if silence is None or isinstance(silence, (int, float)) else silence()

    def _dialect(self) -> str | None:
        assert self._observer is not None
        text = self._observer.disagreement(self._partner.peer)
        return None if text is None else f"it {text}"

    def _interface(self) -> str | None:
        """Reason why the kernel refuses frames, by the present MTU of the interfaces."""
        core = self._endpoint.host.core
        needed = needed_mtu(core.node.dialect)
        for link in core.links:
            try:
                found = read_interface(link.name)
            except LinkError:
                continue
            if found.mtu < needed:
                return (
                    f"the MTU of {link.name} is {found.mtu} now, and dialect {core.node.dialect} needs {needed}: "
                    f"ip link set {link.name} mtu {needed}"
                )
        return None

    def _guess(self) -> str:
        observer, partner = self._observer, self._partner
        assert observer is not None
        core = self._endpoint.host.core
        down = [each.name for each in core.links if not _is_up(each.name)]
        if down:
            return f"{', '.join(down)} is down"
        if not observer.received[partner.peer.address]:
            return "no frame arrives from it: it has ended, or the path to it is broken"
        needed = needed_mtu(core.node.dialect)
        if observer.long_sent[partner.peer.address] or self._pulling():
            return (
                f"its short frames arrive, but long ones do not pass: an MTU on the path or at the peer is smaller "
                f"than {needed}, or it does not speak dialect {core.node.dialect}"
            )
        return (
            "it is running and has received all frames, but its program does not answer: it waits for something else, "
            "or is about to disconnect"
        )

    def _pulling(self) -> bool:
        assert self._observer is not None
        return bool(self._endpoint.engine.card.pulls) and not self._observer.long_received[self._partner.peer.address]


def restarted(partner: Partner) -> HostError:
    """Error for a partner that is in another epoch than at the start of the transfer."""
    return HostError(
        Status.REMOTE_ENDPOINT_UNREACHABLE,
        f"{place_of(partner)} has restarted, or did not answer until the protocol's limit",
    )


def _is_up(name: str) -> bool:
    try:
        return read_interface(name).up
    except LinkError:
        return True


def wait_observed(
    endpoint: Endpoint,
    pending: Pending[Result],
    partner: Partner,
    silence: Silence = None,
    tick: Callable[[], object] | None = None,
    epoch: int | None = None,
) -> Result:
    """Wait for ``pending``, which depends on a partner, and detect the reason if it stalls.

    ``tick`` is called several times per second; ``epoch`` is the partner's at the start of the transfer. Raises
    :class:`~mxwire.host.errors.HostError` with the reason, and the errors of the wait itself.
    """
    driver = endpoint.host.driver
    observer: StallObserver | None = None
    try:
        while True:
            try:
                return driver.wait(pending, SLICE)
            except HostTimeoutError:
                # Most waits are over in the first slice, and need no observer.
                observer = observer or StallObserver(endpoint, partner, silence, epoch)
            observer.check()
            if tick is not None:
                tick()
    finally:
        if observer is not None:
            observer.close()


def _differ(own: Dialect, remote: Dialect) -> bool:
    if own.family != remote.family or own.generation != remote.generation:
        return True
    return remote.frame_limit_known and own.frame_limit != remote.frame_limit

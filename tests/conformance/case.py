"""A capture, one of its hosts, and the peculiarities of playing it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from mxwire.protocol import Profile
from mxwire.protocol.profile import OPEN_MX_1_5_AS_FOUND
from mxwire.units import MILLISECOND
from tests.conformance.programs import PROGRAMS, REAL_PAYLOAD

ADDRESSES: Final = {
    "A": bytes.fromhex("5254000a0001"),
    "B": bytes.fromhex("5254000a0002"),
    "real": bytes.fromhex("5254000a00aa"),
}
"""The hosts; `real` is the one that a peer made by hand talked to."""
NAMES: Final = {"A": "vm1", "B": "vm2", "real": "omxvm"}
OTHERS: Final = {"A": "B", "B": "A"}
BY_HAND: Final = {bytes.fromhex("020000000099"): "peer:0"}


@dataclass(frozen=True)
class Case:
    """A capture, and the host in it that a node stands for."""

    capture: str
    host: str
    frames: int = 0
    """Number of frames of this host that are compared."""
    shift_ms: float = 0
    """Delay of all events relative to the recording, which aligns the ticks of the node with those of the host."""
    early_ms: float = 0
    """Time by which a timer may expire early, as the real host's did: an idle kernel counts some of its ticks late, so
    that the library notes an older time for what it sends than the true one."""
    delay_ms: float = 0
    """Additional time after which a frame of this host may have been recorded."""
    lossy: bool = False
    """True if the network lost, duplicated or reordered this host's frames before they were recorded."""
    modulo_acks: bool = False
    """True if acks are not compared, because timing decides which of them there are."""
    again: int = 0
    """Number of the captured frames that are duplicates, if some are."""
    lost: int = 0
    """Number of frames of the node that are not in the capture, if some are."""
    left: int = 0
    """Number of frames that the node has sent at the end and the host has not."""
    resends: int | None = None
    """Number of retransmissions that this host was configured for."""
    daemon: str = ""
    """When the discovery daemon of the host started, if it is played: `before` the capture, or it `starts` in it."""
    strangers: bool = False
    """True if the host knows no other at the beginning."""
    until: int | None = None
    """The last frame that can be compared."""
    unheard: Collection[int] = ()
    """Frames of the other host that did not arrive, as what follows shows."""
    unsent: Collection[int] = ()
    """Frames of this host that the engine does not send, on purpose."""
    killed: int | None = None
    """The frame before which the application was killed."""
    why: str = ""
    """The reason why some frames cannot be compared, or another peculiarity."""

    @property
    def shift(self) -> int:
        """``shift_ms`` in ns."""
        return int(self.shift_ms * MILLISECOND)

    @property
    def early(self) -> int:
        """``early_ms`` in ns."""
        return int(self.early_ms * MILLISECOND)

    @property
    def delay(self) -> int:
        """``delay_ms`` in ns."""
        return int(self.delay_ms * MILLISECOND)

    @property
    def subject(self) -> str:
        """The capture's name without its dialect."""
        return self.capture.partition("-")[2]

    @property
    def address(self) -> bytes:
        """The host's Ethernet address."""
        return ADDRESSES[self.host]

    @property
    def hostname(self) -> str:
        """The host's name."""
        return NAMES[self.host]

    @property
    def peers(self) -> Mapping[bytes, str | None]:
        """The peers in the host's table at the start."""
        if self.strangers:
            return {}
        other = OTHERS.get(self.host)
        return {ADDRESSES[other]: f"{NAMES[other]}:0"} if other else BY_HAND

    @property
    def programs(self) -> Sequence[str]:
        """The calls of the host's applications."""
        return PROGRAMS.get(self.subject, {}).get(self.host, ())

    @property
    def real_payload(self) -> bool:
        """True if the payload must be read from the capture."""
        return self.subject in REAL_PAYLOAD

    @property
    def profile(self) -> Profile:
        """The profile of the host: the real Open-MX, with its defects."""
        profile = OPEN_MX_1_5_AS_FOUND
        return profile if self.resends is None else replace(profile, resend_maximum=self.resends)

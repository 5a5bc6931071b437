"""Real captures with one change each, and the rule that it breaks; all other findings are consequences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mxwire.wire.codec import build, parse
from tests.wire.support import dialect_of, frames_of, read_capture

Frames = list[tuple[int, bytes]]
"""Times in nanoseconds, and frames."""


def recorded(capture: str) -> Frames:
    """All frames of a capture; what was cut from them is zero."""
    batch = read_capture(capture)
    whole = zip(batch.timestamp_ns.tolist(), frames_of(batch), batch.wire_length.tolist(), strict=True)
    return [(time, raw.ljust(length, b"\0")) for time, raw, length in whole]


@dataclass(frozen=True)
class Mutation:
    rule: str
    capture: str
    change: Callable[[Frames], None]
    what: str
    also: tuple[str, ...] = ()
    """Rules that are broken as a consequence."""
    from_start: bool = False
    """The capture is verified as one that began before the endpoints were opened."""

    @property
    def title(self) -> str:
        return f"{self.rule}-{self.what}"

    def frames(self) -> Frames:
        """The capture as it was, and then changed."""
        made = recorded(self.capture)
        self.change(made)
        return made


def fields(number: int, capture: str, **changes: Any) -> Callable[[Frames], None]:
    """Other values in the fields of one frame; frames count from 1. A function as a value receives the old value."""

    def change(frames: Frames) -> None:
        time, raw = frames[number - 1]
        frame: Any = parse(raw, dialect_of(capture))
        new = {name: value(getattr(frame, name)) if callable(value) else value for name, value in changes.items()}
        frames[number - 1] = time, build(replace(frame, **new), dialect_of(capture))

    return change


def again(number: int, capture: str, after_ms: int, **changes: Any) -> Callable[[Frames], None]:
    """A frame once more, some time later, with other values in it."""

    def change(frames: Frames) -> None:
        time, raw = frames[number - 1]
        later = time + after_ms * 1_000_000
        place = next((at for at, (each, _) in enumerate(frames) if each > later), len(frames))
        frames.insert(place, (later, raw))
        fields(place + 1, capture, **changes)(frames)

    return change


def each_of(*changes: Callable[[Frames], None]) -> Callable[[Frames], None]:
    """Several changes, one after the other."""

    def change(frames: Frames) -> None:
        for apply in changes:
            apply(frames)

    return change


def without_first_replies(frames: Frames) -> None:
    """No pull gets its first bytes."""
    frames[:] = [each for each in frames if getattr(parse(each[1], dialect_of(MANY)), "msg_offset", None) != 0]


def cut(number: int, length: int) -> Callable[[Frames], None]:
    """A truncated frame, or one extended with zeros."""

    def change(frames: Frames) -> None:
        time, raw = frames[number - 1]
        frames[number - 1] = time, raw[:length].ljust(length, b"\0")

    return change


def byte(number: int, offset: int, value: int) -> Callable[[Frames], None]:
    """Another byte in a frame."""

    def change(frames: Frames) -> None:
        time, raw = frames[number - 1]
        frames[number - 1] = time, raw[:offset] + bytes([value]) + raw[offset + 1 :]

    return change


ALL = "mxoe-every-type"
"""See ``mxwire decode captures/mxoe-every-type.pcap`` for the numbers."""


def _one(
    rule: str, what: str, number: int, also: tuple[str, ...] = (), *, from_start: bool = False, **changes: Any
) -> Mutation:
    return Mutation(rule, ALL, fields(number, ALL, **changes), what, also, from_start)


STATIC, BURST, MANY, NACKS = "mxoe-discovery-static", "mxoe-burst", "mxoe-many", "mxoe-nack-lib"
CONNECTS = "mxoe-connect"
NOBODY = 0xFFFFFFFF

MUTATIONS = (
    Mutation("W-2", ALL, cut(37, 59), "a byte less"),
    Mutation("W-6", ALL, byte(39, 16, 77), "another type"),
    _one("W-5", "another index", 40, dst_src_peer_index=2),
    _one("W-6.4", "another kind of TRUC", 76, liback_type=0x56),
    _one("W-6.5", "a numbered connect", 35, lib_seqnum=1),
    _one("W-6.7", "another length in the second fragment", 44, length=5001),
    _one("W-6.8", "a longer RNDV", 63, length=9),
    _one("W-7", "more data than the frame has", 41, length=120),
    Mutation("R-DISC-06", ALL, cut(1, 1025), "a long announcement"),
    _one("R-HOST-06", "another magic", 7, magic=1),
    _one("R-HOST-08", "a name without NUL", 7, hostname=b"vm1:00", length=6),
    _one("R-LOC-01", "a request to itself", 35, dst_mac=bytes.fromhex("5254000a0001"), dst_endpoint=5),
    _one("R-EP-01", "an endpoint in use is beyond the limit", 83, nack_type=1),
    _one("R-EP-02", "another session", 39, session=1),
    _one("R-CON-01", "asks for a late start", 36, ("R-SEQ-05",), from_start=True, target_recv_seqnum_start=9),
    Mutation("R-CON-02", STATIC, fields(2, STATIC, app_key=1), "another key the second time"),
    _one("R-CON-04", "status 34", 36, connect_status_code=34),
    _one("R-CON-08", "another connect number", 36, connect_seqnum=3),
    Mutation("R-CON-09", NACKS, fields(2, NACKS, nack_type=3), "a connect refused for its session"),
    Mutation(
        "R-CON-12",
        ALL,
        each_of(fields(64, ALL, session=NOBODY), fields(65, ALL, session=NOBODY)),
        "PULLs with session 0xFFFFFFFF are served",
    ),
    Mutation("R-SEQ-05", CONNECTS, fields(11, CONNECTS, lib_seqnum=0x4001), "another session number", from_start=True),
    _one("R-SEQ-06", "one more than the window", 39, ("R-ACK-01",), from_start=True, lib_seqnum=2 + 8191),
    _one("R-SEQ-03", "another session number", 39, lib_seqnum=0x4002),
    _one("R-MED-03", "fragment 32", 44, ("R-MED-04",), frag_seqnum=32),
    _one("R-MED-04", "a fragment too many", 44, frag_seqnum=2),
    _one("R-ACK-01", "acknowledges too much", 40, from_start=True, lib_piggyack=5),
    _one("R-ACK-06", "liback 0", 76, liback_acknum=0),
    _one("R-RTX-02", "another NOTIFY the second time", 84, total_length=5),
    _one("R-RTX-04", "another session the second time", 85, ("R-EP-02",), session=NOBODY),
    Mutation(
        "R-RDV-01",
        BURST,
        fields(87, BURST, pulled_rdma_id=0),
        "the same region and counter again",
        ("R-NOT-01", "R-PUL-04"),
        from_start=True,
    ),
    _one("R-RDV-04", "an empty PULL", 65, ("R-PUL-01",), block_length=0),
    _one("R-PUL-01", "a smaller block", 64, block_length=4096),
    Mutation("R-PUL-02", MANY, without_first_replies, "a block too many", ("R-NOT-01",)),
    _one("R-PUL-03", "another counter", 65, ("R-NOT-01",), pulled_rdma_seqnum=24),
    _one("R-PUL-04", "more than announced", 63, msg_length=30_000),
    Mutation("R-PUL-10", ALL, again(64, ALL, 200), "after its NOTIFY"),
    _one("R-PUL-13", "another frame number", 66, frame_seqnum=1),
    Mutation(
        "R-NOT-01",
        ALL,
        each_of(fields(75, ALL, total_length=32_768), fields(84, ALL, total_length=32_768)),
        "another length",
    ),
    Mutation("R-NAK-02", ALL, again(83, ALL, 1, lib_seqnum=99), "of nothing", from_start=True),
    _one("R-NAK-07", "type 4", 83, nack_type=4),
    _one("R-NAK-09", "type 0", 80, nack_type=0),
)

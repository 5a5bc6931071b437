"""The recorded frames of a cell: the rules that they break, their fates and digest, and their capture with comments."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from struct import Struct
from typing import Final

from mxwire.analysis.fate import Fate
from mxwire.capture import create_capture
from mxwire.ethernet import SOURCE
from mxwire.frames import FrameBatch
from mxwire.interop.roles import HostSetup
from mxwire.interop.testbed import RecordedFrame, Testbed
from mxwire.rules import LOST as NEVER
from mxwire.rules import Judge, Vantage, Violation
from mxwire.simulation.wire_judge import vantage_of
from mxwire.wire.codec import Codec, Malformed, codec_of
from mxwire.wire.dialect import Dialect
from mxwire.wire.numbers import NO_SESSION
from mxwire.wire.packets import ConnectReply, ConnectRequest, Frame, Pull

_ADDRESSES: Final = slice(0, 12)


def fates(frames: Sequence[RecordedFrame]) -> dict[int, Fate]:
    """Return the fates of affected frames, by their numbers from 1."""
    fates: dict[int, Fate] = {}
    earliest: dict[bytes, int] = {}
    """Earliest arrival of the later frames, by addresses."""
    for number, each in reversed(list(enumerate(frames, 1))):
        arrival = each.arrival_ns
        arrivals = 0 if arrival == NEVER else each.arrivals
        late = 0
        if arrival is not None and arrivals:
            direction = each.frame[_ADDRESSES]
            if arrival > earliest.get(direction, arrival):
                late = arrival - each.time_ns
            earliest[direction] = min(arrival, earliest.get(direction, arrival))
        fate = Fate(arrivals, late)
        if not fate.is_plain:
            fates[number] = fate
    return fates


_FRAME: Final = Struct(">QI")
_ECHOED: Final = "a HOST_REPLY with the index of its query teaches a wrong one"
_KEPT: Final = 256
"""Bytes per frame in the capture of a cell with the expected result: all headers, and the beginning of the data."""
_INHERITED: Final = "of an exchange before this cell: not judged"
_QUERIES: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class HostTable:
    """The hosts on the wire."""

    castings: Mapping[bytes, HostSetup]
    """Hosts of mxwire by their Ethernet addresses."""
    others: Dialect
    """Assumed dialect of other hosts."""
    excused: frozenset[str] = field(default_factory=frozenset)
    """Known defects of other hosts."""
    from_start: bool = True
    """True if all endpoints were opened after the first frame."""

    @classmethod
    def on(cls, testbed: Testbed, castings: Sequence[HostSetup]) -> HostTable:
        """Return the hosts of a testbed, all of them mxwire's own, with their configurations."""
        known = {side.address: casting for side, casting in zip(testbed.sides, castings, strict=True)}
        return cls(known, castings[-1].dialect)

    def dialect(self, address: bytes) -> Dialect:
        """Return the dialect of a host."""
        found = self.castings.get(address)
        return self.others if found is None else found.dialect

    def vantage(self, *, exact: bool) -> Vantage:
        """Return the vantage: exact transmission times, or times of reception in real time."""
        profiles = [each.profile for each in self.castings.values()]
        sent = vantage_of(profiles)
        return replace(
            sent if exact else Vantage(),
            from_start=self.from_start,
            resends_maximum=None,
            query_interval_ns=min((each.query_interval for each in profiles), default=_QUERIES),
            excused=sent.excused | self.excused,
        )


def sessions_named(frames: Sequence[RecordedFrame], hosts: HostTable, own: bytes) -> frozenset[int]:
    """Return the sessions that frames of other hosts than ``own`` name as their destination's."""
    return frozenset(session for _, _, session in _naming_sessions(frames, hosts, own))


def inherited(
    frames: Sequence[RecordedFrame], hosts: HostTable, own: bytes, earlier: Collection[int] = ()
) -> frozenset[int]:
    """Return the numbers of frames that continue exchanges from before the first frame.

    The host at ``own`` opens endpoints with new sessions for each cell, so a frame of another host that names a session
    of ``earlier``, or a PULL that names one which ``own`` has not announced, was caused by an earlier cell or run: a
    host repeats the PULLs of a closed endpoint for 512 s (R-MEA-21).
    """
    codec = codec_of(hosts.dialect(own))
    announced = set()
    for each in frames:
        frame = codec.parse(each.frame) if each.frame[SOURCE] == own else None
        if isinstance(frame, ConnectRequest):
            announced.add(frame.src_session_id)
        elif isinstance(frame, ConnectReply):
            announced.add(frame.target_session_id)
    return frozenset(
        number
        for number, frame, session in _naming_sessions(frames, hosts, own)
        if session not in announced and (session in earlier or isinstance(frame, Pull))
    )


def _naming_sessions(frames: Sequence[RecordedFrame], hosts: HostTable, own: bytes) -> Iterator[tuple[int, Frame, int]]:
    """Yield the frames of other hosts that name a session of their destination: number, frame and session."""
    for number, each in enumerate(frames, 1):
        source = each.frame[SOURCE]
        if source == own:
            continue
        frame = codec_of(hosts.dialect(source)).parse(each.frame)
        session = getattr(frame, "session", NO_SESSION)
        if not isinstance(frame, Malformed) and session != NO_SESSION:
            yield number, frame, session


def breaches_of(
    frames: Sequence[RecordedFrame],
    hosts: HostTable,
    *,
    exact: bool,
    left_out: Collection[int] = (),
    reboots: Sequence[tuple[int, bytes]] = (),
    slowest: int = 0,
) -> list[Violation]:
    """Return the breaches of rules that the frames show; frames are numbered from 1.

    With ``exact``, times are exact transmission times. ``reboots`` gives restarts of hosts, each as the number of
    frames before it and the address; ``slowest`` is the maximum delay of a frame in ns. The frames with the numbers
    ``left_out`` are not judged.
    """
    judging = Judge(lambda source, _: hosts.dialect(source), hosts.vantage(exact=exact))
    codecs: dict[bytes, Codec] = {}
    waiting = list(reboots)
    violations: list[Violation] = []
    for number, each in enumerate(frames, 1):
        while waiting and waiting[0][0] < number:
            judging.restarted(waiting.pop(0)[1], frames[number - 1].time_ns - slowest)
        if number in left_out:
            continue
        source = each.frame[SOURCE]
        codec = codecs.get(source)
        if codec is None:
            codec = codecs[source] = codec_of(hosts.dialect(source))
        violations += judging.observe(
            each.time_ns,
            codec.parse(each.frame),
            each.frame,
            number,
            delivered_ns=each.arrival_ns,
            arrivals=each.arrivals,
        )
    violations += judging.finish()
    return [_excused(each, hosts) for each in violations]


def _excused(found: Violation, hosts: HostTable) -> Violation:
    """Turn a wrong index into a note, if the release is known to send one."""
    if found.rule == "W-5" and any(each.profile.reply_echoes_index for each in hosts.castings.values()):
        return replace(found, severity="note", found=f"{found.found} ({_ECHOED})")
    return found


def digest(frames: Sequence[RecordedFrame], start: int = 0) -> str:
    """Return a digest of all frames and their times, in hexadecimal."""
    digest = sha256()
    for each in frames:
        digest.update(_FRAME.pack(each.time_ns - start, len(each.frame)) + each.frame)
    return digest.hexdigest()


def comments(
    frames: Sequence[RecordedFrame], findings: Sequence[Violation], left_out: Collection[int] = ()
) -> dict[int, str]:
    """Return the comments on frames in the capture, by frame number; those ``left_out`` were not judged."""
    noted: dict[int, list[str]] = {number: [_INHERITED] for number in left_out}
    for violation in findings:
        for number in violation.frames:
            noted.setdefault(number, []).append(
                f"{violation.severity} of {violation.rule}: {violation.found}; expected: {violation.expected}"
            )
    for number, fate in fates(frames).items():
        noted.setdefault(number, []).extend(fate.lines)
    return {number: "\n".join(dict.fromkeys(texts)) for number, texts in noted.items()}


def batch_of(frames: Sequence[RecordedFrame]) -> FrameBatch:
    """Return the frames as a batch, numbered from 1."""
    return FrameBatch.from_frames([each.frame for each in frames], [each.time_ns for each in frames], first_number=1)


def write_capture(
    path: Path,
    frames: Sequence[RecordedFrame],
    noted: Mapping[int, str],
    names: Mapping[bytes, str],
    about: str,
    *,
    whole: bool,
) -> None:
    """Write the frames with their comments; unless ``whole``, truncate their data.

    Raises :class:`~mxwire.errors.CaptureError` if the file cannot be written.
    """
    snap_length = 0 if whole else _KEPT
    name = "between the two hosts"
    with create_capture(path, comment=about, interface_name=name, snap_length=snap_length) as capture:
        capture.write_names(names)
        if frames:
            capture.write(batch_of(frames), dict(noted))

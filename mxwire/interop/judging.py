"""The frames of a cell before the judge of the rules, their digest, and the capture of them with comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from struct import Struct
from typing import Final

from mxwire.capture import create_capture
from mxwire.frames import FrameBatch
from mxwire.interop.casting import Casting
from mxwire.interop.fates import fates
from mxwire.interop.stage import Recorded
from mxwire.rules import Judge, Vantage, Violation
from mxwire.wire.codec import Codec, codec_of
from mxwire.wire.dialect import Dialect

_FRAME: Final = Struct(">QI")
_SOURCE: Final = slice(6, 12)
_ECHOED: Final = "a HOST_REPLY with the index of its query teaches a wrong one"
_KEPT: Final = 256
"""Bytes of a frame in the capture of a cell that is as expected: all headers, and data enough to see what it is."""
_QUERIES: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Hosts:
    """Who is who on the wire."""

    castings: Mapping[bytes, Casting]
    """Our hosts by their Ethernet addresses."""
    others: Dialect
    """What others are taken to speak."""
    excused: frozenset[str] = field(default_factory=frozenset)
    """Defects that are known of others."""
    from_start: bool = True
    """Whether all endpoints were opened after the first frame."""

    def dialect(self, address: bytes) -> Dialect:
        """What a host speaks."""
        found = self.castings.get(address)
        return self.others if found is None else found.dialect

    def vantage(self, *, exact: bool) -> Vantage:
        """How the frames were seen: with exact times, as they were sent, or in real time."""
        profiles = [each.profile for each in self.castings.values()]
        defects = frozenset(defect.value for profile in profiles for defect in profile.defects)
        rates = {profile.hz for profile in profiles}
        seen = Vantage(
            from_start=self.from_start,
            resends_maximum=None,
            query_interval_ns=min((each.query_interval for each in profiles), default=_QUERIES),
            excused=defects | self.excused,
        )
        if exact:
            return replace(seen, as_sent=True, clock_ns=0, reorder_ns=0, hz=rates.pop() if len(rates) == 1 else None)
        return seen


def judge(
    frames: Sequence[Recorded],
    hosts: Hosts,
    *,
    exact: bool,
    reboots: Sequence[tuple[int, bytes]] = (),
    slowest: int = 0,
) -> list[Violation]:
    """What the frames show that is against the rules; frames are numbered from 1.

    ``exact`` says that frames were seen as they were sent, with exact times. ``reboots`` tells after how many frames
    which host has started anew, ``slowest`` how long a frame is on its way at most, in ns.
    """
    judging = Judge(lambda source, _: hosts.dialect(source), hosts.vantage(exact=exact))
    codecs: dict[bytes, Codec] = {}
    waiting = list(reboots)
    found: list[Violation] = []
    for number, each in enumerate(frames, 1):
        while waiting and waiting[0][0] < number:
            judging.restarted(waiting.pop(0)[1], frames[number - 1].time_ns - slowest)
        source = each.frame[_SOURCE]
        codec = codecs.get(source)
        if codec is None:
            codec = codecs[source] = codec_of(hosts.dialect(source))
        found += judging.observe(
            each.time_ns,
            codec.parse(each.frame),
            each.frame,
            number,
            delivered_ns=each.arrival_ns,
            copies=each.copies,
        )
    found += judging.finish()
    return [_excused(each, hosts) for each in found]


def _excused(found: Violation, hosts: Hosts) -> Violation:
    """A wrong index is a note where a release is known to teach one."""
    if found.rule == "W-5" and any(each.profile.reply_echoes_index for each in hosts.castings.values()):
        return replace(found, severity="note", found=f"{found.found} ({_ECHOED})")
    return found


def digest(frames: Sequence[Recorded], start: int = 0) -> str:
    """Of all frames and their times, in hexadecimal."""
    found = sha256()
    for each in frames:
        found.update(_FRAME.pack(each.time_ns - start, len(each.frame)))
        found.update(each.frame)
    return found.hexdigest()


def comments(frames: Sequence[Recorded], findings: Sequence[Violation]) -> dict[int, str]:
    """What is said of frames in the capture, by their numbers."""
    said: dict[int, list[str]] = {}
    for found in findings:
        for number in found.frames:
            said.setdefault(number, []).append(
                f"{found.severity} of {found.rule}: {found.found}; expected: {found.expected}"
            )
    for number, fate in fates(frames).items():
        said.setdefault(number, []).extend(fate.lines)
    return {number: "\n".join(dict.fromkeys(texts)) for number, texts in said.items()}


def batch_of(frames: Sequence[Recorded]) -> FrameBatch:
    """The frames as a batch, numbered from 1."""
    return FrameBatch.from_frames([each.frame for each in frames], [each.time_ns for each in frames], first_number=1)


def write_capture(
    path: Path,
    frames: Sequence[Recorded],
    said: Mapping[int, str],
    names: Mapping[bytes, str],
    about: str,
    *,
    whole: bool,
) -> None:
    """Write the frames with their comments; unless ``whole``, without most of the data that they carry.

    Raises :class:`~mxwire.errors.CaptureError` where the file cannot be written.
    """
    kept = 0 if whole else _KEPT
    name = "between the two hosts"
    with create_capture(path, comment=about, interface_name=name, snap_length=kept) as capture:
        capture.write_names(names)
        if frames:
            capture.write(batch_of(frames), dict(said))

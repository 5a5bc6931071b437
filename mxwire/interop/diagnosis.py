"""Diagnosis of a cell: causes of a failure, from its frames and the counters of mxwire's own cards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from mxwire.analysis.diagnosis.examination import Examination
from mxwire.ethernet import ADDRESS_SIZE, mac_text
from mxwire.interop.recorded_frames import HostTable, batch_of
from mxwire.interop.testbed import RecordedFrame, TestbedSide
from mxwire.protocol.counters import PULL_TIMEOUTS
from mxwire.rules import LOST
from mxwire.wire.codec import codec_of
from mxwire.wire.decoder import Decoder
from mxwire.wire.detection import Detector
from mxwire.wire.dialect import Dialect
from mxwire.wire.encapsulation import locate
from mxwire.wire.packets import Medium
from mxwire.words import count_of

_SHOWN: Final = 3
_AGE: Final = {"N1": 2, "N2": 2, "N3": 3, "N4": 4}
"""Generations that frames distinguish."""
_LOOKED_AT: Final = 500
"""Frames examined per sender to detect its dialect; more frames would not change the result."""


def diagnose(
    frames: Sequence[RecordedFrame], hosts: HostTable, sides: Sequence[TestbedSide], names: dict[bytes, str]
) -> list[str]:
    """Return probable causes, one line each: from the known hosts, or else from conclusions that any capture allows."""
    shown = list(frames[:_LOOKED_AT])
    found = [
        *_dialects(shown, hosts, names),
        *_fragments(shown, hosts, names),
        *_keeping(sides),
        *_drops(sides),
        *_silent(frames, names),
    ]
    return found or list(_examined(frames))


def _examined(frames: Sequence[RecordedFrame]) -> Iterator[str]:
    """Yield the findings of ``mxwire diagnose`` on the frames."""
    decoder = Decoder()
    examination = Examination(decoder)
    for decoded in decoder.decode_all(examination.watch([batch_of(frames)])):
        examination.observe(decoded)
    examination.finish()
    for finding in examination.findings():
        advice = f": {finding.advice[0]}" if finding.advice else ""
        yield f"{finding.id} ({finding.confidence} confidence): {finding.summary}{advice}"


def _dialects(frames: Sequence[RecordedFrame], hosts: HostTable, names: dict[bytes, str]) -> Iterator[str]:
    """Yield senders whose frames show another dialect than the configured one of their receiver."""
    if not frames:
        return
    detector = Detector(by_sender=True)
    detector.learn(locate(batch_of(frames)))
    for detection in detector.detections():
        sender = detection.hosts[0].to_bytes(ADDRESS_SIZE, "big")
        for other, casting in hosts.castings.items():
            if other == sender or detection.dialect is None or not _speak_apart(detection.dialect, casting.dialect):
                continue
            proof = detection.evidence[0]
            yield (
                f"{_called(sender, names)} uses {detection.dialect.name} ({proof.text}, from frame {proof.first_frame} "
                f"on), but {casting.name} is configured for {casting.dialect.name}: use the same dialect and frame "
                "limit on both"
            )


def _speak_apart(found: Dialect, dialect: Dialect) -> bool:
    """Return whether a detected dialect differs from the configured one in a respect that frames show."""
    if found.family != dialect.family:
        return True
    if found.generation != "N4" and _AGE[found.generation] != _AGE[dialect.generation]:
        return True
    return found.frame_limit_known and found.frame_limit != dialect.frame_limit and dialect.generation == "N4"


def _fragments(frames: Sequence[RecordedFrame], hosts: HostTable, names: dict[bytes, str]) -> Iterator[str]:
    """Yield senders of fragments of a size that the receiver does not expect (differences document, section 3)."""
    for address, casting in hosts.castings.items():
        if not casting.profile.pipeline_ignored or casting.dialect.family != "mxoe":
            continue
        codec, full = codec_of(casting.dialect), casting.dialect.fragment_payload
        for number, each in enumerate(frames, 1):
            medium = codec.parse(each.frame) if each.frame[:ADDRESS_SIZE] == address else None
            if isinstance(medium, Medium) and medium.frag_pipeline is not None and 1 << medium.frag_pipeline != full:
                yield (
                    f"{_called(medium.src_mac, names)} sends fragments of {1 << medium.frag_pipeline} bytes (from "
                    f"frame {number} on), but {casting.name} takes all for {full}, like Open-MX 1.0.901 to 1.3.1: "
                    "use another release"
                )
                break


def _drops(sides: Sequence[TestbedSide]) -> Iterator[str]:
    for side in sides:
        dropped = {
            counter: times
            for counter, times in side.node.counters.items()
            if counter.name.startswith("DROP_") and times
        }
        for counter, times in sorted(dropped.items(), key=lambda each: -each[1])[:_SHOWN]:
            yield f"the card of {side.name} counted {counter.value}: {times}"
        times = sum(side.node.counters[each] for each in PULL_TIMEOUTS)
        if times:
            yield f"{side.name} re-requested {count_of(times, 'block')} of a pull after a timeout"
        for end in side.ends:
            incomplete = sum(len(partner.incomplete) for partner in end.engine.partners.values())
            if incomplete:
                yield f"{side.name} has {incomplete} MEDIUM messages with missing or surplus fragments"


def _keeping(sides: Sequence[TestbedSide]) -> Iterator[str]:
    keeping = [side.name for side in sides if side.profile.keeps_partner_on_disconnect]
    partners = [each for side in sides for end in side.ends for each in end.engine.partners.values()]
    if len(keeping) == 1 and any(each.connects > 1 for each in partners):
        yield (
            f"{keeping[0]} keeps its partners after a disconnect, the other host forgets them: their sequence numbers "
            "disagree"
        )


def _silent(frames: Sequence[RecordedFrame], names: dict[bytes, str]) -> Iterator[str]:
    heard = {each.frame[ADDRESS_SIZE : 2 * ADDRESS_SIZE] for each in frames}
    for address, name in names.items():
        if frames and address not in heard:
            yield f"nothing was received from {name} ({mac_text(address)})"
    lost = sum(each.arrival_ns == LOST for each in frames)
    if lost:
        yield f"{lost} of {len(frames)} frames were lost"


def _called(address: bytes, names: dict[bytes, str]) -> str:
    return names.get(address, mac_text(address))

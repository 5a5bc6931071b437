"""Why something does not work, as far as the frames, and the counters of our own cards, show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from mxwire.analysis.diagnosis.examination import Examination
from mxwire.ethernet import ADDRESS_SIZE, mac_text
from mxwire.interop.judging import Hosts, batch_of
from mxwire.interop.side import Side
from mxwire.interop.stage import Recorded
from mxwire.protocol import Counter
from mxwire.rules import LOST
from mxwire.wire.codec import codec_of
from mxwire.wire.decoder import Decoder
from mxwire.wire.detection import Detector
from mxwire.wire.dialect import Dialect
from mxwire.wire.encapsulation import locate
from mxwire.wire.packets import Medium
from mxwire.words import count_of

_SHOWN: Final = 3
_PULL_TIMEOUTS: Final = (Counter.PULL_TIMEOUT_FIRST_BLOCK, Counter.PULL_TIMEOUT_NON_FIRST_BLOCK)
_AGE: Final = {"N1": 2, "N2": 2, "N3": 3, "N4": 4}
"""Generations that the frames tell apart."""
_LOOKED_AT: Final = 500
"""Frames that dialects are told from: who sends more has shown it long before."""


def diagnose(frames: Sequence[Recorded], hosts: Hosts, sides: Sequence[Side], names: dict[bytes, str]) -> list[str]:
    """What seems to be the matter, a line each: by what is known of our hosts, or else by what any capture shows."""
    shown = list(frames[:_LOOKED_AT])
    found = [
        *_dialects(shown, hosts, names),
        *_fragments(shown, hosts, names),
        *_keeping(sides),
        *_drops(sides),
        *_silent(frames, names),
    ]
    return found or list(_examined(frames))


def _examined(frames: Sequence[Recorded]) -> Iterator[str]:
    """What mxwire diagnose says of the frames."""
    decoder = Decoder()
    examination = Examination(decoder)
    for decoded in decoder.decode_all(examination.watch([batch_of(frames)])):
        examination.observe(decoded)
    examination.finish()
    for found in examination.findings():
        advice = f": {found.advice[0]}" if found.advice else ""
        yield f"{found.id} ({found.confidence} confidence): {found.summary}{advice}"


def _dialects(frames: Sequence[Recorded], hosts: Hosts, names: dict[bytes, str]) -> Iterator[str]:
    """What each sender shows that it speaks, against what the other one is set to."""
    if not frames:
        return
    detector = Detector(by_sender=True)
    detector.learn(locate(batch_of(frames)))
    for found in detector.detections():
        sender = found.hosts[0].to_bytes(ADDRESS_SIZE, "big")
        for other, casting in hosts.castings.items():
            if other == sender or found.dialect is None or not _speak_apart(found.dialect, casting.dialect):
                continue
            proof = found.evidence[0]
            yield (
                f"{_called(sender, names)} speaks {found.dialect.name} ({proof.text}, from frame {proof.first_frame} "
                f"on), and {casting.name} is set to {casting.dialect.name}: set both to the same dialect and frame "
                "limit"
            )


def _speak_apart(found: Dialect, dialect: Dialect) -> bool:
    """Whether a dialect that was found is another one than what the other host is set to, as far as it shows."""
    if found.family != dialect.family:
        return True
    if found.generation != "N4" and _AGE[found.generation] != _AGE[dialect.generation]:
        return True
    return found.frame_limit_known and found.frame_limit != dialect.frame_limit and dialect.generation == "N4"


def _fragments(frames: Sequence[Recorded], hosts: Hosts, names: dict[bytes, str]) -> Iterator[str]:
    """Whether fragments have a size that the other side does not look for (differences document, section 3)."""
    for address, casting in hosts.castings.items():
        if not casting.profile.pipeline_ignored or casting.dialect.family != "mxoe":
            continue
        codec, full = codec_of(casting.dialect), casting.dialect.fragment_payload
        for number, each in enumerate(frames, 1):
            medium = codec.parse(each.frame) if each.frame[:ADDRESS_SIZE] == address else None
            if isinstance(medium, Medium) and medium.frag_pipeline is not None and 1 << medium.frag_pipeline != full:
                yield (
                    f"{_called(medium.src_mac, names)} sends fragments of {1 << medium.frag_pipeline} bytes (from "
                    f"frame {number} on), and {casting.name} takes them all for {full}, as Open-MX 1.0.901 to 1.3.1 "
                    "do: use another release"
                )
                break


def _drops(sides: Sequence[Side]) -> Iterator[str]:
    for side in sides:
        dropped = {
            counter: times
            for counter, times in side.node.counters.items()
            if counter.name.startswith("DROP_") and times
        }
        for counter, times in sorted(dropped.items(), key=lambda each: -each[1])[:_SHOWN]:
            yield f"the card of {side.name} has counted {times} times: {counter.value}"
        times = sum(side.node.counters[each] for each in _PULL_TIMEOUTS)
        if times:
            yield f"{side.name} re-requested {count_of(times, 'block')} of a pull after a timeout"
        for end in side.ends:
            incomplete = sum(len(partner.incomplete) for partner in end.engine.partners.values())
            if incomplete:
                yield f"{side.name} has {incomplete} MEDIUMs of which something is missing, or too much has come"


def _keeping(sides: Sequence[Side]) -> Iterator[str]:
    keeping = [side.name for side in sides if side.profile.keeps_partner_on_disconnect]
    partners = [each for side in sides for end in side.ends for each in end.engine.partners.values()]
    if len(keeping) == 1 and any(each.connects > 1 for each in partners):
        yield f"{keeping[0]} keeps its partners when it disconnects, the other one forgets them: their numbers disagree"


def _silent(frames: Sequence[Recorded], names: dict[bytes, str]) -> Iterator[str]:
    heard = {each.frame[ADDRESS_SIZE : 2 * ADDRESS_SIZE] for each in frames}
    for address, name in names.items():
        if frames and address not in heard:
            yield f"nothing was heard of {name} ({mac_text(address)})"
    lost = sum(each.arrival_ns == LOST for each in frames)
    if lost:
        yield f"{lost} of {len(frames)} frames were lost on the way"


def _called(address: bytes, names: dict[bytes, str]) -> str:
    return names.get(address, mac_text(address))

"""Hosts with incompatible builds: dialect, generation, frame limit, byte order. No packet states these choices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mxwire.analysis.diagnosis.facts import Facts
from mxwire.analysis.diagnosis.finding import Evidence, Finding, Party, evidence, weighed
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.ethernet import mac_text
from mxwire.wire.detection import Detection, Hint
from mxwire.wire.dialect import Dialect
from mxwire.words import count_of

_SURE: Final = 0.7
_OLD: Final[frozenset[str]] = frozenset({"N1", "N2"})
_NEW: Final[frozenset[str]] = frozenset({"N3", "N4"})

DIALECT: Final = Diagnosis("dialect-mismatch", "builds")
GENERATION: Final = Diagnosis("generation-mismatch", "builds")
FRAME_LIMIT: Final = Diagnosis("frame-limit-mismatch", "builds")
"""Diagnoses of which trouble in the network may merely be a consequence."""
BYTE_ORDER: Final = Diagnosis("byte-order-mismatch", "builds")


@examines(DIALECT, GENERATION, FRAME_LIMIT, BYTE_ORDER)
class BuildExaminer(Examiner):
    """Comparison of the dialects of communicating hosts."""

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield a finding per pair of incompatible hosts."""
        senders = facts.senders()
        swapped = set(facts.decoder.swapped_hosts())
        for direction, back in facts.traffic.pairs():
            one, other = direction.source, back.source
            if (one in swapped) != (other in swapped):
                yield self._order(facts, one, other, one if one in swapped else other)
            if one in senders and other in senders:
                yield from self._compared(senders[one], senders[other])

    @staticmethod
    def _order(facts: Facts, one: int, other: int, swapped: int) -> Finding:
        direction = facts.traffic.direction(swapped, other if swapped == one else one)
        shown = [
            evidence(
                f"the integers of {mac_text(swapped)} only make sense as little-endian ones",
                [direction.first_frame] if direction else (),
                direction.first_ns if direction else None,
                "proof",
            )
        ]
        summary = f"{mac_text(swapped)} sends its integers in little-endian order, its partner in network order"
        return BYTE_ORDER.found((Party(one), Party(other)), summary, shown)

    @staticmethod
    def _compared(one: Detection, other: Detection) -> Iterator[Finding]:
        diagnosis, what = _difference(one, other)
        if diagnosis is None:
            return
        certain = min(one.confidence, other.confidence) >= _SURE
        shown = weighed([*_shown(one), *_shown(other)], "proof" if certain else "sign")
        parties = Party(one.hosts[0]), Party(other.hosts[0])
        summary = f"{mac_text(one.hosts[0])} {what[0]}, {mac_text(other.hosts[0])} {what[1]}"
        yield diagnosis.found(parties, summary, shown)


def _difference(one: Detection, other: Detection) -> tuple[Diagnosis | None, tuple[str, str]]:
    """Return the mismatch of two hosts, and the choice of each of them."""
    first, second = one.dialect, other.dialect
    assert first is not None and second is not None
    if first.family != second.family:
        compatible, native = (one, other) if first.family == "mxoe" else (other, one)
        # Old builds of omx send MEDIUMs in the layout of mxoe; only PULLs distinguish them (differences, section 4.2).
        if _has(compatible, Hint.PULL_MXOE) or not _generations(native) & _OLD:
            return DIALECT, (f"speaks {first.name}", f"speaks {second.name}")
        return None, ("", "")
    if first.family == "mxoe":
        return None, ("", "")
    if not _generations(one) & _generations(other):
        return GENERATION, (f"sends the format {first.generation}", f"sends the format {second.generation}")
    old = {first.generation, second.generation} <= _OLD
    known = old or (_shows_limit(one) and _shows_limit(other))
    if known and first.reply_payload != second.reply_payload:
        return FRAME_LIMIT, (f"was built for {_limit(first)}", f"for {_limit(second)}")
    return None, ("", "")


def _generations(detection: Detection) -> frozenset[str]:
    """Return the generations of the native format that a host may have, judging by its frames."""
    dialect = detection.dialect
    assert dialect is not None
    if dialect.generation in _OLD:
        return _OLD
    if _has(detection, Hint.MEDIUM_LENGTH_32):
        return frozenset({"N4"})
    if _has(detection, Hint.MEDIUM_NO_PIPELINE):
        return frozenset({"N3"})
    return _NEW if dialect.frame_limit_known else _OLD | _NEW


def _shows_limit(detection: Detection) -> bool:
    """Return whether more than one frame reveals the frame limit of a host: the last reply of a message may look like
    a full reply of another build."""
    dialect = detection.dialect
    assert dialect is not None
    sizes = {hint.text for hint in (Hint.REPLY_FULL, Hint.REPLY_LARGE, Hint.MEDIUM_LENGTH_32)}
    telling = [each.frames for each in detection.evidence if each.text in sizes]
    return dialect.frame_limit_known and sum(telling, 2 * (not telling)) > 1


def _has(detection: Detection, hint: Hint) -> bool:
    return any(each.text == hint.text for each in detection.evidence)


def _limit(dialect: Dialect) -> str:
    if dialect.generation in _OLD:
        return f"pull replies of {dialect.reply_payload} bytes"
    return f"frames of {dialect.frame_limit} bytes"


def _shown(detection: Detection) -> list[Evidence]:
    return [
        evidence(f"{mac_text(detection.hosts[0])}: {each.text} ({count_of(each.frames, 'frame')})", [each.first_frame])
        for each in detection.evidence[:2]
    ]

"""Builds of a host's software, and all builds that match the frames of a host."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.wire.detection import Detection, Hint
from mxwire.wire.dialect import MXOE, Dialect, Generation, omx
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD


@dataclass(frozen=True, slots=True)
class Build:
    """One build of a stack. Lengths are in bytes."""

    dialect: Dialect = MXOE
    """The format, its generation and the frame limit."""
    fragment: int | None = None
    """Payload of a full fragment of a MEDIUM that the build sends, if it differs from the dialect's."""
    pipeline_ignored: bool = False
    """True if the build places fragments by its own fragment size and ignores the size in received fragments."""
    region_offset: int = 0
    """Offset of large messages in their regions (R-RDV-02)."""
    medium_threshold: int = RENDEZVOUS_THRESHOLD
    """Maximum length of messages that the build sends as MEDIUM, unless the format allows less (R-SND-01)."""
    swapped: bool = False
    """True if integers are in little-endian order."""
    ethertype: int = ETHERTYPE_MXOE

    @property
    def fragment_payload(self) -> int:
        """Payload of a full fragment of a MEDIUM that the build sends."""
        return self.dialect.fragment_payload if self.fragment is None else self.fragment

    @property
    def threshold(self) -> int:
        """Maximum length of messages that the build sends as MEDIUM."""
        return min(self.medium_threshold, self.fragment_payload * self.dialect.fragments_maximum)


FRAME_LIMITS: Final = (1500, 4144, 8240, 9000)
"""Frame limits to try if the capture shows none: each leads to different sizes."""
_GENERATIONS: Final[tuple[Generation, ...]] = ("N1", "N2", "N3", "N4")
_OWN_PIPELINE: Final = 12
# 2^15 bytes are the longest MEDIUM (R-SND-01), so that a larger pipeline cannot be the size of a fragment.
_LARGEST_PIPELINE: Final = 15
_OTHER_FRAGMENT: Final = 2048
"""Fragment sizes that native MX may send instead."""

_NO_FORMAT: Final = "none of its MEDIUMs, PULLs or PULL_REPLYs shows its format"
_NO_GENERATION: Final = "none of its MEDIUMs shows whether it is older than release 1.3.2"
_OLD_GENERATION: Final = "nothing shows whether it is older than release 0.6.0"
_NO_LIMIT: Final = "no full frame of a large message shows its frame limit"
_NO_FRAGMENT: Final = "none of its MEDIUMs shows the size of its fragments"
NO_PIPELINE: Final = "nothing shows whether fragments of another size are accepted (not by 1.0.901 to 1.3.1)"


@dataclass(frozen=True, slots=True)
class HostEvidence:
    """The evidence of a host's frames."""

    detection: Detection | None
    longest: int
    """Length of the longest frame of the host, in bytes."""
    pipelines: tuple[int, ...]
    region_offset: int
    swapped: bool
    ethertype: int

    @property
    def is_piped(self) -> bool:
        """True if the fragments of the host state their size."""
        dialect = self.detection.dialect if self.detection is not None else None
        return dialect is not None and (dialect.family == "mxoe" or dialect.generation in ("N1", "N2"))


def candidates(shown: HostEvidence) -> tuple[tuple[Build, ...], tuple[str, ...]]:
    """The possible builds, and the evidence that would distinguish them."""
    unknown: list[str] = []
    dialects = tuple(_dialects(shown, unknown))
    if dialects == (MXOE,) and len(_fragments(shown, MXOE)) > 1:
        unknown.append(_NO_FRAGMENT)
    # Only fragments of this format state their size, and no frame shows whether a receiver reads it.
    ignoring = (False, True) if any(each.family == "mxoe" for each in dialects) else (False,)
    builds = tuple(
        Build(
            dialect,
            fragment=fragment,
            pipeline_ignored=ignores,
            region_offset=shown.region_offset,
            swapped=shown.swapped,
            ethertype=shown.ethertype,
        )
        for dialect, ignores in product(dialects, ignoring)
        for fragment in _fragments(shown, dialect)
        if not ignores or dialect.family == "mxoe"
    )
    return builds, tuple(unknown)


def _fragments(shown: HostEvidence, dialect: Dialect) -> tuple[int | None, ...]:
    """Return the possible fragment sizes if fragments state their size; None stands for that of the dialect."""
    if dialect.family != "mxoe":
        return (None,)
    possible = [each for each in shown.pipelines if each <= _LARGEST_PIPELINE]
    if not shown.is_piped or not possible:
        return (None, _OTHER_FRAGMENT)
    return (1 << max(possible),) if max(possible) != _OWN_PIPELINE else (None,)


def _dialects(shown: HostEvidence, unknown: list[str]) -> list[Dialect]:
    dialect = shown.detection.dialect if shown.detection is not None else None
    if dialect is None:
        unknown.append(_NO_FORMAT)
        return [MXOE, *(each for generation in _GENERATIONS for each in _of_limits(generation, shown.longest))]
    if dialect.family == "mxoe":
        return [MXOE]
    generations = _generations(dialect, shown, unknown)
    if dialect.frame_limit_known:
        return [omx(dialect.frame_limit, each) for each in generations]
    unknown.append(_NO_LIMIT)
    possible = [each for generation in generations for each in _of_limits(generation, shown.longest)]
    payloads = {1 << each for each in shown.pipelines} if shown.is_piped else set()
    # A size of no usual limit is that of an unusual build, so that none of these can be excluded.
    return [each for each in possible if not payloads or each.fragment_payload in payloads] or possible


def _generations(found: Dialect, shown: HostEvidence, unknown: list[str]) -> tuple[Generation, ...]:
    if found.generation in ("N1", "N2"):
        unknown.append(_OLD_GENERATION)
        return ("N1", "N2")
    assert shown.detection is not None
    texts = {each.text for each in shown.detection.evidence}
    # Only the layout of MEDIUM distinguishes N3 from N4.
    if texts & {each.text for each in (Hint.MEDIUM_LENGTH_32, Hint.MEDIUM_NO_PIPELINE)}:
        return (found.generation,)
    unknown.append(_NO_GENERATION)
    return ("N3", "N4")


def _of_limits(generation: Generation, longest: int) -> list[Dialect]:
    # A frame beyond all usual limits shows at least its own length.
    fitting = [each for each in FRAME_LIMITS if each >= longest] or [max(longest, FRAME_LIMITS[-1])]
    return [omx(min(each, 65535), generation) for each in fitting]

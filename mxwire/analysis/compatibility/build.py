"""Build options of a host's software that its partners must know."""

from __future__ import annotations

from dataclasses import dataclass

from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.wire.dialect import MXOE, Dialect
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD


@dataclass(frozen=True, slots=True)
class Build:
    """One build of a stack. Lengths are in bytes."""

    dialect: Dialect = MXOE
    """The format, its generation and the frame limit."""
    fragment: int | None = None
    """Data of a full fragment of a MEDIUM that it sends, where it differs from the dialect's own."""
    pipeline_ignored: bool = False
    """True if it places fragments by its own fragment size and ignores the size in received fragments."""
    region_offset: int = 0
    """Offset of its large messages in their regions (R-RDV-02)."""
    medium_threshold: int = RENDEZVOUS_THRESHOLD
    """The longest message that it sends as MEDIUM, unless the format allows less (R-SND-01)."""
    swapped: bool = False
    """Its integers are in little-endian order."""
    ethertype: int = ETHERTYPE_MXOE

    @property
    def fragment_payload(self) -> int:
        """Data of a full fragment of a MEDIUM that it sends."""
        return self.dialect.fragment_payload if self.fragment is None else self.fragment

    @property
    def threshold(self) -> int:
        """The longest message that it sends as MEDIUM."""
        return min(self.medium_threshold, self.fragment_payload * self.dialect.fragments_maximum)

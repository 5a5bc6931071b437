"""The catalogue of diagnoses, and their examiners."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from mxwire.analysis.diagnosis.finding import Cost, Evidence, Finding, Party, Severity
from mxwire.texts import entries

if TYPE_CHECKING:
    from mxwire.analysis.conversations import CapturedMessage
    from mxwire.analysis.diagnosis.facts import Facts
    from mxwire.frames import FrameBatch
    from mxwire.wire.decoder import DecodedBatch

Need = Literal["whole frames", "both directions", "every frame", "destinations", "all protocols", "exact times"]
"""Properties that a capture must have for the absence of a diagnosis to prove anything."""

Group = Literal["builds", "path", "peers", "connections", "processes", "network", "latency", "capture"]
GROUPS: Final[dict[Group, str]] = {
    "builds": "How hosts were built",
    "path": "Frames that the path drops or changes",
    "peers": "Finding and knowing each other",
    "connections": "Connections and endpoints",
    "processes": "Applications and processes",
    "network": "The quality of the network",
    "latency": "Latency",
    "capture": "The capture itself",
}
"""Subjects of diagnoses, in the order in which they are reported and documented."""


@dataclass(frozen=True, slots=True)
class DiagnosisText:
    """The texts of a diagnosis for users, in Markdown, and its place among others."""

    title: str
    users_see: str
    """Symptoms for users of MX and Open-MX."""
    capture_shows: str
    distinction: str
    """Similar diagnoses, and the differences."""
    advice: tuple[str, ...]
    """Advice, the most likely remedy first; sentences."""
    severity: Severity = "warning"
    needs: tuple[Need, ...] = ()
    follows_from: tuple[str, ...] = ()
    """Diagnoses that explain this one: if one of them concerns the same hosts, this one is not reported."""


@cache
def texts(group: Group) -> dict[str, DiagnosisText]:
    """Return the texts of a group by the names of its diagnoses; they are read once, for the first finding."""
    return {name: DiagnosisText(**values) for name, values in entries(__file__, f"texts/{group}.toml").items()}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """An entry of the catalogue; its texts are in the folder ``texts``."""

    id: str
    """Stable name."""
    group: Group

    @property
    def text(self) -> DiagnosisText:
        """All texts."""
        return texts(self.group)[self.id]

    @property
    def title(self) -> str:
        """The title, without a full stop."""
        return self.text.title

    def found(
        self,
        concerns: tuple[Party, ...],
        summary: str,
        shown: list[Evidence],
        *doubts: str,
        stalled_ns: int | None = None,
        frames: int | None = None,
    ) -> Finding:
        """Return a finding of this diagnosis, which cost ``stalled_ns`` and ``frames`` (:class:`Cost`)."""
        text, cost = self.text, Cost(stalled_ns, frames)
        return Finding(self.id, concerns, summary, tuple(shown), text.advice, text.severity, cost, doubts)


class Examiner(ABC):
    """Detector of one trouble or several similar ones, fed batch by batch; memory is bounded."""

    # Examiners override the methods that they need; the others do nothing.

    def raw(self, batch: FrameBatch) -> None:  # noqa: B027
        """Process frames of all protocols, before they are decoded."""

    def frames(self, decoded: DecodedBatch, facts: Facts) -> None:  # noqa: B027
        """Process a decoded batch, which ``facts`` already include."""

    def message(self, message: CapturedMessage, facts: Facts) -> None:  # noqa: B027
        """Process a finished message that was repeated, refused, or not answered."""

    def any_message(self, message: CapturedMessage, facts: Facts) -> None:  # noqa: B027
        """Process any finished message."""

    @abstractmethod
    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield the findings at the end of the capture, without changing any state."""


CATALOGUE: Final[dict[str, Diagnosis]] = {}
"""All diagnoses by id."""
EXAMINERS: Final[list[type[Examiner]]] = []

_Class = TypeVar("_Class", bound=type[Examiner])


def examines(*diagnoses: Diagnosis) -> Callable[[_Class], _Class]:
    """Register an examiner and its diagnoses."""

    def register(examiner: _Class) -> _Class:
        for each in diagnoses:
            assert each.id not in CATALOGUE, each.id
            CATALOGUE[each.id] = each
        EXAMINERS.append(examiner)
        return examiner

    return register


def catalogue() -> list[Diagnosis]:
    """All diagnoses, in the order in which they are reported and documented."""
    order = list(GROUPS)
    return sorted(CATALOGUE.values(), key=lambda each: order.index(each.group))

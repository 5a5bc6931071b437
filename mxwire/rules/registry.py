"""Registry of the rules: each is a small function over one frame in its context, registered by its number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from mxwire.rules.finding import Severity
from mxwire.rules.state.frame import FrameStatus, JudgedFrame
from mxwire.wire import packets


class Breach(NamedTuple):
    """A broken rule, as returned by the rule's function: the expected and the actual value."""

    expected: str
    found: str
    severity: Severity | None = None
    """Severity, if it differs from the rule's own."""
    frames: tuple[int, ...] = ()
    """Earlier frames that show the breach, besides the frame under judgement."""
    defect: str | None = None
    """Number of the known defect of real hosts that explains it; if excused, it is reported under this number."""


Check = Callable[[JudgedFrame], Breach | None]


ALWAYS: Final = tuple(FrameStatus)


@dataclass(frozen=True, slots=True)
class WireRule:
    """A rule's function, and the frames that it applies to."""

    number: str
    check: Check
    frames: tuple[type[packets.Frame], ...]
    severity: Severity
    alone: bool = False
    """True if the rule needs only the frame itself, so that it applies even if other frames were missed."""
    also: tuple[str, ...] = ()
    """Other rules that the function judges at the same time."""
    when: tuple[FrameStatus, ...] = ALWAYS
    """Statuses of the frames to which the rule applies."""
    as_sent: bool = False
    """True if the rule needs every frame as its host sends it (:attr:`~mxwire.rules.vantage.Vantage.as_sent`)."""
    sized: bool = False
    """True if the rule needs the number of bytes that the hosts put into a frame."""
    strange: bool = False
    """True if only frames from a host to itself or to a group can break the rule."""

    @property
    def symbol(self) -> str:
        """Path and name, for example ``mxwire/rules/chapters/acks.py:liback_numbers``."""
        return f"{self.check.__module__.replace('.', '/')}.py:{self.check.__qualname__}"


RULES: Final[list[WireRule]] = []
"""All rules that the judge applies, in the order of their files."""

MESSAGES: Final = (packets.Tiny, packets.Small, packets.Medium, packets.Rndv)
"""Packets that name the destination's session that the sender learned last."""
NUMBERED: Final = (*MESSAGES, packets.Notify)
"""Packets that carry a sequence number and a piggyback (R-SEQ-04)."""
SESSIONED: Final = (*NUMBERED, packets.Pull, packets.Truc)
"""Packets that name the destination's session (R-EP-02)."""
CONNECTS: Final = (packets.ConnectRequest, packets.ConnectReply)


def judges(
    number: str,
    *frames: type[packets.Frame],
    severity: Severity = "violation",
    alone: bool = False,
    also: tuple[str, ...] = (),
    when: tuple[FrameStatus, ...] = ALWAYS,
    as_sent: bool = False,
    sized: bool = False,
    strange: bool = False,
) -> Callable[[Check], Check]:
    """Register the decorated function as a rule for frames of these types.

    The function receives a :class:`~mxwire.rules.state.frame.JudgedFrame` and returns None or a :class:`Breach`; it has
    no side effects and never raises. ``alone`` declares that it reads nothing but the frame; ``also`` are rules that
    cannot be broken without breaking this one. The function is not called if the rule cannot be broken, according to
    ``when``, ``as_sent``, ``sized`` and ``strange`` (see :class:`WireRule`).
    """

    def register(check: Check) -> Check:
        RULES.append(WireRule(number, check, frames, severity, alone, also, when, as_sent, sized, strange))
        return check

    return register


@cache
def applied_to(frame_class: type, complete: bool = True, as_sent: bool = False) -> frozenset[str]:
    """Return the numbers of the rules that a frame of this type is checked against.

    Without ``complete``, only rules of single frames; without ``as_sent``, no rules that need to observe every frame as
    its host sends it.
    """
    rules = [
        each
        for each in RULES
        if frame_class in each.frames and (complete or each.alone) and (as_sent or not each.as_sent)
    ]
    return frozenset(number for each in rules for number in (each.number, *each.also))

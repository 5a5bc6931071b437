"""How a rule is written: a small function over one frame in its context, registered by its number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from mxwire.rules.finding import Severity
from mxwire.rules.state.sighting import Sighting, Status
from mxwire.wire.packets import (
    ConnectReply,
    ConnectRequest,
    Frame,
    Medium,
    Notify,
    Pull,
    Rndv,
    Small,
    Tiny,
    Truc,
)


class Breach(NamedTuple):
    """What a rule answers when it is broken."""

    expected: str
    found: str
    severity: Severity | None = None
    """If it is another than the rule's own."""
    frames: tuple[int, ...] = ()
    """Earlier frames that show it, besides the one under judgement."""
    defect: str | None = None
    """The known defect of real hosts that this is, if it is one; reported under its number where it is excused."""


Check = Callable[[Sighting], Breach | None]


ALWAYS: Final = tuple(Status)


@dataclass(frozen=True, slots=True)
class WireRule:
    """A rule's function, and what it applies to."""

    number: str
    check: Check
    frames: tuple[type[Frame], ...]
    severity: Severity
    alone: bool = False
    """It needs nothing but the frame: applied even where others were missed."""
    also: tuple[str, ...] = ()
    """Other rules that the function judges at the same time."""
    when: tuple[Status, ...] = ALWAYS
    """What the frame must be to those before it."""
    as_sent: bool = False
    """It needs to see every frame as its host sends it (:attr:`~mxwire.rules.vantage.Vantage.as_sent`)."""
    sized: bool = False
    """It needs to know how many bytes the hosts put into a frame."""
    strange: bool = False
    """Only frames from a host to itself or to a group can break it."""

    @property
    def symbol(self) -> str:
        """Where it is, for example ``mxwire/rules/chapters/acks.py:liback_numbers``."""
        return f"{self.check.__module__.replace('.', '/')}.py:{self.check.__qualname__}"


RULES: Final[list[WireRule]] = []
"""All rules that the judge applies, in the order of their files."""

MESSAGES: Final = (Tiny, Small, Medium, Rndv)
"""What names the session that the sender was told last."""
NUMBERED: Final = (*MESSAGES, Notify)
"""What carries a sequence number and a piggyback (R-SEQ-04)."""
SESSIONED: Final = (*NUMBERED, Pull, Truc)
"""What names the destination's session (R-EP-02)."""
CONNECTS: Final = (ConnectRequest, ConnectReply)


def judges(
    number: str,
    *frames: type[Frame],
    severity: Severity = "violation",
    alone: bool = False,
    also: tuple[str, ...] = (),
    when: tuple[Status, ...] = ALWAYS,
    as_sent: bool = False,
    sized: bool = False,
    strange: bool = False,
) -> Callable[[Check], Check]:
    """Register the function below as a rule that is applied to frames of these types.

    The function gets a :class:`~mxwire.rules.state.sighting.Sighting`, changes nothing, never raises, and returns
    None, or a :class:`Breach`. ``alone`` says that it looks at nothing but the frame, ``also`` are rules that cannot
    be broken without breaking this one. It is not called where it cannot be broken, as ``when``, ``as_sent``, ``sized``
    and ``strange`` say (see :class:`WireRule`).
    """

    def register(check: Check) -> Check:
        RULES.append(WireRule(number, check, frames, severity, alone, also, when, as_sent, sized, strange))
        return check

    return register


@cache
def applied_to(frame_class: type, complete: bool = True, as_sent: bool = False) -> frozenset[str]:
    """Numbers of the rules that a frame of this type is held against; without ``complete`` those of single frames,
    without ``as_sent`` none of those that need to see every frame as its host sends it."""
    rules = [
        each
        for each in RULES
        if frame_class in each.frames and (complete or each.alone) and (as_sent or not each.as_sent)
    ]
    return frozenset(number for each in rules for number in (each.number, *each.also))

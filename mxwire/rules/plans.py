"""Plans: per class of frames, the trackers that follow them and the rules that they are checked against."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from mxwire.rules import chapters as chapters  # registers the rules
from mxwire.rules.registry import ALWAYS, RULES, Check, WireRule
from mxwire.rules.state import connects, discovery, numbered, pulls
from mxwire.rules.state.frame import JudgedFrame
from mxwire.wire import packets

_Tracker = Callable[[JudgedFrame], None]
_WITHOUT_INDEX: Final = (packets.Raw, packets.Announcement, packets.HostQuery, packets.HostReply, packets.PullReply)
_FLOWLESS: Final = (*_WITHOUT_INDEX, packets.NackLib, packets.NackMcp)


def _nothing(seen: JudgedFrame) -> None:
    """Track nothing, for frames that leave no trace."""


_LOOK: Final[dict[type[packets.Frame], _Tracker]] = {
    packets.Tiny: numbered.look,
    packets.Small: numbered.look,
    packets.Medium: numbered.look,
    packets.Rndv: numbered.look,
    packets.Notify: pulls.look_notify,
    packets.Truc: numbered.look_liback,
    packets.ConnectRequest: connects.look_request,
    packets.ConnectReply: connects.look_reply,
    packets.Pull: pulls.look_pull,
    packets.PullReply: pulls.look_reply,
    packets.NackLib: discovery.look_nack_lib,
    packets.NackMcp: pulls.look_nack_mcp,
}
"""Trackers that classify a frame relative to those before it; they run before the rules."""

_APPLY: Final[dict[type[packets.Frame], _Tracker]] = {
    packets.Tiny: numbered.apply,
    packets.Small: numbered.apply,
    packets.Medium: numbered.apply,
    packets.Rndv: numbered.apply,
    packets.Notify: numbered.apply,
    packets.Truc: numbered.apply_liback,
    packets.ConnectRequest: connects.apply_request,
    packets.ConnectReply: connects.apply_reply,
    packets.Pull: pulls.apply_pull,
    packets.PullReply: pulls.apply_reply,
    packets.NackLib: discovery.apply_nack_lib,
    packets.NackMcp: pulls.apply_nack_mcp,
    packets.HostQuery: discovery.apply_query,
    packets.HostReply: discovery.apply_host_reply,
}
"""Trackers that remember a frame; they run after the rules, which must see the state before it."""


class RulePlan:
    """Trackers and rules of one class of frames."""

    __slots__ = ("apply", "has_flow", "has_index", "look", "rules", "teaches")

    def __init__(self, frame_class: type[packets.Frame], rules: list[WireRule]) -> None:
        self.look = _LOOK.get(frame_class, _nothing)
        self.apply = _APPLY.get(frame_class, _nothing)
        mine = [each for each in rules if frame_class in each.frames]
        self.rules: tuple[tuple[tuple[Check, WireRule], ...], ...] = tuple(
            tuple((each.check, each) for each in mine if status in each.when) for status in ALWAYS
        )
        """The rules by the status of the frame (:class:`~mxwire.rules.state.frame.FrameStatus`)."""
        self.has_flow = frame_class not in _FLOWLESS
        self.has_index = frame_class not in _WITHOUT_INDEX
        self.teaches = frame_class in (packets.ConnectRequest, packets.ConnectReply)


RulePlans = dict[type, RulePlan]


@cache
def plans(*, complete: bool, as_sent: bool, sized: bool, strange: bool) -> RulePlans:
    """Return the plan of each class of frames; the options exclude rules, see
    :class:`~mxwire.rules.registry.WireRule`."""
    rules = [
        each
        for each in RULES
        if (complete or each.alone)
        and (as_sent or not each.as_sent)
        and (sized or not each.sized)
        and (strange or not each.strange)
    ]
    return {each: RulePlan(each, rules) for each in packets.FRAME_CLASSES}

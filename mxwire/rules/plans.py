"""What is done with the frames of each class: what follows them, and which rules they are held against."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from mxwire.rules import chapters as chapters  # registers the rules
from mxwire.rules.registry import ALWAYS, RULES, Check, WireRule
from mxwire.rules.state import connecting, discovering, numbered, pulling
from mxwire.rules.state.sighting import Sighting
from mxwire.wire.packets import (
    FRAME_CLASSES,
    Announcement,
    ConnectReply,
    ConnectRequest,
    Frame,
    HostQuery,
    HostReply,
    Medium,
    NackLib,
    NackMcp,
    Notify,
    Pull,
    PullReply,
    Raw,
    Rndv,
    Small,
    Tiny,
    Truc,
)

_Tracker = Callable[[Sighting], None]
_FLOWLESS: Final = (Raw, Announcement, HostQuery, HostReply, PullReply, NackLib, NackMcp)
_WITHOUT_INDEX: Final = (Raw, Announcement, HostQuery, HostReply, PullReply)


def _nothing(seen: Sighting) -> None:
    """Such frames leave no trace."""


_LOOK: Final[dict[type[Frame], _Tracker]] = {
    Tiny: numbered.look,
    Small: numbered.look,
    Medium: numbered.look,
    Rndv: numbered.look,
    Notify: pulling.look_notify,
    Truc: numbered.look_liback,
    ConnectRequest: connecting.look_request,
    ConnectReply: connecting.look_reply,
    Pull: pulling.look_pull,
    PullReply: pulling.look_reply,
    NackLib: discovering.look_nack_lib,
    NackMcp: pulling.look_nack_mcp,
}
"""What finds out what a frame is to those before it, before the rules are applied."""

_APPLY: Final[dict[type[Frame], _Tracker]] = {
    Tiny: numbered.apply,
    Small: numbered.apply,
    Medium: numbered.apply,
    Rndv: numbered.apply,
    Notify: numbered.apply,
    Truc: numbered.apply_liback,
    ConnectRequest: connecting.apply_request,
    ConnectReply: connecting.apply_reply,
    Pull: pulling.apply_pull,
    PullReply: pulling.apply_reply,
    NackLib: discovering.apply_nack_lib,
    NackMcp: pulling.apply_nack_mcp,
    HostQuery: discovering.apply_query,
    HostReply: discovering.apply_host_reply,
}
"""What remembers a frame, after the rules have been applied."""


class Plan:
    """What is done with the frames of one class."""

    __slots__ = ("apply", "has_flow", "has_index", "look", "rules", "teaches")

    def __init__(self, frame_class: type[Frame], rules: list[WireRule]) -> None:
        self.look = _LOOK.get(frame_class, _nothing)
        self.apply = _APPLY.get(frame_class, _nothing)
        mine = [each for each in rules if frame_class in each.frames]
        self.rules: tuple[tuple[tuple[Check, WireRule], ...], ...] = tuple(
            tuple((each.check, each) for each in mine if status in each.when) for status in ALWAYS
        )
        """The rules by what a frame is to those before it (:class:`~mxwire.rules.state.sighting.Status`)."""
        self.has_flow = frame_class not in _FLOWLESS
        self.has_index = frame_class not in _WITHOUT_INDEX
        self.teaches = frame_class in (ConnectRequest, ConnectReply)


Plans = dict[type, Plan]


@cache
def plans(*, complete: bool, as_sent: bool, sized: bool, strange: bool) -> Plans:
    """The plan of each class of frames, by what can be judged: see :class:`~mxwire.rules.registry.WireRule`."""
    rules = [
        each
        for each in RULES
        if (complete or each.alone)
        and (as_sent or not each.as_sent)
        and (sized or not each.sized)
        and (strange or not each.strange)
    ]
    return {each: Plan(each, rules) for each in FRAME_CLASSES}

"""Progress of endpoints at an agent: the process in which their library runs."""

from __future__ import annotations

from enum import StrEnum

from mxwire.errors import MxwireError
from mxwire.words import alternatives, suggestion


class AgentProgress(StrEnum):
    """Process in which the library of endpoints at an agent runs."""

    MATCH = "match"
    """In the agent: messages are matched, acked and retransmitted while the application computes."""
    CARD = "card"
    """In the application; only the card's side is in the agent: pulls continue while the application computes."""


def agent_progress(given: bool | str) -> AgentProgress | None:
    """The progress named by an option: True is ``match``, False is None (no agent).

    Raises :class:`~mxwire.errors.MxwireError` for an unknown name.
    """
    if isinstance(given, bool):
        return AgentProgress.MATCH if given else None
    names = [str(each) for each in AgentProgress]
    if given not in names:
        raise MxwireError(f"an agent has no progress {given!r}{suggestion(given, names)}: use {alternatives(names)}")
    return AgentProgress(given)

"""Dispatcher of the live host's frames to the handlers of their kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mxwire.replay.stateful.conversation import Conversation
from mxwire.replay.stateful.expectations import Expectation, Expectations
from mxwire.replay.stateful.finding import Finding
from mxwire.replay.stateful.hearing.connects import Asked, Connects, Settled
from mxwire.replay.stateful.hearing.messages import Messages
from mxwire.replay.stateful.hearing.recognition import Recognition
from mxwire.replay.stateful.hearing.transfers import Pulled, Transfers
from mxwire.replay.stateful.regions import Regions
from mxwire.wire.packets import (
    ConnectReply,
    ConnectRequest,
    Frame,
    Medium,
    NackLib,
    NackMcp,
    Notify,
    Pull,
    PullReply,
    Rndv,
    Small,
    Tiny,
    Truc,
)


class Listener:
    """Takes frames of the live host one by one.

    ``tell`` is called with each finding, ``came`` with each recorded frame that was received; for the others see
    :data:`~mxwire.replay.stateful.hearing.connects.Settled`, ``Asked`` beside it, and
    :data:`~mxwire.replay.stateful.hearing.transfers.Pulled`. ``regions`` are those of the played host.
    """

    def __init__(
        self,
        conversation: Conversation,
        expectations: Expectations,
        regions: Regions,
        *,
        tell: Callable[[Finding], None],
        came: Callable[[Expectation], None],
        settled: Settled,
        asked: Asked,
        pulled: Pulled,
    ) -> None:
        known = Recognition(conversation, expectations, tell, came)
        connects, messages = Connects(known, settled, asked), Messages(known)
        transfers = Transfers(known, regions, pulled)
        self._hear: Final[dict[type[Frame], Callable[[Any, int], None]]] = {
            ConnectReply: connects.reply,
            ConnectRequest: connects.request,
            NackLib: connects.nack,
            Tiny: messages.message,
            Small: messages.message,
            Medium: messages.message,
            Rndv: messages.message,
            Truc: messages.ack,
            Notify: transfers.notify,
            Pull: transfers.pull,
            PullReply: transfers.pull_reply,
            NackMcp: transfers.refusal,
        }

    def hear(self, frame: Any, now: int) -> None:
        """Take a frame of the live host."""
        heard = self._hear.get(type(frame))
        if heard is not None:
            heard(frame, now)

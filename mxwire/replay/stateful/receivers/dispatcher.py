"""Dispatcher of the live host's frames to the handlers of their kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mxwire.replay.stateful.conversation import LiveConversation
from mxwire.replay.stateful.expectations import Expectation, Expectations
from mxwire.replay.stateful.finding import ReplayFinding
from mxwire.replay.stateful.receivers.connects import ConnectCallback, ConnectHandler, SettleCallback
from mxwire.replay.stateful.receivers.messages import MessageHandler
from mxwire.replay.stateful.receivers.recognition import Recognition
from mxwire.replay.stateful.receivers.transfers import PullCallback, TransferHandler
from mxwire.replay.stateful.regions import PlayedRegions
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


class FrameDispatcher:
    """Takes frames of the live host one by one.

    ``report`` is called with each finding, ``came`` with each recorded frame received; for the others see
    :data:`~mxwire.replay.stateful.receivers.connects.SettleCallback`, ``ConnectCallback`` beside it, and
    :data:`~mxwire.replay.stateful.receivers.transfers.PullCallback`. ``regions`` are those of the played host.
    """

    def __init__(
        self,
        conversation: LiveConversation,
        expectations: Expectations,
        regions: PlayedRegions,
        *,
        report: Callable[[ReplayFinding], None],
        came: Callable[[Expectation], None],
        settled: SettleCallback,
        asked: ConnectCallback,
        pulled: PullCallback,
    ) -> None:
        known = Recognition(conversation, expectations, report, came)
        connects, messages = ConnectHandler(known, settled, asked), MessageHandler(known)
        transfers = TransferHandler(known, regions, pulled)
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

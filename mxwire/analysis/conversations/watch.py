"""Looks over the follower's shoulder: every frame of one message, while it passes."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mxwire.analysis.conversations.message import CapturedMessage


class Role(StrEnum):
    """The role of a frame in a message."""

    DATA = "data"
    """Carries the message, or a fragment of it."""
    RNDV = "rndv"
    PULL = "pull"
    REPLY = "reply"
    NOTIFY = "notify"
    ACK = "ack"
    """Acknowledges it, or its NOTIFY."""
    NACK = "nack"


class MessageWatch:
    """Collects the frames of the message with a number, batch by batch."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.message: CapturedMessage | None = None
        """The message, once it has appeared."""
        self._places: list[tuple[int, Role]] = []

    def saw(self, place: int, role: Role) -> None:
        """A frame of the message is at this place of the batch."""
        self._places.append((place, role))

    def saw_all(self, places: NDArray[np.intp], role: Role) -> None:
        """Several frames are."""
        self._places += ((place, role) for place in places.tolist())

    def take(self) -> list[tuple[int, Role]]:
        """The frames of the batch that was looked at last, in its order, each once.

        A NOTIFY that acknowledges its own message is a NOTIFY.
        """
        found: dict[int, Role] = {}
        for place, role in self._places:
            if found.get(place, Role.ACK) is Role.ACK:
                found[place] = role
        self._places = []
        return sorted(found.items())

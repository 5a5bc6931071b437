"""The words of a stage: who plays, where an endpoint is, and what is raised where something is not as it should be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from mxwire.errors import MxwireError
from mxwire.protocol import Profile
from mxwire.wire.dialect import Dialect
from mxwire.wire.numbers import DEFAULT_KEY

Introduction = Literal["names", "addresses", "announcements"]
"""How two hosts know each other at first: by name, by address without a name, or not at all."""
Role = Literal["nothing", "echo", "sink", "perf"]
"""What a case needs of the other side: a host alone; an application that answers, that takes, that is omx_perf."""
Answer = Literal["content", "length"]
"""How much of a message the answer of a program returns: its content, or only its length and match information."""

ANSWERS: Final[Mapping[Role, Answer]] = {"echo": "content", "perf": "length"}
"""The answer that a case may assume of a program by its role, unless the program is described otherwise; roles that are
not listed do not answer. omx_perf answers from a buffer of its own, which it never fills (R-MEA-16)."""


class Unexpected(Exception):
    """Something has not gone as the case has it; the text says what, in one line."""


class Stalled(Unexpected):
    """What was waited for has not come."""


class Unsuitable(MxwireError):
    """The case cannot be played between these hosts; the text says why."""


@dataclass(frozen=True, slots=True)
class Casting:
    """What one host of a stage is."""

    name: str
    """What it calls itself."""
    dialect: Dialect
    profile: Profile


@dataclass(frozen=True, slots=True)
class Where:
    """An endpoint as others call it."""

    host: str | bytes
    endpoint: int
    key: int = DEFAULT_KEY
    answer: Answer = "content"
    """How the program there answers, where it does."""


def stage_wants(condition: bool, text: str) -> None:
    """Raises :class:`Unexpected` with a text unless a condition holds."""
    if not condition:
        raise Unexpected(text)

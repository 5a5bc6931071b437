"""Vocabulary of testbeds: hosts, endpoint addresses, roles of programs, and the errors of cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from mxwire.errors import MxwireError
from mxwire.protocol import Profile
from mxwire.wire.dialect import Dialect
from mxwire.wire.numbers import DEFAULT_KEY

Introduction = Literal["names", "addresses", "announcements"]
"""Contents of the two peer tables at the start: name and address, address only, or nothing."""
Role = Literal["nothing", "echo", "sink", "perf"]
"""Program that a case needs on the other side: none, one that echoes, one that only receives, or omx_perf."""
Answer = Literal["content", "length"]
"""Part of a message that a program returns: its content, or only its length and match information."""

ANSWERS: Final[Mapping[Role, Answer]] = {"echo": "content", "perf": "length"}
"""The answers of programs by their roles, unless described otherwise; other roles do not answer.

omx_perf answers from a buffer of its own, which it never fills (R-MEA-16).
"""


class UnexpectedResult(Exception):
    """An event differs from the one that the case requires; the text describes it in one line."""


class WaitTimeout(UnexpectedResult):
    """An awaited event has not occurred."""


class UnplayableCase(MxwireError):
    """The case cannot be played between these hosts; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class HostSetup:
    """Configuration of one host of a testbed."""

    name: str
    """Its host name."""
    dialect: Dialect
    profile: Profile


@dataclass(frozen=True, slots=True)
class EndpointAddress:
    """Address of an endpoint."""

    host: str | bytes
    endpoint: int
    key: int = DEFAULT_KEY
    answer: Answer = "content"
    """The answers of the program there, if it sends any."""


def require(condition: bool, text: str) -> None:
    """Raise :class:`UnexpectedResult` with a text unless a condition holds."""
    if not condition:
        raise UnexpectedResult(text)

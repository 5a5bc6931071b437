"""The steps of a scenario, as its text says them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mxwire.scenarios.errors import Place
from mxwire.scenarios.expression import Expression


class Level(StrEnum):
    """What it means that an expectation is not met."""

    MUST = "must"
    """The scenario has failed."""
    SHOULD = "should"
    """The host is not strict; the scenario goes on."""
    INFO = "info"
    """It is only told."""


class Relation(StrEnum):
    """How a value that is found has to be to those that are named."""

    EQUAL = "="
    DIFFERENT = "!="
    AT_LEAST = ">="
    AT_MOST = "<="
    NEAR = "±"
    RANGE = ".."
    ANY = "*"


@dataclass(frozen=True, slots=True)
class Condition:
    """What a field has to be: one of several alternatives."""

    relation: Relation
    values: tuple[Expression, ...] = ()
    others: tuple[Condition, ...] = ()
    """Further alternatives."""


@dataclass(frozen=True, slots=True)
class Step:
    """One line; ``place`` is where it stands."""

    place: Place


@dataclass(frozen=True, slots=True)
class Patch:
    """Bytes that are written over a frame at an offset, after all else was made."""

    offset: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class Send(Step):
    """``> PACKET field=value …``: the tester sends a frame."""

    packet: str
    fields: Mapping[str, Expression]
    tester: str = ""
    patches: tuple[Patch, ...] = ()
    cut: Expression | None = None
    """Length that the frame is cut to, in bytes."""
    pad: Expression | None = None
    """Length that the frame is padded to, in bytes."""
    bind: str = ""


@dataclass(frozen=True, slots=True)
class Expect(Step):
    """``< PACKET field=value … within 20ms``: the host sends a frame."""

    packet: str
    fields: Mapping[str, Condition]
    tester: str = ""
    after: int = 0
    """Nanoseconds before which it must not come."""
    within: int | None = None
    """Nanoseconds in which it must have come; None: as the head of the scenario says."""
    level: Level = Level.MUST
    bind: str = ""


@dataclass(frozen=True, slots=True)
class Silence(Step):
    """``< nothing for 30ms``, ``< no PACKET for 30ms``: what must not come."""

    duration: int
    packets: tuple[str, ...] = ()
    """Only these; none: no frame at all."""
    level: Level = Level.MUST


@dataclass(frozen=True, slots=True)
class Call(Step):
    """``! verb argument=value … as $name``: the application on the host under test calls."""

    verb: str
    arguments: Mapping[str, Expression]
    flags: frozenset[str] = frozenset()
    target: str = ""
    """The named thing that it is about."""
    to: str = ""
    """The tester that it is about."""
    bind: str = ""


@dataclass(frozen=True, slots=True)
class Check(Step):
    """``? $name field=value …``: what the application or the counters of the host under test say."""

    subject: str
    """``counters``, ``events`` or ``peer``; empty for what ``target`` names."""
    conditions: Mapping[str, Condition]
    target: str = ""
    tester: str = ""
    level: Level = Level.MUST


@dataclass(frozen=True, slots=True)
class Wait(Step):
    """``wait 30ms``: time passes."""

    duration: int


@dataclass(frozen=True, slots=True)
class Let(Step):
    """``let $name = value``."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Burst(Step):
    """``burst:``: frames that arrive all at once."""

    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class AnyOrder(Step):
    """``any order:``: frames that come in whatever order."""

    body: tuple[Expect, ...]


@dataclass(frozen=True, slots=True)
class Either(Step):
    """``either:`` … ``or:``: the branch whose first frame comes is played."""

    branches: tuple[tuple[Step, ...], ...]


@dataclass(frozen=True, slots=True)
class Repeat(Step):
    """``repeat 8 as $i:``: the steps within, so often; ``$i`` counts from 0."""

    count: Expression
    body: tuple[Step, ...]
    name: str = ""


def walk(steps: tuple[Step, ...]) -> list[Step]:
    """All steps, those within blocks included, in the order of the text."""
    found: list[Step] = []
    for each in steps:
        found.append(each)
        if isinstance(each, Burst | AnyOrder | Repeat):
            found += walk(each.body)
        elif isinstance(each, Either):
            for branch in each.branches:
                found += walk(branch)
    return found

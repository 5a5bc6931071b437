"""The steps of a scenario, as parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mxwire.scenarios.errors import ScriptPlace
from mxwire.scenarios.expression import Expression


class ExpectationLevel(StrEnum):
    """Consequence of an expectation that is not met."""

    MUST = "must"
    """The scenario fails."""
    SHOULD = "should"
    """The verdict is at best non-strict, and the scenario continues."""
    INFO = "info"
    """Only reported."""


class Relation(StrEnum):
    """Required relation of a found value to the given ones."""

    EQUAL = "="
    DIFFERENT = "!="
    AT_LEAST = ">="
    AT_MOST = "<="
    NEAR = "±"
    RANGE = ".."
    ANY = "*"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a field: one of several alternatives."""

    relation: Relation
    values: tuple[Expression, ...] = ()
    others: tuple[Condition, ...] = ()
    """Further alternatives."""


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """A step of a scenario; ``place`` is the position of its line."""

    place: ScriptPlace


@dataclass(frozen=True, slots=True)
class Patch:
    """Bytes that overwrite a built frame at an offset."""

    offset: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class SendStep(ScenarioStep):
    """``> PACKET field=value …``: the tester sends a frame."""

    packet: str
    fields: Mapping[str, Expression]
    tester: str = ""
    patches: tuple[Patch, ...] = ()
    cut: Expression | None = None
    """Length to which the frame is truncated, in bytes."""
    pad: Expression | None = None
    """Length to which the frame is padded, in bytes."""
    bind: str = ""


@dataclass(frozen=True, slots=True)
class ExpectStep(ScenarioStep):
    """``< PACKET field=value … within 20ms``: the host sends a frame."""

    packet: str
    fields: Mapping[str, Condition]
    tester: str = ""
    after: int = 0
    """Nanoseconds before which it must not arrive."""
    within: int | None = None
    """Nanoseconds within which it must arrive; None for the default of the scenario."""
    level: ExpectationLevel = ExpectationLevel.MUST
    bind: str = ""


@dataclass(frozen=True, slots=True)
class SilenceStep(ScenarioStep):
    """``< nothing for 30ms``, ``< no PACKET for 30ms``: the absence of frames."""

    duration: int
    packets: tuple[str, ...] = ()
    """The forbidden packets; empty for all."""
    level: ExpectationLevel = ExpectationLevel.MUST


@dataclass(frozen=True, slots=True)
class CallStep(ScenarioStep):
    """``! verb argument=value … as $name``: a call of the application on the host under test."""

    verb: str
    arguments: Mapping[str, Expression]
    flags: frozenset[str] = frozenset()
    target: str = ""
    """Name of the object of the call."""
    to: str = ""
    """Name of the tester concerned."""
    bind: str = ""


@dataclass(frozen=True, slots=True)
class CheckStep(ScenarioStep):
    """``? $name field=value …``: a query of the application or the counters of the host under test."""

    subject: str
    """``counters``, ``events`` or ``peer``; empty if ``target`` names the result of a call."""
    conditions: Mapping[str, Condition]
    target: str = ""
    tester: str = ""
    level: ExpectationLevel = ExpectationLevel.MUST


@dataclass(frozen=True, slots=True)
class WaitStep(ScenarioStep):
    """``wait 30ms``: time passes."""

    duration: int


@dataclass(frozen=True, slots=True)
class LetStep(ScenarioStep):
    """``let $name = value``: bind a name."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class BurstStep(ScenarioStep):
    """``burst:``: frames transmitted all at once."""

    body: tuple[ScenarioStep, ...]


@dataclass(frozen=True, slots=True)
class AnyOrderStep(ScenarioStep):
    """``any order:``: frames expected in any order."""

    body: tuple[ExpectStep, ...]


@dataclass(frozen=True, slots=True)
class EitherStep(ScenarioStep):
    """``either:`` … ``or:``: branches, selected by the first frame that arrives."""

    branches: tuple[tuple[ScenarioStep, ...], ...]


@dataclass(frozen=True, slots=True)
class RepeatStep(ScenarioStep):
    """``repeat 8 as $i:``: a repeated block; ``$i`` counts from 0."""

    count: Expression
    body: tuple[ScenarioStep, ...]
    name: str = ""


def walk(steps: tuple[ScenarioStep, ...]) -> list[ScenarioStep]:
    """Return all steps in the order of the text, including those within blocks."""
    found: list[ScenarioStep] = []
    for each in steps:
        found.append(each)
        if isinstance(each, BurstStep | AnyOrderStep | RepeatStep):
            found += walk(each.body)
        elif isinstance(each, EitherStep):
            for branch in each.branches:
                found += walk(branch)
    return found

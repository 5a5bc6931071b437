"""Check of a scenario's names: every ``$name`` is bound before its use, and every tester is declared."""

from __future__ import annotations

from collections.abc import Iterable

from mxwire.scenarios.errors import ScriptError, suggestion
from mxwire.scenarios.expression import Expression
from mxwire.scenarios.script import Script
from mxwire.scenarios.steps import (
    AnyOrderStep,
    BurstStep,
    CallStep,
    CheckStep,
    Condition,
    EitherStep,
    ExpectStep,
    LetStep,
    Relation,
    RepeatStep,
    ScenarioStep,
    SendStep,
    walk,
)
from mxwire.scenarios.vocabulary import has_field, unknown_field


def check_names(script: Script) -> None:
    """Raise :class:`~mxwire.scenarios.errors.ScriptError` at the first unbound name or undeclared tester."""
    testers = {"", *(each.name for each in script.actors)}
    for step in walk(script.steps):
        for name in (getattr(step, "tester", ""), getattr(step, "to", "")):
            if name not in testers:
                known = suggestion(name, testers - {""})
                raise ScriptError(f"unknown tester {name}{known} (declare it in the head: tester: {name})", step.place)
    _Names().steps(script.steps)


class _Names:
    """Names bound so far, each with its packet if it stands for frames of one packet; else empty."""

    def __init__(self) -> None:
        self.bound: dict[str, str] = {}

    def steps(self, steps: Iterable[ScenarioStep]) -> None:
        for step in steps:
            self.step(step)

    def step(self, step: ScenarioStep) -> None:
        match step:
            case SendStep():
                self.use(step.fields.values())
                for patch in step.patches:
                    self.use((patch.offset, patch.value))
                self.use(each for each in (step.cut, step.pad) if each is not None)
                self.bind(step.bind, step.packet)
            case ExpectStep():
                self.conditions(step.fields.values())
                self.bind(step.bind, step.packet)
            case CallStep():
                self.use(step.arguments.values())
                self.target(step.target, step)
                self.bind(step.bind, "")
            case CheckStep():
                self.target(step.target, step)
                self.conditions(step.conditions.values())
            case LetStep():
                self.use([step.value])
                self.bind(step.name, "")
            case RepeatStep():
                self.use([step.count])
                self.bind(step.name, "")
                self.steps(step.body)
            case BurstStep() | AnyOrderStep():
                self.steps(step.body)
            case EitherStep():
                for branch in step.branches:
                    self.steps(branch)

    def bind(self, name: str, packet: str) -> None:
        if name:
            # Branches may bind a name to frames of different packets.
            self.bound[name] = packet if self.bound.get(name, packet) == packet else ""

    def target(self, name: str, step: ScenarioStep) -> None:
        if name and name not in self.bound:
            raise ScriptError(f"${name} has no value yet{suggestion('$' + name, self._shown())}", step.place)

    def conditions(self, conditions: Iterable[Condition]) -> None:
        for condition in conditions:
            only = condition.relation is Relation.EQUAL and not condition.others
            if only and condition.values[0].alone:
                self.bound.setdefault(condition.values[0].alone, "")
                continue
            for each in (condition, *condition.others):
                self.use(each.values)

    def use(self, expressions: Iterable[Expression]) -> None:
        for each in expressions:
            for name, _, field in sorted(used.partition(".") for used in each.names):
                if name not in self.bound:
                    raise ScriptError(
                        f"${name} has no value yet: nothing before this line binds it"
                        f"{suggestion('$' + name, self._shown())}",
                        each.place,
                    )
                packet = self.bound[name]
                if field and packet and not has_field(packet, field):
                    raise ScriptError(unknown_field(packet, field), each.place)

    def _shown(self) -> list[str]:
        return [f"${each}" for each in self.bound]

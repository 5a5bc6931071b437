"""Whether all ``$names`` of a scenario have a value where they are used, and all testers are described."""

from __future__ import annotations

from collections.abc import Iterable

from mxwire.scenarios.errors import ScriptError, suggestion
from mxwire.scenarios.expression import Expression
from mxwire.scenarios.script import Script
from mxwire.scenarios.steps import (
    AnyOrder,
    Burst,
    Call,
    Check,
    Condition,
    Either,
    Expect,
    Let,
    Relation,
    Repeat,
    Send,
    Step,
    walk,
)
from mxwire.scenarios.vocabulary import has_field, unknown_field


def check_names(script: Script) -> None:
    """Raises :class:`~mxwire.scenarios.errors.ScriptError` at the first name that nothing has bound before."""
    testers = {"", *(each.name for each in script.actors)}
    for step in walk(script.steps):
        for name in (getattr(step, "tester", ""), getattr(step, "to", "")):
            if name not in testers:
                known = suggestion(name, testers - {""})
                raise ScriptError(f"no tester is called {name}{known} (the head says: tester: {name})", step.place)
    _Names().steps(script.steps)


class _Names:
    """What is bound so far: the packet, where a name stands for a frame of one kind; empty for others."""

    def __init__(self) -> None:
        self.bound: dict[str, str] = {}

    def steps(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self.step(step)

    def step(self, step: Step) -> None:
        match step:
            case Send():
                self.use(step.fields.values())
                for patch in step.patches:
                    self.use((patch.offset, patch.value))
                self.use(each for each in (step.cut, step.pad) if each is not None)
                self.bind(step.bind, step.packet)
            case Expect():
                self.conditions(step.fields.values())
                self.bind(step.bind, step.packet)
            case Call():
                self.use(step.arguments.values())
                self.target(step.target, step)
                self.bind(step.bind, "")
            case Check():
                self.target(step.target, step)
                self.conditions(step.conditions.values())
            case Let():
                self.use([step.value])
                self.bind(step.name, "")
            case Repeat():
                self.use([step.count])
                self.bind(step.name, "")
                self.steps(step.body)
            case Burst() | AnyOrder():
                self.steps(step.body)
            case Either():
                for branch in step.branches:
                    self.steps(branch)

    def bind(self, name: str, packet: str) -> None:
        if name:
            # Branches may bind a name to frames of several kinds.
            self.bound[name] = packet if self.bound.get(name, packet) == packet else ""

    def target(self, name: str, step: Step) -> None:
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

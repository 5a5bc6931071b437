"""What ``mxwire replay --as`` says: who plays against whom, what differs, and the verdict."""

from __future__ import annotations

import sys
from typing import Any, Final

import click

from mxwire.ethernet import mac_text
from mxwire.replay.stateful.actor import Actor
from mxwire.replay.stateful.finding import Finding, Kind
from mxwire.replay.stateful.watching import Watch
from mxwire.report.document import Column, Paragraph, Row, Table, show
from mxwire.report.json_line import json_line

_COLUMNS: Final = (
    Column("whose"),
    Column("rule", code=True),
    Column("times", right=True),
    Column("difference", wraps=True),
)


class Teller:
    """Says who plays against whom, and what came of it."""

    def __init__(self, file: str, as_json: bool, actor: Actor, watch: Watch, who: str) -> None:
        self._file = file
        self._as_json = as_json
        self._script = actor.script
        self._actor = actor
        self._watch = watch
        self._who = who

    @property
    def differs(self) -> bool:
        """Whether the live host itself did something else, or could not be played against."""
        return bool(self._actor.failure) or any(each.kind is not Kind.APPLICATION for each in self._findings())

    def _findings(self) -> list[Finding]:
        return [*self._actor.findings, *self._watch.findings]

    def begin(self) -> None:
        """Who plays against whom."""
        script, address = self._script, self._actor.conversation.address
        self._tell(
            "begin",
            played=mac_text(script.played),
            recorded=mac_text(script.met),
            address=mac_text(address),
            host=mac_text(self._actor.conversation.other),
            dialect=script.dialect.name,
        )
        self._say(
            f"{mac_text(script.played)} of {self._file}, here {mac_text(address)}, against {self._who}, "
            f"dialect {script.dialect.name}"
        )
        sys.stdout.flush()

    def end(self, interrupted: bool) -> None:
        """What differs, and the summary."""
        actor, groups = self._actor, _grouped(self._findings())
        for finding, count in groups:
            told = {"whose": finding.kind.value, "rule": finding.rule, "field": finding.field, "frame": finding.frame}
            self._tell("difference", **told, expected=finding.expected, found=finding.found, times=count)
        if groups and not self._as_json:
            rows = [Row((each.kind.value, each.rule, str(count), str(each))) for each, count in groups]
            show([Table(_COLUMNS, tuple(rows))])
        kinds = {kind.value: sum(each.kind is kind for each in self._findings()) for kind in Kind}
        expected = sum(not each.again for each in actor.expectations.all.values())
        came = sum(each.met and not each.again for each in actor.expectations.all.values())
        self._tell(
            "summary",
            played=actor.played,
            skipped=len(actor.skipped),
            came=came,
            expected=expected,
            differences=kinds,
            failure=actor.failure,
            interrupted=interrupted,
        )
        skipped = f", left out {len(actor.skipped)} that answer what did not come" if actor.skipped else ""
        frames = f"{actor.played} frame{'' if actor.played == 1 else 's'}"
        self._say(f"played {frames}{skipped}; {came} of {expected} recorded answers came")
        if not self._as_json:
            show([Paragraph(self._verdict(kinds, interrupted))])
        sys.stdout.flush()

    def _verdict(self, kinds: dict[str, int], interrupted: bool) -> str:
        actor = self._actor
        if interrupted:
            return f"interrupted at frame {actor.position} of {len(self._script.records)}"
        if actor.failure:
            return f"it could not be played to its end: {actor.failure}"
        protocol, rules, application = (kinds[each.value] for each in (Kind.PROTOCOL, Kind.RULE, Kind.APPLICATION))
        if not any(kinds.values()):
            return "no difference: the live host answers as the recorded one did"
        host = f"the live host differs in {_places(protocol)}" if protocol else "the host itself shows no difference"
        broken = f"{', and' if protocol else ', but'} it breaks rules in {_places(rules)}" if rules else ""
        other = f"; its application did something else in {_places(application)}" if application else ""
        return host + broken + other

    def _say(self, text: str) -> None:
        if not self._as_json:
            click.echo(text)

    def _tell(self, event: str, **what: Any) -> None:
        if self._as_json:
            click.echo(json_line({"event": event, **what}))


def _places(count: int) -> str:
    return "1 place" if count == 1 else f"{count} places"


def _grouped(findings: list[Finding]) -> list[tuple[Finding, int]]:
    """The first of each kind of difference, with how many there are like it; the host's own first."""
    first: dict[tuple[str, ...], Finding] = {}
    counts: dict[tuple[str, ...], int] = {}
    for each in findings:
        about = each.field or f"{each.expected.split()[0]} {each.found[:12]}"
        like = each.kind.value, each.rule, about
        first.setdefault(like, each)
        counts[like] = counts.get(like, 0) + 1
    order = (Kind.RULE, Kind.PROTOCOL, Kind.APPLICATION)
    return sorted(((first[like], counts[like]) for like in first), key=lambda each: order.index(each[0].kind))

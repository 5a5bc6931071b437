"""Cases against a host of which only the programs are at hand, in virtual time: its echo stands for the second end."""

from __future__ import annotations

from itertools import product

import pytest

from mxwire.interop.applications import start
from mxwire.interop.cases import PARTS, Part
from mxwire.interop.casting import Casting, Role, Unsuitable, Where
from mxwire.interop.expectations import expected_of
from mxwire.interop.impairments import treatment_by_name
from mxwire.interop.implementations import implementation_by_name
from mxwire.interop.judging import Hosts, judge
from mxwire.interop.playing import Outcome, casting_of, perform
from mxwire.interop.side import Side
from mxwire.interop.simulated import SimulatedStage

ASKED_OF_PROGRAMS = [part for part in PARTS.values() if part.role is not None]
PAIRS = [
    ("open-mx-1.5", "native-mx"),
    ("native-mx", "open-mx-1.5-as-found"),
    ("open-mx-1.5-as-found", "open-mx-1.5"),
    ("open-mx-1.5-omx-1500", "open-mx-1.5-omx-1500"),
]


class StrangeStage(SimulatedStage):
    """The right host is simulated, but no case may open endpoints on it."""

    right_is_ours = False
    programs: frozenset[Role] = frozenset({"nothing", "echo", "sink", "perf"})

    def has(self, role: Role) -> bool:
        return role in self.programs

    @property
    def right(self) -> Side:
        raise Unsuitable("the right host is not ours")

    @property
    def sides(self) -> tuple[Side, ...]:
        return (self.left,)

    @property
    def right_address(self) -> bytes:
        return self._hosts[1].address

    def far(self, role: Role) -> Where:
        if role not in self.programs:
            raise Unsuitable(f"no program is described for {role!r}")
        if role not in self.roles:
            application = start(self._hosts[1], role)
            self.applications.append(application)
            self.roles[role] = application.where
        return self.roles[role]


def hosts(one: str, other: str) -> tuple[Casting, Casting]:
    return tuple(casting_of(implementation_by_name(each), name) for each, name in ((one, "left"), (other, "right")))


def played(part: Part, one: str, other: str, impairment: str = "none", seed: int = 1) -> tuple[Outcome, StrangeStage]:
    left, right = hosts(one, other)
    treatment = treatment_by_name(impairment)
    stage = StrangeStage(left, right, treatment, seed, introduction=part.introduction, patience=20)
    return perform(part, stage), stage


def broken(stage: StrangeStage, part: Part) -> list[str]:
    left, right = stage.castings
    known = Hosts({stage.left.address: left, stage.right_address: right}, left.dialect)
    found = judge(stage.frames, known, exact=True, reboots=stage.reboots, slowest=stage.slowest)
    return [str(each) for each in found if each.severity == "violation" and each.rule not in part.unseen]


def test_nearly_all_cases_can_be_played_against_a_host_that_is_not_ours() -> None:
    assert {name for name, part in PARTS.items() if part.role is None} == {"connect-crossing", "disconnected"}


@pytest.mark.parametrize("part", ASKED_OF_PROGRAMS, ids=lambda part: part.case.name)
def test_a_case_works_with_programs_alone(part: Part) -> None:
    for one, other in PAIRS:
        outcome, stage = played(part, one, other)
        assert outcome.works, f"{one} to {other}: {outcome.text}"
        assert not broken(stage, part), f"{one} to {other}"


@pytest.mark.parametrize("impairment", ["loss", "mixed"])
def test_a_link_may_be_bad(impairment: str) -> None:
    for part in ASKED_OF_PROGRAMS:
        if part.impaired:
            outcome, _ = played(part, "open-mx-1.5", "native-mx", impairment)
            assert outcome.works, f"{part.case.name}: {outcome.text}"


WITH_PERF_ALONE = {
    *("announcements", "names", "unknown-host", "given-up", "perf", "perf-one-way"),
    *("connect", "connect-bad-key", "connect-closed", "connect-no-endpoint"),
    *(name for name in PARTS if name.startswith("lost-") and name != "lost-acks"),
}


@pytest.mark.parametrize("part", ASKED_OF_PROGRAMS, ids=lambda part: part.case.name)
def test_half_of_the_cases_want_no_more_than_omx_perf(part: Part, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every Open-MX host has it."""
    monkeypatch.setattr(StrangeStage, "programs", frozenset({"perf"}))
    for one, other in PAIRS:
        if part.case.name not in WITH_PERF_ALONE:
            with pytest.raises(Unsuitable, match="no program is described for"):
                played(part, one, other)
            continue
        outcome, stage = played(part, one, other)
        assert outcome.works, f"{one} to {other}: {outcome.text}"
        assert not broken(stage, part), f"{one} to {other}"


@pytest.mark.parametrize("part", ASKED_OF_PROGRAMS, ids=lambda part: part.case.name)
def test_what_must_fail_between_dialects_fails(part: Part) -> None:
    for one, other in product(("open-mx-1.5", "open-mx-1.5-omx-9000"), repeat=2):
        expected = expected_of(part, *hosts(one, other), echoed=part.role == "echo")
        outcome, _ = played(part, one, other)
        if expected.expectation != "either":
            assert outcome.works is (expected.expectation == "works"), f"{one} to {other}: {outcome.text}"

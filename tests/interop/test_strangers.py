"""Cases against a host of which only the programs are at hand, in virtual time: its echo stands for the second end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from mxwire.host.perf.parameters import MATCH
from mxwire.interop.cases import ALL_CASES, CaseDefinition
from mxwire.interop.cell_player import CaseOutcome, casting_of, perform
from mxwire.interop.expectations import expected_of
from mxwire.interop.impairments import treatment_by_name
from mxwire.interop.implementations import implementation_by_name
from mxwire.interop.programs import start
from mxwire.interop.recorded_frames import HostTable, breaches_of
from mxwire.interop.roles import Answer, EndpointAddress, HostSetup, Role, UnplayableCase
from mxwire.interop.simulated_testbed import SimulatedTestbed
from mxwire.interop.testbed import TestbedSide
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import dialect_by_name
from mxwire.wire.packets import Tiny
from tests.captures import read_batch

RECORDED = Path(__file__).parents[1] / "data" / "omx_perf"
"""Recordings of the matrix against a real omx_perf -s."""
ASKED_OF_PROGRAMS = [part for part in ALL_CASES.values() if part.role is not None]
PAIRS = [
    ("open-mx-1.5", "native-mx"),
    ("native-mx", "open-mx-1.5-as-found"),
    ("open-mx-1.5-as-found", "open-mx-1.5"),
    ("open-mx-1.5-omx-1500", "open-mx-1.5-omx-1500"),
]


class StrangeTestbed(SimulatedTestbed):
    """The right host is simulated, but no case may open endpoints on it."""

    right_is_controlled = False
    programs: frozenset[Role] = frozenset({"nothing", "echo", "sink", "perf"})

    def has(self, role: Role) -> bool:
        return role in self.programs

    @property
    def right(self) -> TestbedSide:
        raise UnplayableCase("the right host is not ours")

    @property
    def sides(self) -> tuple[TestbedSide, ...]:
        return (self.left,)

    @property
    def right_address(self) -> bytes:
        return self._hosts[1].address

    def program(self, role: Role) -> EndpointAddress:
        if role not in self.programs:
            raise UnplayableCase(f"no program is configured for {role!r}")
        if role not in self.roles:
            application = start(self._hosts[1], role)
            self.applications.append(application)
            self.roles[role] = application.where
        return self.roles[role]


class LengthOnly(StrangeTestbed):
    """The echo on the right returns as many bytes of its own, and is described by ``answer``."""

    answer: Answer = "length"

    def program(self, role: Role) -> EndpointAddress:
        first = role not in self.roles
        where = super().program(role)
        if role == "echo" and first:
            application = next(each for each in self.applications if each.where == where)
            end, send = application.end, application.end.send
            end.send = lambda partner, data, *rest, **more: send(partner, bytes(len(data)), *rest, **more)  # type: ignore[method-assign]
            where = self.roles[role] = application.where = replace(where, answer=self.answer)
        return where


def hosts(one: str, other: str) -> tuple[HostSetup, HostSetup]:
    return tuple(casting_of(implementation_by_name(each), name) for each, name in ((one, "left"), (other, "right")))


def played(
    part: CaseDefinition, one: str, other: str, impairment: str = "none", seed: int = 1
) -> tuple[CaseOutcome, StrangeTestbed]:
    left, right = hosts(one, other)
    treatment = treatment_by_name(impairment)
    testbed = StrangeTestbed(left, right, treatment, seed, introduction=part.introduction, patience=20)
    return perform(part, testbed), testbed


def broken(testbed: StrangeTestbed, part: CaseDefinition) -> list[str]:
    left, right = testbed.castings
    known = HostTable({testbed.left.address: left, testbed.right_address: right}, left.dialect)
    found = breaches_of(testbed.frames, known, exact=True, reboots=testbed.reboots, slowest=testbed.slowest)
    return [str(each) for each in found if each.severity == "violation" and each.rule not in part.unseen]


def test_nearly_all_cases_can_be_played_against_another_host() -> None:
    assert {name for name, part in ALL_CASES.items() if part.role is None} == {"connect-crossing", "disconnected"}


@pytest.mark.parametrize("part", ASKED_OF_PROGRAMS, ids=lambda part: part.case.name)
def test_a_case_works_with_programs_alone(part: CaseDefinition) -> None:
    for one, other in PAIRS:
        outcome, testbed = played(part, one, other)
        assert outcome.works, f"{one} to {other}: {outcome.text}"
        assert not broken(testbed, part), f"{one} to {other}"


@pytest.mark.parametrize("impairment", ["loss", "mixed"])
def test_a_link_may_be_bad(impairment: str) -> None:
    for part in ASKED_OF_PROGRAMS:
        if part.impaired:
            outcome, _ = played(part, "open-mx-1.5", "native-mx", impairment)
            assert outcome.works, f"{part.case.name}: {outcome.text}"


WITH_PERF_ALONE = {
    *("announcements", "names", "unknown-host", "given-up", "perf", "perf-one-way"),
    *("connect", "connect-bad-key", "connect-closed", "connect-no-endpoint"),
    *(name for name in ALL_CASES if name.startswith("lost-") and name != "lost-acks"),
}


@pytest.mark.parametrize("part", ASKED_OF_PROGRAMS, ids=lambda part: part.case.name)
def test_half_of_the_cases_want_no_more_than_omx_perf(part: CaseDefinition, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every Open-MX host has it."""
    monkeypatch.setattr(StrangeTestbed, "programs", frozenset({"perf"}))
    for one, other in PAIRS:
        if part.case.name not in WITH_PERF_ALONE:
            with pytest.raises(UnplayableCase, match="no program is configured for"):
                played(part, one, other)
            continue
        outcome, testbed = played(part, one, other)
        assert outcome.works, f"{one} to {other}: {outcome.text}"
        assert not broken(testbed, part), f"{one} to {other}"


@pytest.mark.parametrize("part", ASKED_OF_PROGRAMS, ids=lambda part: part.case.name)
def test_impossible_cases_between_dialects_fail(part: CaseDefinition) -> None:
    for one, other in product(("open-mx-1.5", "open-mx-1.5-omx-9000"), repeat=2):
        expected = expected_of(part, *hosts(one, other), echoed=part.role == "echo")
        outcome, _ = played(part, one, other)
        if expected.expectation != "either":
            assert outcome.works is (expected.expectation == "works"), f"{one} to {other}: {outcome.text}"


def strange_testbed() -> StrangeTestbed:
    """mxwire against a host that behaves as a real one, with omx_perf on it."""
    left, right = hosts("open-mx-1.5", "open-mx-1.5-as-found")
    return StrangeTestbed(left, right, treatment_by_name("none"), 1, patience=20)


def says(testbed: StrangeTestbed, answer: Answer) -> None:
    """Describe its omx_perf otherwise."""
    testbed.roles["perf"] = replace(testbed.program("perf"), answer=answer)


def kinds(frames: Iterable[bytes]) -> list[str]:
    codec = codec_of(dialect_by_name("mxoe"))
    return [type(codec.parse(each)).__name__ for each in frames]


def recorded(name: str) -> list[bytes]:
    return list(read_batch(RECORDED / name))


def test_the_answer_of_omx_perf_need_not_have_the_content_of_the_message() -> None:
    """A real one answers from a buffer that it never fills (R-MEA-16); so does that of mxwire."""
    testbed = strange_testbed()
    assert perform(ALL_CASES["perf"], testbed).works
    assert not broken(testbed, ALL_CASES["perf"])
    testbed = strange_testbed()
    says(testbed, "content")
    outcome = perform(ALL_CASES["perf"], testbed)
    assert outcome.text == "left: received 1 byte, but not the ones sent"


def test_a_real_omx_perf_answered_with_the_length_and_match_info_but_another_content() -> None:
    """The evidence for the verdict, in the recording."""
    codec = codec_of(dialect_by_name("mxoe"))
    sent, answer = [each for each in map(codec.parse, recorded("answers.pcapng")) if isinstance(each, Tiny)]
    assert sent.length == answer.length == 1
    assert [each.match_a << 32 | each.match_b for each in (sent, answer)] == [MATCH, MATCH]
    assert sent.data[:1] != answer.data[:1]


def test_the_next_case_meets_omx_perf_in_mid_run_as_recorded() -> None:
    """After a case that has failed a slave still waits for the next message of that measurement."""
    testbed = strange_testbed()
    says(testbed, "content")
    assert not perform(ALL_CASES["perf"], testbed).works
    testbed.left.ends[-1].close()
    testbed.sleep(0.8)
    before = len(testbed.frames)
    outcome = perform(ALL_CASES["perf-one-way"], testbed)
    assert outcome.text == "left: send of 44 bytes ended as message truncated, not as success"
    testbed.settle()
    assert kinds(each.frame for each in testbed.frames[before:]) == kinds(recorded("mid-run.pcapng"))


@pytest.mark.parametrize("answer", ["content", "length"])
def test_an_echo_may_be_described_as_one_that_does_not_return_the_content(answer: Answer) -> None:
    """Every case that wants an echo then compares lengths: none has a comparison of its own."""
    for part in ASKED_OF_PROGRAMS:
        if part.role != "echo" or not part.lengths(hosts("native-mx", "native-mx")[0].dialect):
            continue
        castings, treatment = hosts("open-mx-1.5", "open-mx-1.5"), treatment_by_name("none")
        testbed = LengthOnly(*castings, treatment, 1, introduction=part.introduction, patience=20)
        testbed.answer = answer
        outcome = perform(part, testbed)
        bytes_are_compared = max(part.lengths(testbed.left.dialect)) > 0
        assert outcome.works is (answer == "length" or not bytes_are_compared), f"{part.case.name}: {outcome.text}"


def test_a_slave_forgets_its_sender_half_a_second_after_the_last_answer() -> None:
    """It does not look at the network until then: a connect has to wait."""
    testbed = strange_testbed()
    assert perform(ALL_CASES["perf"], testbed).works
    (application,) = testbed.applications
    last = next(each.time_ns for each in reversed(testbed.frames) if kinds([each.frame]) == ["Notify"])
    asked = testbed.left.open(9).ask(testbed.program("perf"))
    assert testbed.until(lambda: asked.done, 2)
    assert testbed.clock() - last >= 500_000_000
    assert [each.number for each in application.end.engine.partners.values()] == [9]
    for each in testbed.left.ends:
        each.close()
    assert perform(ALL_CASES["perf-one-way"], testbed).works


def test_checks_of_content_are_skipped_for_a_program_that_does_not_return_it() -> None:
    """native MX and Open-MX 1.1 exchange MEDIUMs that are complete but not intact."""
    pair, part = hosts("native-mx", "open-mx-1.1"), ALL_CASES["perf"]
    assert expected_of(part, *pair).expectation == "either"
    assert expected_of(part, *pair, answer="content").expectation == "fails"
    assert expected_of(ALL_CASES["size-medium"], *pair, echoed=True).expectation == "fails"
    assert expected_of(ALL_CASES["size-medium"], *pair, echoed=True, answer="length").expectation == "either"

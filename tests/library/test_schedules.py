"""Random programs of several ranks, which check all that they receive; ``make nightly`` plays more of them."""

from __future__ import annotations

import pytest

from mxwire.myriexpress.build import Installation
from tests.live.namespaces import Port

from .conftest import Compile
from .schedules import PLAYER, Generator, Message, Testbed, match, shrink

PAIR = ("alpha", "beta")


@pytest.fixture(scope="module")
def testbed(
    cable: tuple[Port, Port],
    installation: Installation,
    compile_program: Compile,
    tmp_path_factory: pytest.TempPathFactory,
) -> Testbed:
    return Testbed(cable, installation, compile_program(PLAYER), tmp_path_factory.mktemp("schedules"))


@pytest.mark.parametrize(
    ("seeds", "placement", "variables"),
    [
        (range(8), ("alpha",), {}),
        (range(8, 12), ("alpha", "beta", "alpha", "beta"), {}),
        (range(12, 16), ("alpha", "alpha", "alpha"), {"MX_DISABLE_SHMEM": "1"}),
        (range(16, 20), PAIR, {"MX_ZOMBIE_SEND": "0", "MXWIRE_SPIN": "0"}),
        (range(20, 22), PAIR, {"MX_MONOTHREAD": "1"}),
        (range(22, 25), PAIR, {"MXWIRE_DIALECT": "omx"}),
        # Both processes open channels to the other one while they send.
        (range(5108, 5109), ("alpha", "alpha", "alpha"), {"MX_DISABLE_SHMEM": "1", "MX_DISABLE_SELF": "1"}),
    ],
)
def test_ranks_play_as_scheduled(testbed: Testbed, seeds: range, placement: tuple[str, ...], variables: dict[str, str]):
    outcome = testbed.play([Generator(seed, placement).make() for seed in seeds], placement, variables)
    assert not outcome.wrong, f"{outcome.wrong}\n{outcome.output}"


def test_a_message_of_another_length_is_reported(testbed: Testbed):
    schedule = Generator(3, ("alpha",)).make()
    sent = next(call for call in schedule.phases[0].calls if call.kind == "S" and call.words[5] > 4)
    schedule.messages[sent.words[2]].length -= 1
    outcome = testbed.play([schedule], ("alpha",))
    assert outcome.wrong == "not as scheduled" and "status->msg_length" in outcome.output, outcome.output


def test_a_schedule_is_shrunk_to_the_group_that_fails():
    schedule = Generator(3, PAIR).make()
    group = schedule.phases[-1].calls[0].group
    small = shrink(schedule, lambda each: any(call.group == group for phase in each.phases for call in phase.calls))
    assert {call.group for phase in small.phases for call in phase.calls} == {group}


def test_receives_prefer_the_oldest_message():
    """R-MAT-02, whichever of them is there first."""
    endpoint = Generator(0, PAIR).endpoints[0]
    sent = [Message(number, info, 0, endpoint, endpoint) for number, info in enumerate((2, 1, 1))]
    assert match(sent, [(1, 0xFF), (0, 0), (0, 0)]) == {1: 0, 0: 1, 2: 2}

"""Models as carriers of studies: messages through links, and the comparison of all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mxwire.bench.channels.carriers import check_carrier, open_channel
from mxwire.bench.channels.channel import ChannelSetup
from mxwire.bench.cost.tables import MYRINET
from mxwire.bench.cost.testbed import VirtualTestbed
from mxwire.bench.logp import BANDWIDTHS
from mxwire.bench.models.catalogue import CARD, COPIED, MODELS, UNSYNCHRONISED, WITHOUT_CODE, has_card
from mxwire.bench.models.comparison import (
    BURST,
    BY_CLIENTS,
    BY_PAYLOAD,
    CEILING,
    KINDS,
    KNEE,
    LOOKS,
    PATTERNS,
    PLACES,
    STUDY,
    compare_models,
    compared,
    comparison_blocks,
    comparison_figures,
    idle_time,
)
from mxwire.bench.models.pm import PmPort
from mxwire.bench.models.vmmc2 import VmmcPort
from mxwire.bench.record import Conditions, Measurement, Recording, Series
from mxwire.bench.study import StudyOptions
from mxwire.bench.testbed import MemoryTestbed, TestbedError
from mxwire.errors import MxwireError
from mxwire.report.document import plain


@pytest.mark.parametrize("suffix", ["", " copied"])
@pytest.mark.parametrize("name", MODELS)
def test_messages_pass_through_a_link_as_they_were_sent(name, suffix):
    with MemoryTestbed() as testbed:
        found, _ = testbed.run("trips", carrier=name + suffix, spin=False, sizes=[4, 5000], counts=[3, 3])
    assert {size: each["count"] for size, each in found["points"].items()} == {"4": 3, "5000": 3}
    assert found["frames"]["sent"] >= 6


def test_a_comparison_has_all_series_of_the_study():
    names = ["gam", "vmmc2"]
    with MemoryTestbed() as testbed:
        recording = compare_models(testbed, StudyOptions.of(1, True), names, (4, 65536))
    assert recording.complete, recording.remarks
    by = {each.name: set(each.contestants()) for each in recording.series}
    assert {"gam", "vmmc2", "null"} <= by["RTT/2"]
    assert by[BURST] == by[KNEE] == {"gam"}
    rates = {each.parameters["size"] for each in recording.named("bandwidth").curve("gam, simultaneous, each way")}
    assert rates == {4, 65536}
    assert {each.parameters["size"] for each in recording.named("o_s").measurements} == {4}
    for pattern in PATTERNS:
        assert by[pattern] == {name + how for name in (*names, "null") for how in ("", " copied")}
    text = plain(list(comparison_blocks(recording)), 120)
    assert "Each library runs within the calls" in text
    recording.facts[PLACES] = {"sides": (0, 1), "cards": (1, 1)}
    with_cards = plain(list(comparison_blocks(recording)), 1000)
    for each in ("processors 0 and 1, their cards on 1 and 1", "take its time", "A library without card runs"):
        assert each in with_cards
    for heading in ("LogP at 4 bytes", "its share of that of null", "Active Messages by the methods", "copied"):
        assert heading in text
    assert text.count("(100%)") == 8
    assert len(list(comparison_figures(recording))) == 3


@pytest.mark.parametrize("name", MODELS)
def test_frames_have_the_chosen_payload(name):
    sent = []
    with MemoryTestbed() as testbed:
        for payload in (256, 8192):
            shared = {"carrier": name, "spin": False, "sizes": [4, 20_000], "counts": [2, 2]}
            sent.append(testbed.run("trips", payload=payload, **shared)[0]["frames"]["sent"])
    # A message of 20,000 bytes has 79 frames, and 3.
    assert sent[0] >= 2 * 79 and sent[0] > 4 * sent[1]


def test_bandwidths_by_payload_are_those_of_models_and_no_other_series():
    with MemoryTestbed() as testbed:
        recording = compare_models(testbed, StudyOptions.of(1, True), ["gam"], (65536,), payloads=(1024, 8192))
    assert recording.complete and not recording.remarks
    assert {each.name for each in recording.series} == {kind + BY_PAYLOAD for kind in BANDWIDTHS}
    series = recording.named("unidirectional" + BY_PAYLOAD)
    assert series.contestants() == ["gam, 64 KiB", "null, 64 KiB"] and series.places() == [1024, 8192]
    text = plain(list(comparison_blocks(recording)), 120)
    assert text.count("1,024  ") == len(BANDWIDTHS) and "LogP" not in text
    (figure,) = comparison_figures(recording)
    assert [each.x for each in figure.figure.shown] == ["payload"] * 3


@pytest.mark.parametrize("copied", ["", COPIED])
@pytest.mark.parametrize("name", MODELS)
def test_a_server_answers_all_clients_and_looks_at_one_place_if_its_library_has_a_common_queue(name, copied):
    """The server compares the sum of all numbers that it has received."""
    shared = {"carrier": name + copied, "spin": False, "count": 3}
    with MemoryTestbed() as testbed:
        for size, clients in ((4, 3), (4096, 8)):
            active, passive = testbed.run("central queue", size=size, clients=clients, **shared)
            assert active["request"] > 0
            assert passive["looks"] == 1 or (passive["looks"] > 1 and not MODELS[name].port.common)


def test_a_library_has_a_common_queue_unless_data_arrive_without_their_sender():
    assert {name for name, each in MODELS.items() if not each.port.common} == {"bip", "vmmc2", "null"}


def test_a_server_detects_requests_that_differ_from_those_of_its_clients(monkeypatch):
    offer = PmPort.offer

    def offer_other_data(port, data):
        return offer(port, memoryview(bytes(len(data))))

    monkeypatch.setattr(PmPort, "offer", offer_other_data)
    with MemoryTestbed() as testbed, pytest.raises(TestbedError, match="the server has received other numbers"):
        testbed.run("central queue", carrier="pm", spin=False, size=64, count=3, clients=2)


def test_a_queue_by_clients_is_compared_in_place_and_copied():
    with MemoryTestbed() as testbed:
        recording = compare_models(testbed, StudyOptions.of(1, True), ["vmmc2"], (4,), clients=(1, 4))
    assert recording.complete and not recording.remarks
    assert [each.name for each in recording.series] == [BY_CLIENTS]
    series = recording.named(BY_CLIENTS)
    assert series.contestants() == [f"{name}{how}, 4 B" for name in ("vmmc2", "null") for how in ("", COPIED)]
    one, four = (each.counts[LOOKS] for each in series.curve("vmmc2, 4 B"))
    assert one == 1 < four <= 4
    text = plain(list(comparison_blocks(recording)), 120)
    assert "Central queue by number of clients" in text and "Places looked at per request" in text
    figures = [each.figure for each in comparison_figures(recording)]
    assert [each.shown[0].contestants() for each in figures] == [["vmmc2", "null"]] * 2


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"sizes": (65536,)}, "a request has whole numbers in one packet: up to 4,096 bytes"),
        ({"sizes": (6,)}, "in fours, not 6"),
        ({"cards": ("process",)}, "use --card inline"),
        ({"names": ("gam", "tcp")}, "tcp is not a model"),
    ],
)
def test_queues_that_cannot_be_measured_are_refused(given, error):
    options = {"names": ("gam",)} | given
    with MemoryTestbed() as testbed, pytest.raises(MxwireError, match=error):
        compare_models(testbed, StudyOptions.of(1, True), clients=(2,), **options)


def test_payloads_that_do_not_fit_and_carriers_without_them_are_refused():
    with MemoryTestbed(mtu=1500) as testbed:
        with pytest.raises(MxwireError, match=r"a payload of 4,096 bytes needs an MTU of 4,128, not 1,500"):
            compare_models(testbed, StudyOptions.of(1, True), ["gam"], payloads=(1024, 4096))
        with pytest.raises(MxwireError, match="udp is not a model"):
            compare_models(testbed, StudyOptions.of(1, True), ["udp", "gam"], payloads=(1024,))


def test_a_comparison_of_long_messages_alone_has_a_table_of_their_bandwidths():
    with MemoryTestbed() as testbed:
        recording = compare_models(testbed, StudyOptions.of(1, True), ["gam"], (65536,))
    assert "its share of that of null" in plain(list(comparison_blocks(recording)), 120)


def test_many_libraries_are_drawn_by_kind_each_beside_the_null_model():
    carriers = compared(["all"], ["inline", "process"])
    points = [Measurement(each + how, "µs", [1.0], {"size": 4}) for each in carriers for how in ("", COPIED)]
    recording = Recording(STUDY, Conditions(), series=[Series(PATTERNS[0], "µs", measurements=points)])
    (figure,) = (each.figure for each in comparison_figures(recording))
    assert list(figure.groups) == [f"{kind}{card}" for card in ("", CARD) for kind in KINDS]
    for label, group in figure.groups.items():
        ceiling = CEILING + (CARD if label.endswith(CARD) else "")
        assert {ceiling, f"{ceiling}, copied"} < set(group)
        heads = {each.partition(", ")[0] for each in group}
        assert len(heads) <= 8 and {figure.styles(label)[each].dashes for each in heads} == {"-"}


def test_the_knee_is_the_longest_work_that_does_not_lengthen_the_interval():
    assert idle_time(100, {25: 101, 50: 100, 75: 109, 100: 130, 125: 100}) == 75
    assert idle_time(100, {25: 140}) == 0


def test_libraries_are_compared_with_the_null_model_once():
    assert compared(["gam", "null", "gam"]) == ["gam", "null"]
    assert compared(["all"])[-1] == "null"
    assert {"mxoe", "tcp", "udp", *MODELS} <= set(compared(["all"]))
    for each in WITHOUT_CODE:
        with pytest.raises(MxwireError, match=f"{each} has no code"):
            compared([each])
    with pytest.raises(MxwireError, match="did you mean portals"):
        compared(["portal"])


def test_cards_in_another_process_are_carriers_of_models_only():
    assert compared(["gam", "tcp"], ["inline", "process"]) == [
        "tcp",
        "gam",
        "null",
        "gam with card",
        "null with card",
    ]
    assert has_card(check_carrier("pm with card copied")) and not has_card("pm copied")
    with pytest.raises(MxwireError, match=r"no place for a card is called 'proces' \(did you mean process"):
        compared(["gam"], ["proces"])
    with (
        MemoryTestbed() as testbed,
        pytest.raises(MxwireError, match="null with card: not applicable: not on a network"),
    ):
        compare_models(testbed, StudyOptions.of(1, True), ["null"], (4,), ["process"])
    with VirtualTestbed(MYRINET) as testbed:
        assert "modelled in virtual time" in testbed.can_use("pm with card")


def test_a_card_that_cannot_open_its_interface_is_an_error_of_its_program():
    setup = ChannelSetup("vmmc2 with card", "nowhere0", bytes(6), bytes(6), active=True, spin=False)
    with pytest.raises(MxwireError, match="nowhere0"):
        open_channel(setup)


def test_models_are_carriers_and_unknown_ones_suggest_the_nearest():
    assert check_carrier(UNSYNCHRONISED) == UNSYNCHRONISED
    with pytest.raises(MxwireError, match=r"there is no carrier 'vmmc' \(did you mean vmmc2"):
        check_carrier("vmmc")


def test_patterns_need_a_model():
    with MemoryTestbed() as testbed, pytest.raises(MxwireError, match="ring is not a model"):
        testbed.run("used data", carrier="ring", spin=False, sizes=[4], counts=[1], numbers=[1])


def test_a_pattern_detects_data_that_change_before_they_are_sent(monkeypatch):
    offer = VmmcPort.offer

    def offer_other_data(port, data):
        return offer(port, memoryview(bytes(len(data))) if len(data) > 64 else data)

    options = {"carrier": "vmmc2", "spin": False, "sizes": [4096], "counts": [3], "numbers": [2]}
    with MemoryTestbed() as testbed:
        testbed.run("used data", **options)
        monkeypatch.setattr(VmmcPort, "offer", offer_other_data)
        with pytest.raises(TestbedError, match="data of 4096 bytes were changed"):
            testbed.run("used data", **options)


def test_long_messages_of_a_library_without_flow_control_are_not_lost():
    """No more is in flight than the rings hold: a burst of 16 messages of a MiB would lose frames, and take seconds."""
    with MemoryTestbed() as testbed:
        recording = compare_models(testbed, StudyOptions.of(1, True), ["null"], (1 << 20,))
    assert recording.complete and not recording.remarks
    assert [len(each.measurements) for each in recording.series if each.name in PATTERNS] == [2, 2]


def test_no_round_begins_after_the_limit_and_all_contestants_have_the_same_number():
    with MemoryTestbed() as testbed:
        recording = compare_models(testbed, replace(StudyOptions.of(3, True), limit=0.0), ["pm"], (4, 65536))
    assert not recording.complete
    assert recording.remarks == ["1 of 3 rounds: they took more than 0 s"] * 2
    assert {len(each.samples) for series in recording.series for each in series.measurements} == {1}


def test_two_senders_of_pm_do_not_wait_for_buffers_that_both_hold():
    with MemoryTestbed() as testbed:
        found, _ = testbed.run("simultaneous", carrier="pm", spin=False, size=1 << 20, count=3, depth=2)
    assert found["interval"] > 0


def test_the_comparison_runs_in_virtual_time():
    with VirtualTestbed(MYRINET) as testbed:
        recording = compare_models(testbed, StudyOptions(), ["gam", "pm"], (4, 16384))
    assert recording.complete and not recording.remarks
    assert {"gam, simultaneous", "pm, ping-pong", "null, unidirectional"} <= {
        each.name for each in recording.named("bandwidth").measurements if each.parameters["size"] == 16384
    }
    assert recording.named(BURST).contestants() == ["gam"] and not any(map(recording.named, PATTERNS))

"""The libraries of 1998 in virtual time: what the fit decides, and what follows from the models."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mxwire.bench.claims.library_study import fit, moved_parameters, numbers_of
from mxwire.bench.cost.calibration import half_round_trip
from mxwire.bench.cost.tables import CLOVERTOWN, MYRINET, MYRINET_FITTED, TABLES, Costs, FittedNumber, table_by_name
from mxwire.bench.cost.testbed import VirtualTestbed
from mxwire.bench.cost.wires import WirePort
from mxwire.bench.models.catalogue import MODELS, UNSYNCHRONISED, model_of
from mxwire.errors import MxwireError
from mxwire.simulation.schedule import Schedule

SIZES = 65536, 1 << 20


def played(role: str, carrier: str, size: int, costs: Costs = MYRINET, **more: Any) -> float:
    """Half a round trip or an interval, in ns."""
    with VirtualTestbed(costs) as testbed:
        if role == "trips":
            return testbed.run(role, carrier=carrier, sizes=[size], counts=[2])[0]["points"][str(size)]["median"]
        return testbed.run(role, carrier=carrier, size=size, count=48, window=16, depth=16, **more)[0]["interval"]


def test_the_fitted_values_of_1998_are_those_of_the_fit():
    found = fit(MYRINET, steps=1)
    for name in MYRINET_FITTED:
        assert getattr(found, name) == pytest.approx(getattr(MYRINET, name), rel=0.02), name


def test_one_table_meets_the_papers_numbers():
    ratios = {each.text: found / each.value for each, found in numbers_of(MYRINET).items()}
    assert len(ratios) == 10
    assert not {text: ratio for text, ratio in ratios.items() if not 0.9 < ratio < 1.1}


@pytest.mark.parametrize("suffix", ["", " copied"])
@pytest.mark.parametrize("name", MODELS)
def test_all_models_deliver_messages_in_virtual_time(name, suffix):
    # The roles compare the content of the last message.
    assert 0 < played("trips", name + suffix, 4) < played("trips", name + suffix, 5000)
    with VirtualTestbed(MYRINET) as testbed:
        for size in (4, 5000):
            assert testbed.run("simultaneous", carrier=name + suffix, size=size, count=2, depth=4)[0]["interval"] > 0


def test_a_run_in_virtual_time_is_the_same_each_time():
    for name in ("gam", "vmmc2"):
        assert len({played("flood", name, 4096) for _ in range(3)}) == 1


def test_a_table_without_an_adapter_with_firmware_has_no_libraries():
    with VirtualTestbed(CLOVERTOWN) as testbed:
        assert "clovertown-2010 has no costs of an adapter with firmware" in str(testbed.can_use("pm"))


def test_every_fitted_or_derived_value_has_a_table_that_names_its_numbers():
    for each in TABLES.values():
        assert {"fitted", "derived"} & set(each.sources.values())
        assert each.fitted_to


def test_a_copy_costs_its_bytes_where_the_model_makes_it():
    dear = replace(MYRINET, copy_warm=MYRINET.copy_warm + 100)
    more = {
        each: played("trips", each, 4096, dear) - played("trips", each, 4096) for each in ("gam copied", "gam", "pm")
    }
    assert more == {"gam copied": pytest.approx(409_600), "gam": 0, "pm": 0}


def test_bytes_written_by_the_processor_are_not_transferred():
    dear = replace(MYRINET, to_adapter=MYRINET.to_adapter + 100)
    more = {each: played("trips", each, 252, dear) - played("trips", each, 252) for each in ("bip", "fm2", "pm")}
    assert more == {"bip": 0, "fm2": 0, "pm": pytest.approx(25_200)}


def test_words_that_the_processor_reads_are_not_transferred():
    dear = replace(MYRINET, pio_read=MYRINET.pio_read + 10_000)
    slow = replace(MYRINET, dma_start=MYRINET.dma_start + 10_000)
    for costs, more in ((dear, {4: 10_000, 16: 40_000, 20: 0}), (slow, {16: 10_000, 20: 20_000})):
        for size, added in more.items():
            assert played("trips", "null", size, costs) - played("trips", "null", size) == pytest.approx(added), size


def test_a_slower_adapter_is_in_the_latency_and_not_in_the_overheads():
    slow = replace(MYRINET, firmware=MYRINET.firmware + 10_000)
    assert played("trips", "fm2", 4, slow) - played("trips", "fm2", 4) == pytest.approx(20_000)
    overheads = [played("flood", "fm2", 4, costs, work=200_000) - 200_000 for costs in (MYRINET, slow)]
    assert overheads[1] == pytest.approx(overheads[0])


def test_a_sender_whose_tokens_are_used_up_waits_for_replies():
    """A receiver that works handles no request, so the sender of its messages is as slow as it is."""
    work = 100_000
    assert played("flood", "gam", 4, active_sends=False, work=work) == pytest.approx(work, rel=0.2)
    # The other library's frames wait in buffers of the receiver.
    assert played("flood", "vmmc2", 4, work=0) < work


def test_both_directions_share_the_engine_of_an_adapter():
    with VirtualTestbed(MYRINET) as testbed:
        found = {size: testbed.run("simultaneous", carrier="vmmc2", size=size, count=2, depth=4) for size in SIZES}
    for size, (active, _) in found.items():
        # Frames that wait for the engine in a full window are not retransmitted.
        moved = size * (MYRINET.to_adapter + MYRINET.from_adapter)
        assert moved < active["interval"] < 1.5 * moved


def test_announcements_synchronise_long_messages_of_bip_only():
    announced = {size: played("flood", "bip", size) - played("flood", UNSYNCHRONISED, size) for size in (252, 256)}
    assert announced[252] == 0 < announced[256]


def test_a_receiver_of_deposits_only_looks():
    """Without a call per message there is nothing that depends on the length."""
    found = {size: played("flood", "vmmc2", size, active_sends=False, work=200_000) for size in (4, 4096)}
    assert found[4] == found[4096]


@pytest.mark.parametrize("carrier", [UNSYNCHRONISED, "pm", "vmmc2"])
def test_a_longer_stage_moves_the_parameter_of_the_papers_table_3(carrier):
    stages = model_of(carrier)[0].facts.stages
    assert moved_parameters(carrier) == tuple(() if each == "-" else (each,) for each in stages)


def test_the_link_stops_while_no_receive_is_posted():
    """The sender is done when its message has been taken, which is after the receiver has worked."""
    with VirtualTestbed(MYRINET) as testbed:
        work = 1_000_000
        found, _ = testbed.run(
            "flood", carrier=UNSYNCHRONISED, size=4096, count=8, window=2, depth=8, work=work, active_sends=False
        )
    assert found["interval"] == pytest.approx(work, rel=0.05)


def test_the_engine_runs_on_the_hosts_of_1998_within_the_limits_of_their_bus():
    length = 1 << 20
    half = half_round_trip(table_by_name("myrinet-1998"), length)
    assert half * 1e3 > length * max(MYRINET.to_adapter, MYRINET.from_adapter)
    assert half_round_trip(CLOVERTOWN, length) < half / 5


def test_a_frame_takes_the_time_of_both_adapters_and_the_link():
    schedule, arrived = Schedule(), []
    ports = [WirePort(schedule, MYRINET, 0, lambda frames: arrived.append((schedule.now, frames))) for _ in range(2)]
    ports[0].send(ports[1], "a", 1000, 1, 0, 0.0)
    ports[0].send(ports[1], "b", 1000, 1, 0, 0.0)
    while len(schedule):
        schedule.step()
    bus, link, start = 1000 * (7.81 + 7.55), 1000 * 8 / 1.28, MYRINET.firmware + MYRINET.dma_start
    first, second = (at for at, _ in arrived)
    assert first == pytest.approx(bus + link + 2 * start + MYRINET.adapter_send, abs=2)
    assert second - first == pytest.approx(start + 7810, abs=2)


def test_the_numbers_of_a_table_are_kept_in_its_file(tmp_path):
    path = tmp_path / "mine.json"
    numbers = (FittedNumber("half round trip", "mxoe, spinning", 64, 12.5),)
    path.write_text(json.dumps(replace(CLOVERTOWN, fitted_to=numbers).record()))
    assert table_by_name(str(path)).fitted_to == numbers
    path.write_text(json.dumps(CLOVERTOWN.record() | {"fitted_to": [{"number": 3}]}))
    with pytest.raises(MxwireError, match="fitted_to is not a list of numbers of a series"):
        table_by_name(str(path))

"""The libraries of 1998 as data paths: what the fit decides, and what follows from the stations."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from mxwire.bench.cost.calibration import half_round_trip
from mxwire.bench.cost.libraries import LIBRARIES, LibraryPair, fit, numbers_of
from mxwire.bench.cost.tables import (
    CLOVERTOWN,
    MYRINET,
    MYRINET_FITTED,
    TABLES,
    FittedNumber,
    table_by_name,
)
from mxwire.bench.cost.wires import WirePort
from mxwire.errors import MxwireError
from mxwire.simulation.schedule import Schedule

PATHS = {each.name: each for each in LIBRARIES}


def test_the_fitted_values_of_1998_are_those_of_the_fit():
    found = fit(MYRINET, steps=1)
    for name in MYRINET_FITTED:
        assert getattr(found, name) == pytest.approx(getattr(MYRINET, name), rel=0.02), name


def test_the_data_paths_follow_from_the_facts_of_the_models():
    flags = {name: {key for key, value in asdict(path).items() if value is True} for name, path in PATHS.items()}
    assert flags == {
        "AM": {"combined", "copied", "receive_copies", "protected", "replies"},
        "BIP": {"waits_for_receive"},
        "FM": {"combined", "receive_copies", "protected"},
        "PM": {"returns_at_once", "protected", "cuts_through"},
        "VMMC": {"returns_at_once", "protected", "reliable", "deposits"},
    }
    lengths = [(path.packet, path.written) for path in PATHS.values()]
    assert lengths == [(4096, 16), (4096, 252), (1024, 1 << 30), (4096, 0), (4096, 64)]


def test_one_table_meets_the_papers_numbers_but_two_of_am():
    # A gap of 153.5 µs at 4 KB and a rate of 50 MB/s contradict each other for messages cut into packets of 4 KB.
    far = {each.text: found / each.value for each, found in numbers_of(MYRINET).items()}
    off = [text for text, ratio in far.items() if not 0.9 < ratio < 1.1]
    assert len(far) == 11
    assert [each.partition(" at ")[0] for each in off] == ["g of AM", "bandwidth of AM"]


def test_every_fitted_or_derived_value_has_a_table_that_names_its_numbers():
    for each in TABLES.values():
        assert {"fitted", "derived"} & set(each.sources.values())
        assert each.fitted_to


def test_a_slower_adapter_is_in_the_latency_and_not_in_the_overheads():
    fast, slow = (LibraryPair(replace(MYRINET, firmware=each), PATHS["PM"]) for each in (1200.0, 11_200.0))
    assert slow.half_round_trip(4) - fast.half_round_trip(4) == pytest.approx(20_000)
    assert slow.send_overhead(4096) == pytest.approx(fast.send_overhead(4096))
    assert slow.receive_overhead(4096) == pytest.approx(fast.receive_overhead(4096))


def test_only_a_library_whose_receives_must_be_posted_synchronises():
    for name, path in PATHS.items():
        pair = LibraryPair(MYRINET, path)
        waits = pair.interval(1024) - pair.interval(1024, synchronised=False)
        assert (waits > 0) is (name == "BIP")


def test_a_receiver_that_takes_no_part_has_no_overhead():
    assert [name for name, path in PATHS.items() if not LibraryPair(MYRINET, path).receive_overhead(64)] == ["VMMC"]


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

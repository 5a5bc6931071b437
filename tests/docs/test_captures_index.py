"""captures/INDEX.md describes the contents of the captures, and no more."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from mxwire.capture import open_capture
from mxwire.wire.decoder import Decoder
from mxwire.wire.enums import PacketType

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
TEXT = (CAPTURES / "INDEX.md").read_text(encoding="utf-8")


class Entry(NamedTuple):
    dialect: str
    file: str
    frames: int
    seconds: str
    types: dict[str, int]
    text: str


def entries() -> list[Entry]:
    found = []
    dialect = ""
    for line in TEXT.splitlines():
        if line.startswith("## "):
            dialect = line.removeprefix("## Dialect ")
        elif line.startswith("| `") and ".pcap" in line.split("|")[1]:
            file, frames, seconds, types, text = (cell.strip() for cell in line.strip("|").split("|"))
            counted = {name: int(count) for name, count in (each.split() for each in types.split(", "))}
            found.append(Entry(dialect, file.strip("`"), int(frames), seconds, counted, text))
    return found


ENTRIES = entries()


def test_exactly_the_files_that_are_there() -> None:
    listed = [entry.file for entry in ENTRIES]
    assert sorted(listed) == sorted(path.name for path in CAPTURES.iterdir() if path.name != "INDEX.md")
    assert len(set(listed)) == len(listed)
    assert f"{len(listed)} recordings" in TEXT


def test_every_file_that_is_mentioned_exists() -> None:
    for name in re.findall(r"`([\w.-]+\.pcap)`", TEXT):
        assert (CAPTURES / name).exists(), name


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.file)
def test_numbers_are_those_of_the_file(entry: Entry) -> None:
    frames = 0
    times: list[int] = []
    types: Counter[str] = Counter()
    is_cut = False
    decoder = Decoder()
    with open_capture(CAPTURES / entry.file) as capture:
        for batch in capture:
            frames += len(batch)
            times += [int(batch.timestamp_ns.min()), int(batch.timestamp_ns.max())]
            is_cut = is_cut or bool((batch.length < batch.wire_length).any())
            types.update(PacketType(value).name for value in decoder.decode(batch).columns.packet_type.tolist())
        snap_length = capture.snap_length
    assert entry.frames == frames
    assert entry.seconds == f"{(max(times) - min(times)) / 1e9:.3f}"
    assert entry.types == types
    assert list(entry.types) == [each.name for each in PacketType if each.name in types], "in order of type"
    assert ("Frames cut at 160 bytes" in entry.text) == is_cut == (snap_length == 160)
    assert entry.text.endswith(".")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.file)
def test_each_stands_under_its_dialect(entry: Entry) -> None:
    assert entry.file.partition("-")[0] == entry.dialect.replace(":", "")
    decoder = Decoder()
    with open_capture(CAPTURES / entry.file) as capture:
        for batch in capture:
            decoder.decode(batch)
    for detection in decoder.detections():
        if detection.dialect is not None:
            assert entry.dialect.startswith(detection.dialect.name)


def test_the_tour_capture_has_every_type() -> None:
    entry = next(entry for entry in ENTRIES if entry.file == "mxoe-every-type.pcap")
    with_layout = {each.name for each in PacketType if each.name in {name for other in ENTRIES for name in other.types}}
    assert set(entry.types) == with_layout
    assert len(entry.types) == 14

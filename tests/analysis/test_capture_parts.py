"""One capture divided among workers: the frames and messages of all parts are those of the whole capture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mxwire.analysis.capture_parts import CapturePart, DividedCapture, RangeSurvey, RingPart, survey
from mxwire.analysis.conversations import Follower
from mxwire.analysis.message_table import message_fields
from mxwire.capture import create_capture, open_capture
from mxwire.capture.division import ByteRange, ranges_of
from mxwire.ethernet import ADDRESS_SIZE
from mxwire.frames import FrameBatch, concatenate
from mxwire.wire.decoder import DecodedBatch, Decoder
from tests.cli.support import mxwire

CAPTURES = Path(__file__).parents[2] / "captures"
FILES = sorted(CAPTURES.glob("*.pcap"))
SMALL = 4096
"""Bytes of a range: a few frames."""
NUMBERS = ("message", "conversation")


def divided(*files: Path, octets: int = SMALL, by_pair: bool = False) -> DividedCapture:
    """Divide a capture, surveyed in this process."""

    def surveyor(ranges: Sequence[ByteRange]) -> Iterable[RangeSurvey | None]:
        return [RangeSurvey.unpacked(RangeSurvey.packed(survey(Decoder(), each)), each) for each in ranges]

    made = DividedCapture(tuple(map(str, files)), octets, Decoder())
    made.examine(surveyor, by_pair=by_pair)
    return made


def decoded(part: CapturePart) -> Iterator[DecodedBatch]:
    """Decode a part, as a worker does."""
    decoder = Decoder(known=part.known)
    with RingPart(part, decoder.ethertypes) as ring:
        yield from decoder.decode_all(ring)


def frames(batches: Iterable[DecodedBatch]) -> list[tuple[Any, ...]]:
    """The frames of batches, with everything that depends on other frames."""
    return [
        (int(each.batch.number[place]), each.dialect_name(place), each.is_swapped(place), each.batch.frame(place))
        for each in batches
        for place in range(len(each))
    ]


def whole(*files: Path) -> Iterator[DecodedBatch]:
    yield from decoded(CapturePart(tuple(map(str, files))))


def messages(batches: Iterable[DecodedBatch]) -> list[dict[str, Any]]:
    """The fields of the messages in batches, except their numbers."""
    follower = Follower()
    found = [message for each in batches for message in follower.observe(each)]
    found += follower.finish()
    fields = [message_fields(each, follower.names) for each in found]
    return [{name: value for name, value in each.items() if name not in NUMBERS} for each in fields]


@pytest.fixture(scope="module")
def fabric(tmp_path_factory) -> Path:
    """A capture of many hosts: those of each recording are others, and their frames alternate."""
    path: Path = tmp_path_factory.mktemp("fabric") / "fabric.pcapng"
    made: list[tuple[int, bytes]] = []
    for number, file in enumerate(FILES):
        with open_capture(file) as reader:
            batch = concatenate(list(reader))
        for time_ns, frame in zip((batch.timestamp_ns - batch.timestamp_ns[0]).tolist(), batch, strict=True):
            other = bytearray(frame)
            for place in (0, ADDRESS_SIZE):
                if other[place] != 0xFF:
                    other[place + 1] = number
            made.append((time_ns, bytes(other)))
    made.sort(key=lambda each: each[0])
    with create_capture(path) as writer:
        writer.write(FrameBatch.from_frames([frame for _, frame in made], [time_ns for time_ns, _ in made]))
    return path


def test_ranges_of_bytes_have_all_frames_with_their_numbers_and_dialects():
    wrong = 0
    for file in FILES:
        made = divided(file)
        bytes_ = file.stat().st_size
        assert len(made.parts) > 1 or made.ranges < 3, (file, bytes_)
        wrong += made.ranges > len(made.parts)
        found = [each for part in made.parts for each in frames(decoded(part))]
        assert found == frames(whole(file)), file
        if made.ranges:
            with open_capture(file) as reader:
                assert made.decoder.decoded + made.decoder.skipped == sum(map(len, reader))
    assert wrong, "payload looks like records in some captures, and wrong boundaries must be detected"


def test_pairs_of_hosts_have_all_messages(fabric):
    made = divided(fabric, octets=200_000, by_pair=True)
    assert len(made.parts) > 5 and all(each.range is None for each in made.parts)
    shares = [messages(decoded(part)) for part in made.parts]
    assert sum(map(bool, shares)) > 10
    found = sorted((each for share in shares for each in share), key=lambda each: str([*each.values()]))
    assert found == sorted(messages(whole(fabric)), key=lambda each: str([*each.values()]))


def test_each_frame_belongs_to_one_part_and_numbers_are_unique(fabric):
    parts = divided(fabric, octets=200_000, by_pair=True).parts
    owners = Counter(
        number
        for part in parts
        for each in decoded(part)
        for number in each.batch.number[part.own(each.located)].tolist()
    )
    assert owners == Counter(number for number, *_ in frames(whole(fabric)))
    numbers = np.concatenate([part.unique(np.arange(1, 50)) for part in parts])
    assert len({*numbers.tolist()}) == len(numbers) and numbers.min() == 1


def test_parts_are_bounded_however_small_they_are_to_be(fabric, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("mxwire.analysis.capture_parts._MOST_RANGES", 50)
        assert 40 < DividedCapture((str(fabric),), 1, Decoder()).ranges <= 51
    made = divided(fabric, octets=fabric.stat().st_size // 100, by_pair=True)
    assert made.ranges > 64 == len(made.parts)


def test_the_files_of_a_ring_are_divided_together(tmp_path, fabric):
    with open_capture(fabric) as reader:
        batch = concatenate(list(reader))
    files = [tmp_path / f"ring-{number:05}.pcap" for number in (1, 2)]
    middle = len(batch) // 2
    for file, some in zip(files, (batch.part(0, middle), batch.part(middle, len(batch))), strict=True):
        with create_capture(file) as writer:
            writer.write(some)
    made = divided(*files, octets=100_000, by_pair=True)
    assert made.decoder.start_ns == int(batch.timestamp_ns[0]) == made.parts[0].start_ns
    found = [each for part in made.parts for each in messages(decoded(part))]
    assert len(found) == len(messages(whole(*files)))


def test_damaged_compressed_and_changing_captures_remain_whole(tmp_path):
    source = CAPTURES / "mxoe-burst.pcap"
    octets = source.read_bytes()
    damaged = tmp_path / "damaged.pcap"
    damaged.write_bytes(octets[:50_000] + b"\xff" * 60_000 + octets[110_000:])
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(octets[:-1])
    with open_capture(source) as reader:
        batch = concatenate(list(reader))
    plain, packed = tmp_path / "plain.pcapng", tmp_path / "packed.pcapng.gz"
    for path in (plain, packed):
        with create_capture(path) as writer:
            writer.write(batch)
    sections = tmp_path / "sections.pcapng"
    sections.write_bytes(2 * plain.read_bytes())
    absent = tmp_path / "absent.pcap"
    for path in (damaged, cut, packed, sections, absent):
        made = divided(path)
        assert made.parts == [CapturePart((str(path),))], path
    assert len(divided(plain).parts) > 5
    assert len(divided(source, octets=len(octets)).parts) == 1


def test_a_capture_of_one_verified_range_remains_whole():
    """The notes of a capture are printed when it is read as a whole: a part prints none."""
    path = CAPTURES / "mxoe-burst.pcap"
    size = path.stat().st_size

    def surveyor(ranges: Sequence[ByteRange]) -> list[RangeSurvey | None]:
        return [survey(Decoder(), each) if each.end == size else None for each in ranges]

    for by_pair in (False, True):
        made = DividedCapture((str(path),), size // 2, Decoder())
        assert made.ranges == 2
        made.examine(surveyor, by_pair=by_pair)
        assert made.parts == [CapturePart((str(path),))] and not made.decoder.decoded


@pytest.mark.parametrize("wrong", [{1}, {1, 2}, {2, 3, 4}, {1, 2, 3, 4, 5, 6, 7}], ids=str)
def test_an_intact_capture_is_verified_behind_wrong_guesses(monkeypatch, fabric, wrong):
    """Boundaries are guesses, and several in a row may be wrong."""

    def ranges(file: str, octets: int) -> list[ByteRange]:
        found = ranges_of(file, max(octets, fabric.stat().st_size // 8))
        edges = [each.start + (place in wrong) for place, each in enumerate(found)] + [found[-1].end]
        return [replace(each, start=edges[place], end=edges[place + 1]) for place, each in enumerate(found)]

    monkeypatch.setattr("mxwire.analysis.capture_parts.ranges_of", ranges)
    made = divided(fabric)
    assert 1 < made.ranges < 10 and made.verified
    assert [each for part in made.parts for each in frames(decoded(part))] == frames(whole(fabric))


def test_notes_of_parts_are_summed(tmp_path, fabric):
    path, notes = tmp_path / "malformed.pcapng", []
    with open_capture(fabric) as reader, create_capture(path) as writer:
        frames = [frame[: 20 if place % 7 == 0 else None] for place, frame in enumerate(concatenate(list(reader)))]
        writer.write(FrameBatch.from_frames(frames, range(len(frames))))
    for piece in (1000, 1):
        run = mxwire("messages", "--on", "local", "--jobs", 1, "--piece", piece, "--to", tmp_path / f"{piece}", path)
        assert run.code == 0, run.err
        notes.append([line for line in run.err.splitlines() if "left out" in line])
    assert len([*(tmp_path / "1").rglob("*.parquet")]) > 2
    assert len(notes[0]) == 1 and notes[0] == notes[1]


def test_a_capture_that_ends_within_a_record_is_read_whole_with_a_note(tmp_path, fabric):
    path = tmp_path / "cut.pcapng"
    path.write_bytes(fabric.read_bytes()[:-1])
    for command in (("messages",), ("decode", "--no-analysis")):
        words = ("--on", "local", "--jobs", 1, "--piece", 0.4, "--to", tmp_path / command[0])
        run = mxwire(*command, *words, path)
        assert run.code == 2
        (note,) = [line for line in run.err.splitlines() if "not divided" in line]
        assert note.startswith(f"mxwire: {path}: not divided among workers: it ends within a record")


def test_the_command_writes_the_same_rows_for_any_division(tmp_path, fabric):
    polars = pytest.importorskip("polars")
    tables = {}
    for command, key in ((("messages",), "frames"), (("decode",), "frame"), (("decode", "--no-analysis"), "frame")):
        for piece in (1000, 0.4):
            folder = tmp_path / f"{len(tables)}"
            words = ("--on", "local", "--jobs", 1, "--piece", piece, "--to", folder)
            run = mxwire(*command, *words, fabric)
            assert run.code == 0, run.err
            table = polars.read_parquet(folder / "**" / "*.parquet", hive_partitioning=True)
            if command == ("messages",):
                assert table["message"].n_unique() == len(table)
            columns = [each for each in table.columns if each not in (*NUMBERS, "acknowledges")]
            tables[command, piece] = table.select(columns).sort(key, "source"), len([*folder.rglob("*.parquet")])
        (one, files), (parts, more) = tables[command, 1000], tables[command, 0.4]
        assert one.equals(parts) and files == 1 and more > 2, command

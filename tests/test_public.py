"""The public interface: the names of ``import mxwire``, what they cost, and what they raise for wrong types."""

from __future__ import annotations

import ast
import io
import pydoc
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import mxwire.rules
import mxwire.scenarios
from mxwire.analysis.selection import Selection
from mxwire.link.memory import MemoryNetwork

ROOT = Path(__file__).parents[1]
CAPTURE = ROOT / "captures" / "mxoe-every-type.pcap"


@pytest.mark.parametrize("package", [mxwire, mxwire.rules, mxwire.scenarios], ids=lambda each: each.__name__)
def test_names_are_the_same_for_the_interpreter_and_for_type_checkers(package):
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    (checked,) = [node for node in tree.body if isinstance(node, ast.If)]
    typed = {
        each.name: str(node.module) for node in checked.body if isinstance(node, ast.ImportFrom) for each in node.names
    }
    for name, home in typed.items():
        assert getattr(package, name) is getattr(import_module(home), name)
    assert sorted(package.__all__) == sorted(typed)


@pytest.mark.parametrize("name", mxwire.__all__)
def test_each_public_name_is_there_and_documented(name):
    found = getattr(mxwire, name)
    assert name in dir(mxwire)
    if callable(found):
        assert pydoc.getdoc(found).strip()


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Hosts'"):
        mxwire.Hosts  # noqa: B018


def test_importing_mxwire_imports_the_rest_on_first_use():
    program = (
        "import sys; import mxwire; print([each for each in sys.modules if each.startswith(('mxwire.', 'numpy'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['mxwire.first_use']"


def test_a_capture_is_a_data_frame_of_frames():
    table = mxwire.read_frames(str(CAPTURE))
    with mxwire.open_capture(CAPTURE) as capture:
        decoded = mxwire.Decoder().decode(next(iter(capture)))
    assert len(table) == len(decoded) and table.columns[0] == "frame"
    assert table["wire_length"].to_list() == [len(frame) for frame in decoded.batch]
    chosen = mxwire.read_frames(CAPTURE, ["type", "lib_seqnum"], dialect="mxoe")
    assert chosen.columns == ["type", "lib_seqnum"] and len(chosen) == len(table)
    assert mxwire.read_frames(io.BytesIO(CAPTURE.read_bytes())).equals(table)


def test_a_capture_is_a_data_frame_of_messages():
    table = mxwire.read_messages(CAPTURE)
    assert table["message"].to_list() == list(range(1, len(table) + 1))
    assert set(table["kind"]) == {"TINY", "SMALL", "MEDIUM", "RNDV"}


def test_an_expression_selects_rows():
    where = "role == data and length >= 100"
    frames = mxwire.read_frames(CAPTURE, ["frame", "message", "length"], where=where)
    assert len(frames) and min(frames["length"]) >= 100
    messages = mxwire.read_messages(CAPTURE, where=where)
    assert messages["message"].to_list() == sorted(set(frames["message"])) and len(mxwire.read_messages(CAPTURE)) > 3
    only = Selection.of(kinds=["TINY"])
    assert set(mxwire.read_messages(CAPTURE, where=only)["kind"]) == {"TINY"}
    assert set(mxwire.read_frames(CAPTURE, ["type"], where=only)["type"]) == {"TINY"}
    for read in (mxwire.read_frames, mxwire.read_messages):
        with pytest.raises(mxwire.MxwireError, match="expression, column 1: no field 'typ'"):
            read(CAPTURE, where="typ == PULL")


def test_a_capture_without_frames_is_an_empty_table_with_all_columns(tmp_path):
    with mxwire.create_capture(tmp_path / "empty.pcap", link_type=1):
        pass
    full = mxwire.read_frames(CAPTURE)
    empty = mxwire.read_frames(tmp_path / "empty.pcap")
    assert len(empty) == 0 and empty.schema == full.schema
    assert mxwire.read_messages(tmp_path / "empty.pcap").schema == mxwire.read_messages(CAPTURE).schema


def test_an_unknown_column_is_named():
    with pytest.raises(mxwire.MxwireError, match="no column 'seq'"):
        mxwire.read_frames(CAPTURE, ["seq"])


def test_a_missing_capture_is_a_missing_file_too():
    for read in (mxwire.open_capture, mxwire.read_frames, mxwire.read_messages):
        with pytest.raises(FileNotFoundError, match="no such file") as caught:
            read("/nowhere.pcap")
        assert isinstance(caught.value, mxwire.MxwireError)


def test_a_batch_is_a_sequence_of_frames():
    frames = [bytes([place]) * 60 for place in range(5)]
    batch = mxwire.FrameBatch.from_frames(frames)
    assert list(batch) == frames and batch[1] == frames[1] and batch[-1] == frames[-1]
    assert list(batch[1:4]) == frames[1:4] and list(batch[::2]) == frames[::2]
    assert list(batch[np.array([4, 0])]) == [frames[4], frames[0]]
    assert list(batch[batch.number > 3]) == frames[3:]
    assert repr(batch) == "<FrameBatch of 5 frames, numbers 1 to 5, 300 bytes>"
    assert repr(batch[:1]) == "<FrameBatch of 1 frame, numbers 1 to 1, 60 bytes>"
    assert repr(batch[:0]) == "<FrameBatch of 0 frames>"
    with pytest.raises(IndexError):
        batch[5]


def test_a_decoded_batch_is_a_sequence_of_typed_frames():
    with mxwire.open_capture(CAPTURE) as capture:
        decoded = mxwire.Decoder().decode(next(iter(capture)))
    assert [each.ptype for each in decoded] == [decoded.frame(place).ptype for place in range(len(decoded))]
    assert decoded[-1] == decoded.frame(len(decoded) - 1)
    assert repr(decoded) == f"<DecodedBatch of {len(decoded)} MXoE frames, mxoe>"
    with pytest.raises(IndexError):
        decoded[len(decoded)]


def test_a_frame_is_parsed_and_built_by_name_of_the_dialect():
    with mxwire.open_capture(CAPTURE) as capture:
        batch = next(iter(capture))
    frame = mxwire.parse(batch[3], "mxoe")
    assert frame == mxwire.parse(memoryview(batch[3]), mxwire.MXOE)
    assert mxwire.build(frame, "mxoe") == batch[3][: len(mxwire.build(frame, mxwire.MXOE))]


def wrong_types():
    endpoint = mxwire.Host(MemoryNetwork().attach(), name="alpha").open_endpoint(0)
    partner = endpoint.connect("alpha", 0)
    yield "open_capture", lambda: mxwire.open_capture(5)
    yield "open_capture", lambda: mxwire.open_capture(None)
    yield "read_frames", lambda: mxwire.read_frames(b"captures/x.pcap")
    yield "read_messages", lambda: mxwire.read_messages(5)
    yield "create_capture", lambda: mxwire.create_capture(5)
    yield "parse", lambda: mxwire.parse("text", mxwire.MXOE)
    yield "parse", lambda: mxwire.parse(b"", 9000)
    yield "build", lambda: mxwire.build(b"frame", mxwire.MXOE)
    yield "Decoder", lambda: mxwire.Decoder(9000)
    yield "Host", lambda: mxwire.Host("eth0")
    yield "Host", lambda: mxwire.Host(MemoryNetwork().attach(), dialect=9000)
    yield "Host", lambda: mxwire.Host(MemoryNetwork().attach(), nmae="alpha")
    yield "open_endpoint", lambda: endpoint.host.open_endpoint("1")
    yield "connect", lambda: endpoint.connect("alpha", "1")
    yield "connect", lambda: endpoint.connect(5.0)
    yield "send", lambda: endpoint.send("alpha", b"data")
    yield "send", lambda: endpoint.send(partner, "text")
    yield "send", lambda: endpoint.send(partner, b"data", "match")
    yield "isend", lambda: endpoint.isend(partner, 5)
    yield "receive", lambda: endpoint.receive("match", timeout=0)
    yield "receive", lambda: endpoint.receive(buffer="text", timeout=0)
    endpoint.host.close()


@pytest.mark.interpreted("compiled code has its own texts for wrong types")
def test_a_wrong_type_is_a_type_error_in_one_line():
    tried = 0
    for name, call in wrong_types():
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) and "\n" not in str(caught.value), name
        tried += 1
    assert tried == 21


def test_a_reply_goes_to_the_partner_of_a_message():
    network = MemoryNetwork()
    with mxwire.Host(network.attach(), name="alpha") as alpha, mxwire.Host(network.attach(), name="beta") as beta:
        one, two = alpha.open_endpoint(), beta.open_endpoint()
        one.send(one.connect("beta", timeout=60), b"question", timeout=60)
        asked = two.receive(timeout=60)
        two.send(asked.partner, b"answer", timeout=60)
        assert bytes(one.receive(timeout=60)) == b"answer"


def test_tables_are_polars():
    assert isinstance(mxwire.read_frames(CAPTURE), pl.DataFrame)

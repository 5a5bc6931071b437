"""pyshark with the plugin: the fields of every packet type are those of ``mxwire decode --json``."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from mxwire.capture import open_capture as read
from mxwire.errors import MxwireError
from mxwire.plugin import Tshark, install
from mxwire.plugin.folder import source
from mxwire.pyshark import open_capture
from mxwire.report.frame_record import record
from mxwire.wire.decoder import Decoder
from tests.dissector.support import join, needs_scripts

pytest.importorskip("pyshark", reason="pyshark is not installed")
pytestmark = needs_scripts

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "captures"
SAMPLES = ("mxoe-every-type", "omx1500-connect", "omx9000-nack-mcp-rdmawin", "mxoe-discovery-omxoed")
EVERY_TYPE = CAPTURES / "mxoe-every-type.pcap"


@pytest.fixture(autouse=True)
def policy():
    """Restore asyncio's default policy: pyshark leaves a child watcher that serves its own event loop only."""
    yield
    asyncio.set_event_loop_policy(None)


def records(path):
    decoder = Decoder()
    with read(str(path)) as capture:
        return [record(each, index) for each in map(decoder.decode, capture) for index in range(len(each))]


def shown(value):
    """A value of pyshark's as Python has it."""
    text = str(value)
    return int(text, 0) if re.fullmatch(r"\d+|0x[0-9a-f]+", text) else text


def test_fields_are_those_of_mxwire(tmp_path):
    path = tmp_path / "joined.pcap"
    join(path, SAMPLES)
    expected = records(path)
    with open_capture(path, keep_packets=False) as capture:
        for packet, ours in zip(capture, expected, strict=True):
            assert int(packet.number) == ours["frame"]
            theirs = {
                name: shown(packet.mxoe.get_field(name.replace(".", "_")))
                for name in ours["fields"]
                if name not in ("dst_mac", "src_mac", "ethertype")
            }
            assert theirs == {name: ours["fields"][name] for name in theirs}
            assert (packet.eth.dst, packet.eth.src) == (ours["destination"], ours["source"])
    assert len({each["type"] for each in expected}) == 14


def test_display_filter_and_options_reach_tshark():
    with open_capture(EVERY_TYPE, "mxoe.ptype == 41", override_prefs={"mxoe.dialect": "mxoe"}) as capture:
        assert [int(packet.mxoe.ptype) for packet in capture] == [41] * 4
    for more in (["-c", "5"], {"-c": "5"}):
        with open_capture(EVERY_TYPE, custom_parameters=more) as capture:
            assert len(list(capture)) == 5


def test_tshark_ends_by_itself_after_its_last_packet(tmp_path):
    """It is not killed, so that its exit code is known."""
    program = tmp_path / "tshark"
    real = Tshark().path
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *pdml*) {real} "$@"; exec >&- ; sleep 0.2; exit 3;; *) exec {real} "$@";; esac\n'
    )
    program.chmod(0o755)
    capture = open_capture(EVERY_TYPE, tshark_path=program)
    with pytest.raises(Exception, match="retcode: 3"):
        list(capture)
    # The end of the capture would report it again.
    capture._running_processes.clear()


def test_an_installed_plugin_is_used_as_it_is():
    install("personal", Tshark())
    with open_capture(EVERY_TYPE) as capture:
        assert "-X" not in capture.get_parameters()
        assert hasattr(next(iter(capture)), "mxoe")


def test_a_stale_plugin_is_an_error():
    before, *_ = install("personal", Tshark())
    before.path.write_bytes(source().read_bytes() + b"\n-- changed\n")
    with pytest.raises(MxwireError, match="is not the plugin of this mxwire: run mxwire plugin install"):
        open_capture(EVERY_TYPE)


def test_missing_parts_are_reported_in_one_line(tmp_path):
    with pytest.raises(MxwireError, match=r"nowhere\.pcap: no such file"):
        open_capture("nowhere.pcap")
    with pytest.raises(MxwireError, match="there is no program /nowhere/tshark"):
        open_capture(EVERY_TYPE, tshark_path="/nowhere/tshark")
    nonsense = tmp_path / "nonsense.pcap"
    nonsense.write_text("nonsense")
    with pytest.raises(MxwireError, match="cannot be read by") as caught:
        open_capture(nonsense)
    assert "\n" not in str(caught.value)


def test_without_pyshark_there_is_one_clear_line():
    program = (
        "import sys; sys.modules['pyshark'] = None\n"
        "from mxwire.errors import MxwireError\n"
        "from mxwire.pyshark import open_capture\n"
        f"try:\n    open_capture({str(EVERY_TYPE)!r})\n"
        "except ImportError as error:\n    assert isinstance(error, MxwireError); print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "mxwire.pyshark needs pyshark" in done.stdout and "-m pip install 'pyshark>=" in done.stdout


def test_the_examples_of_the_page_print_the_output_shown_there(monkeypatch, capsys):
    """Blocks of Python whose next block is text: what they print."""
    text = (ROOT / "docs" / "pyshark.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(py|text)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(ROOT)
    namespace: dict[str, object] = {}
    compared = 0
    for (kind, block), (following, printed) in pairwise([*blocks, ("", "")]):
        if kind == "py":
            exec(compile(block, "docs/pyshark.md", "exec"), namespace)
            out = capsys.readouterr().out
            if following == "text":
                compared += 1
                assert out.split("\n") == printed.split("\n")
    assert compared


def test_it_opens_captures_where_asyncio_has_run_before():
    async def nothing() -> None:
        pass

    asyncio.run(nothing())
    with open_capture(EVERY_TYPE) as capture:
        assert next(iter(capture)).mxoe

"""``mxwire top``, ``watch`` and ``ss``: reports for scripts, and errors."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import time
from fcntl import ioctl
from termios import TIOCSWINSZ

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from mxwire.analysis.observer import TrafficObserver
from mxwire.frames import FrameBatch
from mxwire.host import Host
from mxwire.host.sharing import MachineSharing
from mxwire.link import MemoryNetwork
from mxwire.report.prometheus import TrafficCollector
from mxwire.wire.decoder import Decoder
from tests.captures import read_batch, write_capture
from tests.cli.support import CAPTURES, EVERY_TYPE, ROOT, mxwire
from tests.report.observed import observed

LOSSY = CAPTURES / "mxoe-lossy-1M.pcap"


# top


def test_one_object_agrees_with_info_and_diagnose():
    (found,) = mxwire("top", "--once", "--json", LOSSY).objects
    (info,) = mxwire("info", "--json", LOSSY).objects
    assert found["frames"] == info["frames"] and found["followed_share"] == 1
    assert {each["address"] for each in found["hosts"]} == {"52:54:00:0a:00:01", "52:54:00:0a:00:02"}
    (pair,) = found["pairs"]
    assert pair["messages"] == 2 and pair["in_flight"] == 0 and pair["dialect"] == "mxoe"
    assert pair["forward"]["frames"] + pair["back"]["frames"] == 840
    diagnosed = {each["id"] for each in mxwire("diagnose", "--json", LOSSY).objects if each["record"] == "finding"}
    assert {each["id"] for each in found["findings"]} | {"capture-frames-cut"} == diagnosed | {"capture-frames-cut"}


def test_a_capture_is_played_at_its_pace_as_one_object_per_interval():
    began = time.monotonic()
    run = mxwire("top", "--json", "--refresh", 0.1, CAPTURES / "mxoe-many.pcap")
    assert run.code == 0 and len(run.objects) >= 2
    frames = [each["frames"] for each in run.objects]
    assert frames == sorted(frames) and frames[-1] == 785 and frames[0] < 785
    assert time.monotonic() - began > 0.5, "the capture lasts 0.56 s"


def test_filter_and_names(tmp_path):
    peers = tmp_path / "peers"
    peers.write_text("52:54:00:0a:00:01 vm1:0\n")
    (found,) = mxwire("top", "--once", "--json", "--peers", peers, "--host", "vm1:0", LOSSY).objects
    assert found["pairs"][0]["hosts"][0]["name"] == "vm1:0"
    assert found["frames"] == 840 and found["pairs"][0]["messages"] == 2 and found["findings"]
    (found,) = mxwire("top", "--once", "--json", "--host", "02:00:00:00:00:09", LOSSY).objects
    assert found["pairs"] == [] and found["hosts"] == [] and found["findings"] == [] and found["frames"] == 0
    (found,) = mxwire("top", "--once", "--json", "--where", "type == PULL", LOSSY).objects
    assert list(found["types"]) == ["PULL"] and found["frames"] == found["types"]["PULL"]["frames"] == 92
    assert found["pairs"][0]["messages"] == 2, "messages are followed with all frames"
    assert "vm1:0 ↔ 52:54:00:0a:00:02" in mxwire("top", "--once", "--peers", peers, LOSSY).out


def test_a_capture_without_mxoe_is_an_error(tmp_path):
    path = write_capture(tmp_path / "arp.pcap", [bytes(12) + b"\x08\x06" + bytes(46)] * 3)
    run = mxwire("top", "--once", "--json", path)
    assert run.code == 2 and run.out == "" and "no MXoE frame" in run.err


@pytest.mark.parametrize(("module", "words"), [("textual", ["top"]), ("prometheus_client", ["watch", "-i", "lo"])])
def test_a_missing_extra_is_one_line(module, words, tmp_path):
    (tmp_path / module).mkdir()
    (tmp_path / module / "__init__.py").write_text("raise ImportError('broken')")
    more = [str(LOSSY)] if words == ["top"] else ["--prometheus", ":0"]
    near, far = pty.openpty()
    run = subprocess.run(
        [sys.executable, str(ROOT / "cli.py"), *words, *more],
        stdin=far, stdout=far, stderr=far, env=os.environ | {"PYTHONPATH": str(tmp_path)}, timeout=60,
    )  # fmt: skip
    os.close(far)
    output = os.read(near, 4096).decode()
    os.close(near)
    assert run.returncode == 2 and f"needs {module}" in output and "pip install" in output and "Traceback" not in output


def test_the_screen_is_drawn_on_a_terminal_and_left_as_it_was():
    near, far = pty.openpty()
    ioctl(far, TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "cli.py"), "top", str(LOSSY)],
        stdin=far, stdout=far, stderr=far, env=os.environ | {"TERM": "xterm-256color", "LC_ALL": "C"},
    )  # fmt: skip
    os.close(far)
    shown = b""
    end = time.monotonic() + 60
    pressed = False
    while time.monotonic() < end:
        if not select.select([near], [], [], 0.2)[0]:
            continue
        try:
            piece = os.read(near, 65536)
        except OSError:
            break
        shown += piece
        if not pressed and b"0a:00:01" in shown:
            os.write(near, b"q")
            pressed = True
    assert process.wait(20) == 0
    os.close(near)
    assert shown.isascii()
    text = re.sub(rb"\x1b\[[0-9;?<>]*[a-zA-Z]", b"", shown).decode(errors="replace")
    assert "frm/s" in text and "frames/s" in text
    assert shown.rindex(b"\x1b[?1049l") > shown.rindex(b"\x1b[?1049h"), "the alternate screen is left"


# watch


def metrics(observer: TrafficObserver) -> str:
    collector = TrafficCollector()
    collector.snapshot = observer.snapshot()
    registry = CollectorRegistry()
    registry.register(collector)
    return generate_latest(registry).decode()


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(text)
    return {
        (each.name, tuple(sorted(each.labels.items()))): each.value for family in families for each in family.samples
    }


def test_metrics_agree_with_the_capture():
    found = observed(LOSSY)
    values = samples(metrics(found))
    (info,) = mxwire("info", "--json", LOSSY).objects
    counted = {key[1][0][1]: value for key, value in values.items() if key[0] == "mxwire_frames_total"}
    assert sum(counted.values()) == info["frames"] == 840 and "PULL_REPLY" in counted
    one, other = "52:54:00:0a:00:01", "52:54:00:0a:00:02"
    assert values["mxwire_pair_frames_total", (("destination", other), ("source", one))] == 380
    assert values["mxwire_pair_frames_total", (("destination", one), ("source", other))] == 460
    pair = (("host", one), ("peer", other))
    assert values["mxwire_pair_messages_total", pair] == 2 and values["mxwire_pair_messages_in_flight", pair] == 0
    assert values["mxwire_message_duration_seconds_count", (("kind", "RNDV"),)] == 2
    assert values["mxwire_message_length_bytes_sum", (("kind", "RNDV"),)] == 2 * 1048576
    assert values["mxwire_message_duration_seconds_bucket", (("kind", "RNDV"), ("le", "0.1"))] == 1
    hosts = f"{other}, {one}"
    assert values["mxwire_findings", (("hosts", hosts), ("id", "frames-lost"), ("severity", "warning"))] >= 1


def test_hostile_names_and_floods_leave_well_formed_and_few_labels():
    found = observed(LOSSY, {0x5254000A0001: 'a"\\\n\x1b[31m\udcff{}' + "x" * 60})
    (name,) = [dict(key[1])["name"] for key in samples(metrics(found)) if key[0] == "mxwire_host_info"]
    assert name.isprintable() and '"' in name
    flood = TrafficObserver(Decoder, clock=lambda: 0, processor_time=lambda: 0, share=None, pairs=16)
    frames = list(read_batch(str(EVERY_TYPE)))
    forged = [each.to_bytes(6, "big") * 2 + frames[each % len(frames)][12:] for each in range(2, 4000)]
    flood.observe(FrameBatch.from_frames(forged, [each * 1000 for each in range(len(forged))]))
    values = samples(metrics(flood))
    assert len([key for key in values if key[0] == "mxwire_pair_messages_total"]) == 16
    assert values["mxwire_uncounted_pair_frames_total", ()] == len(forged) - 16
    assert len(values) < 1500


def test_the_dashboard_uses_metrics_that_exist():
    board = json.loads((ROOT / "examples" / "grafana-mxwire.json").read_text())
    text = metrics(observed(EVERY_TYPE, {0x5254000A0001: "vm1:0"}))
    known = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    known |= {f"{each}_bucket" for each in known}
    wanted = {
        name
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"mxwire_\w+", target["expr"])
    }
    assert len(wanted) > 12 and wanted <= known, wanted - known
    page = (ROOT / "docs" / "monitor.md").read_text()
    assert wanted - {f"{each}_bucket" for each in known} - set(re.findall(r"mxwire_\w+", page)) <= {
        name for name in wanted if name.startswith("mxwire_pair_")
    }


# ss


@pytest.mark.usefixtures("runtime")
def test_ss_that_watches_ends_with_the_code_of_an_interrupt():
    command = [sys.executable, str(ROOT / "cli.py"), "ss", "--watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None and "no host" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130


def test_ss_shows_the_hosts_of_this_user(runtime, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    nobody = mxwire("ss")
    assert nobody.code == 1 and nobody.out == "" and len(nobody.err.splitlines()) == 1
    network = MemoryNetwork()
    one, two = network.attach("a"), network.attach("b")
    mine = [MachineSharing([f"top{os.getpid()}{each}"]) for each in "ab"]
    with (
        Host(one, name="alpha", peers={two.address: "be\x1bta:0"}, sharing=mine[0]) as alpha,
        Host(two, name="beta", sharing=mine[1]) as beta,
    ):
        beta.open_endpoint(3)
        alpha.open_endpoint(0).connect("be\x1bta", 3, timeout=20)
        shown = mxwire("ss")
        assert shown.code == 0 and shown.err == ""
        assert "\x1b" not in shown.out and "alpha:0 (process" in shown.out and r"be\x1bta:0:3" in shown.out
        assert max(len(each) for each in shown.lines if "(process" not in each) <= 90
        found = mxwire("ss", "--json").objects
        assert [each["host"] for each in found] == ["alpha:0", "beta:0"]
        assert found[0]["age_s"] == found[0]["age_ns"] / 1e9
    runtime.chmod(0o755)
    refused = mxwire("ss")
    assert refused.code == 2 and "must belong to user" in refused.err

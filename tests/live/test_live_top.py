"""``mxwire top``, ``watch`` and ``ss`` beside hosts on real interfaces."""

from __future__ import annotations

import signal
import urllib.request
from pathlib import Path

import pytest

from tests.cli.support import mxwire

from .commands import running
from .namespaces import Port
from .test_live_analysis import frames_of, play

CAPTURES = Path(__file__).parents[2] / "captures"
LOSSY = CAPTURES / "mxoe-lossy-1M.pcap"


def test_top_counts_frames_and_ends_with_ctrl_c(jumbo_cable):
    near, far = jumbo_cable
    frames = frames_of(LOSSY)
    with running(far, "top", "--json", "--refresh", "0.2") as watching:
        watching.until("listening")
        play(near, frames)
        watching.until(f'"frames":{len(frames)}')
        assert watching.end() == 0
        (pair,) = watching.objects[-1]["pairs"]
    assert pair["forward"]["frames"] + pair["back"]["frames"] == len(frames) and pair["messages"] == 2
    assert f"{len(frames)} frames" in "".join(watching.complained)


def test_once_ends_by_itself_and_without_frames_with_an_error(jumbo_cable):
    _near, far = jumbo_cable
    with running(far, "top", "--once", "--duration", "0.5") as watching:
        watching.until("listening")
        assert watching.end(None) == 2
    assert "no MXoE frame" in "".join(watching.complained)


def test_a_quiet_interface_yields_objects_all_the_same(jumbo_cable):
    _near, far = jumbo_cable
    with running(far, "top", "--json", "--refresh", "0.1", "--duration", "1.6") as watching:
        assert watching.end(None) == 2
    assert len(watching.objects) > 1
    assert all((each["frames"], each["window_s"], each["pairs"]) == (0, 0.0, []) for each in watching.objects)


@pytest.mark.parametrize("command", ["messages", "stats", "capture -l"])
def test_a_name_without_announcement_is_an_error(jumbo_cable, command, tmp_path):
    near, far = jumbo_cable
    frames = frames_of(LOSSY)[100:120]
    with running(far, *command.split(), "--host", "gamma", "--duration", "1") as watching:
        watching.until("listening")
        play(near, frames)
        assert watching.end(None) == (0 if command.startswith("capture") else 2)
    assert "no host 'gamma:0': no HOST_REPLY with this name passed" in "".join(watching.complained)


def scrape(port: Port, number: int) -> str:
    """Return the page of metrics, requested inside the namespace."""
    with port.namespace.inside(), urllib.request.urlopen(f"http://127.0.0.1:{number}/metrics", timeout=20) as answer:
        return answer.read().decode()


def test_watch_serves_metrics_prints_findings_and_refuses_a_port_that_is_taken(jumbo_cable):
    near, far = jumbo_cable
    frames = frames_of(LOSSY)
    with running(far, "watch", "--prometheus", "127.0.0.1:0", "--json") as watching:
        watching.until('"serving"')
        port = watching.objects[0]["port"]
        assert "mxwire_frames_total" not in scrape(far, port)
        play(near, frames)
        watching.until('"frames-duplicated"')
        text = scrape(far, port)
        with running(far, "watch", "--prometheus", f"127.0.0.1:{port}") as second:
            assert second.end(None) == 2
        assert second.complained == [f"mxwire: 127.0.0.1:{port}: metrics cannot be served: Address already in use\n"]
        assert watching.end() == 0
    counted = [line for line in text.splitlines() if line.startswith("mxwire_pair_frames_total")]
    assert sum(float(line.split()[-1]) for line in counted) == len(frames)
    assert 'mxwire_findings{hosts="' in text and "process_cpu_seconds_total" in text
    opened = [each["id"] for each in watching.objects if each["event"] == "opened"]
    assert "frames-duplicated" in opened


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_ss_shows_a_server_while_it_runs(jumbo_cable, runtime, how):
    near, _far = jumbo_cable
    with running(near, "serve", "--echo", "--name", "alpha", "--endpoint", "4") as serving:
        serving.until("echo on")
        run = mxwire("ss", "--json")
        assert run.code == 0
        (host,) = run.objects
        assert host["host"] == "alpha:0" and host["pid"] == serving.process.pid
        assert [each["endpoint"] for each in host["endpoints"]] == [4]
        serving.end(how)
    assert mxwire("ss", "--json").code == 1 and list(runtime.glob("*.sock")) == []

"""The screen of ``mxwire top``, driven by keys as a user presses them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from mxwire.analysis.observer import TrafficObserver
from mxwire.capture import open_capture
from mxwire.frames import FrameBatch
from mxwire.report.top import ConversationScreen, FindingScreen, HelpScreen, TopApp
from mxwire.wire.decoder import Decoder
from tests.captures import read_batch
from tests.cli.support import CAPTURES
from tests.report.observed import observed

HOSTILE = "a\x1b[31m[bold]\n[/]b"


def screen(app: TopApp) -> list[str]:
    """The lines of the screen, as drawn."""
    return ["".join(segment.text for segment in line) for line in app.screen._compositor.render_strips()]


def drive(found: TrafficObserver, play: Callable[[TopApp, Any], Any], width: int = 80, **options: Any) -> None:
    async def run() -> None:
        def watch(pair: tuple[int, int] | None) -> None:
            found.watched = pair

        app = TopApp(
            "veth1", found.snapshot, watch, lambda: options.get("ended"), interval=60, sort=options.get("sort", "bytes")
        )
        async with app.run_test(size=(width, 24)) as pilot:
            await pilot.pause()
            # The footer is filled after the first screen was drawn.
            async with asyncio.timeout(30):
                while "quit" not in screen(app)[-1]:
                    await pilot.pause()
            await play(app, pilot)

    asyncio.run(run())


async def press(pilot: Any, *keys: str) -> None:
    """Press keys, and let the application draw a new snapshot."""
    await pilot.press(*keys)
    pilot.app._refresh_snapshot()
    await pilot.pause()


@pytest.mark.parametrize("width", [80, 140])
def test_pairs_findings_and_keys_fit_the_screen(width):
    async def play(app: TopApp, pilot: Any) -> None:
        lines = screen(app)
        assert len(lines) == 24 and all(len(each.rstrip()) <= width for each in lines)
        assert "veth1" in lines[0] and "frames/s" in lines[0] and "messages/s" in lines[0]
        headings = "frm/s B/s msg/s rtx/s flight oldest dialect" if width == 80 else "frames/s bytes/s messages/s"
        assert all(each in lines[1] for each in headings.split())
        assert "0a:00:01" in lines[2] and "0a:00:02" in lines[2] and "mxoe" in lines[2] and "1.1M" in lines[2]
        assert ("52:54:00:0a:00:01" in lines[2]) == (width == 140)
        assert any("frames-lost" in each for each in lines) and "quit" in lines[-1]

    drive(observed(CAPTURES / "mxoe-lossy-1M.pcap"), play, width)


def test_a_pair_leads_to_its_messages_and_a_finding_to_its_advice():
    async def play(app: TopApp, pilot: Any) -> None:
        await press(pilot, "enter")
        assert isinstance(app.screen, ConversationScreen)
        text = "\n".join(screen(app))
        assert text.count("RNDV") == 2 and "notified" in text and "0a:00:02:3 → 5" in text
        await press(pilot, "escape", "h")
        assert sum("0a:00:0" in each for each in screen(app)[2:4]) == 2
        await press(pilot, "f", "enter")
        assert isinstance(app.screen, FindingScreen) and "What to do:" in "\n".join(screen(app))
        await press(pilot, "x", "question_mark")
        assert isinstance(app.screen, HelpScreen)
        await press(pilot, "x", "p")
        assert "0a:00:01" in screen(app)[2]

    found = observed(CAPTURES / "mxoe-lossy-1M.pcap")
    drive(found, play)


def several() -> TrafficObserver:
    """Three pairs of hosts with different amounts of traffic."""
    found = TrafficObserver(Decoder, clock=time.monotonic_ns, processor_time=time.thread_time_ns, share=None)
    frames = list(read_batch(str(CAPTURES / "mxoe-many.pcap")))
    for place, count in enumerate((30, 300, 100), 1):
        changed = [
            frame[:5] + bytes([16 * place + frame[5]]) + frame[6:11] + bytes([16 * place + frame[11]]) + frame[12:]
            for frame in frames[:count]
        ]
        found.observe(FrameBatch.from_frames(changed, [each * 1_000_000 for each in range(count)]))
    return found


def test_sorting_and_filtering():
    def order(app: TopApp) -> list[str]:
        return [each.split("↔")[0].strip() for each in screen(app) if "↔" in each]

    async def play(app: TopApp, pilot: Any) -> None:
        assert order(app) == ["…00:00:21", "…00:00:31", "…00:00:11"] or len(order(app)) == 3
        most = order(app)
        await press(pilot, "r")
        assert order(app) == most[::-1]
        await press(pilot, "r", *"ssssss")
        assert sorted(order(app)) == sorted(most)
        await press(pilot, "slash", *":3", "enter")
        assert len(order(app)) == 1 and "filter :3" in screen(app)[0]
        await press(pilot, "slash", "escape")
        assert len(order(app)) == 3
        await press(pilot, "slash", *"nothing", "enter")
        assert order(app) == []

    drive(several(), play)


def test_pause_keeps_the_figures_and_the_state_is_shown():
    found = several()

    async def play(app: TopApp, pilot: Any) -> None:
        await press(pilot, "space")
        assert "PAUSED" in screen(app)[0] and app._snapshot is not None
        frames = app._snapshot.frames
        with open_capture(str(CAPTURES / "mxoe-many.pcap")) as reader:
            for batch in reader:
                found.observe(batch)
        app._refresh_snapshot()
        assert app._snapshot.frames == frames
        await press(pilot, "space")
        assert app._snapshot.frames > frames and "PAUSED" not in screen(app)[0]

    drive(found, play)


def test_hostile_names_are_plain_text():
    found = observed(CAPTURES / "mxoe-lossy-1M.pcap")
    hosts = found.snapshot().pairs[0].hosts
    found = observed(CAPTURES / "mxoe-lossy-1M.pcap", {hosts[0]: HOSTILE, hosts[1]: "n" * 79})

    async def play(app: TopApp, pilot: Any) -> None:
        for key in ("p", "h", "f", "p", "enter"):
            await press(pilot, key)
            text = "\n".join(screen(app))
            assert "\x1b" not in text and "n" * 30 not in text
            assert r"a\x1b[31m[bold]\n[/]b" in text

    drive(found, play, 140)


def test_an_empty_screen_gives_the_reason():
    async def play(app: TopApp, pilot: Any) -> None:
        assert "veth1: no MXoE frame yet" in screen(app)[0]

    async def run() -> None:
        app = TopApp("veth1", lambda: None, lambda _: None, lambda: None, interval=60, sort="bytes")
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            # The footer is filled after the first screen was drawn.
            async with asyncio.timeout(30):
                while "quit" not in screen(app)[-1]:
                    await pilot.pause()
            await play(app, pilot)
            await press(pilot, "enter", "h", "f", "enter", "s", "q")
        assert app.return_code == 0

    asyncio.run(run())

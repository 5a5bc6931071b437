"""Make the pictures of the documentation: make docs-pictures.

    python tools/pictures.py [--check]

Each picture has a digest of what it shows in docs/images/sources.json; ``--check`` compares the digests, without
drawing anything, and names the stale pictures. Drawing needs Chromium, root for the recording of a terminal (two
network namespaces) and, for those of Wireshark, the programs that tools/wireshark-screenshot names; look at the
pictures before you commit them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools.terminal_svg import COLUMNS, drawn  # noqa: E402

IMAGES = ROOT / "docs" / "images"
SOURCES = IMAGES / "sources.json"
_TOUR = "captures/mxoe-every-type.pcap"
_SICK = "docs/examples/sick-cluster.pcapng"
_ECHO = "captures/omx1500-echo-pattern.pcap"
_LOSSY = "captures/mxoe-lossy-1M.pcap"
_CELL = "open-mx-1.5/open-mx-1.5/lost-middle-reply/none"
_CHANGING = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d UTC|mxwire \d+\.\d+\.\d+")
"""Parts of pages that change without a change of the picture's subject: the time and the version."""
_WIRESHARK = ("tools/wireshark-screenshot", "dissectors/wireshark/mxoe.lua", "dissectors/wireshark/colorfilters")


def _mxwire(*words: str) -> bytes:
    done = subprocess.run([sys.executable, "-m", "mxwire", *words], cwd=ROOT, capture_output=True, check=False)
    if done.returncode > 1:
        raise SystemExit(f"tools/pictures.py: mxwire {' '.join(words)}: {done.stderr.decode().strip()}")
    return done.stdout


def _report(folder: Path) -> Path:
    _mxwire("report", _LOSSY, "--html", str(folder))
    return folder / "index.html"


def _cell(folder: Path) -> Path:
    _mxwire("interop", "--cell", _CELL, "--html", str(folder))
    return next((folder / "cells").iterdir())


def _page_sources(make: Callable[[Path], Path]) -> Iterator[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        yield _CHANGING.sub(b"", make(Path(folder) / "site").read_bytes())
    for each in sorted((ROOT / "mxwire" / "report" / "site" / "static").iterdir()):
        yield each.read_bytes()


def _plot_sources() -> Iterator[bytes]:
    yield _mxwire("stats", _ECHO)
    for each in sorted((ROOT / "mxwire" / "report").glob("**/*plot*.py")):
        yield each.read_bytes()


def _wireshark_sources() -> Iterator[bytes]:
    return ((ROOT / each).read_bytes() for each in _WIRESHARK)


_DECODE = f"decode -v --frames 64 {_TOUR} | cut -c -{COLUMNS}"
_DIAGNOSE = f"diagnose {_SICK}"
_PERF = "perf -B -i veth1 -d alpha:0 -S 1 -M 8 -N 100"
_FIRST = ("chrt", "-f", "1")
"""Before other programs, so that perf measures what it would on an idle machine."""
_ENVIRONMENT = os.environ | {"COLUMNS": str(COLUMNS)}


def _printed(command: str, *before: str) -> list[str]:
    """Return the lines that a command prints on a terminal of the picture's width; | cut -c -N cuts them."""
    words, _, cut = command.partition(" | cut -c -")
    colour = [] if words.startswith("perf") else ["--color", "always"]
    done = subprocess.run(
        [*before, sys.executable, "-m", "mxwire", *words.split(), *colour],
        cwd=ROOT,
        env=_ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode > 1:
        raise SystemExit(f"tools/pictures.py: mxwire {command}: {done.stderr.strip()}")
    return [line[: int(cut)] if cut else line for line in done.stdout.expandtabs().splitlines()]


def _terminal_sources() -> Iterator[bytes]:
    """Yield what does not depend on the machine: not the times of perf."""
    for command in (_DECODE, _DIAGNOSE):
        yield "\n".join(_printed(command)).encode()
    yield (ROOT / "tools" / "terminal_svg.py").read_bytes() + _PERF.encode()


def _draw_terminal(path: Path) -> None:
    from tests.live.namespaces import Laboratory

    with Laboratory() as laboratory:
        left, right = laboratory.pair(9000)
        words = [*_FIRST, sys.executable, "-m", "mxwire", "perf", "-B", "-i", left.interface, "--name", "alpha:0"]
        receiver = subprocess.Popen(left.namespace.command(*words), cwd=ROOT, stderr=subprocess.DEVNULL)
        try:
            measured = _printed(_PERF, *right.namespace.command(*_FIRST))
        finally:
            receiver.terminate()
            receiver.wait()
    scenes = [(_DECODE, _printed(_DECODE)), (_DIAGNOSE, _printed(_DIAGNOSE)), (_PERF, measured)]
    path.write_text(drawn([(f"mxwire {command}", lines) for command, lines in scenes]), encoding="utf-8")


@contextmanager
def _opened(make: Callable[[Path], Path], width: int, height: int) -> Iterator[Any]:
    from tests.browser import chromium

    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
        page.goto(make(Path(folder) / "site").as_uri())
        yield page


def _draw_report(path: Path) -> None:
    with _opened(_report, 1280, 800) as page:
        page.locator("#graphs").scroll_into_view_if_needed()
        page.wait_for_selector("#graphs[aria-busy=false]", state="attached")
        page.screenshot(path=path, full_page=True)


def _draw_cell(path: Path) -> None:
    with _opened(_cell, 1180, 600) as page:
        step = page.locator(".ladder .step.lost").first
        step.click()
        step.evaluate("(each) => each.scrollIntoView({ block: 'center' })")
        page.screenshot(path=path)


def _draw_plot(path: Path) -> None:
    _mxwire("stats", _ECHO, "--plot", str(path))


def _draw_wireshark(path: Path) -> None:
    subprocess.run([str(ROOT / _WIRESHARK[0]), str(path.parent)], check=True)


PICTURES: dict[str, tuple[Callable[[], Iterator[bytes]], Callable[[Path], None]]] = {
    "terminal.svg": (_terminal_sources, _draw_terminal),
    "report.png": (lambda: _page_sources(_report), _draw_report),
    "interop-cell.png": (lambda: _page_sources(_cell), _draw_cell),
    "stats-echo.svg": (_plot_sources, _draw_plot),
    "wireshark.png": (_wireshark_sources, _draw_wireshark),
    "wireshark-expert.png": (_wireshark_sources, lambda path: None),
}
"""The sources of each picture, and the function that draws it; tools/wireshark-screenshot takes two at once."""


def digests() -> dict[str, str]:
    """Return a digest of the sources of each picture."""
    found = {}
    for name, (sources, _) in PICTURES.items():
        digest = hashlib.sha256()
        for each in sources():
            digest.update(len(each).to_bytes(8, "big") + each)
        found[name] = digest.hexdigest()
    return found


def main() -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--check", action="store_true", help="only name the stale pictures; the exit code is 1 if any is"
    )
    check = parser.parse_args().check
    recorded = json.loads(SOURCES.read_text()) if SOURCES.exists() else {}
    current, began = digests(), time.time_ns()
    old = [name for name, digest in current.items() if recorded.get(name) != digest]
    if check:
        print(f"stale: {', '.join(old)}: run make docs-pictures" if old else "the pictures are current")
        return bool(old)
    for name in old:
        PICTURES[name][1](IMAGES / name)
        # The script for Wireshark makes two pictures at once, and none if a program is missing.
        if (IMAGES / name).stat().st_mtime_ns < began:
            print(f"tools/pictures.py: docs/images/{name} was not made", file=sys.stderr)
            return 1
        print(f"made docs/images/{name}")
        recorded[name] = current[name]
        SOURCES.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

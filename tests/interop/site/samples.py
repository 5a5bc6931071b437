"""Reports for the tests of the site: small ones, made of real captures and of frames that mean harm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from mxwire.analysis.fate import Fate
from mxwire.capture import create_capture, open_capture
from mxwire.frames import FrameBatch
from mxwire.interop.result import CAPTURES, Case, Cell, Impairment, Implementation, InteropReport
from mxwire.rules import Verdict, Violation
from mxwire.wire.codec import build
from mxwire.wire.dialect import MXOE
from mxwire.wire.packets import HostReply

ROOT: Final = Path(__file__).parents[3]
ALPHA: Final = bytes.fromhex("52540000000a")
BETA: Final = bytes.fromhex("52540000000b")
EVIL: Final = "</script><script>window.harmed=1</script><img src=x onerror='window.harmed=1'>\"'&amp;"
"""Text in every place that outside input can reach."""

IMPLEMENTATIONS: Final = [
    Implementation("open-mx-1.5", "Open-MX 1.5", "mxoe", "open-mx-1.5", "simulated", "the last release"),
    Implementation("native-mx", "native MX", "mxoe", "native-mx", "live", "Myricom's own"),
    Implementation("open-mx-1.5-omx-9000", "Open-MX 1.5, own format", "omx:9000", "open-mx-1.5"),
]
CASES: Final = [
    Case("every-type", "every packet type", "messages", "Each packet type is sent once at least.", ("R-CON-01",)),
    Case("large-lossy", "1 MB with losses", "large messages", "A large message is pulled.", ("R-PUL-01", "R-PUL-02")),
    Case("not-run", "what cannot be run", "trouble", "A host that cannot be started.", ()),
]
IMPAIRMENTS: Final = [
    Impairment("none", "none", "every frame arrives"),
    Impairment("loss", "1% loss", "one frame in a hundred is lost"),
]
FATES: Final = {9: Fate(0), 12: Fate(2), 15: Fate(1, 2_000_000)}
"""In the capture of :func:`cell` with an impairment."""
CONCERNED: Final = (20, 76)


def cell(left: str, right: str, case: str, impairment: str, verdict: Verdict, reason: str) -> Cell:
    name = f"{left}--{right}--{case}--{impairment}.pcapng"
    found = Violation("R-CON-12", "violation", CONCERNED, 5, ALPHA, "the session that was told", "session 0xFFFFFFFF")
    return Cell(
        left,
        right,
        case,
        impairment,
        7,
        verdict,
        reason,
        expected="Every message arrives, once and whole.",
        findings=(found,) if verdict == "fail" else (),
        rules=("R-CON-01",),
        diagnosis=("The right host never connected back.",) if verdict == "fail" else (),
        duration_ns=1_234_567_000,
        frames=87,
        digest="5e" * 32,
        capture=None if verdict == "missing" else name,
        command=f"mxwire interop --left {left} --right {right} --case {case} --seed 7",
        events=("0.000 ms left: opens endpoint 1", "1.000 ms right: connect: success"),
    )


def ordinary(folder: Path) -> InteropReport:
    """Six cells with every verdict, the captures of two real hosts in them."""
    one, two, three = (each.name for each in IMPLEMENTATIONS)
    report = InteropReport("interoperability of two hosts", "1.2", "2026-11-21T20:00:00Z", False)
    report.implementations, report.cases, report.impairments = IMPLEMENTATIONS, CASES, IMPAIRMENTS
    report.cells = [
        cell(one, one, "every-type", "none", "pass", "works"),
        cell(one, two, "every-type", "none", "info", "works, but a known defect was seen"),
        cell(one, two, "every-type", "loss", "fail", "connect to endpoint 2 ended as timeout"),
        cell(two, one, "large-lossy", "none", "non-strict", "works, but an ack came late"),
        cell(two, one, "large-lossy", "loss", "pass", "fails as expected: nothing arrives"),
        cell(one, three, "not-run", "none", "missing", "the program could not be started"),
    ]
    for each in report.cells:
        if each.capture is not None:
            source = "mxoe-lossy-1M.pcap" if each.case == "large-lossy" else "mxoe-every-type.pcap"
            with open_capture(ROOT / "captures" / source) as reader:
                put(folder, each.capture, list(reader), FATES if each.impairment == "loss" else {})
    return report


def classes() -> InteropReport:
    """Cells without captures: of the cases by which the classes of messages are judged, some work."""
    one = IMPLEMENTATIONS[0].name
    report = InteropReport("classes", "1.2", "2026-11-21T20:00:00Z")
    report.implementations = IMPLEMENTATIONS[:1]
    works = {"connect": True, "size-tiny": True, "size-medium": False, "size-large": True, "size-blocks": False}
    for name, each in works.items():
        reason = "works" if each else "fails as expected: nothing arrives"
        report.cells.append(replace(cell(one, one, name, "none", "pass", reason), capture=None))
    report.cells.append(replace(cell(one, one, "size-tiny", "loss", "fail", "nothing arrived"), capture=None))
    return report


def put(folder: Path, name: str, batches: list[FrameBatch], fates: Mapping[int, Fate]) -> None:
    (folder / CAPTURES).mkdir(parents=True, exist_ok=True)
    with create_capture(folder / CAPTURES / name) as writer:
        for batch in batches:
            writer.write(batch, {number: "\n".join(fate.lines) for number, fate in fates.items()})


def hostile(folder: Path) -> InteropReport:
    """A report of which every word means harm, and a host that does so by its name."""
    name = EVIL.encode()[-60:] + b"\0"
    reply = HostReply(dst_mac=BETA, src_mac=ALPHA, length=len(name), src_dst_peer_index=1, magic=2, hostname=name)
    batch = FrameBatch.from_frames([build(reply, MXOE)] * 3, [0, 1000, 2000])
    (folder / CAPTURES).mkdir(parents=True, exist_ok=True)
    with create_capture(folder / CAPTURES / "evil.pcapng") as writer:
        writer.write(batch, {1: EVIL, 2: "\n".join(Fate(0).lines)})
    report = InteropReport(EVIL, EVIL, EVIL)
    report.implementations = [Implementation(EVIL, EVIL, EVIL, None, "external", EVIL)]
    report.cases = [Case(EVIL, EVIL, EVIL, EVIL, (EVIL,))]
    report.impairments = [Impairment(EVIL, EVIL, EVIL)]
    found = Violation(EVIL, "violation", (2,), 0, ALPHA, EVIL, EVIL)
    shown = Cell(EVIL, EVIL, EVIL, EVIL, 1, "fail", EVIL, "works", EVIL, (found,), (EVIL,), (EVIL,))
    shown = replace(shown, digest=EVIL, capture="evil.pcapng", command=EVIL, events=(EVIL,))
    report.cells = [shown, replace(shown, impairment="../../etc", capture="../../../etc/passwd")]
    return report

"""Coverage-guided fuzzing with atheris (libFuzzer): ``python tools/fuzz.py --seconds 600``.

Each target runs in a process of its own for its share of the time, on a corpus that starts from the captures and the
scenarios and is kept in ``build/fuzz/TARGET``. An input that raises is written beside it; make a test of it. atheris
is an extra tool: ``pip install -r tools/requirements-nightly.txt``.

``--records N`` has an agent and its applications take N random records afterwards, on all processors, and prints their
number. A channel ends at its first impossible record, so that this cannot be a matter of time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "build" / "fuzz"
_PIECE = 2
"""Bytes before each frame of an input: its length."""
_MOST_FRAMES = 40
_STEP_NS = 1_000_000
_RECORD_BYTES = 40
"""Bytes of the records of a seed, 4 each: few channels take more."""
_SEEDS = 100
"""Seeds of a piece of work."""
_AT_ONCE = 20
"""Pieces of work between two looks at the count."""
_SHOWN_EVERY = 30.0
"""Seconds between two lines of progress."""


def _frames(data: bytes) -> list[bytes]:
    """Split an input into frames with the EtherType of MXoE."""
    frames, at = [], 0
    while at + _PIECE < len(data) and len(frames) < _MOST_FRAMES:
        length = int.from_bytes(data[at : at + _PIECE], "little") % 1600
        piece = data[at + _PIECE : at + _PIECE + length]
        frames.append(piece[:12].ljust(12, b"\2") + b"\x86\xdf" + piece[12:])
        at += _PIECE + length
    return frames


def _decoded(data: bytes):
    from mxwire.frames import FrameBatch
    from mxwire.wire.decoder import Decoder

    frames = _frames(data)
    return Decoder().decode(FrameBatch.from_frames(frames, [number * _STEP_NS for number in range(len(frames))]))


def decoder(data: bytes) -> None:
    """Decode frames by both paths, which must agree."""
    decoded = _decoded(data)
    for place in range(len(decoded)):
        decoded.frame(place)
    from tests.wire.paths import assert_paths_agree

    assert_paths_agree(decoded.columns, [decoded.codec(place) for place in range(len(decoded))])


def follower(data: bytes) -> None:
    """Follow messages."""
    from mxwire.analysis.conversations import Follower

    watched = Follower(flights=True, marks=True)
    decoded = _decoded(data)
    watched.observe(decoded)
    watched.take_marks(decoded)
    watched.finish()


def rules(data: bytes) -> None:
    """Check frames against the rules."""
    from mxwire.analysis.verification import OrderedVerification

    verification = OrderedVerification()
    list(verification.observe(_decoded(data)))
    list(verification.finish())


def engine(data: bytes) -> None:
    """Deliver frames to an endpoint that receives and sends."""
    from mxwire.frames import FrameBatch
    from mxwire.protocol import Node

    node = Node(bytes.fromhex("020000000001"), rng=Random(1))
    endpoint = node.open_endpoint(1)
    endpoint.receive(bytearray(4096), 4096)
    for number, frame in enumerate(_frames(data), 1):
        node.receive(FrameBatch.from_frames([b"\2\0\0\0\0\1" + frame[6:]]), number * _STEP_NS)
        node.events()
        node.transmit(number * _STEP_NS)


def agent(data: bytes) -> None:
    """Send records to an agent and to an application, a few bytes each."""
    _take_records(data)


def _take_records(data: bytes) -> int:
    """Send records to an agent, and to applications of both kinds; return the number that were taken."""
    from tests.protocol.agent_channel import answer_card_records, answer_records, record_from, serve_records

    records = [record_from(data[place : place + 4]) for place in range(0, min(len(data), 400), 4)]
    return sum(take(records) for take in (serve_records, answer_records, answer_card_records))


def _take_random(first: int) -> int:
    """Take the records of :data:`_SEEDS` seeds."""
    taken = 0
    for seed in range(first, first + _SEEDS):
        try:
            taken += _take_records(Random(seed).randbytes(_RECORD_BYTES))
        except BaseException as error:
            error.add_note(f"seed {seed} of the records")
            raise
    return taken


def _campaign(least: int) -> None:
    """Take at least this number of random records, and print their number."""
    taken, begun, shown = 0, time.monotonic(), 0.0
    with ProcessPoolExecutor() as pool:
        for first in count(0, _SEEDS * _AT_ONCE):
            if taken >= least:
                break
            taken += sum(pool.map(_take_random, range(first, first + _SEEDS * _AT_ONCE, _SEEDS)))
            if time.monotonic() > shown + _SHOWN_EVERY:
                shown = time.monotonic()
                print(f"agent: {taken:,} of {least:,} records", flush=True)
    print(f"agent: {taken:,} records in {time.monotonic() - begun:.0f} s, nothing found", flush=True)


def scenario(data: bytes) -> None:
    """Parse a text as a scenario."""
    from contextlib import suppress

    from mxwire.errors import MxwireError
    from mxwire.scenarios.parser import parse

    with suppress(MxwireError):
        parse(data.decode("utf-8", "replace"))


TARGETS: dict[str, Callable[[bytes], None]] = {
    each.__name__: each for each in (decoder, follower, rules, engine, agent, scenario)
}


def _corpus(target: str) -> Iterator[bytes]:
    """Yield the first inputs of a target."""
    if target == "scenario":
        for path in sorted((ROOT / "replay").rglob("*.mxs")):
            yield path.read_bytes()
        return
    from mxwire.capture import open_capture

    for path in sorted((ROOT / "captures").glob("*.pcap")):
        with open_capture(path) as reader:
            frames = [batch.frame(place) for batch in reader for place in range(min(len(batch), 400))]
        for first in range(0, len(frames), _MOST_FRAMES):
            pieces = (each[:12] + each[14:] for each in frames[first : first + _MOST_FRAMES])
            yield b"".join(len(each).to_bytes(_PIECE, "little") + each for each in pieces if len(each) < 1600)


def _fuzz(target: str, arguments: list[str]) -> None:
    import atheris

    with atheris.instrument_imports(include=["mxwire"], enable_loader_override=False):
        import mxwire.analysis.verification
        import mxwire.protocol
        import mxwire.scenarios.parser  # noqa: F401
    atheris.Setup([sys.argv[0], *arguments], TARGETS[target])
    atheris.Fuzz()


def main() -> int:
    """Fuzz all targets, or those named, and return 1 if one found something."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"{', '.join(TARGETS)}; by default all")
    parser.add_argument("--seconds", type=int, default=600, help="seconds for all targets together")
    parser.add_argument("--records", type=int, default=0, help="then have the agent take this number of random records")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given, rest = parser.parse_known_args()
    sys.path.insert(0, str(ROOT))
    if given.child:
        _fuzz(given.targets[0], rest)
        return 0
    targets = given.targets or list(TARGETS)
    unknown = set(targets) - set(TARGETS)
    if unknown:
        parser.error(f"no target {sorted(unknown)[0]!r}: use one of {', '.join(TARGETS)}")
    failed = []
    for target in targets:
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(_corpus(target)):
            (folder / f"first-{number:04}").write_bytes(data)
        seconds = max(given.seconds // len(targets), 1)
        options = [f"-max_total_time={seconds}", "-max_len=20000", "-timeout=20", "-rss_limit_mb=2048"]
        prefix = f"-artifact_prefix={CORPUS}/{target}-"
        command = [sys.executable, __file__, "--child", target, *options, prefix, "-verbosity=0", str(folder)]
        code = subprocess.run(command, check=False).returncode
        print(
            f"{target}: {seconds} s, {'nothing found' if not code else f'exit code {code}: see {CORPUS}'}", flush=True
        )
        failed += [target] if code else []
    if given.records:
        _campaign(given.records)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Commands on an interface in a locale without UTF-8, with standard output and standard error being terminals or pipes.

As tests/cli/test_streams.py has it for the others: what a command prints must arrive, whatever the two are. Times and
rates differ from run to run, so that numbers are compared where they are known only.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mxwire.capture import open_capture
from tests.cli.streams import BAR, Stream

from .commands import CLI, INTERRUPTED, LONGEST, running
from .namespaces import Laboratory, Port

FAR = ("--name", "beta:0")
DATA = bytes(range(256)) * 512
STREAMS = [pytest.param(out, err, id=f"{out}-{err}") for out in ("pipe", "terminal") for err in ("pipe", "terminal")]
INTERRUPTED_COMMANDS = [
    ("serve --endpoint 7", b"Ctrl-C ends it\n", rb"echo [^\n]+\r?\nserved [^\n]+\r?\n"),
    ("agent", b"Ctrl-C ends it\n", rb"agent [^\n]+\r?\nserved [^\n]+\r?\n"),
    ("ping alpha:0 --interval 0.01", b"seq=1 ", rb".+\n\n--- alpha:0 ping statistics ---\n.+"),
]
"""Commands that run until Ctrl-C: a text after which they are interrupted, and all that they print."""
CAPTURE = Path(__file__).parents[2] / "captures" / "mxoe-lossy-1M.pcap"


@pytest.fixture(scope="module")
def ports(shared_laboratory: Laboratory) -> Iterator[tuple[Port, Port]]:
    """alpha serves at the first; the commands run at the second."""
    ports = shared_laboratory.pair(9000)
    with running(ports[0], "serve", "--endpoint", "0", "--endpoint", "1", "--name", "alpha:0") as server:
        server.until("Ctrl-C")
        yield ports
        assert server.end() == INTERRUPTED


class Watched:
    """A command in a namespace with streams of some kind."""

    def __init__(self, port: Port, out: str, err: str, *words: object) -> None:
        self.out, self.err = Stream(out == "terminal"), Stream(err == "terminal")
        environment = os.environ | {"COLUMNS": "400", "TERM": "xterm-256color", "NO_COLOR": "1", "LC_ALL": "C"}
        name, *rest = map(str, words)
        self.process = port.namespace.start(
            *(sys.executable, CLI, name, "-i", port.interface, *rest),
            stdin=subprocess.DEVNULL,
            stdout=self.out.theirs,
            stderr=self.err.theirs,
            env=environment,
        )

    def end(self, stop: signal.Signals | None = None) -> tuple[int, bytes, bytes]:
        """Exit code, and what was printed."""
        if stop is not None:
            self.process.send_signal(stop)
        try:
            code = self.process.wait(LONGEST)
        finally:
            self.process.kill()
            self.process.wait()
            out, err = self.out.end(), self.err.end()
        assert b"Traceback" not in err
        # Frames and the data of messages are binary; the rest has the characters of the locale.
        assert err.isascii() and (out.isascii() or "-w" in self.process.args or "receive" in self.process.args)
        return code, out, err


def lines(text: bytes) -> list[str]:
    return text.decode().splitlines()


@pytest.mark.parametrize(("out", "err"), STREAMS)
class TestEachPairOfStreams:
    def test_receive_and_send(self, ports, out, err, tmp_path):
        (tmp_path / "data").write_bytes(DATA)
        receiver = Watched(ports[1], out, err, "receive", "--endpoint", "5", *FAR)
        receiver.err.wait_for(b"waiting for messages")
        sender = Watched(ports[0], out, err, "send", "beta:0:5", tmp_path / "data", "--name", "gamma:0")
        code, said, complained = sender.end()
        assert code == 0, complained
        assert re.fullmatch(rb"sent to beta:0 endpoint 5: 1 message, 131,072 bytes in .*\n", said), said
        assert bool(BAR.search(complained)) == (err == "terminal")
        code, received, reported = receiver.end()
        assert code == 0 and received == DATA
        assert b"131,072 bytes" in BAR.sub(b"", reported)

    def test_capture_into_standard_output(self, ports, out, err, tmp_path):
        recorder = Watched(ports[1], out, err, "capture", "-w", "-", "-c", "4")
        if out == "terminal":
            code, said, reported = recorder.end()
            assert code == 2 and not said and b"terminal" in reported
            return
        recorder.err.wait_for(b"listening on")
        assert self.ping(ports[1], "pipe", "pipe")[0] == 0
        code, said, reported = recorder.end()
        assert code == 0, reported
        (tmp_path / "trace.pcapng").write_bytes(said)
        with open_capture(str(tmp_path / "trace.pcapng")) as capture:
            assert sum(map(len, capture)) == 4

    def test_capture_in_lines(self, ports, out, err):
        recorder = Watched(ports[1], out, err, "capture", "-l", "-c", "4")
        recorder.err.wait_for(b"listening on")
        assert self.ping(ports[1], "pipe", "pipe")[0] == 0
        code, said, reported = recorder.end()
        assert code == 0, reported
        assert [int(each.split()[0]) for each in lines(said)] == [1, 2, 3, 4]

    def ping(self, port: Port, out: str, err: str) -> tuple[int, bytes, bytes]:
        words = ("ping", "alpha:0", "-c", "2", "--interval", "0", *FAR)
        return Watched(port, out, err, *words).end()

    def test_ping(self, ports, out, err):
        code, said, reported = self.ping(ports[1], out, err)
        assert code == 0, reported
        kept = [re.sub(r"[\d.]+(/[\d.]+)*", "N", each) for each in lines(said)]
        assert kept[1:] == [
            "alpha:N: seq=N time=N ms",
            "alpha:N: seq=N time=N ms",
            "",
            "--- alpha:N ping statistics ---",
            "N transmitted, N received, N% loss, time N ms",
            "rtt min/avg/max/mdev = N ms, pN/pN = N ms",
        ]

    def test_discover(self, ports, out, err):
        code, said, reported = Watched(ports[1], out, err, "discover", "-c", "1", "--duration", "20", *FAR).end()
        assert code == 0, reported
        # On a terminal the table grows, and what is printed in the end stands below the last erased one.
        table = said.decode().rpartition("\x1b[2K")[2]
        assert table.splitlines()[0].split()[:2] == ["address", "name"] and "alpha:0" in table
        assert "\x1b" not in table

    def test_doctor(self, ports, out, err):
        code, said, reported = Watched(ports[1], out, err, "doctor", "--duration", "0.5", *FAR).end()
        assert code in (0, 1), reported
        assert re.fullmatch(r"veth1: .*problems?, .*warnings?", lines(said)[-1])
        assert len(lines(said)) > 3 and b"\x1b" not in said

    @pytest.mark.parametrize(("words", "ready", "printed"), INTERRUPTED_COMMANDS, ids=lambda each: str(each).split()[0])
    def test_an_interrupted_command(self, ports, out, err, words, ready, printed):
        """That is its usual end, which is not reported as an interruption."""
        command = Watched(ports[1], out, err, *words.split(), *FAR)
        command.out.wait_for(ready)
        code, said, reported = command.end(signal.SIGINT)
        assert code == INTERRUPTED, reported
        assert re.fullmatch(printed, said, re.DOTALL) and b"interrupted" not in reported

    def test_capture_until_an_interrupt(self, ports, out, err):
        recorder = Watched(ports[1], out, err, "capture", "-l", "--ethertype", "0x88b5")
        recorder.err.wait_for(b"listening on veth1 until Ctrl-C\n")
        code, said, reported = recorder.end(signal.SIGINT)
        assert code == INTERRUPTED and said == b""
        # A terminal has the ^C in its line.
        newline = b"\n" if err == "terminal" else b""
        first, _, rest = reported.partition(b"until Ctrl-C\n")
        assert first == b"mxwire: listening on veth1 "
        assert re.fullmatch(newline + rb"0 frames \(0 bytes\) captured in [\d.]+ s\n0 frames dropped\n", rest)

    def test_analysis_of_silence(self, ports, out, err):
        code, said, reported = Watched(ports[1], out, err, "verify", "--duration", "0.1", "--ethertype", "0x88b5").end()
        assert code == 2 and said == b""
        assert b"mxwire: veth1: no MXoE frame (EtherType 0x88b5) passed within 0." in reported

    def test_perf(self, ports, out, err):
        receiver = Watched(ports[1], out, err, "perf", "-B", *FAR)
        words = shlex.split("perf -B -d beta:0 -S 1 -E 3 -N 2 -W 0 -P 0 --name gamma:0")
        code, said, reported = Watched(ports[0], out, err, *words).end()
        assert code == 0, reported
        assert re.findall(rb"(?m)^length +(\d+):", said) == [b"1", b"2"]
        code, said, reported = receiver.end()
        assert code == 0, reported

    def test_replay(self, ports, out, err):
        code, said, reported = Watched(ports[1], out, err, "replay", CAPTURE, "--top-speed", "--linger", "0").end()
        assert code == 0, reported
        assert re.match(r"sent \d+ frames, ", lines(said)[0])
        assert bool(BAR.search(reported)) == (err == "terminal")

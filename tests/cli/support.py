"""Run the real command in a process of its own, as a user does, but forked from one that has imported it already."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from tests.forked import ROOT, fork_server

__all__ = ["CAPTURES", "EVERY_TYPE", "ROOT", "Run", "mxwire", "open_to_all"]

CAPTURES = ROOT / "captures"
EVERY_TYPE = CAPTURES / "mxoe-every-type.pcap"


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


def mxwire(*arguments: object, stdin: bytes | None = None, cwd: Path | None = None) -> Run:
    """The command's exit code and what it printed; a traceback is always a failure."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given, writer = os.pipe()
        feeding = Thread(target=_feed, args=(writer, stdin or b""))
        feeding.start()
        try:
            streams = [given, out.fileno(), err.fileno()]
            code = fork_server().run([str(each) for each in arguments], cwd or Path.cwd(), streams)
        finally:
            os.close(given)
            feeding.join()
        output = []
        for stream in (out, err):
            stream.seek(0)
            output.append(stream.read().decode())
    run = Run(code, *output)
    assert "Traceback" not in run.err, run.err
    return run


def _feed(pipe: int, data: bytes) -> None:
    """Write to a command's standard input, as far as it reads."""
    with contextlib.suppress(BrokenPipeError), os.fdopen(pipe, "wb") as stream:
        stream.write(data)


def open_to_all(folder: Path) -> None:
    """Let other users pass through a test's folder; pytest's own are for their owner alone."""
    ours = [folder, *folder.parents]
    for each in ours[: ours.index(Path(tempfile.gettempdir()))]:
        each.chmod(0o755)

"""A page with its markers replaced."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from generated import PARTS
from rendering.basics import CAPTURES, PageError
from rendering.output import command_output

KEEP = "MXWIRE_DOCS_MADE"
"""Environment variable: a folder that keeps made pages, for those who make the same ones several times."""

_MARKER = re.compile(
    r"^```python\n(?P<code>.*?)^```$"
    r"|^<!-- output(?:: (?P<command>.+?)(?: \| head -(?P<lines>\d+))?)? -->$"
    r"|^<!-- generated: (?P<part>.+?) -->$",
    re.MULTILINE | re.DOTALL,
)


def render(text: str, name: str) -> str:
    """A page with its markers replaced; raises :class:`PageError` where one of them cannot be."""
    if not _MARKER.search(text):
        return text
    kept = os.environ.get(KEEP)
    place = Path(kept) / hashlib.sha256(f"{name}\n{text}".encode()).hexdigest() if kept else None
    if place is not None and place.exists():
        return place.read_text(encoding="utf-8")
    made = _made(text, name)
    if place is not None:
        unfinished = place.with_suffix(f".{os.getpid()}")
        unfinished.write_text(made, encoding="utf-8")
        unfinished.rename(place)
    return made


def _made(text: str, name: str) -> str:
    with tempfile.TemporaryDirectory(prefix="mxwire-docs-") as folder:
        (Path(folder) / "captures").symlink_to(CAPTURES)
        with contextlib.chdir(folder):
            run = _PageRun(name)
            return _MARKER.sub(run.replace, text)


class _PageRun:
    """The blocks of one page, run one after the other."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.printed = ""

    def replace(self, found: re.Match[str]) -> str:
        """What stands in the place of one marker."""
        if found["code"] is not None:
            line = found.string[: found.start()].count("\n") + 1
            self.printed = self._run(found["code"], line)
            return found[0]
        if found["part"] is not None:
            if found["part"] not in PARTS:
                raise PageError(f"{self.name}: there is no part {found['part']!r}, only {', '.join(PARTS)}")
            return PARTS[found["part"]]()
        if found["command"] is not None:
            return command_output(found["command"], int(found["lines"] or 0), self.name)
        return f"```text\n{self.printed.rstrip()}\n```"

    def _run(self, code: str, line: int) -> str:
        printed = io.StringIO()
        try:
            # Empty lines in front make the line numbers of a traceback those of the page.
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * line + code, self.name, "exec"), self.namespace)
        except Exception as error:
            raise PageError(f"{self.name}: the Python block in line {line} fails: {error!r}") from error
        return printed.getvalue()

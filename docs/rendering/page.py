"""A page with its markers replaced."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from generated import PARTS
from rendering.basics import SHOWN, PageError
from rendering.output import command_output
from rendering.recorded import recorded

KEEP = "MXWIRE_DOCS_MADE"
"""Environment variable with a folder in which rendered pages are cached."""

_MARKER = re.compile(
    r"^```python\n(?P<code>.*?)^```$"
    r"|^```\w+ title=\"(?P<file>[\w.-]+)\"\n(?P<content>.*?)^```$"
    r"|^<!-- output(?:: (?P<command>[^\n]+?)"
    r"(?: \| head -(?P<head>\d+)| \| sed -n (?P<first>\d+),(?P<last>\d+)p)?)? -->$"
    r"|^<!-- generated: (?P<part>.+?) -->$"
    r"|^<!-- recorded: (?P<study>\w+)(?:: (?P<series>[^\n]+?))? -->$",
    re.MULTILINE | re.DOTALL,
)
_END = "<!-- end -->"
_BLOCK = rf"(?P<block>\n\n(?:```(?:console|text)\n.*?^```$|(?:(?!^<!-- ).)*?^{_END}$))?"
_KEPT = re.compile(f"(?:{_MARKER.pattern}){_BLOCK}", re.MULTILINE | re.DOTALL)
"""A marker that stays in the page, and the block after it from an earlier run: a code block, or text before an end."""


def render(text: str, name: str) -> str:
    """Return a page with its markers replaced. Raises :class:`PageError` if one cannot be replaced."""
    if not _MARKER.search(text):
        return text
    kept = os.environ.get(KEEP)
    if not kept:
        return _made(text, name)
    place = Path(kept) / hashlib.sha256(f"{name}\n{text}".encode()).hexdigest()
    # Several processes may need the same page: the first one renders it, and the others wait.
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            unfinished = place.with_suffix(".unfinished")
            unfinished.write_text(_made(text, name), encoding="utf-8")
            unfinished.rename(place)
        return place.read_text(encoding="utf-8")


def refreshed(text: str, name: str) -> str:
    """Return a page with its markers, each followed by its replacement: for files that are read as source."""
    return _made(text, name, keeps_markers=True)


def _made(text: str, name: str, *, keeps_markers: bool = False) -> str:
    with tempfile.TemporaryDirectory(prefix="mxwire-docs-") as folder:
        for each in SHOWN:
            (Path(folder) / each.name).symlink_to(each)
        with contextlib.chdir(folder):
            run = _PageRun(name)
            return _KEPT.sub(run.refresh, text) if keeps_markers else _MARKER.sub(run.replace, text)


class _PageRun:
    """The blocks of one page, run in order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.printed = ""

    def replace(self, found: re.Match[str]) -> str:
        """Return the replacement of one marker."""
        if found["code"] is not None:
            line = found.string[: found.start()].count("\n") + 1
            self.printed = self._run(found["code"], line)
            return found[0]
        if found["file"] is not None:
            Path(found["file"]).write_text(found["content"], encoding="utf-8")
            return found[0]
        if found["part"] is not None:
            if found["part"] not in PARTS:
                raise PageError(f"{self.name}: there is no part {found['part']!r}, only {', '.join(PARTS)}")
            return PARTS[found["part"]]()
        if found["study"] is not None:
            return recorded(found["study"], found["series"])
        if found["command"] is not None:
            last = int(found["head"] or found["last"] or 0)
            return command_output(found["command"], int(found["first"] or 1), last, self.name)
        return f"```text\n{self.printed.rstrip()}\n```"

    def refresh(self, found: re.Match[str]) -> str:
        """Return a marker followed by its replacement."""
        made = self.replace(found)
        if made == found[0]:
            return made
        marker = found[0].removesuffix(found["block"] or "")
        if found["part"] is not None or found["study"] is not None:
            made = f"{made.strip()}\n\n{_END}"
        return f"{marker}\n\n{made}"

    def _run(self, code: str, line: int) -> str:
        printed = io.StringIO()
        try:
            # Leading empty lines make the line numbers of a traceback those of the page.
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * line + code, self.name, "exec"), self.namespace)
        except Exception as error:
            raise PageError(f"{self.name}: the Python block in line {line} fails: {error!r}") from error
        return printed.getvalue()

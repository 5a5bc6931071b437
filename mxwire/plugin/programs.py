"""tshark and Wireshark: their paths, versions, plugin folders, and output."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from mxwire.errors import MxwireError

Scope = Literal["personal", "global"]

HOW_TO_INSTALL: Final = (
    "install it (apt install tshark, dnf install wireshark-cli, brew install wireshark) or put it in the PATH"
)
_ELSEWHERE: Final = ("/Applications/Wireshark.app/Contents/MacOS", "/usr/local/bin", "/opt/homebrew/bin")
_VERSION: Final = re.compile(r"\b(\d+\.\d+(?:\.\d+)?)")
_LUA: Final = re.compile(r"with\s+Lua\s+(\d+(?:\.\d+)*)")
_FOLDERS: Final[dict[Scope, tuple[str, ...]]] = {
    "personal": ("Personal Lua Plugins", "Personal Plugins"),
    "global": ("Global Lua Plugins", "Global Plugins"),
}
_EXTCAP_FOLDERS: Final[dict[Scope, tuple[str, ...]]] = {
    "personal": ("Personal Extcap path",),
    "global": ("Global Extcap path", "Extcap path"),
}
"""Wireshark 4.2 and later list both folders; in earlier versions the personal folder is inside the configuration
folder."""
_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Program:
    """An installed program of Wireshark."""

    path: Path
    version: str
    """For example ``4.0.17``; ``?`` if it is unknown."""
    lua: str | None
    """Version of Lua in the program, or None if it was built without Lua."""


@dataclass(frozen=True, slots=True)
class Output:
    """The result of a run of tshark."""

    code: int
    text: str
    complaint: str
    """Standard error in one line, without the remark that tshark runs as root."""


class Tshark:
    """A tshark, found in the PATH or given. Raises :class:`~mxwire.errors.MxwireError` if there is none."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = _find("tshark", path)
        self._folders: dict[str, str] = {}

    def run(self, *arguments: str | Path, environment: dict[str, str] | None = None) -> Output:
        """Run tshark and wait for its end."""
        return run_program([str(self.path), *map(str, arguments)], environment)

    def program(self) -> Program:
        """Return path and versions."""
        return _program(self.path)

    def folder(self, scope: Scope) -> Path:
        """Return the folder of Lua plugins: the user's own, or that of all users."""
        return self._folder(f"{scope} plugin folder", *_FOLDERS[scope])

    def extcap_folder(self, scope: Scope) -> Path:
        """Return the folder of programs that capture for Wireshark: the user's own, or that of all users."""
        if scope == "personal" and not self._named(*_EXTCAP_FOLDERS[scope]):
            return self.configuration() / "extcap"
        return self._folder(f"{scope} extcap folder", *_EXTCAP_FOLDERS[scope])

    def interfaces(self) -> Output:
        """Return the list of capture interfaces."""
        return self.run("-D")

    def configuration(self) -> Path:
        """Return the folder of the user's configuration."""
        return self._folder("personal configuration", "Personal configuration")

    def _folder(self, what: str, *names: str) -> Path:
        found = self._named(*names)
        if found is None:
            raise MxwireError(f"{self.path} -G folders names no {what}: is it a tshark of Wireshark 3 or 4?")
        return found

    def _named(self, *names: str) -> Path | None:
        """The first of these folders that tshark lists."""
        if not self._folders:
            listed = self._report("folders")
            self._folders = dict(line.split(":", 1) for line in listed.splitlines() if ":" in line)
        return next((Path(self._folders[name].strip()) for name in names if self._folders.get(name, "").strip()), None)

    def loaded(self, name: str) -> list[Path]:
        """Return the Lua scripts with a file name that tshark loads automatically."""
        rows = [line.split("\t") for line in self._report("plugins").splitlines()]
        return [Path(row[-1]) for row in rows if len(row) >= 3 and row[0] == name and "lua" in row[-2].lower()]

    def _report(self, what: str) -> str:
        output = self.run("-G", what)
        if output.code:
            raise MxwireError(f"{self.path} -G {what} fails with exit code {output.code}: {output.complaint}")
        return output.text


def wireshark() -> Program | None:
    """Return the installed Wireshark, or None."""
    try:
        return _program(_find("wireshark", None))
    except MxwireError:
        return None


def _find(name: str, given: str | Path | None) -> Path:
    path = shutil.which(given if given is not None else name)
    if path is None and given is None:
        path = shutil.which(name, path=os.pathsep.join(_ELSEWHERE))
    if path is None:
        where = f"there is no program {given}" if given is not None else f"{name} is not installed"
        raise MxwireError(f"{where}: {HOW_TO_INSTALL}")
    return Path(path)


def _program(path: Path) -> Program:
    text = run_program([str(path), "-v"], {"QT_QPA_PLATFORM": "offscreen"}).text
    version = _VERSION.search(text)
    # Line breaks may occur anywhere in the list of libraries.
    lua = _LUA.search(" ".join(text.split()))
    return Program(path, version[1] if version else "?", lua[1] if lua else None)


def run_program(command: Sequence[str], environment: dict[str, str] | None = None) -> Output:
    """Run a program to its end; raise :class:`~mxwire.errors.MxwireError` if it cannot be run."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=os.environ | {"LC_ALL": "C.UTF-8"} | (environment or {}),
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MxwireError(f"{command[0]} cannot be run: {error}") from error
    lines = done.stderr.decode("utf-8", "replace").splitlines()
    complaints = [line.strip() for line in lines if line.strip() and not line.startswith("Running as user")]
    return Output(done.returncode, done.stdout.decode("utf-8", "replace"), "; ".join(complaints))

"""The plugin's files in Wireshark's folders: the dissector, and the program that offers mxwire's capture interfaces."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from mxwire.dissector import plugin_path
from mxwire.errors import MxwireError
from mxwire.plugin.programs import Scope, Tshark

State = Literal["missing", "current", "stale"]
SCOPES: Final[tuple[Scope, ...]] = ("personal", "global")


@dataclass(frozen=True, slots=True)
class PluginFile:
    """One of the files of the plugin."""

    kind: Literal["dissector", "extcap"]
    name: str
    content: Callable[[], bytes]
    folder: Callable[[Tshark, Scope], Path]
    mode: int


@dataclass(frozen=True, slots=True)
class Place:
    """A file of the plugin, where it is or would be installed."""

    file: PluginFile
    scope: Scope
    path: Path
    state: State
    """``stale``: the file differs from the one in this version of mxwire, because it is older or was changed."""


def source() -> Path:
    """Return the plugin of this version of mxwire."""
    path = plugin_path()
    if not path.is_file():
        raise MxwireError(f"{path} is not there: this mxwire is incomplete, install it again or run it from a checkout")
    return path


def extcap_script() -> bytes:
    """Return the program that Wireshark calls: it runs this Python, whatever the user's environment contains."""
    # A path in "#!" must be short and without spaces.
    command = f"exec {shlex.quote(sys.executable)} -EP -m mxwire.cli.extcap"
    return (
        f'#!/bin/sh\n# The capture interfaces of mxwire, installed by mxwire plugin install.\n{command} "$@"\n'.encode()
    )


DISSECTOR: Final = PluginFile("dissector", plugin_path().name, lambda: source().read_bytes(), Tshark.folder, 0o644)
EXTCAP: Final = PluginFile("extcap", "mxwire-extcap", extcap_script, Tshark.extcap_folder, 0o755)
FILES: Final = (DISSECTOR, EXTCAP) if os.name == "posix" else (DISSECTOR,)


def place(scope: Scope, tshark: Tshark, file: PluginFile = DISSECTOR) -> Place:
    """Return the place of a file of the plugin in one of the two folders."""
    path = file.folder(tshark, scope) / file.name
    state: State = "stale"
    try:
        if path.read_bytes() == file.content():
            state = "current"
    except (FileNotFoundError, NotADirectoryError):
        state = "missing"
    except OSError as error:
        raise MxwireError(f"{path} cannot be read: {error.strerror}") from error
    return Place(file, scope, path, state)


def places(tshark: Tshark) -> list[Place]:
    """Return the places of all files in the user's own folders and in those for all users."""
    return [place(scope, tshark, file) for file in FILES for scope in SCOPES]


def install(scope: Scope, tshark: Tshark) -> list[Place]:
    """Copy the files of the plugin to their folders, replacing existing ones; return the previous states.

    A file is replaced atomically. Raises :class:`~mxwire.errors.MxwireError` if a folder cannot be written, or if
    the other folder also contains the file: Wireshark would load both, and report an error.
    """
    for other in places(tshark):
        if other.scope != scope and other.state != "missing":
            first = _command("uninstall", other.scope)
            raise MxwireError(f"{other.path} is there already, and Wireshark would load both: run {first} first")
    targets = [place(scope, tshark, file) for file in FILES]
    for target in targets:
        try:
            target.path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(target.path, target.file.content(), target.file.mode)
        except OSError as error:
            raise _not_possible("written", target, error) from error
    return targets


def uninstall(scope: Scope, tshark: Tshark) -> list[Place]:
    """Remove the files of the plugin from their folders; return the previous states."""
    targets = [place(scope, tshark, file) for file in FILES]
    for target in targets:
        try:
            target.path.unlink(missing_ok=True)
        except OSError as error:
            raise _not_possible("removed", target, error) from error
    return targets


def _command(name: str, scope: Scope) -> str:
    return f"mxwire plugin {name}" + (" --global" if scope == "global" else "")


def _not_possible(what: str, target: Place, error: OSError) -> MxwireError:
    advice = ""
    if isinstance(error, PermissionError):
        advice = ": run it as root (sudo), or without --global" if target.scope == "global" else ": see its permissions"
    return MxwireError(f"{target.path} cannot be {what} ({error.strerror}){advice}")


def replace_file(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file that by default all users may read, atomically; its folder exists."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise

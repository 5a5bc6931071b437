"""The plugin's file in Wireshark's plugin folders."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from mxwire.dissector import plugin_path
from mxwire.errors import MxwireError
from mxwire.plugin.programs import Scope, Tshark

State = Literal["missing", "current", "stale"]
SCOPES: Final[tuple[Scope, ...]] = ("personal", "global")


@dataclass(frozen=True, slots=True)
class Place:
    """A file where the plugin is or would be installed."""

    scope: Scope
    path: Path
    state: State
    """``stale``: the file differs from that of this mxwire; it is older, or was changed."""


def source() -> Path:
    """Return the plugin of this version of mxwire."""
    path = plugin_path()
    if not path.is_file():
        raise MxwireError(f"{path} is not there: this mxwire is incomplete, install it again or run it from a checkout")
    return path


def state_of(path: Path) -> State:
    """Return whether a file is the plugin of this mxwire."""
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError as error:
        raise MxwireError(f"{path} cannot be read: {error.strerror}") from error
    return "current" if content == source().read_bytes() else "stale"


def place(scope: Scope, tshark: Tshark) -> Place:
    """Return the place of the plugin in one of the two folders."""
    path = tshark.folder(scope) / source().name
    return Place(scope, path, state_of(path))


def places(tshark: Tshark) -> list[Place]:
    """Return the places in the user's own folder and in that for all users."""
    return [place(scope, tshark) for scope in SCOPES]


def install(scope: Scope, tshark: Tshark) -> Place:
    """Copy the plugin to its folder, replacing an existing file; return the previous state.

    The file is replaced atomically. Raises :class:`~mxwire.errors.MxwireError` if the folder cannot be written, or if
    the other folder also contains the plugin: Wireshark would load both, and report an error.
    """
    other = place("global" if scope == "personal" else "personal", tshark)
    if other.state != "missing":
        first = _command("uninstall", other.scope)
        raise MxwireError(f"{other.path} is there already, and Wireshark would load both: run {first} first")
    target = place(scope, tshark)
    try:
        target.path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target.path, source().read_bytes())
    except OSError as error:
        raise _not_possible("written", target, error) from error
    return target


def uninstall(scope: Scope, tshark: Tshark) -> Place:
    """Remove the plugin from its folder; return the previous state."""
    target = place(scope, tshark)
    try:
        target.path.unlink(missing_ok=True)
    except OSError as error:
        raise _not_possible("removed", target, error) from error
    return target


def _command(name: str, scope: Scope) -> str:
    return f"mxwire plugin {name}" + (" --global" if scope == "global" else "")


def _not_possible(what: str, target: Place, error: OSError) -> MxwireError:
    advice = ""
    if isinstance(error, PermissionError):
        advice = ": run it as root (sudo), or without --global" if target.scope == "global" else ": see its permissions"
    return MxwireError(f"{target.path} cannot be {what} ({error.strerror}){advice}")


def replace_file(path: Path, content: bytes) -> None:
    """Write a file that all users may read, atomically; its folder exists."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise

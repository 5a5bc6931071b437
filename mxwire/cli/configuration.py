"""The user's settings: default values of options, from the environment and from a file.

An option takes precedence over a variable, a variable over the file, and the file over the default. The file is read
only if no other user can have written it, and not by a process with privileges that its user does not have.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from mxwire.errors import MxwireError
from mxwire.report.terminal import COLOUR_CHOICES, colours_of_environment
from mxwire.words import alternatives, suggestion

_LONGEST: Final = 1 << 16
"""Bytes of the longest file."""
_AT_SECURE: Final = 23
"""Number of the entry of the auxiliary vector that is not 0 in a process with more privileges than its user."""
_AT_LINE: Final = re.compile(r" \(at line (\d+), column \d+\)$")


def _check_interface(value: str) -> None:
    if not re.fullmatch(r"[^\s/]+", value):
        raise MxwireError(f"{value!r} is not the name of an interface")


def _check_name(value: str) -> None:
    from mxwire.host.peer_names import own_name

    own_name(value)


def _check_dialect(value: str) -> None:
    from mxwire.wire.dialect import dialect_by_name

    dialect_by_name(value)


def _check_peers(value: str) -> None:
    if not Path(value).is_file():
        raise MxwireError(f"{value} is not a file")


def _check_colour(value: str) -> None:
    if value not in COLOUR_CHOICES:
        raise MxwireError(f"{value!r} is not {alternatives(COLOUR_CHOICES)}")


SETTINGS: Final[dict[str, tuple[Callable[[str], None], str]]] = {
    "interface": (_check_interface, "none: -i is required"),
    "name": (_check_name, "that of this computer, with :0"),
    "dialect": (_check_dialect, "mxoe"),
    "peers": (_check_peers, "none"),
    "color": (_check_colour, "auto"),
}
"""By its key in the file, the check of a setting, and its default for the user."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a setting, with its place: a variable, or a line of the file."""

    text: str
    variable: str | None = None
    line: int | None = None

    @property
    def place(self) -> str:
        """The variable, or the file with the line."""
        return self.variable or f"{configuration_file()}:{self.line}"


def variable_of(setting: str) -> str:
    """The variable of a setting."""
    return f"MXWIRE_{setting.upper()}"


def from_environment(setting: str) -> Value | None:
    """The value in the environment; raises :class:`~mxwire.errors.MxwireError` if it is invalid."""
    variable = variable_of(setting)
    text = os.environ.get(variable)
    return _checked(setting, Value(text, variable=variable)) if text else None


def from_file(setting: str) -> Value | None:
    """The value in the file; raises :class:`~mxwire.errors.MxwireError` if it or the file is invalid."""
    found = _file_values().get(setting)
    # Variables of many programs are more specific than a file of mxwire.
    if found is None or from_other_programs(setting) is not None:
        return None
    return _checked(setting, found)


def from_other_programs(setting: str) -> Value | None:
    """The colours that NO_COLOR or FORCE_COLOR choose."""
    chosen = colours_of_environment() if setting == "color" else None
    return None if chosen is None else Value(chosen[1], variable=chosen[0])


def _checked(setting: str, value: Value) -> Value:
    try:
        SETTINGS[setting][0](value.text)
    except MxwireError as error:
        raise MxwireError(f"{value.place}: {setting}: {error}") from None
    return value


def configuration_file() -> Path | None:
    """The file, which need not exist; None without a home, or if it was switched off."""
    chosen = os.environ.get("MXWIRE_CONFIG")
    if chosen:
        return None if chosen == os.devnull else Path(chosen)
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    try:
        # A relative path is invalid by the XDG specification.
        base = Path(folder) if folder.startswith("/") else Path.home() / ".config"
    except RuntimeError:
        return None
    return base / "mxwire" / "config.toml"


@cache
def _file_values() -> dict[str, Value]:
    """The values in the file by setting, with their lines."""
    path = configuration_file()
    try:
        if path is None or not path.exists() or _is_secure():
            return {}
        text = _read(path)
    except OSError as error:
        raise MxwireError(f"{path}: the configuration cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise MxwireError(f"{path}: the configuration is not a text in UTF-8") from None
    import tomllib

    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = _AT_LINE.search(str(error))
        place = f"{path}:{at[1]}" if at else f"{path}"
        raise MxwireError(f"{place}: this is not TOML: {_AT_LINE.sub('', str(error))}") from None
    return {key: _value(path, key, value, _line_of(key, text)) for key, value in values.items()}


def _value(path: Path, key: str, value: Any, line: int) -> Value:
    if key not in SETTINGS:
        hint = suggestion(key, SETTINGS) or f": the settings are {', '.join(SETTINGS)}"
        raise MxwireError(f"{path}:{line}: there is no setting {key!r}{hint}")
    if not isinstance(value, str) or not value:
        raise MxwireError(f'{path}:{line}: {key}: write a text in quotes, as in {key} = "…"')
    return Value(str(path.parent / Path(value).expanduser()) if key == "peers" else value, line=line)


def _line_of(key: str, text: str) -> int:
    """The line of a key, or of the table with this name."""
    at = re.compile(rf"[\s\[]*[\"']?{re.escape(key)}(?![\w-])")
    return next((number for number, line in enumerate(text.splitlines(), 1) if at.match(line)), 1)


def _read(path: Path) -> str:
    """The text of the file, if no user but its owner and root can have written it."""
    # Opening a FIFO would block.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise MxwireError(f"{path}: the configuration must be a file")
        if status.st_uid not in (os.geteuid(), 0):
            raise MxwireError(
                f"{path}: the configuration belongs to user {status.st_uid}, and must belong to user {os.geteuid()}: "
                "move it away, or set XDG_CONFIG_HOME to another folder"
            )
        if status.st_mode & 0o022:
            mode = stat.S_IMODE(status.st_mode)
            raise MxwireError(f"{path}: other users may write the configuration (mode {mode:04o}): chmod go-w {path}")
        if status.st_size > _LONGEST:
            raise MxwireError(f"{path}: the configuration has more than {_LONGEST} bytes")
        return file.read(_LONGEST).decode("utf-8")


def _is_secure() -> bool:
    """True in a process with privileges that its user does not have, such as file capabilities of Python."""
    from ctypes import CDLL  # only if there is a file

    return bool(CDLL(None).getauxval(_AT_SECURE))

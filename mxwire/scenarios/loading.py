"""Scenarios from files: those of the library, and anybody's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from mxwire.errors import MxwireError
from mxwire.scenarios.errors import suggestion
from mxwire.scenarios.parser import parse
from mxwire.scenarios.script import Script

SUFFIX: Final = ".mxs"
_PACKAGED: Final = Path(__file__).with_name("library")
"""Where the library lies in an installed package."""
_CHECKOUT: Final = Path(__file__).parents[2] / "replay"


def library_folder() -> Path:
    """The folder of the library: in the package or, of a checkout, beside it."""
    return _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT


def load(path: str | Path) -> Script:
    """The scenario in a file, or one of the library by its name (``connect/bad-key``).

    Raises :class:`~mxwire.errors.MxwireError` where there is none, and
    :class:`~mxwire.scenarios.errors.ScriptError` for one that is wrong.
    """
    found = _found(Path(path))
    try:
        text = found.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise MxwireError(f"{found}: this is no text (UTF-8)") from None
    except OSError as error:
        raise MxwireError(f"{found}: {error.strerror or error}") from None
    return parse(text, str(found), name_of(found))


def _found(path: Path) -> Path:
    if path.is_file():
        return path
    here = library_folder()
    name = str(path).removeprefix("replay/").removesuffix(SUFFIX)
    if not path.is_absolute() and ".." not in path.parts and (inside := here / f"{name}{SUFFIX}").is_file():
        return inside
    hint = suggestion(name, names()) or f" (mxwire scenario list shows those of the library, {SUFFIX} files elsewhere)"
    raise MxwireError(f"no scenario {path}{hint}")


def name_of(path: Path) -> str:
    """The name of the scenario in a file: its path below the library, or what it is called elsewhere."""
    try:
        return path.resolve().relative_to(library_folder().resolve()).with_suffix("").as_posix()
    except ValueError:
        return path.with_suffix("").name


def names() -> list[str]:
    """The names of the library's scenarios, in order."""
    here = library_folder()
    return sorted(each.relative_to(here).with_suffix("").as_posix() for each in here.rglob(f"*{SUFFIX}"))


def paths_of(wanted: Iterable[str]) -> list[Path]:
    """The files that a user names: files and folders, or names and folders of the library; without any, all of it.

    Raises :class:`~mxwire.errors.MxwireError` for a name that is none of these.
    """
    here = library_folder()
    found: list[Path] = []
    wanted = list(wanted)
    for each in wanted:
        path = Path(each)
        folder = path if path.is_dir() else here / each.removeprefix("replay/").rstrip("/")
        if not path.is_file() and ".." not in path.parts and folder.is_dir():
            inside = sorted(folder.rglob(f"*{SUFFIX}"))
            if not inside:
                raise MxwireError(f"{each}: no scenarios ({SUFFIX}) in this folder")
            found += inside
        else:
            found.append(_found(path))
    return found if wanted else [here / f"{name}{SUFFIX}" for name in names()]


def library() -> Iterator[Script]:
    """All scenarios of the library, in the order of their names."""
    for name in names():
        yield load(library_folder() / f"{name}{SUFFIX}")

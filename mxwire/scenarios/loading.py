"""Scenarios from files: those of the library, and anybody's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from mxwire.errors import MxwireError
from mxwire.scenarios.errors import suggestion
from mxwire.scenarios.parser import parse
from mxwire.scenarios.script import Script
from mxwire.shipped import SCENARIO_SUFFIX, scenario_folder, scenario_names


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
    here = scenario_folder()
    name = str(path).removeprefix("replay/").removesuffix(SCENARIO_SUFFIX)
    if not path.is_absolute() and ".." not in path.parts and (inside := here / f"{name}{SCENARIO_SUFFIX}").is_file():
        return inside
    hint = (
        suggestion(name, scenario_names())
        or f" (mxwire scenario list shows those of the library, {SCENARIO_SUFFIX} files elsewhere)"
    )
    raise MxwireError(f"no scenario {path}{hint}")


def name_of(path: Path) -> str:
    """The name of the scenario in a file: its path below the library, or what it is called elsewhere."""
    try:
        return path.resolve().relative_to(scenario_folder().resolve()).with_suffix("").as_posix()
    except ValueError:
        return path.with_suffix("").name


def paths_of(wanted: Iterable[str]) -> list[Path]:
    """The files that a user names: files and folders, or names and folders of the library; without any, all of it.

    Raises :class:`~mxwire.errors.MxwireError` for a name that is none of these.
    """
    here = scenario_folder()
    found: list[Path] = []
    wanted = list(wanted)
    for each in wanted:
        path = Path(each)
        folder = path if path.is_dir() else here / each.removeprefix("replay/").rstrip("/")
        if not path.is_file() and ".." not in path.parts and folder.is_dir():
            inside = sorted(folder.rglob(f"*{SCENARIO_SUFFIX}"))
            if not inside:
                raise MxwireError(f"{each}: no scenarios ({SCENARIO_SUFFIX}) in this folder")
            found += inside
        else:
            found.append(_found(path))
    return found if wanted else [here / f"{name}{SCENARIO_SUFFIX}" for name in scenario_names()]


def library() -> Iterator[Script]:
    """All scenarios of the library, in the order of their names."""
    for name in scenario_names():
        yield load(scenario_folder() / f"{name}{SCENARIO_SUFFIX}")

"""Scenario files: those of the library, and a user's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from mxwire.errors import MxwireError
from mxwire.scenarios.errors import suggestion
from mxwire.scenarios.parser import parse
from mxwire.scenarios.script import Script
from mxwire.scenarios.shipped import SCENARIO_SUFFIX, scenario_folder, scenario_names


def load(path: str | Path) -> Script:
    """Read a scenario from a file, or from the library by its name (``connect/bad-key``).

    Raises :class:`~mxwire.errors.MxwireError` if there is none, and :class:`~mxwire.scenarios.errors.ScriptError` if it
    is wrong.
    """
    found = _found(Path(path))
    try:
        text = found.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise MxwireError(f"{found}: not a text file in UTF-8") from None
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
    hint = suggestion(name, scenario_names())
    if not hint and path.suffix == SCENARIO_SUFFIX:
        raise MxwireError(f"{path}: no such file; check the path")
    hint = hint or f" (mxwire scenario list lists the library; files of your own end in {SCENARIO_SUFFIX})"
    raise MxwireError(f"unknown scenario {path}{hint}")


def name_of(path: Path) -> str:
    """Return the name of the scenario in a file: its path in the library, or its file name elsewhere."""
    try:
        return path.resolve().relative_to(scenario_folder().resolve()).with_suffix("").as_posix()
    except ValueError:
        return path.with_suffix("").name


def paths_of(names: Iterable[str]) -> list[Path]:
    """Return the scenario files for arguments: files, folders, or names and folders of the library; by default all.

    Raises :class:`~mxwire.errors.MxwireError` for an argument that is none of these.
    """
    here = scenario_folder()
    paths: list[Path] = []
    names = list(names)
    for each in names:
        path = Path(each)
        folder = path if path.is_dir() else here / each.removeprefix("replay/").rstrip("/")
        if not path.is_file() and ".." not in path.parts and folder.is_dir():
            inside = sorted(folder.rglob(f"*{SCENARIO_SUFFIX}"))
            if not inside:
                raise MxwireError(f"{each}: no scenarios ({SCENARIO_SUFFIX}) in this folder")
            paths += inside
        else:
            paths.append(_found(path))
    return paths if names else [here / f"{name}{SCENARIO_SUFFIX}" for name in scenario_names()]


def library() -> Iterator[Script]:
    """Read all scenarios of the library, sorted by name."""
    for name in scenario_names():
        yield load(scenario_folder() / f"{name}{SCENARIO_SUFFIX}")

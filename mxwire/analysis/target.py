"""Output files: the format by the name, and a check that they can be written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mxwire.errors import MxwireError, OutputError


def check_format(path: Path, what: str, suffixes: Sequence[str]) -> None:
    """Raises :class:`~mxwire.errors.MxwireError` where a name does not end with one of the suffixes.

    ``what`` is what there is none of for other suffixes.
    """
    if path.suffix.lower() not in suffixes:
        suffix = path.suffix or "a name without suffix"
        raise MxwireError(f"{path}: no {what} for {suffix}: use one of {', '.join(suffixes)}")


def check_place(path: Path) -> None:
    """Raises :class:`~mxwire.errors.OutputError` where there can be no file."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        problem = "it is a directory" if path.is_dir() else "its directory does not exist"
        raise OutputError(f"{path}: cannot be written: {problem}")

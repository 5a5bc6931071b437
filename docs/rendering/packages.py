"""The packages that an installation has beside mxwire, and their sizes, as installed in this environment."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def declared(requirements: Iterable[str], extra: str = "") -> dict[str, Distribution]:
    """Return the packages that requirements name, directly or indirectly."""
    found: dict[str, Distribution] = {}
    visited: set[tuple[str, str]] = set()
    waiting = [(Requirement(each), {extra}) for each in requirements]
    while waiting:
        wanted, extras = waiting.pop()
        name = canonicalize_name(wanted.name)
        if wanted.marker and not any(wanted.marker.evaluate({"extra": each}) for each in extras):
            continue
        new = {each for each in ("", *wanted.extras) if (name, each) not in visited}
        if not new:
            continue
        visited |= {(name, each) for each in new}
        found[name] = distribution(name)
        waiting += [(Requirement(each), new) for each in found[name].requires or ()]
    return found


def installed_size(packages: Iterable[Distribution]) -> int:
    """Return the bytes of all files of packages, without the bytecode that Python makes when it imports them."""
    files = [Path(str(each.locate_file(file))) for each in packages for file in each.files or ()]
    return sum(each.stat().st_size for each in files if each.suffix != ".pyc" and each.is_file())

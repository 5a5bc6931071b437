"""Clean environments with a wheel of mxwire and the packages that it declares, linked from those of the tests."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from email.parser import HeaderParser
from importlib.util import cache_from_source
from pathlib import Path

from tests.docs.maker import declared

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the wheel, and a home of its own."""

    folder: Path
    home: Path

    @property
    def site(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def run(self, *command: object, packages: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, with ``packages`` in addition, in the empty home."""
        variables = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "HOME": str(self.home), "LC_ALL": "C.UTF-8"}
        if packages is not None:
            variables["PYTHONPATH"] = str(packages)
        return subprocess.run(
            list(map(str, command)),
            cwd=self.home,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


def link(packages: Iterable[importlib.metadata.Distribution], folder: Path) -> None:
    """Link the files of packages into a folder; copy them if it is on another file system."""
    for package in packages:
        for file in package.files or ():
            source, target = Path(str(package.locate_file(file))), folder / file
            if ".." in file.parts or "__pycache__" in file.parts or not source.is_file():
                continue
            link_file(source, target)
            if source.suffix == ".py":
                # The bytecode that is there already; whether pip lists it depends on how it installed the package.
                stored, wanted = (Path(cache_from_source(str(each))) for each in (source, target))
                if stored.is_file():
                    link_file(stored, wanted)


def link_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def build(target: str, folder: Path, source: Path = ROOT, **variables: str) -> Path:
    """Build a wheel or an sdist into a new folder."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    kept = {name: value for name, value in os.environ.items() if name != "MXWIRE_COMPILE"} | variables
    done = subprocess.run(command, cwd=source, env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = folder.iterdir()
    return made


def requirements_of(wheel: Path) -> list[str]:
    """Return the packages that a wheel declares."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(archive.read(metadata).decode()).get_all("Requires-Dist", [])


def install(wheel: Path, folder: Path) -> Environment:
    """Install a wheel without extras into a new folder."""
    made = Environment(folder / "environment", folder / "home")
    made.home.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made.folder)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(made.folder / "bin" / "python"), "install", "--quiet"]
    # Modules are compiled when a command imports them: most tests need few.
    subprocess.run([*pip, "--no-deps", "--no-index", "--no-compile", str(wheel)], check=True, stdin=subprocess.DEVNULL)
    link(declared(requirements_of(wheel)).values(), made.site)
    return made

"""Build a wheel: manual pages and completions, and on request mxwire compiled (MXWIRE_COMPILE=1 pip install .)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))
import compile as compiling


class WheelHook(BuildHookInterface):  # type: ignore[type-arg,unused-ignore]
    """A build hook that adds files which are made from the sources; an editable installation has none of them."""

    def _compiles(self) -> bool:
        return bool(os.environ.get("MXWIRE_COMPILE"))

    def dependencies(self) -> list[str]:
        """Return the build dependencies: those of the help, and to compile, those of the compiler."""
        compiler = ["mypy[mypyc]>=1.13", "numpy>=1.26", "construct>=2.10.68,<2.11"]
        return ["click>=8.1.8", *(compiler if self._compiles() else [])]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the pages below ``share`` of the installation, and compiled modules beside their sources."""
        if version == "editable":
            return
        import man_pages

        # It is removed when this hook is.
        self._share = TemporaryDirectory(prefix="mxwire-share-")
        man_pages.write(Path(self._share.name))
        build_data["shared_data"][self._share.name] = "share"
        if not self._compiles():
            return
        compiling.compile_into(compiling.FOLDER)
        for path in compiling.FOLDER.rglob("*.so"):
            build_data["force_include"][str(path)] = str(path.relative_to(compiling.FOLDER))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

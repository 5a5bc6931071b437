"""Build a wheel with mxwire compiled, on request: MXWIRE_COMPILE=1 pip install ."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))
import compile as compiling


class CompiledWheel(BuildHookInterface):  # type: ignore[type-arg,unused-ignore]
    """A build hook that adds the compiled modules beside their sources, which tracebacks show."""

    def _wanted(self) -> bool:
        return bool(os.environ.get("MXWIRE_COMPILE"))

    def dependencies(self) -> list[str]:
        """Return the build dependencies: the compiler, and the packages whose types mxwire uses."""
        return ["mypy[mypyc]>=1.13", "numpy>=1.26", "construct>=2.10.68,<2.11"] if self._wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; an editable installation stays interpreted."""
        if not self._wanted() or version == "editable":
            return
        compiling.compile_into(compiling.FOLDER)
        for path in compiling.FOLDER.rglob("*.so"):
            build_data["force_include"][str(path)] = str(path.relative_to(compiling.FOLDER))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

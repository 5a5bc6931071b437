"""Names that completion offers from catalogues that are slow to import, stored in ``names.json`` beside this file.

``python -m mxwire.cli.names`` writes that file, ``--check`` reports whether it is current.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

from mxwire.analysis.diagnosis import catalogue
from mxwire.analysis.frame_expression import EXPRESSION_FIELDS
from mxwire.analysis.marks import FLAGS, Role
from mxwire.analysis.table import COLUMN_NAMES
from mxwire.interop.cases import ALL_CASES, GROUPS
from mxwire.interop.impairments import TREATMENTS
from mxwire.interop.implementations import IMPLEMENTATIONS
from mxwire.protocol.profile import PROFILES
from mxwire.simulation.scenario import DISCOVERIES, LOCAL_PATHS, WORKLOADS

TARGET: Final = Path(__file__).with_name("names.json")


def names() -> dict[str, list[str]]:
    """The names by catalogue, in the order in which they are documented."""
    return {
        "case": [*GROUPS, *ALL_CASES],
        "diagnosis": [each.id for each in catalogue()],
        "discovery": list(DISCOVERIES),
        "local path": list(LOCAL_PATHS),
        "expression": [*EXPRESSION_FIELDS],
        "field": list(COLUMN_NAMES),
        "flag": list(FLAGS),
        "impairment": list(TREATMENTS),
        "implementation": list(IMPLEMENTATIONS),
        "profile": ["open-mx", *PROFILES],
        "role": [each.value for each in Role],
        "workload": list(WORKLOADS),
    }


def text() -> str:
    """The contents of the file."""
    return json.dumps(names(), indent=1) + "\n"


if __name__ == "__main__":
    current = TARGET.is_file() and TARGET.read_text(encoding="utf-8") == text()
    if "--check" in sys.argv[1:]:
        print(f"{TARGET.name} {'is current' if current else 'is not current: run python -m mxwire.cli.names'}")
        sys.exit(not current)
    TARGET.write_text(text(), encoding="utf-8")

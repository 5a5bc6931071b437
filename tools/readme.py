"""Bring the outputs in README.md up to date, or with --check say whether they are.

README.md has the markers of the documentation, ``<!-- output: mxwire … -->``, and unlike its pages also what they stand
for, since it is read as it is.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"

sys.path.insert(0, str(ROOT / "docs"))

from rendering.basics import PageError  # noqa: E402
from rendering.page import refreshed  # noqa: E402


def main() -> int:
    """Returns the exit code: 1 if README.md is not current (with --check) or cannot be made."""
    text = README.read_text(encoding="utf-8")
    try:
        made = refreshed(text, README.name)
    except PageError as error:
        print(error, file=sys.stderr)
        return 1
    if "--check" not in sys.argv[1:]:
        README.write_text(made, encoding="utf-8")
    elif made != text:
        print("README.md is not current: run python tools/readme.py", file=sys.stderr)
        return 1
    print("README.md is current")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Update the command outputs and the measured figures in README.md, or with --check report whether they are current.

README.md has the markers of the documentation, such as ``<!-- output: mxwire … -->`` (docs/generate.py). Unlike the
pages of the documentation it also contains the results, since it is read without being built; tables are followed by
``<!-- end -->``.
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
    """Return the exit code: 1 if README.md is not current (with --check) or a command fails."""
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

"""Standard output as a terminal: its colours and its width."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console

COLOUR_CHOICES: Final = ("auto", "always", "never")
_choice = "auto"


def choose_colour(choice: str) -> None:
    """Set what the user wants, one of :data:`COLOUR_CHOICES`, for the rest of the process."""
    global _choice
    _choice = choice


def is_coloured() -> bool:
    """Whether standard output gets colours and other styles.

    The user's choice comes first, then NO_COLOR and FORCE_COLOR where they are not empty; else a terminal does, unless
    it is a dumb one.
    """
    if _choice != "auto":
        return _choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def terminal_width() -> int | None:
    """Columns of the terminal that standard output is; None where it is none, and lines may be as long as they are."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def styled_console(width: int | None = None) -> Console:
    """A console for coloured output of a width, of the terminal's where that is None; also into a pipe."""
    from rich.console import Console

    dumb = os.environ.get("TERM", "dumb") in ("dumb", "unknown")
    return Console(
        width=width,
        height=None if width is None else _ANY_HEIGHT,
        highlight=False,
        force_terminal=True,
        no_color=False,
        color_system="standard" if dumb else "auto",
    )


_ANY_HEIGHT: Final = 25
"""rich believes a width only together with a height."""

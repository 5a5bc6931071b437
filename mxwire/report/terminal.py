"""Properties of standard output as a terminal: colours and width."""

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
    """Set the user's choice, one of :data:`COLOUR_CHOICES`, for the whole process."""
    global _choice
    _choice = choice


def colours_of_environment() -> tuple[str, str] | None:
    """The variable of many programs that chooses colours, and its choice; None if neither is set.

    FORCE_COLOR=0 means that it is not.
    """
    if os.environ.get("NO_COLOR"):
        return "NO_COLOR", "never"
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return "FORCE_COLOR", "always"
    return None


def is_coloured() -> bool:
    """Return True if standard output gets colours and other styles.

    The user's choice takes precedence, then non-empty NO_COLOR, then FORCE_COLOR; otherwise colours are on for
    terminals that are not dumb.
    """
    chosen = colours_of_environment()
    if _choice != "auto" or chosen is not None:
        return (_choice if chosen is None or _choice != "auto" else chosen[1]) == "always"
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def terminal_width() -> int | None:
    """Columns of the terminal; None, for lines of any length, if standard output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def styled_console(width: int | None = None) -> Console:
    """A rich console with colours even into a pipe, of the terminal's width unless ``width`` is given."""
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
"""rich honours a given width only together with a height."""

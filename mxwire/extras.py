"""Optional dependencies: an error with the ``pip`` command for each package outside the core installation."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from mxwire.errors import MxwireError


class MissingExtraError(MxwireError, ImportError):
    """A missing package of an extra; the text contains the ``pip`` command that installs it."""


def install_command(extra: str) -> str:
    """Return the command that installs the packages of ``extra``; mxwire itself is not on PyPI yet."""
    return f"pip install '.[{extra}]' in a checkout of mxwire"


def import_extra(module: str, extra: str, needed_by: str) -> ModuleType:
    """Import and return ``module``, which belongs to the extra ``extra`` of ``pyproject.toml``.

    ``needed_by`` is the command or option to name in the error. Raises :class:`MissingExtraError` if the import fails.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{needed_by} needs {package}, which cannot be imported ({error}): {install_command(extra)}"
        ) from None

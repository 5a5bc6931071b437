"""Optional dependencies: an error with the command that installs each package outside the core installation."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from mxwire.errors import MxwireError


class MissingExtraError(MxwireError, ImportError):
    """A missing package of an extra; the text contains the command that installs it."""


def install_command(extra: str) -> str:
    """Return the command that installs the packages of ``extra``, and leaves mxwire itself as it is installed."""
    # Only an error needs them, and they import a third of the modules of a command.
    import re
    import shlex
    import sysconfig
    from importlib import metadata

    mark = re.compile(f"""; *extra *== *['"]{extra}['"]""")
    try:
        own = metadata.distribution("mxwire")
    except metadata.PackageNotFoundError:
        needed = []
    else:
        needed = [mark.split(each)[0] for each in own.requires or () if mark.search(each)]
    if not needed:
        return f"pip install -e '.[{extra}]' in a checkout of mxwire"
    prefix = sysconfig.get_path("data")
    if own.read_text("../../../../pipx_metadata.json") is not None:
        return f"pipx inject {shlex.join([prefix.rpartition('/')[2], *needed])}"
    if (own.read_text("INSTALLER") or "").strip() == "uv":
        # Environments of uv have no pip.
        return f"uv pip install --python {shlex.join([prefix, *needed])}"
    # Another pip may be the first on the path.
    return f"python -m pip install {shlex.join(needed)}"


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

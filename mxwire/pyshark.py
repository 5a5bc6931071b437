"""pyshark with the Wireshark plugin loaded: every field of a packet under ``packet.mxoe``."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from mxwire.errors import MxwireError
from mxwire.extras import import_extra
from mxwire.plugin.check import ensure_loads, loading_arguments
from mxwire.plugin.programs import Tshark


def open_capture(
    path: str | Path, display_filter: str | None = None, *, tshark_path: str | Path | None = None, **options: Any
) -> Any:
    """Return a ``pyshark.FileCapture`` of a capture, to be iterated and closed (or used in ``with``).

    The plugin need not be installed; an installed one is used. ``display_filter`` is Wireshark's, for
    example ``mxoe.ptype == 41``; all other options are those of ``pyshark.FileCapture`` (``override_prefs``,
    ``custom_parameters``, …). Raises :class:`~mxwire.errors.MxwireError` if pyshark, tshark or the capture is
    missing, or if the plugin does not load.
    """
    pyshark = import_extra("pyshark", "pyshark", "mxwire.pyshark")
    tshark = Tshark(tshark_path)
    if not Path(path).is_file():
        raise MxwireError(f"{path}: no such file")
    arguments = loading_arguments(tshark)
    ensure_loads(tshark, arguments, Path(path))
    if options.get("eventloop") is None:
        _ensure_event_loop()
    more = options.pop("custom_parameters", None) or []
    if isinstance(more, dict):
        more = [each for pair in more.items() for each in pair]
    return _waiting_capture(pyshark)(
        str(path),
        display_filter=display_filter,
        tshark_path=str(tshark.path),
        custom_parameters=[*arguments, *more],
        **options,
    )


_PATIENCE = 30.0
"""Seconds in which a tshark that has closed its output must end, also on a busy machine."""


def _waiting_capture(pyshark: Any) -> Any:
    """Return the class of captures whose tshark ends by itself after its last packet.

    pyshark kills it at once. If it ends at that moment, asyncio loses its exit code, and pyshark reports a crash.
    """

    class WaitingCapture(pyshark.FileCapture):  # type: ignore[misc]
        async def _cleanup_subprocess(self, process: asyncio.subprocess.Process) -> None:
            if self._eof_reached and process.returncode is None:
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(process.wait(), _PATIENCE)
            await super()._cleanup_subprocess(process)

    return WaitingCapture


def _ensure_event_loop() -> None:
    """Set the event loop that pyshark requires in this thread; ``asyncio.run`` leaves a thread without one."""
    policy = asyncio.get_event_loop_policy()
    try:
        policy.get_event_loop()
    except RuntimeError:
        policy.set_event_loop(policy.new_event_loop())

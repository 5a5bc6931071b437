"""The progress bar of every command: on standard error, separate from the output.

Only this module creates displays that redraw themselves. By default, rich redirects standard output through such a
display, and output for a pipe or a file would appear on the terminal: both redirections are off here.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import TYPE_CHECKING, Final, Literal

import click

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress, ProgressColumn

SHOWN_FROM_BYTES = 32 * 1024 * 1024
"""Minimum file size for a progress bar; smaller files are finished before it is useful."""
_STEADY_SECONDS: Final = 3.0
"""Time to observe a pace before it is shown: batches read ahead at the start are misleading."""
_STEADY_STEPS: Final = 3
_WINDOW_SECONDS: Final = 20.0
"""Period over which the pace is measured, because some parts of a capture take longer than others."""
_REDRAWS_PER_SECOND: Final = 5

Unit = Literal["bytes", "count"]


class Estimate:
    """Estimates the pace of some work and the remaining time from the times of its steps.

    There is no estimate before the pace was steady for a few seconds. Time without a step counts as well, so that the
    estimate of stalled work grows.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._steps: deque[tuple[float, float]] = deque()
        """Times and units done, of the last seconds; the first step ends the start-up."""

    def step(self, done: float) -> None:
        """Note that ``done`` units are done by now."""
        if self._steps and self._steps[-1][1] >= done:
            return
        now = self._clock()
        self._steps.append((now, done))
        # The last steps remain however old they are, since slow work would otherwise have no estimate.
        while len(self._steps) > _STEADY_STEPS + 1 and self._steps[1][0] < now - _WINDOW_SECONDS:
            self._steps.popleft()

    def pace(self) -> float | None:
        """Units per second; None while unknown."""
        if len(self._steps) <= _STEADY_STEPS:
            return None
        (start, before), (_, done) = self._steps[0], self._steps[-1]
        seconds = self._clock() - start
        return (done - before) / seconds if seconds >= _STEADY_SECONDS else None

    def seconds_left(self, total: float | None) -> float | None:
        """Seconds until ``total`` units are done; None while unknown."""
        pace = self.pace()
        if pace is None or total is None:
            return None
        return max(total - self._steps[-1][1], 0.0) / pace


class Bar:
    """A progress bar; this one shows nothing, for output without a terminal."""

    shown = False

    def update(self, done: float, total: float | None = None, now: str = "") -> None:
        """Show that ``done`` units of ``total`` (None: unchanged) are done, with a description of the current one."""

    def above(self, text: str) -> None:
        """Print a line above the bar."""

    def erase(self) -> None:
        """Remove the bar from the terminal, permanently."""


class _ShownBar(Bar):
    shown = True

    def __init__(self, label: str, total: float | None, unit: Unit, *, streams: bool) -> None:
        self._estimate = Estimate()
        # Lines may go to a pager on the same terminal, which blocks this program while it shows a page: then no thread
        # may draw the bar onto its screen.
        self._by_itself = not streams
        self._progress = _progress(unit, self._estimate, self._by_itself)
        self._task = self._progress.add_task(label, total=total, now="")
        self._drawn = time.monotonic()
        self._ends = False

    def start(self) -> None:
        """Draw the bar. SIGTERM, unless it has a handler, then ends the program as an exit, so that the bar is erased
        and the terminal has its cursor back."""
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._ends = True
            signal.signal(signal.SIGTERM, _exit_by_signal)
        self._progress.start()

    def update(self, done: float, total: float | None = None, now: str = "") -> None:
        self._estimate.step(done)
        self._progress.update(self._task, completed=done, total=total, now=now)
        if not self._by_itself and time.monotonic() - self._drawn >= 1 / _REDRAWS_PER_SECOND:
            self._drawn = time.monotonic()
            self._progress.refresh()

    def above(self, text: str) -> None:
        self._progress.console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)

    def erase(self) -> None:
        self._progress.stop()
        if self._ends:
            self._ends = False
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _exit_by_signal(number: int, _frame: FrameType | None) -> None:
    """Handle SIGTERM while a bar is shown: exit with its code."""
    sys.exit(128 + number)


# The handler is not for forks, which end by SIGTERM as usual. A handler in Python runs only between two steps of the
# interpreter: a SIGTERM that came before a fork had its own, or just before it began to wait, would not end it. The
# signal is therefore blocked during the fork, and the kernel delivers it when the fork has the default action.


def _block_sigterm() -> None:
    if signal.getsignal(signal.SIGTERM) is _exit_by_signal:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _unblock_sigterm() -> None:
    if signal.getsignal(signal.SIGTERM) is _exit_by_signal:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _restore_sigterm() -> None:
    if signal.getsignal(signal.SIGTERM) is _exit_by_signal:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


os.register_at_fork(before=_block_sigterm, after_in_parent=_unblock_sigterm, after_in_child=_restore_sigterm)


current: Bar | None = None
"""The bar on the terminal."""
_hidden = False


@contextmanager
def hidden() -> Iterator[None]:
    """Show no bar while the block runs, as another process, or an outer loop, shows one."""
    global _hidden
    before, _hidden = _hidden, True
    try:
        yield
    finally:
        _hidden = before


@contextmanager
def bar(
    label: str, total: float | None, unit: Unit = "count", *, wanted: bool = True, streams: bool = False
) -> Iterator[Bar]:
    """A progress bar while the block runs, if standard error is a terminal and it is ``wanted``.

    ``streams`` means that output is printed inside the block: if that goes to a terminal too, there is no bar, as lines
    and bar would overlap.
    """
    global current
    if _hidden or not wanted or not sys.stderr.isatty() or (streams and sys.stdout.isatty()):
        yield Bar()
        return
    # The bar is stored before it is drawn, because an interrupt in between would leave it on the terminal.
    current = made = _ShownBar(label, total, unit, streams=streams)
    try:
        made.start()
        yield made
    finally:
        erase()


def erase() -> None:
    """Remove the bar from the terminal, if there is one.

    An interrupted loop leaves its bar behind, and the next message must not be written onto it.
    """
    global current
    shown, current = current, None
    if shown is not None:
        shown.erase()


class LiveLine:
    """A line of standard error that is replaced: shown on a terminal only, if it is ``wanted``."""

    def __init__(self, wanted: bool = True) -> None:
        self.shown = wanted and sys.stderr.isatty()

    def show(self, text: str = "") -> None:
        """Replace the line, and a ^C echoed into it; without a text it is erased."""
        if self.shown:
            click.echo(f"\r\x1b[K{text}", nl=False, err=True)


@contextmanager
def live_display() -> Iterator[Callable[[RenderableType], None]]:
    """A display on standard output that draws renderables, and is erased at the end."""
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    with Live(
        console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
    ) as display:
        yield lambda shown: display.update(shown, refresh=True)


def _progress(unit: Unit, estimate: Estimate, by_itself: bool) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn

    columns: tuple[ProgressColumn, ...] = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn() if unit == "bytes" else MofNCompleteColumn(),
        _pace_column(unit, estimate),
        TextColumn("{task.fields[now]}", markup=False),
    )
    return Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        refresh_per_second=_REDRAWS_PER_SECOND,
        auto_refresh=by_itself,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def _pace_column(unit: Unit, estimate: Estimate) -> ProgressColumn:
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class PaceColumn(ProgressColumn):
        """The pace of bytes and the time left, once they are known."""

        def render(self, task: Task) -> Text:
            """The text of the column."""
            pace, left = estimate.pace(), estimate.seconds_left(task.total)
            shown = [f"{pace / 1e6:,.1f} MB/s"] if pace is not None and unit == "bytes" else []
            shown += [f"{timedelta(seconds=round(left))} left"] if left is not None else []
            return Text("  ".join(shown), style="progress.remaining")

    return PaceColumn()

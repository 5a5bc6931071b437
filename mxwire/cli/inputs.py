"""Files or an interface: what the commands that look at frames are given."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from mxwire.cli.completion import interfaces, offers
from mxwire.cli.options import FILE, Amount
from mxwire.errors import MxwireError

if TYPE_CHECKING:
    from mxwire.cli.live_batches import Source

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a command reads: files, or what passes an interface."""

    files: tuple[str, ...]
    interface: str | None
    seconds: float | None

    def __post_init__(self) -> None:
        """Raises :class:`~mxwire.errors.MxwireError` for options that contradict each other."""
        if self.interface is None and not self.files:
            raise MxwireError("nothing to read: name a capture FILE, or an interface with -i IF")
        if self.interface is not None and self.files:
            raise MxwireError("FILE and -i IF are two things to look at: give one of them")
        if self.interface is None and self.seconds is not None:
            raise MxwireError("--time ends what -i IF begins; a file is read to its end")

    @property
    def live(self) -> bool:
        """Whether frames come as they pass an interface."""
        return self.interface is not None

    @property
    def names(self) -> tuple[str, ...]:
        """What to :meth:`open`, one after the other."""
        return self.files if self.interface is None else (self.interface,)

    @contextmanager
    def open(self, name: str, ethertypes: tuple[int, ...] = ()) -> Iterator[Source]:
        """One of :attr:`names` as a source of batches; what is odd about it is told when it is closed."""
        if self.live:
            from mxwire.cli.live_batches import live_source

            with live_source(name, seconds=self.seconds, ethertypes=ethertypes) as source:
                yield source
        else:
            from mxwire.cli.reading import capture_of

            with capture_of(name) as reader:
                yield reader


_OPTIONS: Final = (
    click.argument("files", metavar="[FILE...]", nargs=-1, type=FILE),
    click.option(
        "-i",
        "--interface",
        metavar="IF",
        shell_complete=offers(interfaces),
        help="Instead of files: what passes this interface, until Ctrl-C.",
    ),
    click.option("--time", "seconds", type=Amount(0, min_open=True), metavar="S", help="With -i: end after S seconds."),
)


def input_options(function: Command) -> Command:
    """Give a command FILEs, ``-i`` and ``--time``; it gets them as ``inputs``, an :class:`Inputs`."""

    @functools.wraps(function)
    def wrapped(
        *arguments: Any, files: tuple[str, ...], interface: str | None, seconds: float | None, **rest: Any
    ) -> Any:
        return function(*arguments, inputs=Inputs(files, interface, seconds), **rest)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value]

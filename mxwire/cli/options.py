"""Option types, and the options that several commands share."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from mxwire.cli.completion import dialects, interfaces, offers
from mxwire.errors import MxwireError
from mxwire.report.terminal import COLOUR_CHOICES, choose_colour, is_coloured
from mxwire.wire.numbers import DEFAULT_KEY

if TYPE_CHECKING:
    from mxwire.analysis.selection import FrameRange
    from mxwire.cli.reading import BatchSource

Command = TypeVar("Command", bound=Callable[..., Any])

_RANGE: Final = re.compile(r"(\d*)(-?)(\d*)")

_MOST: Final = 1e9
"""Upper limit of every amount: in seconds it is 30 years."""


# Types


class FrameRanges(click.ParamType):  # type: ignore[type-arg]
    """``7``, ``10-20``, ``100-``, ``-5``, or several with commas; frame numbers count from 1."""

    name = "ranges"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[FrameRange]:
        """The ranges as pairs; the last number of an open range is None."""
        if isinstance(value, list):
            return value
        ranges: list[FrameRange] = []
        for part in str(value).split(","):
            match = _RANGE.fullmatch(part.strip())
            if not match or not (match[1] or match[3]):
                self.fail(f"{part!r} is not a range of frames: write 7, 10-20, 100- or -5", param, ctx)
            first = int(match[1] or 1)
            if first == 0:
                self.fail(f"{part!r}: frames count from 1", param, ctx)
            last = int(match[3]) if match[3] else (None if match[2] else first)
            if last is not None and last < first:
                self.fail(f"{part!r} ends before it starts", param, ctx)
            ranges.append((first, last))
        return ranges


class Amount(click.FloatRange):
    """A finite number in a range: no infinity, nor nan, which passes any comparison."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        number: float = super().convert(value, param, ctx)
        if not number <= _MOST:
            self.fail(f"{value!r} is not a number up to {_MOST:,.0f}", param, ctx)
        return number


class Number(click.ParamType):  # type: ignore[type-arg]
    """A number up to a limit, decimal or with 0x."""

    name = "number"

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        try:
            number = value if isinstance(value, int) else int(str(value), 0)
        except ValueError:
            number = -1
        if not 0 <= number <= self._maximum:
            self.fail(f"{value!r} is not a number from 0 to {self._maximum:#x}", param, ctx)
        return number


class EtherType(click.ParamType):  # type: ignore[type-arg]
    """A 16-bit number, decimal or with 0x."""

    name = "ethertype"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        if isinstance(value, int):
            return value
        try:
            number = int(str(value), 0)
        except ValueError:
            number = -1
        if not 0x600 <= number <= 0xFFFF:
            self.fail(f"{value!r} is not an EtherType: write it like 0x86DF", param, ctx)
        return number


FILE: Final = click.Path(readable=False, allow_dash=True)
"""A file name, which shells complete; the code that opens the file reports its errors."""


# Options


dialect_option = click.option(
    "--dialect",
    default="auto",
    metavar="auto|mxoe|omx|omx:M",
    shell_complete=dialects,
    help="Dialect of the hosts; auto detects it per pair of hosts.  [default: auto]",
)
message_option = click.option(
    "--message",
    "number",
    metavar="N",
    type=click.IntRange(min=1),
    required=True,
    help="The message, by its number in mxwire messages.",
)
table_option = click.option(
    "--to",
    "target",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write a table: .parquet, .csv, .ndjson or .arrow.",
)
ethertype_option = click.option(
    "--ethertype",
    "ethertypes",
    metavar="N",
    type=EtherType(),
    multiple=True,
    help="EtherType that MXoE uses in this capture, if not 0x86DF; may be repeated.",
)

key_option = click.option(
    "--key",
    type=Number(0xFFFF_FFFF),
    default=DEFAULT_KEY,
    metavar="K",
    help=f"Key of the endpoint.  [default: {DEFAULT_KEY:#x}]",
)


def duration_option(default: float | None, text: str) -> Callable[[Command], Command]:
    """``--duration`` in seconds, greater than 0, passed to the command as ``seconds``; ``text`` is its help."""
    return seconds_option("--duration", "seconds", default, text)


def seconds_option(option: str, name: str, default: float | None, text: str) -> Callable[[Command], Command]:
    """An option in seconds, greater than 0."""
    return click.option(
        option,
        name,
        type=Amount(0, min_open=True),
        default=default,
        show_default=default is not None,
        metavar="S",
        help=text,
    )


# Files or an interface


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a command: files, or the frames that pass an interface."""

    files: tuple[str, ...]
    interface: str | None
    seconds: float | None

    def __post_init__(self) -> None:
        """Raise :class:`~mxwire.errors.MxwireError` for options that contradict each other."""
        if self.interface is None and not self.files:
            raise MxwireError("nothing to read: name a capture FILE, or an interface with -i IF")
        if self.interface is not None and self.files:
            raise MxwireError("FILE and -i IF exclude each other: give one of them")
        if self.interface is None and self.seconds is not None:
            raise MxwireError("--duration goes with -i IF; a file is read to its end")

    @property
    def live(self) -> bool:
        """True for an interface."""
        return self.interface is not None

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs to :meth:`open`, one after the other."""
        return self.files if self.interface is None else (self.interface,)

    @contextmanager
    def open(self, name: str, ethertypes: tuple[int, ...] = ()) -> Iterator[BatchSource]:
        """Open one of :attr:`names` as a source of batches; its warnings are printed when it is closed."""
        from mxwire.cli.reading import capture_of, live_source

        if self.live:
            with live_source(name, seconds=self.seconds, ethertypes=ethertypes) as source:
                yield source
        else:
            with capture_of(name) as reader:
                yield reader


_INPUT_OPTIONS: Final = (
    click.argument("files", metavar="[FILE...]", nargs=-1, type=FILE),
    click.option(
        "-i",
        "--interface",
        metavar="IF",
        shell_complete=offers(interfaces),
        help="Instead of files: read the frames that pass this interface, until Ctrl-C.",
    ),
    duration_option(None, "With -i: end after S seconds."),
)


def input_options(function: Command) -> Command:
    """Give a command FILEs, ``-i`` and ``--duration``, passed to it as ``inputs``, an :class:`Inputs`."""

    @functools.wraps(function)
    def wrapped(
        *arguments: Any, files: tuple[str, ...], interface: str | None, seconds: float | None, **rest: Any
    ) -> Any:
        return function(*arguments, inputs=Inputs(files, interface, seconds), **rest)

    for option in reversed(_INPUT_OPTIONS):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value]


# Colours: an option of the whole program, which every command accepts as well


def _choose_colour(context: click.Context, _option: click.Parameter, choice: str | None) -> None:
    if choice is not None:
        choose_colour(choice)
    # By default, click.echo removes colours from output into a pipe.
    context.color = is_coloured()


colour_option = click.option(
    "--color",
    type=click.Choice(COLOUR_CHOICES),
    metavar="|".join(COLOUR_CHOICES),
    is_eager=True,
    expose_value=False,
    callback=_choose_colour,
    help="Colours: auto uses them on a terminal, always in pipes too.  [default: auto]",
)


def add_colour_option(command: click.Command) -> None:
    """Add ``--color`` to a command and its subcommands, so that it works before and after the command's name."""
    if not any("--color" in each.opts for each in command.params):
        colour_option(command)
    if isinstance(command, click.Group):
        for each in command.commands.values():
            add_colour_option(each)

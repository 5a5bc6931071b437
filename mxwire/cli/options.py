"""Option types and helpers that several commands share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import click

from mxwire.cli.completion import dialects

_RANGE: Final = re.compile(r"(\d*)(-?)(\d*)")

_MOST: Final = 1e9
"""Of whatever it is: of seconds it makes 30 years."""

Range = tuple[int, int | None]


class FrameRanges(click.ParamType):  # type: ignore[type-arg]
    """``7``, ``10-20``, ``100-``, ``-5``, or several with commas; frame numbers count from 1."""

    name = "ranges"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Range]:
        """The ranges as pairs; the last number is None where the range is open."""
        if isinstance(value, list):
            return value
        ranges: list[Range] = []
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
    """A number in a range, but nothing without an end: no infinity, nor nan, which passes any comparison."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        number: float = super().convert(value, param, ctx)
        if not number <= _MOST:
            self.fail(f"{value!r} is not a number up to {_MOST:,.0f}", param, ctx)
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
"""A file name, which shells complete; whatever opens the file reports what is wrong with it."""

dialect_option = click.option(
    "--dialect",
    default="auto",
    metavar="auto|mxoe|omx|omx:M",
    shell_complete=dialects,
    help="What the hosts speak; auto finds out per pair of hosts.  [default: auto]",
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
    help="EtherType of MXoE here, if not 0x86DF; may be repeated.",
)

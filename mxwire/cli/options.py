"""Option types, and the options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from mxwire.cli.completion import catalogued, dialects, interfaces, live_dialects, offers
from mxwire.cli.configuration import from_environment, from_file, variable_of
from mxwire.cli.help_text import Topic
from mxwire.cli.option_class import option
from mxwire.errors import MxwireError
from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.report.terminal import COLOUR_CHOICES, choose_colour, is_coloured
from mxwire.wire.numbers import DEFAULT_KEY

if TYPE_CHECKING:
    from mxwire.analysis.host_names import HostChoice

Decorator = Any
"""A decorator of click for the function of a command, or a field of a class of options."""

_BOUNDLESS: Final = 1 << 62
"""Help does not show upper limits from this value, which are only machine limits."""
_MOST: Final = 1e9
"""Upper limit of every amount: in seconds it is 30 years."""


# Types


class _IntegerRange(click.IntRange):
    """An integer in a range, which help describes without an upper limit that no user will reach."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        number: int = click.INT.convert(value, param, ctx)
        if self._is_boundless and number > (self.max or 0):
            self.fail(f"{value} is more than {self.max}", param, ctx)
        checked: int = super().convert(value, param, ctx)
        return checked

    @property
    def _is_boundless(self) -> bool:
        return self.max is not None and self.max >= _BOUNDLESS

    def _describe_range(self) -> str:
        return click.IntRange(self.min)._describe_range() if self._is_boundless else super()._describe_range()


class Amount(click.FloatRange):
    """A finite number in a range: no infinity, nor nan, which passes any comparison."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        number: float = super().convert(value, param, ctx)
        if not number <= _MOST:
            self.fail(f"{value!r} is not a number up to {_MOST:,.0f}", param, ctx)
        return number


def number_type(maximum: int, minimum: int = 0, meaning: str = "") -> Callable[[str | int], int]:
    """An option type: a number in a range, decimal or with 0x; ``meaning`` is its description in errors."""

    def number(value: str | int) -> int:
        try:
            found = int(str(value), 0)
        except ValueError:
            found = -1
        if not minimum <= found <= maximum:
            raise click.BadParameter(f"{value!r} is not {meaning or f'a number from {minimum} to {maximum:#x}'}")
        return found

    return number


def split_names(_: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    """The names of a list with commas; none without the option."""
    if value is None:
        return ()
    names = tuple(dict.fromkeys(each.strip() for each in value.split(",") if each.strip()))
    if not names:
        raise click.BadParameter("name at least one", param=parameter)
    return names


ether_type: Final = number_type(0xFFFF, 0x600, "an EtherType: write it like 0x86DF")
"""An option type: a 16-bit number, decimal or with 0x."""


def host_type(value: str) -> HostChoice:
    """An option type: a host, perhaps with an endpoint; see :func:`~mxwire.analysis.host_names.host_choice`."""
    from mxwire.analysis.host_names import host_choice

    try:
        return host_choice(value)
    except MxwireError as error:
        raise click.BadParameter(str(error)) from None


FILE: Final = click.Path(readable=False, allow_dash=True)
"""A file name, which shells complete; the code that opens the file reports its errors."""
PATH: Final = click.Path(path_type=Path)
"""A file or folder as a path, which is never ``-``."""


# Options


class SharedOption(click.Option):
    """An option of many commands, whose help only names it: ``mxwire help TOPIC`` explains it.

    Without a ``topic`` it is explained as others are.
    """

    def __init__(self, *arguments: Any, topic: str = "", **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.topic: Final = topic

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The topic with the names of its options in this command; None unless this is the first of them."""
        if not self.topic:
            return super().get_help_record(ctx)
        options = [each for each in ctx.command.get_params(ctx) if isinstance(each, SharedOption)]
        alike = [each for each in options if each.topic == self.topic]
        names = ", ".join(each.opts[-1] for each in alike)
        return (Topic(self.topic), names) if alike[0] is self else None

    def explanation(self, context: click.Context) -> tuple[str, str]:
        """The record for the help of the topic."""
        record = super().get_help_record(context)
        assert record is not None
        return record


class ConfigurableOption(SharedOption):
    """A shared option whose default value may be in the configuration, with the key ``setting``."""

    def __init__(self, *arguments: Any, setting: str, **more: Any) -> None:
        super().__init__(*arguments, envvar=variable_of(setting), show_envvar=True, **more)
        self.setting: Final = setting

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """The value of the variable, if it is valid."""
        text = None if ctx.resilient_parsing else super().resolve_envvar_value(ctx)
        if text is not None:
            from_environment(self.setting)
        return text

    def get_default(self, ctx: click.Context, call: bool = True) -> Any:
        """The value in the file of the configuration, or the usual default."""
        value = None if ctx.resilient_parsing else from_file(self.setting)
        return value.text if value else super().get_default(ctx, call)


def of_topic(topic: str, setting: str = "") -> dict[str, Any]:
    """Properties of an option that ``mxwire help TOPIC`` explains, and that may have a default in the configuration."""
    if not setting:
        return {"cls": SharedOption, "topic": topic}
    return {"cls": ConfigurableOption, "topic": topic, "setting": setting}


def flag_option(text: str, *names: str, **more: Any) -> Decorator:
    """An option without a value."""
    return option(text, *names, is_flag=True, **more)


def json_option(text: str) -> Decorator:
    """``--json``, passed to the command as ``as_json``."""
    return flag_option(text, "--json", "as_json")


def full_json_option(text: str) -> Decorator:
    """``--json``, passed to the command as ``as_json``: False, True, or ``full`` for ``--json=full``
    (:meth:`mxwire.cli.group.Command.parse_args`)."""

    def decorate(command: Any) -> Any:
        full = click.option("--json-full", is_flag=True, hidden=True)(command)
        return json_option(f"{text} --json=full prints all keys.")(full)

    return decorate


def junit_option(text: str) -> Decorator:
    """``--junit``: a file of JUnit XML beside the output of the command."""
    return option(f"Write JUnit XML to FILE: {text}.", "--junit FILE", type=PATH, callback=_junit_file)


def _junit_file(_context: click.Context, _option: click.Parameter, file: Path | None) -> Path | None:
    from mxwire.errors import check_writable

    if file is not None:
        check_writable(file)
        # A forgotten FILE would make the first capture the file to write.
        if file.is_file():
            with file.open("rb") as opened:
                beginning = opened.read(1)
            if beginning not in (b"", b"<"):
                raise click.BadParameter(f"{file} exists and is not XML: name another file")
    return file


def plot_option(text: str, *suffixes: str) -> Decorator:
    """``--plot``: a file to draw, whose name ends in one of ``suffixes``; it is refused unless it can be drawn."""

    def checked(_context: click.Context, _option: click.Parameter, file: Path | None) -> Path | None:
        if file is not None:
            from mxwire.errors import check_writable
            from mxwire.report.plot import check

            if file.suffix.lower() not in suffixes:
                raise click.BadParameter(f"{file}: name a file that ends in {', '.join(suffixes)}")
            check_writable(file)
            check()
        return file

    return option(text, "--plot FILE", type=PATH, callback=checked)


def interface_option(text: str = "The Ethernet interface, like eth0.", *, required: bool = False) -> Decorator:
    """``-i``: an Ethernet interface of this computer; one that is ``required`` may be in the configuration."""
    shared = of_topic("", "interface" if required else "")
    return option(text, "-i", "--interface IF", shell_complete=offers(interfaces), required=required, **shared)


# The metavar of the following options is the one behind their names, or that of most of them. ``more`` are other
# properties in click.


def name_option(text: str, kind: str, *names: str, listed: bool = False, **more: Any) -> Decorator:
    """An option for names from the catalogue ``kind``, which completion offers; ``listed``: with commas."""
    return option(text, *names, shell_complete=offers(catalogued(kind), listed=listed), **{"metavar": "NAME"} | more)


def integer_option(text: str, *names: str, least: int = 0, most: int | None = None, **more: Any) -> Decorator:
    """An integer from ``least`` to ``most``."""
    return option(text, *names, type=_IntegerRange(least, most), **{"metavar": "N"} | more)


def endpoint_option(text: str, **more: Any) -> Decorator:
    """``--endpoint``: the number of an endpoint."""
    return integer_option(text, "--endpoint", most=255, **more)


def count_option(text: str) -> Decorator:
    """``-c``: the number after which a command ends."""
    return integer_option(text, "-c", "--count", least=1)


def amount_option(text: str, *names: str, zero: bool = False, **more: Any) -> Decorator:
    """A number, in seconds unless the metavar names another unit; greater than 0, or with ``zero`` at least 0."""
    return option(text, *names, type=Amount(0, min_open=not zero), **{"metavar": "S"} | more)


def duration_option(default: float | None, text: str) -> Decorator:
    """``--duration`` in seconds, greater than 0, passed to the command as ``seconds``."""
    return amount_option(text, "--duration", "seconds", default=default)


def timeout_option(default: float | None, text: str) -> Decorator:
    """``--timeout`` in seconds, greater than 0."""
    return amount_option(text, "--timeout", default=default)


def write_option(text: str, *names: str, **more: Any) -> Decorator:
    """``-w``: the file to write; ``names`` are further names of the option, ``more`` its other properties in click."""
    return option(text, "-w", "--write FILE", *names, **{"type": FILE} | more)


def live_dialect_option(text: str, **more: Any) -> Decorator:
    """``--dialect`` of hosts that mxwire runs, for which there is nothing to detect; ``more``: as in click."""
    return option(text, "--dialect mxoe|omx|omx:M", shell_complete=live_dialects, **more)


peers_option = option(
    "Known hosts: one Ethernet address and name per line.", "--peers FILE", type=PATH, **of_topic("hosts", "peers")
)
dialect_option = option(
    "Dialect of the hosts; auto detects it per pair of hosts.  [default: auto]",
    "--dialect auto|mxoe|omx|omx:M",
    default="auto",
    shell_complete=dialects,
    **of_topic("dialects"),
)
_TABLES: Final = "Write a table: .parquet, .csv, .ndjson or .arrow"


table_option = option(f"{_TABLES}.", "--to FILE", "target", type=PATH)
set_table_option = option(f"{_TABLES}; with --on, a folder of Parquet files.", "--to FILE|DIR", "target", type=PATH)
piece_option = amount_option(
    "Divide captures of more than MB (10^6 bytes) among the workers of --on.", "--piece MB", default=1000
)
time_format_option = option(
    "Seconds since the first frame, seconds since the previous line, or date and time (UTC).",
    "--time-format [relative|delta|absolute]",
    default="relative",
)
ethertype_option = option(
    "EtherType that MXoE uses in this capture, if not 0x86DF; may be repeated.",
    "--ethertype N",
    "ethertypes",
    type=ether_type,
    multiple=True,
    **of_topic("dialects"),
)
own_ethertype_option = option(
    "EtherType of MXoE on this network.", "--ethertype N", type=ether_type, default=f"0x{ETHERTYPE_MXOE:04X}"
)
damage_option = option(
    "Continue behind damage in a capture, where frames can be recognised again.",
    "--skip-damage",
    is_flag=True,
    **of_topic("files"),
)
every_option = option(
    "Interval of progress lines; on a terminal the counts are always shown.",
    "--every S",
    type=Amount(0.1),
    default=10.0,
)
key_option = option(
    f"Key of the endpoint.  [default: {DEFAULT_KEY:#x}]", "--key K", type=number_type(0xFFFF_FFFF), default=DEFAULT_KEY
)


def given_options() -> dict[str, str]:
    """The options on the command line: the last name of each option (``--write`` for ``-w``) by parameter name."""
    context = click.get_current_context()
    return {
        each.name: each.opts[-1]
        for each in context.command.params
        if each.name is not None and context.get_parameter_source(each.name) is ParameterSource.COMMANDLINE
    }


def has_old_report(folder: Path, force: bool, mark: str, what: str) -> bool:
    """Return whether a folder has a report that ``--force`` permits to replace; ``mark`` is a file in each report.

    Raises :class:`~mxwire.errors.MxwireError` if the folder may not be written.
    """
    if folder.exists() and not folder.is_dir():
        raise MxwireError(f"{folder}: is a file; name a folder for the report")
    if not folder.is_dir() or not any(folder.iterdir()):
        return False
    if not force:
        raise MxwireError(f"{folder}: exists already; --force replaces it, or name another folder")
    if not (folder / mark).is_file():
        raise MxwireError(f"{folder}: contains no {what}, so --force does not touch it")
    return True


def is_plain_pcap(name: str) -> bool:
    """Return whether the name of a capture stands for pcap, compressed or not, which has no comments."""
    return name.removesuffix(".gz").removesuffix(".zst").endswith((".pcap", ".cap"))


def as_pcapng(name: str) -> str:
    """Return the name for a capture in pcapng instead of pcap, not compressed."""
    return f"{Path(name.removesuffix('.gz').removesuffix('.zst')).stem}.pcapng"


def via_option(*choices: str, **properties: Any) -> Decorator:
    """``--via``, the kind of the link: some of packet, xdp, xdp-send and kernel; ``properties``: as in click."""
    more = "; kernel: live frames made by the kernel" if "kernel" in choices else ""
    more += "; xdp-send: AF_XDP to send large messages, AF_PACKET for all else" if "xdp-send" in choices else ""
    return option(
        f"packet: AF_PACKET; xdp: AF_XDP, which takes the frames from all other programs{more}.",
        "--via",
        type=click.Choice(choices),
        default="packet",
        **properties,
    )


def _choose_colour(context: click.Context, _option: click.Parameter, choice: str | None) -> None:
    if choice is not None:
        choose_colour(choice)
    # By default, click.echo removes colours from output into a pipe.
    context.color = is_coloured()


def colour_option(**properties: Any) -> Decorator:
    """``--color``; ``properties`` are other ones in click."""
    return option(
        "Colours: auto uses them on a terminal, always in pipes too.  [default: auto]",
        "--color",
        type=click.Choice(COLOUR_CHOICES),
        metavar="|".join(COLOUR_CHOICES),
        is_eager=True,
        expose_value=False,
        callback=_choose_colour,
        **properties,
    )

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
        value = None if ctx.resilient_parsing else from_environment(self.setting)
        return value.text if value else None

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
    return click.option(*names, is_flag=True, help=text, **more)


def json_option(text: str) -> Decorator:
    """``--json``, passed to the command as ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help=text)


def full_json_option(text: str) -> Decorator:
    """``--json``, passed to the command as ``as_json``: False, True, or ``full`` for ``--json=full``
    (:meth:`mxwire.cli.group.Command.parse_args`)."""

    def decorate(command: Any) -> Any:
        full = click.option("--json-full", is_flag=True, hidden=True)(command)
        return json_option(f"{text} --json=full prints all keys.")(full)

    return decorate


def junit_option(text: str) -> Decorator:
    """``--junit``: a file of JUnit XML beside the output of the command."""
    return click.option(
        "--junit",
        metavar="FILE",
        type=click.Path(path_type=Path),
        callback=_junit_file,
        help=f"Write JUnit XML to FILE: {text}.",
    )


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

    return click.option("--plot", metavar="FILE", type=click.Path(path_type=Path), callback=checked, help=text)


def interface_option(text: str = "The Ethernet interface, like eth0.", *, required: bool = False) -> Decorator:
    """``-i``: an Ethernet interface of this computer; one that is ``required`` may be in the configuration."""
    return click.option(
        "-i",
        "--interface",
        metavar="IF",
        shell_complete=offers(interfaces),
        required=required,
        help=text,
        **of_topic("", "interface" if required else ""),
    )


def name_option(
    text: str, kind: str, *names: str, metavar: str = "NAME", listed: bool = False, **more: Any
) -> Decorator:
    """An option for names from the catalogue ``kind``, which completion offers; ``listed``: with commas between them.

    ``names`` are those of the option, ``more`` its other properties in click.
    """
    complete = offers(catalogued(kind), listed=listed)
    return click.option(*names, metavar=metavar, shell_complete=complete, help=text, **more)


def integer_option(
    text: str,
    *names: str,
    least: int = 0,
    most: int | None = None,
    default: int | None = None,
    metavar: str = "N",
    **more: Any,
) -> Decorator:
    """An integer from ``least`` to ``most``; ``more`` are other properties in click."""
    kind, shown = _IntegerRange(least, most), default is not None
    return click.option(*names, type=kind, default=default, show_default=shown, metavar=metavar, help=text, **more)


def endpoint_option(text: str, default: int | None = None, **more: Any) -> Decorator:
    """``--endpoint``: the number of an endpoint; ``more`` are other properties in click."""
    return integer_option(text, "--endpoint", most=255, default=default, **more)


def count_option(text: str) -> Decorator:
    """``-c``: the number after which a command ends."""
    return integer_option(text, "-c", "--count", least=1)


def amount_option(
    text: str, *names: str, default: float | None = None, zero: bool = False, metavar: str = "S"
) -> Decorator:
    """A number, in seconds unless ``metavar`` names another unit; greater than 0, or with ``zero`` at least 0."""
    kind, shown = Amount(0, min_open=not zero), default is not None
    return click.option(*names, type=kind, default=default, show_default=shown, metavar=metavar, help=text)


def duration_option(default: float | None, text: str) -> Decorator:
    """``--duration`` in seconds, greater than 0, passed to the command as ``seconds``."""
    return amount_option(text, "--duration", "seconds", default=default)


def timeout_option(default: float | None, text: str) -> Decorator:
    """``--timeout`` in seconds, greater than 0."""
    return amount_option(text, "--timeout", default=default)


def write_option(text: str, *names: str, **more: Any) -> Decorator:
    """``-w``: the file to write; ``names`` are further names of the option, ``more`` its other properties in click."""
    properties: dict[str, Any] = {"metavar": "FILE", "type": FILE, "help": text}
    return click.option("-w", "--write", *names, **properties | more)


def live_dialect_option(text: str, **more: Any) -> Decorator:
    """``--dialect`` of hosts that mxwire runs, for which there is nothing to detect; ``more``: as in click."""
    return click.option("--dialect", metavar="mxoe|omx|omx:M", shell_complete=live_dialects, help=text, **more)


peers_option = option(
    "--peers",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Known hosts: one Ethernet address and name per line.",
    **of_topic("hosts", "peers"),
)
dialect_option = option(
    "--dialect",
    default="auto",
    metavar="auto|mxoe|omx|omx:M",
    shell_complete=dialects,
    help="Dialect of the hosts; auto detects it per pair of hosts.  [default: auto]",
    **of_topic("dialects"),
)
_TABLES: Final = "Write a table: .parquet, .csv, .ndjson or .arrow"


def _table_option(metavar: str, text: str) -> Decorator:
    return click.option("--to", "target", metavar=metavar, type=click.Path(path_type=Path), help=text)


table_option = _table_option("FILE", f"{_TABLES}.")
piece_option = amount_option(
    "Divide captures of more than MB (10^6 bytes) among the workers of --on.", "--piece", default=1000, metavar="MB"
)
set_table_option = _table_option("FILE|DIR", f"{_TABLES}; with --on, a folder of Parquet files.")
time_format_option = option(
    "--time-format",
    type=click.Choice(["relative", "delta", "absolute"]),
    default="relative",
    show_default=True,
    help="Seconds since the first frame, seconds since the previous line, or date and time (UTC).",
)
ethertype_option = option(
    "--ethertype",
    "ethertypes",
    metavar="N",
    type=ether_type,
    multiple=True,
    help="EtherType that MXoE uses in this capture, if not 0x86DF; may be repeated.",
    **of_topic("dialects"),
)
damage_option = option(
    "--skip-damage",
    is_flag=True,
    help="Continue behind damage in a capture, where frames can be recognised again.",
    **of_topic("files"),
)
every_option = option(
    "--every",
    type=Amount(0.1),
    default=10.0,
    show_default=True,
    metavar="S",
    help="Interval of progress lines; on a terminal the counts are always shown.",
)
key_option = option(
    "--key",
    type=number_type(0xFFFF_FFFF),
    default=DEFAULT_KEY,
    metavar="K",
    help=f"Key of the endpoint.  [default: {DEFAULT_KEY:#x}]",
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
    return click.option(
        "--via",
        type=click.Choice(choices),
        default="packet",
        show_default=True,
        help=f"packet: AF_PACKET; xdp: AF_XDP, which takes the frames from all other programs{more}.",
        **properties,
    )


def _choose_colour(context: click.Context, _option: click.Parameter, choice: str | None) -> None:
    if choice is not None:
        choose_colour(choice)
    # By default, click.echo removes colours from output into a pipe.
    context.color = is_coloured()


def colour_option(**properties: Any) -> Decorator:
    """``--color``; ``properties`` are other ones in click."""
    return click.option(
        "--color",
        type=click.Choice(COLOUR_CHOICES),
        metavar="|".join(COLOUR_CHOICES),
        is_eager=True,
        expose_value=False,
        callback=_choose_colour,
        help="Colours: auto uses them on a terminal, always in pipes too.  [default: auto]",
        **properties,
    )

"""``mxwire scenario``: short texts that say what one side sends and what must come back."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

import click
from click.core import ParameterSource

from mxwire.cli.completion import catalogued, interfaces, live_dialects, offers, rule_numbers, scenarios
from mxwire.cli.group import CommandGroup
from mxwire.cli.live import Destination, DestinationType
from mxwire.cli.options import FILE
from mxwire.cli.serve import Number
from mxwire.wire.numbers import DEFAULT_KEY

EPILOG = """\b
Examples:
  mxwire scenario list                             the library, by subject
  mxwire scenario list --rule R-ACK-06             those that are about a rule
  mxwire scenario show connect/bad-key
  mxwire scenario run                              all of them against the engine, in virtual time
  mxwire scenario run acks mine.mxs --ladder       a folder of the library, and a file
  mxwire scenario run --json | jq -r 'select(.verdict == "fail") | .name'
  mxwire scenario check mine.mxs
  mxwire scenario highlight > ~/.vim/syntax/mxs.vim
  mxwire replay connect/bad-key.mxs -i eth0 --host alpha:0    against a live host
  mxwire scenario run -i eth0 --driver 'ssh alpha mxwire scenario host -i eth0'    with calls of its application
"""
_OF_THE_ENGINE: Final = {
    "profile": "--profile says what the engine is, and a live host is what it is",
}
_OF_LIVE_HOSTS: Final = {
    "key": "--key is for a live host: say which one with -i and --host",
    "harmful": "--harmful is for a live host: say which one with -i and --host",
}
"""Options that mean nothing for the other, and what is said of them."""
_OF_HOSTS: Final = {
    "key": "--key is for --host: a driver says it itself",
}


@click.group(cls=CommandGroup, epilog=EPILOG)
def command() -> None:
    """Scenarios: texts that say what one side sends and what must come back, and when.

    They are played against the engine, or with mxwire replay against any live host.
    """


@command.command(name="list")
@click.argument("names", metavar="[NAME|FILE]...", nargs=-1, shell_complete=scenarios)
@click.option(
    "--rule",
    "rules",
    metavar="NUMBER",
    multiple=True,
    shell_complete=offers(rule_numbers),
    help="Only those about this rule; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a scenario, a line each.")
def list_command(names: tuple[str, ...], rules: tuple[str, ...], as_json: bool) -> None:
    """Names, titles and rules of the library's scenarios, or of those that are named."""
    from mxwire.cli import playing

    playing.tell_list(names, rules, as_json)


@command.command()
@click.argument("name", metavar="NAME|FILE", shell_complete=scenarios)
@click.option("--json", "as_json", is_flag=True, help="One JSON object with the text, title and rules.")
def show(name: str, as_json: bool) -> None:
    """Print the text of a scenario."""
    from mxwire.cli import playing

    playing.tell_text(name, as_json)


@command.command()
@click.argument("names", metavar="[NAME|FILE]...", nargs=-1, shell_complete=scenarios)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a scenario, a line each.")
def check(names: tuple[str, ...], as_json: bool) -> None:
    """Whether scenarios are well formed: files, folders or names; without any, the whole library. Exit code 2: not."""
    from mxwire.cli import playing

    if not playing.tell_check(names, as_json):
        sys.exit(2)


@command.command()
@click.argument("names", metavar="[NAME|FILE]...", nargs=-1, shell_complete=scenarios)
@click.option(
    "--profile",
    metavar="NAME",
    shell_complete=offers(catalogued("profile")),
    default="open-mx-1.5",
    help="What the host is.  [default: open-mx-1.5]",
)
@click.option(
    "--dialect",
    metavar="mxoe|omx|omx:M",
    shell_complete=live_dialects,
    help="Only in this one.  [default: mxoe, omx:1500 and omx:9000]",
)
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Of all chance.  [default: 0; with -i a new one]")
@click.option(
    "-i",
    "--interface",
    metavar="IF",
    shell_complete=offers(interfaces),
    help="Play against a live host on this interface; wants --host.",
)
@click.option("--host", metavar="HOST", type=DestinationType(), help="alpha:0, an address; with :3 behind, endpoint 3.")
@click.option(
    "--key",
    metavar="KEY",
    type=Number(0xFFFF_FFFF),
    default=DEFAULT_KEY,
    help="Of its endpoint.  [default: 0x12345678]",
)
@click.option(
    "--driver", metavar="COMMAND", help="In place of --host: makes the host, and the calls; see mxwire scenario host."
)
@click.option("--harmful", is_flag=True, help="Also what is known to stop real hosts.")
@click.option("--judge", is_flag=True, help="Check all frames of the host against the rules too.")
@click.option("--ladder", is_flag=True, help="Draw the frames of each.")
@click.option("-w", "--write", metavar="FILE", type=FILE, help="Write all frames to FILE; .pcapng marks failures.")
@click.option("-v", "--verbose", is_flag=True, help="A line for each, also where all are well.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a run, a line each.")
def run(
    names: tuple[str, ...],
    profile: str,
    dialect: str | None,
    seed: int | None,
    interface: str | None,
    host: Destination | None,
    key: int,
    driver: str | None,
    harmful: bool,
    judge: bool,
    ladder: bool,
    write: str | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """Play scenarios against the engine in virtual time: files, folders or names; without any, the whole library.

    With -i and --host they are played against a live host; those that need calls of its application are skipped. The
    application there must only receive, as mxwire serve --sink does: the answers of an echo are failures.
    With -i and --driver all are played: a program on the other host makes the calls. Scenarios that stop real hosts
    need --harmful in either case, and those that send with the host's own address are played last.
    Exit code 1: at least one has failed, or the host has sent nothing.
    """
    from mxwire.cli import playing, playing_live
    from mxwire.scenarios.live import new_seed

    if driver is not None and interface is None:
        raise click.UsageError("--driver needs -i, the interface that leads to its host")
    if (interface is None) is not (host is None and driver is None):
        raise click.UsageError("a live host needs both -i and --host")
    if host is not None and driver is not None:
        raise click.UsageError("--driver makes the host: leave --host out")
    _refuse(_OF_THE_ENGINE if interface is not None else _OF_LIVE_HOSTS)
    if interface is not None and host is not None:
        seed = new_seed() if seed is None else seed
        outcomes = playing_live.play_live(
            names, interface, host, dialect=dialect or "mxoe", key=key, harmful=harmful, seed=seed
        )
    elif interface is not None and driver is not None:
        _refuse(_OF_HOSTS)
        seed = new_seed() if seed is None else seed
        outcomes = playing_live.play_driven(names, interface, driver, dialect=dialect, harmful=harmful, seed=seed)
    else:
        outcomes = playing.simulate(names, profile, dialect, seed or 0)
    live = seed if interface is not None else None
    telling = playing.Telling(as_json=as_json, judge=judge, ladder=ladder, verbose=verbose, write=write, seed=live)
    if not telling.tell(outcomes):
        sys.exit(1)


@command.command()
def highlight() -> None:
    """A syntax file for Vim, which shows scenarios in colours; what else it needs stands in the documentation."""
    from mxwire.scenarios.vim_syntax import vim

    click.echo(vim(), nl=False)


@command.command(name="host")
@click.option(
    "-i",
    "--interface",
    metavar="IF",
    shell_complete=offers(interfaces),
    required=True,
    help="Where the host is, like eth0.",
)
@click.option(
    "--profile",
    metavar="NAME",
    shell_complete=offers(catalogued("profile")),
    default="open-mx-1.5",
    help="What the host is.  [default: open-mx-1.5]",
)
def host_command(interface: str, profile: str) -> None:
    """Be the host under test for mxwire scenario run --driver, on this or another machine.

    Questions come on standard input and are answered on standard output, an object a line; the documentation describes
    them, so that a driver can be written for any other host. It ends with its input.
    """
    from mxwire.cli import playing_live

    playing_live.be_driven(interface, profile)


def _refuse(options: Mapping[str, str]) -> None:
    """Refuse options that a user has given and that would mean nothing."""
    for name, why in options.items():
        if click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise click.UsageError(why)

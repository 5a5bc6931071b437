"""``mxwire run``: start an MX program on an interface."""

from __future__ import annotations

import os
from pathlib import Path

import click

from mxwire.cli.completion import interfaces, offers
from mxwire.cli.conflicts import conflicts
from mxwire.cli.group import Command
from mxwire.cli.library import prefix_option
from mxwire.cli.options import json_option, live_dialect_option, name_option, of_topic, peers_option
from mxwire.errors import MxwireError


@click.command(cls=Command)
@click.option(
    "-i",
    "--interface",
    metavar="IF[,IF]",
    shell_complete=offers(interfaces, listed=True),
    help="The Ethernet interface, like eth0; several, as in eth0,eth1, are boards 0, 1 …",
    **of_topic("", "interface"),
)
@click.option(
    "--name",
    metavar="NAME",
    help="Name of the local host.  [default: that of this computer, with :0]",
    **of_topic("hosts", "name"),
)
@live_dialect_option(
    "Dialect of the local host, which all hosts must share.  [default: mxoe]", **of_topic("hosts", "dialect")
)
@name_option(
    "Implementation to imitate: open-mx, open-mx-1.1, native-mx …; see mxwire simulate --help.",
    "profile",
    "--profile",
    **of_topic("hosts"),
)
@peers_option
@click.option(
    "--no-announce",
    is_flag=True,
    help="Do not announce the local host: only hosts that know it answer.",
    **of_topic("hosts"),
)
@click.option("--preload", is_flag=True, help="Preload the library, for programs that find another one by themselves.")
@click.option(
    "--mpi", is_flag=True, help="For a program of today's MPI, or its mpirun: choose the provider of libfabric."
)
@conflicts(
    "--mpi", "--preload", error="--mpi and --preload exclude each other: programs of MPI load the provider by libfabric"
)
@prefix_option
@json_option("Print the variables as one JSON object; start nothing.")
@click.argument("program", metavar="-- PROGRAM [ARGUMENT]...", nargs=-1, type=click.UNPROCESSED)
def command(
    interface: str | None,
    name: str | None,
    dialect: str | None,
    profile: str | None,
    peers: Path | None,
    no_announce: bool,
    preload: bool,
    mpi: bool,
    prefix: Path | None,
    as_json: bool,
    program: tuple[str, ...],
) -> None:
    """Start an MX program with mxwire's libmyriexpress.so.

    The program itself opens the interface, so it needs the permission for that (CAP_NET_RAW).
    """
    from mxwire.host.peer_names import own_name, read_peers
    from mxwire.link.interface import read_interface
    from mxwire.myriexpress import program_options
    from mxwire.myriexpress.build import Installation, default_prefix
    from mxwire.myriexpress.launch import environment, mpi_environment, require_names_of_mx
    from mxwire.protocol import profile_by_name
    from mxwire.wire.dialect import as_dialect

    installation = Installation((prefix or default_prefix()).absolute())
    installation.require()
    for each in filter(None, (interface or "").split(",")):
        read_interface(each)
    if dialect is not None:
        as_dialect(dialect)
    if name is not None:
        own_name(name)
    if profile is not None:
        profile_by_name(profile)
    if peers is not None:
        read_peers(peers)
    variables = {
        program_options.INTERFACE: interface,
        program_options.NAME: name,
        program_options.DIALECT: dialect,
        program_options.PROFILE: profile,
        program_options.PEERS: None if peers is None else str(peers.absolute()),
        program_options.ANNOUNCE: "0" if no_announce else None,
    }
    given = {key: value for key, value in variables.items() if value}
    if mpi:
        settings = dict(os.environ) | mpi_environment(installation, given)
    else:
        settings = environment(installation, os.environ, preload) | given
    if as_json:
        from mxwire.report.json_line import json_line

        changed = {key: value for key, value in settings.items() if os.environ.get(key) != value}
        click.echo(json_line(changed))
        return
    if not program:
        raise MxwireError("a program is missing: mxwire run -i eth0 -- PROGRAM [ARGUMENT]...")
    require_names_of_mx(program[0], os.environ.get("PATH"))
    try:
        os.execvpe(program[0], program, settings)
    except OSError as error:
        raise MxwireError(f"{program[0]} cannot be started: {error.strerror}") from None

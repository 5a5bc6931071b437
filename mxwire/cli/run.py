"""``mxwire run``: start an MX program on an interface."""

from __future__ import annotations

import os
from pathlib import Path

import click

from mxwire.cli.completion import interfaces, offers
from mxwire.cli.conflicts import conflicts
from mxwire.cli.group import command_with
from mxwire.cli.library import prefix_option
from mxwire.cli.live_options import announce_option, own_dialect_option, own_name_option, own_profile_option
from mxwire.cli.notes import print_record
from mxwire.cli.option_class import argument, option, options_class
from mxwire.cli.options import flag_option, json_option, of_topic, peers_option
from mxwire.errors import MxwireError


@conflicts(
    "--mpi", "--preload", error="--mpi and --preload exclude each other: programs of MPI load the provider by libfabric"
)
@options_class
class RunOptions:
    """The options of mxwire run."""

    interface: str | None = option(
        "The Ethernet interface, like eth0; several, as in eth0,eth1, are boards 0, 1 …",
        "-i",
        "--interface IF[,IF]",
        shell_complete=offers(interfaces, listed=True),
        **of_topic("", "interface"),
    )
    name: str | None = own_name_option
    dialect: str | None = own_dialect_option
    profile: str | None = own_profile_option()
    peers: Path | None = peers_option
    announce: bool = announce_option
    preload: bool = flag_option("Preload the library, for programs that find another one by themselves.", "--preload")
    mpi: bool = flag_option("For a program of today's MPI, or its mpirun: choose the provider of libfabric.", "--mpi")
    prefix: Path | None = prefix_option
    as_json: bool = json_option("Print the variables as one JSON object; start nothing.")
    program: tuple[str, ...] = argument(metavar="-- PROGRAM [ARGUMENT]...", nargs=-1, type=click.UNPROCESSED)

    def variables(self) -> dict[str, str]:
        """Return the variables that pass the options to the library.

        Raises :class:`~mxwire.errors.MxwireError` for options that the library would refuse.
        """
        from mxwire.host.peer_names import own_name, read_peers
        from mxwire.link.interface import read_interface
        from mxwire.myriexpress import program_options
        from mxwire.protocol import profile_by_name
        from mxwire.wire.dialect import as_dialect

        for each in filter(None, (self.interface or "").split(",")):
            read_interface(each)
        if self.dialect is not None:
            as_dialect(self.dialect)
        if self.name is not None:
            own_name(self.name)
        if self.profile is not None:
            profile_by_name(self.profile)
        if self.peers is not None:
            read_peers(self.peers)
        variables = {
            program_options.INTERFACE: self.interface,
            program_options.NAME: self.name,
            program_options.DIALECT: self.dialect,
            program_options.PROFILE: self.profile,
            program_options.PEERS: None if self.peers is None else str(self.peers.absolute()),
            program_options.ANNOUNCE: None if self.announce else "0",
        }
        return {key: value for key, value in variables.items() if value}


@command_with(RunOptions)
def command(options: RunOptions) -> None:
    """Start an MX program with mxwire's libmyriexpress.so.

    The program itself opens the interface, so it needs the permission for that (CAP_NET_RAW).
    """
    from mxwire.myriexpress.build import Installation, last_prefix
    from mxwire.myriexpress.launch import environment, mpi_environment, require_names_of_mx

    installation = Installation((options.prefix or last_prefix()).absolute())
    installation.require()
    given = options.variables()
    if options.mpi:
        settings = dict(os.environ) | mpi_environment(installation, given)
    else:
        settings = environment(installation, os.environ, options.preload) | given
    if options.as_json:
        print_record({key: value for key, value in settings.items() if os.environ.get(key) != value})
        return
    if not options.program:
        raise MxwireError("a program is missing: mxwire run -i eth0 -- PROGRAM [ARGUMENT]...")
    require_names_of_mx(options.program[0], os.environ.get("PATH"))
    try:
        os.execvpe(options.program[0], options.program, settings)
    except OSError as error:
        raise MxwireError(f"{options.program[0]} cannot be started: {error.strerror}") from None

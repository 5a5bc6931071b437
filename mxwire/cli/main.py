"""The group of all commands, how they are found, and how a run ends."""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from mxwire import __version__
from mxwire.errors import MxwireError

COMMANDS = (
    "decode",
    "info",
    "messages",
    "conversations",
    "follow",
    "extract",
    "stats",
    "verify",
    "diagnose",
    "merge",
    "compat",
    "formats",
    "rules",
    "simulate",
    "scenario",
    "interop",
    "plugin",
    "discover",
    "ping",
    "capture",
    "replay",
    "serve",
    "send",
    "receive",
    "perf",
    "doctor",
)
"""The commands in the order of the help; each is ``command`` in the module of its name."""

GREETING = f"""mxwire {__version__}: Myrinet Express over Ethernet (MXoE, Open-MX), from a capture to meaning,
and a live host on any Ethernet interface.

  mxwire decode FILE            every frame in a line (-v: every field, --json, --to FILE.parquet)
  mxwire info FILE              hosts, dialects, endpoints and messages of a capture at a glance
  mxwire messages FILE          every message: kind, length, how long it took, how it ended
  mxwire conversations FILE     who talked to whom: endpoints, sessions, connects
  mxwire follow --message 3 FILE     the frames of one message, as a ladder between two hosts
  mxwire extract --message 3 -w DATA FILE   the bytes of one message
  mxwire stats FILE             round trips, throughput, delays, gaps (--plot FILE.svg draws them)
  mxwire verify FILE            do the hosts of a capture keep the rules of the protocol?
  mxwire merge A B -w FILE      captures of both ends as one: clocks compared, what was lost in between
  mxwire compat A B             were two hosts built so that they can talk? what to change
  mxwire diagnose FILE          what is wrong with hosts and network, what shows it, and what to do
  mxwire formats [TYPE]         how the packets are laid out
  mxwire rules [NUMBER]         what hosts must and should do, by the numbers of the specification
  mxwire simulate --loss 0.05   hosts in a network with faults: does everything hold?
  mxwire scenario run           what hosts must do, in short texts, played to the engine or live
  mxwire interop                who can talk to whom, and where exactly not (--html DIR: a site)
  mxwire plugin install         the protocol in Wireshark and tshark (then: mxwire plugin check)
  mxwire discover -i eth0       live: which hosts are on this Ethernet
  mxwire ping alpha:0 -i eth0   does a host answer, and how fast
  mxwire capture -i eth0 -l     what passes an interface, in lines or (-w FILE) into a capture
  mxwire replay FILE -i eth0    a capture sent again (--rate, --top-speed), or one of its hosts played (--as MAC)
  mxwire doctor -i eth0         what keeps an interface from working, and what to do
  mxwire serve --echo -i eth0   an endpoint that answers whoever sends to it
  mxwire send alpha:0 -i eth0 FILE   files as messages (and: mxwire receive -i eth0 > FILE)
  mxwire perf -i eth0 -d alpha:0     latency and bandwidth, as omx_perf measures them

Start with:  mxwire info captures/mxoe-every-type.pcap   (in a checkout; or any capture of EtherType 0x86DF)
Each command explains itself with --help; completion for your shell: see mxwire --help.
"""

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
EPILOG = """\b
Shell completion:
  bash   eval "$(_MXWIRE_COMPLETE=bash_source mxwire)"
  zsh    eval "$(_MXWIRE_COMPLETE=zsh_source mxwire)"
  fish   _MXWIRE_COMPLETE=fish_source mxwire | source
"""


class _Commands(click.Group):
    """Loads a command's module only when it is asked for, so that each starts fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"mxwire.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            # The reader has gone (`mxwire decode … | head`): nothing is wrong, and nobody is left to say it to.
            _discard_output()
            ctx.exit(0)
        except MxwireError:
            # Some are an OSError as well, like that of a wait that took too long.
            raise
        except OSError as error:
            if not _is_of_output(error):
                raise MxwireError(_refusal(error)) from None
            _discard_output()
            raise MxwireError(f"the output cannot be written: {error.strerror or error}") from None


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="mxwire")
@click.pass_context
def cli(context: click.Context) -> None:
    """Decode, verify and speak Myrinet Express over Ethernet (MXoE, Open-MX)."""
    if context.invoked_subcommand is None:
        click.echo(GREETING, nl=False)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 2 input or use that cannot work, 130 interrupted."""
    # Where the shell has closed them (>&-), nobody wants to hear anything.
    sys.stdout, sys.stderr = (each or Path(os.devnull).open("w") for each in (sys.stdout, sys.stderr))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        cli.main(arguments, prog_name="mxwire", standalone_mode=False)
    except MxwireError as error:
        _fail(str(error))
    except MemoryError as error:
        _fail(str(error) or "there is not enough memory for this (ulimit -v says what this shell permits)")
    except click.exceptions.Abort:
        click.echo("mxwire: interrupted", err=True)
        sys.exit(130)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "mxwire"
        _fail(f"{error.format_message().rstrip('.')}; see {where} --help")
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)


def _is_of_output(error: OSError) -> bool:
    """Whether standard output is to blame: there is no room, or what is left for it still cannot be written."""
    if error.filename is not None:
        return False
    try:
        sys.stdout.flush()
    except OSError:
        return True
    return error.errno in _NO_ROOM


def _refusal(error: OSError) -> str:
    """An error of the system that nobody has foreseen, in a line."""
    why = error.strerror or str(error) or type(error).__name__
    return f"the system refuses what is needed: {why}" if error.filename is None else f"{error.filename}: {why}"


def _discard_output() -> None:
    """Let what is still buffered go nowhere, or Python complains about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str) -> None:
    click.echo(f"mxwire: {message}", err=True)
    sys.exit(2)

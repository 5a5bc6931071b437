"""The command line: loading of commands, errors, and exit codes."""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mxwire import __version__
from mxwire.cli import progress
from mxwire.cli.catalogue import ENTRIES, FIRST, GROUPS, MOVED, TOPICS
from mxwire.cli.group import CommandGroup
from mxwire.cli.options import colour_option, of_topic
from mxwire.errors import MxwireError, OptionError, write_failure
from mxwire.native import is_compiled
from mxwire.report.ascii_text import prepare_streams
from mxwire.words import alternatives, nearest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = tuple(ENTRIES)
"""The commands in the order of the help; each is the function ``command`` in the module of that name."""

_COMPLETES = "_MXWIRE_COMPLETE"
"""Environment variable that completion scripts set, and users who request such a script."""
_BLAS_THREADS = "OPENBLAS_NUM_THREADS"
"""Environment variable for the number of threads of NumPy's matrix library."""
_COLLECTION = 200_000, 20, 100
"""Thresholds of the garbage collector: new objects before the youngest are searched, and searches before older ones."""
_FIRST_RANK_SECONDS = 2.0
"""Time by which the first process of an MPI job may start later than the others."""
_OF_OUTPUT = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF}
"""Errors without a file name that only standard output has: it is full, or closed by the shell."""


class _Commands(CommandGroup):
    """Loads the module of a command when it is called, so that each starts fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in MOVED:
            raise click.UsageError(f"{cmd_name} is now {MOVED[cmd_name]}", ctx)
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"mxwire.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("First commands"):
            formatter.write_dl([(name, ENTRIES[name].help) for name in FIRST])
        with formatter.section("Other commands by task (mxwire help commands)"):
            others = {
                title: [each.name for each in entries if each.name not in FIRST] for title, entries in GROUPS.items()
            }
            formatter.write_dl([(title, ", ".join(names)) for title, names in others.items()])
        with formatter.section("Topics (mxwire help TOPIC)"):
            formatter.write_text(", ".join(TOPICS))
        click.Command.format_options(self, ctx, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        named = [each for each in ENTRIES.values() if each.name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [CompletionItem(each.name, help=each.help) for each in named] + options

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        # --help and --version print here, before any command is invoked.
        with _one_line_errors():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: click.Context) -> object:
        with _one_line_errors(), _seldom_collected():
            try:
                result = super().invoke(ctx)
            except MxwireError:
                _has_damage()
                raise
            except SystemExit as end:
                # Damaged input outranks a failed check; codes of signals remain.
                if _has_damage() and end.code in (None, 0, 1):
                    end.code = 2
                # The command chose this exit code because a check failed. It is kept even if the reader of the output
                # has ended, because otherwise `mxwire diagnose … | head` would exit with 0 or 1 by chance.
                try:
                    sys.stdout.flush()
                except BrokenPipeError:
                    _discard_output()
                raise
            finally:
                # Before any message about the end, even the newline after ^C.
                progress.erase()
            # An error of buffered output must arise here, where it becomes a message.
            sys.stdout.flush()
            if _has_damage():
                sys.exit(2)
            return result


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Let the garbage collector run seldom: analyses create many objects, and hardly any cycles, and searching for them
    more often takes a fifth of the time, or most of it in a process with many other objects."""
    before = gc.get_threshold()
    gc.set_threshold(*_COLLECTION)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _has_damage() -> bool:
    """Print the damage of captures after all other output; return False if there is none."""
    module = sys.modules.get("mxwire.cli.notes")
    if module is None or not module.damage:
        return False
    progress.erase()
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    return bool(module.note_damage())


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Raise errors of the operating system as :class:`~mxwire.errors.MxwireError`; a closed pipe ends the command."""
    try:
        yield
    except BrokenPipeError:
        # The reader has ended (`mxwire decode … | head`), which is not an error.
        _discard_output()
        raise click.exceptions.Exit(0) from None
    except MxwireError:
        # Some of these errors are also an OSError, such as the timeout error.
        raise
    except OSError as error:
        if not _is_of_output(error):
            raise MxwireError(_refusal(error)) from None
        _discard_output()
        raise MxwireError(f"the output cannot be written: {write_failure(error)}") from None


def _build() -> str:
    """The kind of this mxwire, the Python that runs it, and the machine."""
    python = ".".join(map(str, sys.version_info[:3]))
    machine = os.uname()
    kind = "compiled" if is_compiled() else "pure Python"
    return f"{kind}; {sys.implementation.name} {python}, {machine.sysname} {machine.machine}"


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mxwire", message=f"%(prog)s, version %(version)s ({_build()})")
@colour_option(**of_topic("", "color"))
def cli() -> None:
    """Decode, verify and speak Myrinet Express over Ethernet (MXoE, Open-MX)."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 2 wrong input or usage, 130 interrupted."""
    # A shell may have closed them (>&-). Output is then an error, as in other programs; messages are discarded.
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    prepare_streams()
    if _COMPLETES in os.environ:
        from mxwire.cli.completion import register

        register()
    if _BLAS_THREADS not in os.environ:
        # NumPy would start a thread per processor, each of which would spin for 30 ms. Programs that mxwire runs for
        # the user get os.environ, which does not change.
        os.putenv(_BLAS_THREADS, "1")
    # Not only during the command, as otherwise all new objects would be searched at its end.
    gc.set_threshold(*_COLLECTION)
    # While Python exits, it would search all objects for cycles twice: a tenth of the time of a short analysis.
    atexit.register(gc.freeze)
    _warn_of_other_checkout()
    try:
        cli.main(arguments, prog_name="mxwire", standalone_mode=False)
    except MxwireError as error:
        if isinstance(error, OptionError):
            _leave_to_first_rank(arguments)
        _fail(str(error))
    except MemoryError as error:
        _fail(str(error) or "not enough memory (ulimit -v prints the limit of this shell)")
    except click.exceptions.Abort:
        click.echo("mxwire: interrupted", err=True)
        sys.exit(130)
    except click.UsageError as error:
        _leave_to_first_rank(arguments)
        where = error.ctx.command_path if error.ctx else "mxwire"
        _fail(f"{_usage_message(error)}; see {where} --help")
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)


def _warn_of_other_checkout() -> None:
    """Print a warning in a checkout of mxwire if a copy outside it runs, on which changes in it have no effect."""
    here, package = Path.cwd() if os.access(".", os.X_OK) else Path("/"), Path(__file__).parent.parent
    if (here / "mxwire" / "cli" / "main.py").is_file() and not package.is_relative_to(here):
        click.echo(
            f"mxwire: warning: this is {package}, not the checkout in {here} (pip install -e . uses it)", err=True
        )


def _usage_message(error: click.UsageError) -> str:
    """The message of click in the form of all others: suggestions in parentheses, and single bounds in words."""
    if isinstance(error, click.NoSuchOption):
        # The suggestions of click hardly resemble the name, and are a sentence of their own.
        options = [name for each in error.ctx.command.params for name in each.opts] if error.ctx else []
        known = {name.lstrip("-"): name for name in options if name.startswith("--")}
        near = [known[each] for each in nearest(error.option_name.lstrip("-"), known)]
        return f"No such option {error.option_name!r}" + (f" (did you mean {alternatives(near)}?)" if near else "")
    message = error.format_message().rstrip(".")
    for kind in ("integer", "float"):
        message = message.replace(f"valid {kind} range", f"valid {kind}")
    return message.replace("not in the range x>=", "less than ").replace("in the range x>0", "more than 0")


def _is_of_output(error: OSError) -> bool:
    """True if standard output failed: no space is left, or its buffer still cannot be written."""
    if error.filename is not None:
        return False
    try:
        sys.stdout.flush()
    except OSError:
        return True
    return error.errno in _OF_OUTPUT


def _refusal(error: OSError) -> str:
    """The message of an unexpected error of the operating system, in one line."""
    if error.errno in _OF_OUTPUT:
        why = write_failure(error)
    else:
        why = error.strerror or str(error) or type(error).__name__
    return f"operating system error: {why}" if error.filename is None else f"{error.filename}: {why}"


def _discard_output() -> None:
    """Discard the buffered output, about which Python would complain at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _leave_to_first_rank(arguments: Sequence[str] | None) -> None:
    """Exit with 2 in all processes of an MPI job but the first, which has the same options and prints their error."""
    given = sys.argv[1:] if arguments is None else arguments
    if "--on=mpi" not in given and ("--on", "mpi") not in pairwise(given):
        return
    from mxwire.campaign.workers import launched_rank

    if launched_rank() > 0:
        # Some launchers kill a job as soon as one of its processes fails: the first one prints before that.
        time.sleep(_FIRST_RANK_SECONDS)
        sys.exit(2)


def _fail(message: str) -> None:
    click.echo(f"mxwire: {message}", err=True)
    sys.exit(2)

"""mxwire as capture interfaces of Wireshark ("extcap"): ``python -m mxwire.cli.extcap`` answers Wireshark's questions.

``mxwire plugin install`` puts a script that runs this module into Wireshark's extcap folder. Wireshark calls it at its
start with ``--extcap-interfaces``, per interface with ``--extcap-dlts`` and ``--extcap-config``, and to capture with
``--capture --fifo PATH`` and the options that the user has chosen; the capture ends with SIGTERM, or when the reader
closes the pipe. Text on standard error is shown to the user if the exit code is not 0.

Each interface is a command of click: the arguments in Wireshark's dialog are some of its options, with their types,
defaults, completions and help. Wireshark waits for the answers, so only a question about options imports the command.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from mxwire import __version__
from mxwire.cli.main import cli
from mxwire.cli.main import main as run_mxwire
from mxwire.cli.option_class import option
from mxwire.cli.options import Amount, flag_option, own_ethertype_option
from mxwire.errors import MxwireError

HELP: Final = "https://www.wireshark.org/docs/man-pages/extcap.html"
_CONNECT_SECONDS: Final = 15
_NO_FILTER: Final = "has no capture filter, as it captures MXoE only: use a display filter, such as mxoe.ptype == 2"
_ANNOUNCED: Final = re.compile(r"\[default: ([^\]]+)\]")
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "{": "(", "}": ")", "\n": " "})
"""Braces delimit the values of an answer, and cannot be escaped."""


@dataclass(frozen=True, slots=True)
class ExtcapInterface:
    """A capture interface in Wireshark's list."""

    name: str
    title: str
    command: Callable[[], click.Command]
    """The command whose options the interface offers."""
    tabs: dict[str, str]
    """Names of the options by tab of Wireshark's dialog."""
    capture: Callable[[list[str]], None]
    """Capture to standard output, with options of the command."""


def _named(name: str) -> Callable[[], click.Command]:
    def load() -> click.Command:
        found = cli.get_command(click.Context(cli), name)
        assert found is not None
        return found

    return load


def _simulate(words: list[str]) -> None:
    # The capture is written to the pipe through a separate descriptor, because Wireshark does not expect the report of
    # the run.
    pipe = os.dup(sys.stdout.fileno())
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    run_mxwire(["simulate", "--pcap", f"/dev/fd/{pipe}", *words])


def _capture_here(words: list[str]) -> None:
    run_mxwire(["capture", "-w", "-", *words])


def _capture_there(words: list[str]) -> None:
    remote_command.main(words, standalone_mode=False)


@click.command("mxwire-ssh")
@option("As in ssh, or a Host of its file.", "--remote-host [USER@]HOST", required=True)
@option("An interface of that host, like eth0.", "--remote-interface IF", required=True)
@flag_option("Capture as root, by sudo without a password.", "--remote-sudo")
@option(
    "mxwire or tcpdump on that host.  [default: mxwire if found, else tcpdump]", "--remote-program PATH", default=""
)
@own_ethertype_option
@option("Further options of ssh: -p 2222 -i KEY -J GATEWAY.", "--ssh-options OPTIONS", default="")
def remote_command(**given: Any) -> None:
    """Capture on a remote host. SSH cannot prompt: keys and known hosts must be set up beforehand."""
    command = ssh_command(**given)
    try:
        # The remote program ends when its input is closed. The input is a pipe that stays open until this process ends,
        # even if it is killed.
        process = subprocess.Popen(command, stdin=subprocess.PIPE)
    except OSError as error:
        raise MxwireError(f"{command[0]} cannot be run ({error.strerror}): install an SSH client") from error
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    sys.exit(max(process.wait(), 0))


def ssh_command(
    *, remote_host: str, remote_interface: str, remote_sudo: bool, remote_program: str, ethertype: int, ssh_options: str
) -> list[str]:
    """Return the command line of ssh that captures on a remote host and writes the capture to standard output.

    Raises :class:`~mxwire.errors.MxwireError` if the options for ssh have an open quotation.
    """
    try:
        options = shlex.split(ssh_options)
    except ValueError as error:
        raise MxwireError(f"--ssh-options {ssh_options!r}: {error}") from error
    script = remote_script(remote_interface, ethertype, remote_program, "sudo -n " if remote_sudo else "")
    fixed = ["-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={_CONNECT_SECONDS}"]
    # The login shell is unknown, but every shell can pass one quoted word to sh.
    return ["ssh", *options, *fixed, "--", remote_host, f"sh -c {shlex.quote(script)}"]


def remote_script(interface: str, ethertype: int, program: str, prefix: str) -> str:
    """Return a shell script that captures to standard output until its standard input is closed.

    Without a terminal, sshd does not end the program when the connection is closed, and on a silent network it would
    never notice by writing. A subshell therefore waits for the end of the input, and ends the program.
    """
    frames = f"ether proto {ethertype:#06x}"
    mxwire = f"capture -i {shlex.quote(interface)} --ethertype {ethertype:#06x} -w -"
    tcpdump = f"-i {shlex.quote(interface)} -U -s 0 -w - {shlex.quote(f'{frames} or (vlan and {frames})')}"
    if program:
        chosen = tcpdump if program.rpartition("/")[2].startswith("tcpdump") else mxwire
        choose = f"set -- {shlex.quote(program)} {chosen}"
    else:
        choose = f"if command -v mxwire >/dev/null; then set -- mxwire {mxwire}; else set -- tcpdump {tcpdump}; fi"
    return (
        f'{choose}; exec 3<&0; {prefix}"$@" </dev/null 3<&- & captured=$!; '
        "{ cat <&3 >/dev/null; kill $captured; } >/dev/null 2>&1 & "
        "wait $captured; code=$?; kill $! 2>/dev/null; exit $code"
    )


INTERFACES: Final = (
    ExtcapInterface(
        "mxwire-sim",
        "MXoE: simulated network",
        _named("simulate"),
        {
            "Hosts": "seed hosts messages workload dialect profile processes local interfaces discovery largest "
            "resend_maximum gap at",
            "Network": "loss duplicate reorder corrupt tamper delay jitter held coalescing partition filter mtu",
            "Incidents": "kill crash pause stall faults",
        },
        _simulate,
    ),
    ExtcapInterface(
        "mxwire-live",
        "MXoE: interface of this computer",
        _named("capture"),
        {"Capture": "interface ethertype peers no_promiscuous snap_length buffer comment"},
        _capture_here,
    ),
    ExtcapInterface(
        "mxwire-ssh",
        "MXoE: interface of a remote host, through SSH",
        lambda: remote_command,
        {"Remote host": "remote_host remote_interface remote_sudo remote_program ethertype ssh_options"},
        _capture_there,
    ),
)
"""The interfaces in the order of Wireshark's list."""


# Answers


def _sentence(word: str, **values: object) -> str:
    """One line of an answer; values that are None are omitted."""
    fields = (f"{{{name}={str(value).translate(_ESCAPES)}}}" for name, value in values.items() if value is not None)
    return f"{word} {''.join(fields)}"


def interface_lines() -> Iterator[str]:
    """The answer to ``--extcap-interfaces``."""
    yield _sentence("extcap", version=__version__, help=HELP, display="mxwire")
    for each in INTERFACES:
        yield _sentence("interface", value=each.name, display=each.title)


def argument_lines(interface: ExtcapInterface, only: str | None = None) -> Iterator[str]:
    """The answer to ``--extcap-config``, or the values of the argument ``only``, which Wireshark requests again."""
    options = {each.name: each for each in interface.command().params if isinstance(each, click.Option)}
    names = [(tab, options[name]) for tab, members in interface.tabs.items() for name in members.split()]
    for number, (tab, each) in enumerate(names):
        call = max(each.opts, key=len)
        offered = _offered(each)
        if only is None:
            yield _sentence("arg", number=number, call=call, **_properties(each, offered), group=tab)
        if only in (None, call.removeprefix("--")):
            for value in offered:
                yield _sentence("value", arg=number, value=value, display=value)


def _properties(option: click.Option, offered: list[str]) -> dict[str, object]:
    """The properties of an argument."""
    assert option.name is not None
    return {
        "display": option.name.replace("_", " ").capitalize(),
        **({"type": "boolflag"} if option.is_flag else {"type": "selector"} if offered else _type(option.type)),
        # The interfaces of a computer change while Wireshark runs; names from catalogues do not.
        "reload": "true" if option.name == "interface" else None,
        "default": _default(option, offered),
        "required": "true" if option.required else None,
        "placeholder": option.metavar,
        "tooltip": option.help,
    }


def _default(option: click.Option, offered: list[str]) -> object:
    """The default of an option, or the default stated in its help; None if there is none, or only a description."""
    if isinstance(option.default, (str, int, float)) and not option.is_flag:
        return option.default
    announced = _ANNOUNCED.search(option.help or "")
    return announced[1] if announced and (announced[1].isdecimal() or announced[1] in offered) else None


def _type(kind: click.ParamType[Any]) -> dict[str, object]:
    """The type of an argument and its range, if it is limited on both sides."""
    if isinstance(kind, (click.IntRange, Amount)):
        name = "long" if isinstance(kind, click.IntRange) else "double"
        limits = None if kind.min is None or kind.max is None else f"{kind.min:g},{kind.max:.15g}"
        return {"type": name, "range": limits}
    return {"type": "fileselect" if isinstance(kind, click.Path) else "string"}


def _offered(option: click.Option) -> list[str]:
    """The names that completion offers for an option."""
    if "," in (option.metavar or ""):
        return []  # a list of names, which is entered as text
    context = click.Context(click.Command("extcap"))
    # Files are completed by the shell itself, and chosen in a dialog here.
    return [str(each.value) for each in option.shell_complete(context, "") if each.type == "plain"]


# Calls by Wireshark


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mxwire.cli.extcap", allow_abbrev=False, add_help=False)
    for flag in ("interfaces", "dlts", "config"):
        parser.add_argument(f"--extcap-{flag}", action="store_true")
    for name in ("interface", "reload-option", "capture-filter", "version"):
        parser.add_argument(f"--extcap-{name}")
    parser.add_argument("--capture", action="store_true")
    parser.add_argument("--fifo")
    return parser


def _chosen(words: Sequence[str]) -> list[str]:
    """The options that are set: Wireshark passes unset ones with an empty value."""
    kept: list[str] = []
    for word in words:
        if word:
            kept.append(word)
        elif kept:
            kept.pop()
    # Options of newer versions of Wireshark, such as --extcap-cleanup-postkill
    return [each for each in kept if not each.startswith(("--extcap-", "--log-"))]


def _answer(arguments: Sequence[str]) -> None:
    parsed, rest = _parser().parse_known_args(arguments)
    if parsed.extcap_interfaces:
        print(*interface_lines(), sep="\n")
        return
    found = next((each for each in INTERFACES if each.name == parsed.extcap_interface), None)
    if found is None:
        names = ", ".join(each.name for each in INTERFACES)
        raise MxwireError(f"--extcap-interface {parsed.extcap_interface or ''}: the interfaces are {names}")
    if parsed.extcap_dlts:
        print(_sentence("dlt", number=1, name="EN10MB", display="Ethernet"))
    elif parsed.extcap_config:
        print(*argument_lines(found, parsed.extcap_reload_option), sep="\n")
    elif parsed.capture:
        if not parsed.fifo:
            raise MxwireError("--capture needs --fifo PATH, the pipe to write to")
        _redirect_output(parsed.fifo)
        if parsed.extcap_capture_filter:
            raise MxwireError(f"{found.name} {_NO_FILTER}")
        found.capture(_chosen(rest))
    elif parsed.extcap_capture_filter:
        # Without --capture Wireshark checks the filter, and shows any output as its error.
        print(f"{found.name} {_NO_FILTER}")


def _redirect_output(fifo: str) -> None:
    """Make a pipe the standard output. Call it before anything can fail, because the reader waits until the pipe is
    opened and closed.
    """
    try:
        opened = os.open(fifo, os.O_WRONLY)
    except OSError as error:
        raise MxwireError(f"{fifo} cannot be opened: {error.strerror}") from error
    os.dup2(opened, sys.stdout.fileno())
    os.close(opened)


def main() -> None:
    """Answer a call by Wireshark; exit code 2 and one line on standard error if that fails, 130 after Ctrl-C."""
    try:
        _answer(sys.argv[1:])
    except MxwireError as error:
        sys.exit(_fail(str(error)))
    except click.UsageError as error:
        sys.exit(_fail(error.format_message().rstrip(".")))
    except click.exceptions.Abort:
        _fail("interrupted")
        sys.exit(130)


def _fail(message: str) -> int:
    click.echo(f"mxwire: {message}", err=True)
    return 2


if __name__ == "__main__":
    main()

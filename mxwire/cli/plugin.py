"""``mxwire plugin``: the Wireshark plugin on this computer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mxwire.cli.capture_set import CaptureSet, OpenCapture
from mxwire.cli.filters import FilterOptions
from mxwire.cli.group import CommandGroup
from mxwire.cli.notes import print_record
from mxwire.cli.option_class import option
from mxwire.cli.option_groups import DecodingOptions, Inputs
from mxwire.cli.options import FILE, PATH, damage_option, json_option, write_option
from mxwire.cli.reading import decoded_batches, refuse_empty
from mxwire.errors import MxwireError
from mxwire.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mxwire.plugin import Place, Program, Report
    from mxwire.plugin.programs import Scope


_NO_INTERFACES = "none; as root, Wireshark offers only those that are installed for all users (--global)"

_json_option = json_option("Print one JSON object.")
_for_all = option("For all users of this computer, not just you.", "--global", "for_all", is_flag=True)
_program_option = option("This tshark, not the one in the PATH.", "--tshark PROGRAM", type=PATH)


@click.group(cls=CommandGroup)
def command() -> None:
    """Install, remove and check the Wireshark plugin, and name hosts in Wireshark.

    The plugin is one Lua file, mxoe.lua, which adds this protocol to Wireshark and tshark, and a program that adds
    capture interfaces: a simulated network, an interface with host names, and one of a remote host.
    """


@command.command()
@_for_all
@_program_option
@_json_option
def install(for_all: bool, tshark: Path | None, as_json: bool) -> None:
    """Copy the plugin into Wireshark's folders.

    The dissector goes into the plugin folder, and a program that offers mxwire's capture interfaces into the extcap
    folder. Installed files are replaced. Wireshark reads them when it starts.
    """
    from mxwire.plugin import Tshark
    from mxwire.plugin import install as copy

    before = copy(_scope(for_all), Tshark(tshark))
    done = {"missing": "installed", "current": "is up to date", "stale": "replaced by that of this mxwire"}
    _print_changes(before, done, unchanged="current", as_json=as_json)


@command.command()
@_for_all
@_program_option
@_json_option
def uninstall(for_all: bool, tshark: Path | None, as_json: bool) -> None:
    """Remove the plugin from Wireshark's folders."""
    from mxwire.plugin import Tshark
    from mxwire.plugin import uninstall as remove

    before = remove(_scope(for_all), Tshark(tshark))
    done = {"missing": "was not installed", "current": "removed", "stale": "removed"}
    _print_changes(before, done, unchanged="missing", as_json=as_json)


def _print_changes(before: list[Place], done: dict[str, str], *, unchanged: str, as_json: bool) -> None:
    """Print a line per file, from its state before; ``unchanged`` is the state in which nothing was to be done."""
    if not as_json:
        for each in before:
            click.echo(f"{each.path} {done[each.state]}")
        return
    files = {
        each.file.kind: {"path": str(each.path), "before": each.state, "changed": each.state != unchanged}
        for each in before
    }
    print_record(files.pop("dissector") | files)


@command.command()
@_for_all
@_program_option
@json_option("Print one JSON object with both places and the plugin's source.")
def path(for_all: bool, tshark: Path | None, as_json: bool) -> None:
    """Print where the plugin is installed, or would be."""
    from mxwire.plugin import Tshark, places
    from mxwire.plugin.folder import source

    files: dict[str, dict[str, Place]] = {}
    for each in places(Tshark(tshark)):
        files.setdefault(each.file.kind, {})[each.scope] = each
    if as_json:
        made = {kind: {scope: _place(each) for scope, each in both.items()} for kind, both in files.items()}
        print_record({"source": str(source())} | made.pop("dissector") | made)
    else:
        click.echo(files["dissector"][_scope(for_all)].path)


@command.command()
@_program_option
@_json_option
def check(tshark: Path | None, as_json: bool) -> None:
    """Check that the plugin is installed, current and working.

    tshark decodes a shipped capture with it, and mxwire compares. The exit code is 1 if anything is wrong; each line
    that begins with "wrong" reports a problem, and what to do.
    """
    from mxwire.plugin import check as examine

    report = examine(tshark)
    if as_json:
        print_record(report.as_json())
    else:
        _print_report(report)
    if not report.ok:
        sys.exit(1)


@command.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
@write_option("Write the names to FILE instead, such as the ethers of a profile.", "target", type=PATH)
@_program_option
@damage_option
@_json_option
def names(files: tuple[str, ...], target: Path | None, tshark: Path | None, skip_damage: bool, as_json: bool) -> None:
    """Show host names in Wireshark's columns Source and Destination.

    The names that hosts announce in captures (HOST_REPLY) are added to Wireshark's file ethers, in the folder of your
    configuration. Wireshark then shows them in place of these Ethernet addresses, in all captures and windows. Names of
    other hosts remain. If a host announces several names, the latest is used.
    """
    from mxwire.plugin import Tshark, names_path, write_names

    announced: dict[int, str] = {}
    captures = CaptureSet(Inputs(files), FilterOptions(), DecodingOptions(skip_damage=skip_damage))
    for found, _ in captures.run(_announced):
        announced |= found
    if not announced:
        captures.end()
        raise MxwireError(
            f"no HOST_REPLY in {', '.join(files)} announces a name: use a capture from when a host started"
        )
    path = target or names_path(Tshark(tshark))
    entries = write_names(path, announced)
    changed = [each for each in entries if each.before != each.name]
    if as_json:
        hosts = [{"address": each.address, "name": each.name, "before": each.before} for each in entries]
        print_record({"path": str(path), "changed": bool(changed), "hosts": hosts})
    else:
        for each in entries:
            done = "added" if each.before is None else f"replaces {each.before}" if each in changed else "is up to date"
            click.echo(f"{each.address} {each.name} {done}")
        if changed:
            click.echo(f"wrote {path}: restart Wireshark if it is running")
    captures.end()


def _announced(capture: OpenCapture) -> Iterator[dict[int, str]]:
    """Yield the latest name of each host in a capture, by address."""
    from mxwire.analysis.inventory import Inventory

    inventory = Inventory(messages=False)
    for decoded in decoded_batches(capture.decoder, capture.source):
        inventory.observe(decoded)
    refuse_empty(capture.source, capture.decoder)
    names = {address: list(filter(None, host.names)) for address, host in inventory.hosts.items()}
    yield {address: announced[-1] for address, announced in names.items() if announced}


@command.command()
@_json_option
def build(as_json: bool) -> None:
    """Bring the generated tables of the plugin up to date (in a checkout)."""
    from mxwire.dissector.build import write
    from mxwire.dissector.location import source_path

    if not source_path().is_file():
        raise MxwireError(f"{source_path()} does not exist: the plugin can be built only in a checkout of mxwire")
    written = write()
    if as_json:
        print_record({"path": str(source_path()), "changed": written})
    else:
        click.echo(f"wrote {source_path()}" if written else f"{source_path()} is up to date")


def _scope(for_all: bool) -> Scope:
    return "global" if for_all else "personal"


def _place(place: Place) -> dict[str, str]:
    return {"path": str(place.path), "state": place.state}


def _print_report(report: Report) -> None:
    lines = [("tshark", _program(report.tshark)), ("Wireshark", _program(report.wireshark))]
    words = {"dissector": "folder", "extcap": "extcap"}
    lines += [(f"{each.scope} {words[each.file.kind]}", f"{each.path} ({_state(each)})") for each in report.places]
    if report.loaded is not None:
        how = "as installed" if report.loaded == "installed" else f"not installed, tried from {report.source}"
        same = "the same as" if report.expected == report.decoded else "not the same as"
        lines += [
            ("loaded", how),
            (
                "decoded",
                f"{count_of(report.decoded.total(), 'frame')} of {count_of(len(report.decoded), 'type')}, "
                f"{same} mxwire: "
                f"{count_of(report.expected.total(), 'frame')} of {count_of(len(report.expected), 'type')}",
            ),
        ]
    if report.there("extcap"):
        lines.append(("interfaces", ", ".join(report.interfaces) or _NO_INTERFACES))
    for name, text in lines:
        click.echo(f"{name + ':':17}{text}")
    for problem in report.problems:
        click.echo(f"{'wrong:':17}{problem}")
    if report.ok:
        click.echo("The plugin is installed and works.")


def _program(program: Program | None) -> str:
    if program is None:
        return "not found"
    return f"{program.version} at {program.path}, {'Lua ' + program.lua if program.lua else 'without Lua'}"


def _state(place: Place) -> str:
    return {"missing": "not installed", "current": "current", "stale": "another version"}[place.state]

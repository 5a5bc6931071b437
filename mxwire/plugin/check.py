"""A check that the plugin works here: tshark compared with mxwire's own decoder, on an included capture."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mxwire.capture import open_capture
from mxwire.errors import MxwireError
from mxwire.plugin.folder import FILES, Place, places, source
from mxwire.plugin.programs import HOW_TO_INSTALL, Program, Scope, Tshark, run_program, wireshark
from mxwire.wire.decoder import Decoder
from mxwire.wire.enums import packet_type_name

CAPTURE_NAME: Final = "mxoe-every-type.pcap"
_PACKAGED: Final = Path(__file__).with_name(CAPTURE_NAME)
_REMEDY: Final = "see that Lua is not disabled (enable_lua in init.lua)"
_REMEDY_AS_ROOT: Final = (
    "; as root, Wireshark 4.4 loads only plugins installed for all users: run mxwire plugin install --global, "
    "or use Wireshark as another user"
)
_CHECKOUT: Final = Path(__file__).parents[2] / "captures" / CAPTURE_NAME
_INTERFACE: Final = re.compile(r"^interface \{value=([^}]+)\}", re.M)

Types = dict[int, str]
"""Packet type by frame number."""


def shipped_capture() -> Path:
    """Return a small real capture with every packet type, from the package or from the checkout."""
    for path in (_PACKAGED, _CHECKOUT):
        if path.is_file():
            return path
    raise MxwireError(f"{_PACKAGED} is not there: this mxwire is incomplete, install it again")


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem and its remedy."""

    what: str
    remedy: str

    def __str__(self) -> str:
        """Return the problem and its remedy as one line."""
        return f"{self.what}: {self.remedy}"


@dataclass(slots=True)
class Report:
    """The result of a check."""

    tshark: Program | None = None
    wireshark: Program | None = None
    source: Path | None = None
    """The plugin of this version of mxwire."""
    places: list[Place] = field(default_factory=list)
    """The files of the plugin in both folders."""
    interfaces: list[str] = field(default_factory=list)
    """The capture interfaces of mxwire that tshark lists."""
    loaded: str | None = None
    """``installed``: loaded from tshark's plugin folder; ``source``: loaded by an option, because the plugin is not
    installed."""
    capture: Path | None = None
    expected: Counter[str] = field(default_factory=Counter)
    """Frames of the capture by packet type, as mxwire decodes them."""
    decoded: Counter[str] = field(default_factory=Counter)
    """Frames of the capture by packet type, as tshark decodes them with the plugin."""
    problems: list[Problem] = field(default_factory=list)

    def there(self, kind: str) -> list[Place]:
        """Return the places that have a file of this kind."""
        return [each for each in self.places if each.file.kind == kind and each.state != "missing"]

    @property
    def ok(self) -> bool:
        """True if the plugin is installed and works."""
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """Return the report as an object with stable keys."""
        return {
            "ok": self.ok,
            "tshark": _program(self.tshark),
            "wireshark": _program(self.wireshark),
            "source": str(self.source) if self.source else None,
            "places": [
                {"file": each.file.kind, "scope": each.scope, "path": str(each.path), "state": each.state}
                for each in self.places
            ],
            "interfaces": self.interfaces,
            "loaded": self.loaded,
            "capture": str(self.capture) if self.capture else None,
            "frames": {"expected": self.expected.total(), "decoded": self.decoded.total()},
            "types": {
                name: {"expected": self.expected[name], "decoded": self.decoded[name]}
                for name in sorted(self.expected | self.decoded)
            },
            "problems": [{"what": each.what, "remedy": each.remedy} for each in self.problems],
        }


def _program(program: Program | None) -> dict[str, str | None] | None:
    if program is None:
        return None
    return {"path": str(program.path), "version": program.version, "lua": program.lua}


def check(tshark_path: str | Path | None = None) -> Report:
    """Check everything that the plugin needs. Problems are listed in the report and raise no exception."""
    report = Report(wireshark=wireshark())
    try:
        tshark = Tshark(tshark_path)
    except MxwireError as error:
        what, _, remedy = str(error).partition(": ")
        report.problems.append(Problem(what, remedy or HOW_TO_INSTALL))
        return report
    report.tshark = tshark.program()
    if report.tshark.lua is None:
        report.problems.append(Problem(f"{tshark.path} was built without Lua", "install a Wireshark that has it"))
        return report
    try:
        report.source, report.capture = source(), shipped_capture()
        report.places = places(tshark)
        _judge_places(report)
        _decode(report, tshark)
        list_interfaces(report, tshark)
    except MxwireError as error:
        what, _, remedy = str(error).partition(": ")
        report.problems.append(Problem(what, remedy or "see above"))
    return report


def _judge_places(report: Report) -> None:
    for file in FILES:
        there = report.there(file.kind)
        if not there and file.kind == "dissector":
            report.problems.append(Problem("the plugin is not installed", "run mxwire plugin install"))
        elif not there and report.there("dissector"):
            remedy = f"run mxwire plugin install{_option(report.there('dissector')[0].scope)}"
            report.problems.append(Problem("the capture interfaces are not installed", remedy))
        if len(there) > 1:
            remedy = f"run mxwire plugin uninstall{_option(there[-1].scope)}"
            what = "the plugin is" if file.kind == "dissector" else "the program for capture interfaces is"
            report.problems.append(Problem(f"{what} in both folders, and Wireshark loads both", remedy))
        for each in there:
            if each.state == "stale":
                remedy = f"run mxwire plugin install{_option(each.scope)}"
                report.problems.append(Problem(f"{each.path} is not the plugin of this mxwire", remedy))


def list_interfaces(report: Report, tshark: Tshark) -> None:
    """Compare the capture interfaces that the installed program offers with those that tshark lists."""
    for each in report.there("extcap")[:1]:
        offered = run_program([str(each.path), "--extcap-interfaces"])
        names = _INTERFACE.findall(offered.text)
        if offered.code or not names:
            reason = offered.complaint or f"exit code {offered.code}"
            report.problems.append(Problem(f"{each.path} fails ({reason})", "run mxwire plugin install"))
            return
        listed = tshark.interfaces()
        report.interfaces = [name for name in names if re.search(rf"^\d+\. {name}\b", listed.text, re.M)]
        # As root, Wireshark runs only programs that are installed for all users: this is intended.
        if report.interfaces != names and not (_is_root() and each.scope == "personal"):
            reason = listed.complaint or f"it lists {', '.join(report.interfaces) or 'none of them'}"
            remedy = "see that tshark -D works, and that extcap is not disabled (extcap.enabled in preferences)"
            report.problems.append(Problem(f"tshark does not list {', '.join(names)} ({reason})", remedy))


def _option(scope: Scope) -> str:
    return " --global" if scope == "global" else ""


def _decode(report: Report, tshark: Tshark) -> None:
    assert report.source is not None and report.capture is not None
    if report.there("dissector"):
        report.loaded, how = "installed", []
    else:
        report.loaded, how = "source", ["-X", f"lua_script:{report.source}"]
    expected = _expected(report.capture)
    decoded, complaint = _decoded(tshark, report.capture, how)
    report.expected, report.decoded = Counter(expected.values()), Counter(decoded.values())
    if "Lua:" in complaint or (complaint and not decoded):
        remedy = "run mxwire plugin install; if that does not help, report it with this text"
        report.problems.append(Problem(f"tshark complains: {complaint}", remedy))
    numbers = sorted(expected.keys() | decoded.keys())
    different = [number for number in numbers if expected.get(number) != decoded.get(number)]
    if different and not decoded:
        remedy = _REMEDY + (_REMEDY_AS_ROOT if _is_root() else "")
        report.problems.append(Problem("tshark does not load the plugin", remedy))
    elif different:
        first = different[0]
        what = (
            f"tshark decodes {len(different)} of {len(expected)} frames differently, the first is frame {first}: "
            f"{decoded.get(first, 'nothing')} instead of {expected.get(first, 'nothing')}"
        )
        report.problems.append(Problem(what, "run mxwire plugin install; if that does not help, report it"))


def _is_root() -> bool:
    return os.name == "posix" and os.geteuid() == 0


def _expected(path: Path) -> Types:
    """Return the packet types as decoded by mxwire."""
    decoder = Decoder()
    types: Types = {}
    # tshark decodes the frames before damage, too.
    with open_capture(str(path), damaged=lambda _: None) as capture:
        for decoded in map(decoder.decode, capture):
            for index, packet_type in enumerate(decoded.columns.packet_type.tolist()):
                types[int(decoded.batch.number[index])] = packet_type_name(packet_type)
    return types


def _decoded(tshark: Tshark, path: Path, how: list[str]) -> tuple[Types, str]:
    """Return the packet types as decoded by tshark with the plugin, and its error output."""
    output = tshark.run(*how, "-r", path, "-T", "fields", "-e", "frame.number", "-e", "mxoe.ptype")
    types: Types = {}
    for line in output.text.splitlines():
        number, _, packet_type = line.partition("\t")
        if packet_type:
            types[int(number)] = packet_type_name(int(packet_type, 0))
    return types, output.complaint


def loading_arguments(tshark: Tshark) -> list[str]:
    """Return the options with which tshark loads the plugin of this mxwire: none if it is installed.

    Raises :class:`~mxwire.errors.MxwireError` if another version is installed, which would be loaded instead.
    """
    loaded = tshark.loaded(source().name)
    for path in loaded:
        if path.read_bytes() != source().read_bytes():
            raise MxwireError(f"{path} is not the plugin of this mxwire: run mxwire plugin install")
    return [] if loaded else ["-X", f"lua_script:{source()}"]


def ensure_loads(tshark: Tshark, arguments: list[str], path: Path) -> None:
    """Raise :class:`~mxwire.errors.MxwireError` unless tshark reads a capture with the plugin."""
    output = tshark.run(*arguments, "-r", path, "-c", "1", "-Y", "mxoe")
    if output.code or "Lua:" in output.complaint:
        reason = output.complaint or f"exit code {output.code}"
        raise MxwireError(f"{path} cannot be read by {tshark.path} with the plugin ({reason}): run mxwire plugin check")

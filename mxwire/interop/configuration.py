"""Configuration of live hosts: a TOML file, checked key by key."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, get_args

from mxwire.errors import MxwireError
from mxwire.ethernet import mac_bytes
from mxwire.interop.implementations import dialect_of, implementation_by_name, live
from mxwire.interop.live_testbed import PATIENCE
from mxwire.interop.result import Implementation
from mxwire.interop.roles import ANSWERS, Answer, Role
from mxwire.lab.namespaces import process_name
from mxwire.wire.dialect import MXOE
from mxwire.wire.numbers import DEFAULT_KEY

How = Literal["command", "ssh", "serial", "hand", "entry"]
"""Means of starting a program: as a local process, by ssh, by typing into a serial console, by the user, or as the
entry point of ``--with``: a local process whose environment names its role, interface and case."""

_NAME_LONGEST: Final = 40
_ENTRY_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,29}")
_READY_SECONDS: Final = 20.0
_MEANS: Final = tuple(each for each in get_args(How) if each != "entry")
"""The means in a file."""
_ROLES: Final[tuple[Role, ...]] = get_args(Role)
_ANSWERS: Final[tuple[Answer, ...]] = get_args(Answer)
_ENTRY_SECONDS: Final = 10.0
"""Seconds that an entry point has to print its first line."""
_ENTRY_PATIENCE: Final = 5.0
"""Seconds that a case waits for an event: both hosts are on this machine."""
_OF_ROLE: Final[dict[Role, int]] = {"echo": 1, "sink": 1, "perf": 0, "nothing": 0}
"""Default endpoints of programs: those of mxwire serve and omx_perf."""


@dataclass(frozen=True, slots=True)
class InterfaceLocation:
    """An interface of this machine, optionally in a network namespace."""

    interface: str
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class ProgramDescription:
    """A program on an external host that serves a role in cases."""

    role: Role
    by: How
    start: str
    """Command line; for ``hand``, the instruction to the user."""
    stop: str | None = None
    """Command line that ends the program; None to interrupt the process."""
    target: str | None = None
    """Destination of ssh, or device of the serial console."""
    ready: str | None = None
    """Output that shows that the program is ready, any if empty; None to wait for ``settle``."""
    settle: float = 1.0
    """Seconds until the program is ready."""
    patience: float = _READY_SECONDS
    """Maximum number of seconds until the program prints ``ready``."""
    endpoint: int = 0
    key: int = DEFAULT_KEY
    answer: Answer = "content"
    """Kind of answers of the program, if it sends any."""
    environment: dict[str, str] = field(default_factory=dict)
    """Additional variables of a local process."""
    namespace: str | None = None
    """Network namespace of a local process; None for that of this process."""


@dataclass(frozen=True, slots=True)
class ExternalHost:
    """A host that does not run mxwire's engine under control of the matrix."""

    implementation: Implementation
    """Entry of the host in the report."""
    taken_for: Implementation
    """The implementation of mxwire that gives its expected behaviour."""
    host: str | None
    address: bytes | None
    programs: dict[Role, ProgramDescription] = field(default_factory=dict)
    driver: str | None = None
    """Command line of a program that makes the calls of scenarios on the host; None without one."""

    @property
    def is_entry(self) -> bool:
        """True for a command of ``--with``, which is started for each cell."""
        return any(each.by == "entry" for each in self.programs.values())


@dataclass(frozen=True, slots=True)
class LiveConfiguration:
    """A parsed configuration file."""

    path: str
    title: str
    left: InterfaceLocation
    right: InterfaceLocation | None
    make: bool
    implementations: tuple[Implementation, ...]
    """Implementations of mxwire to be played live."""
    externals: tuple[ExternalHost, ...] = ()
    cases: tuple[str, ...] = ()
    impairments: tuple[str, ...] = ()
    mtu: int = 9000
    patience: float = PATIENCE
    entries: tuple[str, ...] = ()
    """The values of ``--with``."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words by which a command line names this configuration."""
        return (*(word for each in self.entries for word in ("--with", each)), *([self.path] if self.path else []))


def read_configuration(path: str) -> LiveConfiguration:
    """Read and check a file.

    Raises :class:`~mxwire.errors.MxwireError` with file and key for invalid content.
    """
    try:
        with Path(path).open("rb") as file:
            content = tomllib.load(file)
    except FileNotFoundError:
        raise MxwireError(f"{path}: no such file; check the path") from None
    except OSError as error:
        raise MxwireError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MxwireError(f"{path}: not TOML: {error}") from None
    return _configuration(_CheckedTable(path, "", content))


def configuration_with(
    entries: Sequence[str], implementations: Sequence[str], base: LiveConfiguration | None = None
) -> LiveConfiguration:
    """Return a configuration in which commands, given as ``NAME=COMMAND``, are the hosts on the right.

    They use the right interface of ``base``; without it, that of a new pair of namespaces. Each is one host per dialect
    of the implementations on the left. Raises :class:`~mxwire.errors.MxwireError` for invalid entries.
    """
    if base is None:
        # Those of the commands have the name of their dialect behind a hyphen, or none.
        own = tuple(each.partition("=")[0] for each in entries)
        names = [
            each
            for each in implementations
            if each not in own and not each.startswith(tuple(f"{name}-" for name in own))
        ]
        names = names or ["open-mx-1.5"]
        own_name = process_name("interop")
        base = LiveConfiguration(
            path="",
            title="Interoperability with " + ", ".join(own),
            left=InterfaceLocation("eth0", f"{own_name}-left"),
            right=InterfaceLocation("eth1", f"{own_name}-right"),
            make=True,
            implementations=tuple(live(implementation_by_name(each), each) for each in dict.fromkeys(names)),
            patience=_ENTRY_PATIENCE,
        )
    if base.right is None:
        raise MxwireError(f"{base.path}: right: is missing: give [right] with the interface that --with shall use")
    dialects = dict.fromkeys(each.dialect for each in base.implementations)
    externals = [_entry(each, dialect, base.right) for each in entries for dialect in dialects]
    every = [each.implementation.name for each in externals] + [each.name for each in base.implementations]
    for name in every:
        if every.count(name) > 1:
            raise MxwireError(f"--with: two hosts are called {name}: choose another name")
    return replace(base, externals=tuple(externals), entries=tuple(entries))


def _entry(text: str, dialect: str, right: InterfaceLocation) -> ExternalHost:
    name, equals, command = text.partition("=")
    if not (equals and command.strip()) or not _ENTRY_NAME.fullmatch(name):
        raise MxwireError(
            f"--with {text!r}: use the form NAME=COMMAND, with a name of letters, digits, dots and hyphens"
        )
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise MxwireError(f"--with {name}: {command!r} is not a command line: {error}") from None
    # Checked now: each of the many cells would otherwise fail with it, after its namespaces were made.
    if shutil.which(words[0]) is None:
        raise MxwireError(f"--with {name}: there is no program {words[0]!r}: check the path, and that it is executable")
    # Names of hosts become names of files and cells, so they have none of the dialect's colons and slashes.
    full = name if dialect == MXOE.name else f"{name}-{dialect.replace(':', '-').replace('/', '-')}"
    common = {"INTERFACE": right.interface, "NAME": name, "DIALECT": dialect}
    # The variables of programs that mxwire runs have a prefix.
    common |= {f"MXWIRE_{key}": value for key, value in common.items()}
    programs = {
        role: ProgramDescription(
            role=role,
            by="entry",
            start=command,
            # Any line: the command shows that it runs, whatever its language prints.
            ready="",
            patience=_ENTRY_SECONDS,
            endpoint=endpoint,
            answer=ANSWERS.get(role, "content"),
            environment=common | {"ROLE": role, "ENDPOINT": str(endpoint), "KEY": f"{DEFAULT_KEY:#x}"},
            namespace=right.namespace,
        )
        for role, endpoint in _OF_ROLE.items()
    }
    implementation = Implementation(full, full, dialect, None, "external", command)
    # Nothing is known about the command, so it is expected to behave like Open-MX.
    taken = replace(implementation, profile="open-mx")
    return ExternalHost(implementation, taken, f"{name}:0", None, programs)


class _CheckedTable:
    """A table of the file; values are checked as they are taken, and remaining keys are refused."""

    def __init__(self, path: str, where: str, content: dict[str, Any]) -> None:
        self.path, self.where, self._content = path, where, dict(content)

    def wrong(self, key: str, why: str) -> MxwireError:
        """Return an error about a key."""
        return MxwireError(f"{self.path}: {self._full(key)}: {why}")

    def _full(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key

    def take(
        self, key: str, kind: type | tuple[type, ...], what: str, default: Any = None, *, need: bool = False
    ) -> Any:
        """Take the value of a key, of type ``kind``; ``what`` describes valid values in errors."""
        # Taken out, so that the keys left at the end are those that no code knows.
        value = self._content.pop(key, None)
        if value is None:
            if need:
                raise self.wrong(key, f"is missing: give {what}")
            return default
        # In Python, a bool is an int: "endpoint = true" would be endpoint 1.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.wrong(key, f"{value!r} is not {what}")
        return value

    def text(self, key: str, default: str | None = None, *, need: bool = False) -> Any:
        """Take a non-empty text."""
        value = self.take(key, str, "a text", default, need=need)
        if value is not None and not value.strip():
            raise self.wrong(key, "is empty")
        return value

    def number(self, key: str, default: float, least: float, most: float) -> float:
        """Take a number within limits."""
        value = self.take(key, (int, float), "a number", default)
        if not least <= value <= most:
            raise self.wrong(key, f"{value} is not between {least:g} and {most:g}")
        return float(value)

    def names(self, key: str, check: Callable[[str], object]) -> tuple[str, ...]:
        """Take a list of names, each accepted by ``check``."""
        values = self.take(key, list, "a list of names", [])
        for value in values:
            if not isinstance(value, str):
                raise self.wrong(key, f"{value!r} is not a name")
            self.checked(key, check, value)
        return tuple(values)

    def checked(self, key: str, check: Callable[[str], Any], value: str) -> Any:
        """Return the result of ``check`` for a value; its errors name the key."""
        try:
            return check(value)
        except MxwireError as error:
            raise self.wrong(key, str(error)) from None

    def table(self, key: str, *, need: bool = False) -> _CheckedTable | None:
        """Take a nested table."""
        found = self.take(key, dict, f"a table: [{self._full(key)}]", need=need)
        return None if found is None else _CheckedTable(self.path, self._full(key), found)

    def tables(self, key: str) -> list[_CheckedTable]:
        """Take a list of nested tables."""
        found = self.take(key, list, f"tables: [[{self._full(key)}]]", [])
        for each in found:
            if not isinstance(each, dict):
                raise self.wrong(key, f"must be written as [[{self._full(key)}]]")
        return [_CheckedTable(self.path, f"{self._full(key)}[{place}]", each) for place, each in enumerate(found, 1)]

    def end(self) -> None:
        """Refuse remaining keys."""
        for key in self._content:
            raise self.wrong(key, "unknown key")


def _configuration(top: _CheckedTable) -> LiveConfiguration:
    from mxwire.interop.impairments import treatment_by_name
    from mxwire.interop.matrix import selected_cases

    left = _place(top.table("left", need=True))
    assert left is not None
    right = _place(top.table("right"))
    title = top.text("title", "Interoperability, live")
    names = top.names("implementations", implementation_by_name)
    make = top.take("make", bool, "true or false", False)
    configuration = LiveConfiguration(
        path=top.path,
        title=title,
        left=left,
        right=right,
        make=make,
        mtu=int(top.number("mtu", 9000, 576, 65535)),
        implementations=tuple(live(implementation_by_name(each), each) for each in names or ("open-mx-1.5",)),
        externals=tuple(_external(each) for each in top.tables("external")),
        cases=top.names("cases", lambda name: selected_cases((name,))),
        impairments=top.names("impairments", treatment_by_name),
        patience=top.number("patience", PATIENCE, 0.1, 3600),
    )
    top.end()
    # Interfaces of this machine exist already; only those in namespaces can be created.
    if make and (right is None or left.namespace is None or right.namespace is None):
        raise top.wrong("make", "needs left.namespace and right.namespace: the names of the namespaces to create")
    if right is None and not configuration.externals:
        raise top.wrong("right", "is missing: give [right] with an interface, or [[external]] hosts")
    every = [each.name for each in configuration.implementations] + [
        each.implementation.name for each in configuration.externals
    ]
    for name in every:
        if every.count(name) > 1:
            raise top.wrong("external", f"two hosts are called {name}")
    return configuration


def _place(table: _CheckedTable | None) -> InterfaceLocation | None:
    if table is None:
        return None
    place = InterfaceLocation(table.text("interface", need=True), table.text("namespace"))
    table.end()
    return place


def _external(table: _CheckedTable) -> ExternalHost:
    name = table.text("name", need=True)
    if "/" in name or len(name) > _NAME_LONGEST:
        raise table.wrong("name", f"{name!r}: has no slash, and at most {_NAME_LONGEST} characters")
    taken = table.checked(
        "implementation", implementation_by_name, table.text("implementation", "open-mx-1.5-as-found")
    )
    dialect = table.text("dialect", taken.dialect)
    table.checked("dialect", dialect_of, dialect)
    host, address = table.text("host"), table.text("address")
    if host is None and address is None:
        raise table.wrong("host", "is missing: give its host name, or its Ethernet address as address")
    known = None if address is None else table.checked("address", mac_bytes, address)
    described = table.take("description", str, "a text", "")
    external = ExternalHost(
        Implementation(name, name, dialect, None, "external", described),
        Implementation(name, name, dialect, taken.profile, "external", described),
        host,
        known,
        {},
        table.text("driver"),
    )
    for each in table.tables("program"):
        program = _program(each)
        if program.role in external.programs:
            raise each.wrong("role", f"there are two programs for {program.role!r}")
        external.programs[program.role] = program
    table.end()
    return external


def _answer(table: _CheckedTable, role: Role) -> Answer:
    known = ANSWERS.get(role, "content")
    found = table.text("answer", known)
    # An answer of such a program would never be waited for, so the key is a misunderstanding.
    if role not in ANSWERS and found != known:
        raise table.wrong("answer", f"a program for {role!r} does not answer")
    answer = next((each for each in _ANSWERS if each == found), None)
    if answer is None:
        raise table.wrong("answer", f"{found!r} is not one of {', '.join(_ANSWERS)}")
    return answer


def _program(table: _CheckedTable) -> ProgramDescription:
    role = table.text("role", need=True)
    if role not in _ROLES:
        raise table.wrong("role", f"{role!r} is not one of {', '.join(_ROLES)}")
    by = table.text("by", "command")
    if by not in _MEANS:
        raise table.wrong("by", f"{by!r} is not one of {', '.join(_MEANS)}")
    key = {"ssh": "target", "serial": "device"}.get(by)
    program = ProgramDescription(
        role=role,
        by=by,
        start=table.text("start", need=True),
        stop=table.text("stop"),
        target=None if key is None else table.text(key, need=True),
        ready=table.text("ready"),
        settle=table.number("settle", 1.0, 0, 3600),
        patience=table.number("patience", _READY_SECONDS, 0.1, 3600),
        endpoint=int(table.number("endpoint", _OF_ROLE[role], 0, 255)),
        key=int(table.number("key", DEFAULT_KEY, 0, 0xFFFFFFFF)),
        answer=_answer(table, role),
    )
    table.end()
    if by == "command":
        # Other means pass the line on as it is: another machine's shell splits it.
        for key, line in (("start", program.start), ("stop", program.stop or "")):
            try:
                shlex.split(line)
            except ValueError as error:
                raise table.wrong(key, f"{line!r} is not a command line: {error}") from None
    return program

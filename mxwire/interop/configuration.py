"""The description of live hosts: a TOML file, checked key by key."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

from mxwire.errors import MxwireError
from mxwire.ethernet import mac_bytes
from mxwire.interop.casting import ANSWERS, Answer, Role
from mxwire.interop.implementations import dialect_of, implementation_by_name, live
from mxwire.interop.live import PATIENCE
from mxwire.interop.result import Implementation
from mxwire.wire.numbers import DEFAULT_KEY

How = Literal["command", "ssh", "serial", "hand"]
"""How a program is started: as a process here, through ssh, by typing into a serial console, or by a person."""

_NAME_LONGEST: Final = 40
_READY_SECONDS: Final = 20.0
_ROLES: Final[tuple[Role, ...]] = get_args(Role)
_ANSWERS: Final[tuple[Answer, ...]] = get_args(Answer)
_OF_ROLE: Final[dict[str, int]] = {"echo": 1, "sink": 1, "perf": 0, "nothing": 0}
"""The endpoint of a program for which none is given: as mxwire serve and omx_perf have it."""


@dataclass(frozen=True, slots=True)
class Place:
    """An interface of this machine, perhaps in a network namespace."""

    interface: str
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """What is run on an external host so that a case has somebody to talk to."""

    role: Role
    by: How
    start: str
    """The command line; by hand, what the person is asked to do."""
    stop: str | None = None
    """Another command line that ends it; None: the process is interrupted."""
    target: str | None = None
    """Whom ssh calls, or the device of the serial console."""
    ready: str | None = None
    """It is ready when it has said this; None: after ``settle``."""
    settle: float = 1.0
    """Seconds until it is ready."""
    patience: float = _READY_SECONDS
    """Seconds that it may take to say that it is ready."""
    endpoint: int = 0
    key: int = DEFAULT_KEY
    answer: Answer = "content"
    """How it answers, where it does."""


@dataclass(frozen=True, slots=True)
class External:
    """A host that is not ours."""

    implementation: Implementation
    """As it stands in the report."""
    taken_for: Implementation
    """Of ours: what is expected of it."""
    host: str | None
    address: bytes | None
    programs: dict[Role, Program] = field(default_factory=dict)
    driver: str | None = None
    """The command line of a program that makes the calls of scenarios there, where there is one."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A file."""

    path: str
    title: str
    left: Place
    right: Place | None
    make: bool
    mtu: int
    implementations: tuple[Implementation, ...]
    """Of ours, that are played live."""
    externals: tuple[External, ...]
    cases: tuple[str, ...]
    impairments: tuple[str, ...]
    patience: float


def read_configuration(path: str) -> Configuration:
    """Read and check a file.

    Raises :class:`~mxwire.errors.MxwireError` with file and key for what cannot be.
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
    return _configuration(_Table(path, "", content))


class _Table:
    """A table of the file; what is taken from it is checked, and what is left over is refused."""

    def __init__(self, path: str, where: str, content: dict[str, Any]) -> None:
        self.path, self.where, self._content = path, where, dict(content)

    def wrong(self, key: str, why: str) -> MxwireError:
        """What to say of a key."""
        return MxwireError(f"{self.path}: {self._full(key)}: {why}")

    def _full(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key

    def take(
        self, key: str, kind: type | tuple[type, ...], what: str, default: Any = None, *, need: bool = False
    ) -> Any:
        """The value of a key."""
        value = self._content.pop(key, None)
        if value is None:
            if need:
                raise self.wrong(key, f"is missing: give {what}")
            return default
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.wrong(key, f"{value!r} is not {what}")
        return value

    def text(self, key: str, default: str | None = None, *, need: bool = False) -> Any:
        """A text that is not empty."""
        value = self.take(key, str, "a text", default, need=need)
        if value is not None and not value.strip():
            raise self.wrong(key, "is empty")
        return value

    def number(self, key: str, default: float, least: float, most: float) -> float:
        """A number within limits."""
        value = self.take(key, (int, float), "a number", default)
        if not least <= value <= most:
            raise self.wrong(key, f"{value} does not lie between {least:g} and {most:g}")
        return float(value)

    def names(self, key: str, check: Callable[[str], object]) -> tuple[str, ...]:
        """A list of names, each of which is known."""
        values = self.take(key, list, "a list of names", [])
        for value in values:
            if not isinstance(value, str):
                raise self.wrong(key, f"{value!r} is not a name")
            self.checked(key, check, value)
        return tuple(values)

    def checked(self, key: str, check: Callable[[str], Any], value: str) -> Any:
        """What a check makes of a value."""
        try:
            return check(value)
        except MxwireError as error:
            raise self.wrong(key, str(error)) from None

    def table(self, key: str, *, need: bool = False) -> _Table | None:
        """A table within."""
        found = self.take(key, dict, f"a table: [{self._full(key)}]", need=need)
        return None if found is None else _Table(self.path, self._full(key), found)

    def tables(self, key: str) -> list[_Table]:
        """A list of tables within."""
        found = self.take(key, list, f"tables: [[{self._full(key)}]]", [])
        for each in found:
            if not isinstance(each, dict):
                raise self.wrong(key, f"is written as [[{self._full(key)}]]")
        return [_Table(self.path, f"{self._full(key)}[{place}]", each) for place, each in enumerate(found, 1)]

    def end(self) -> None:
        """Refuse what nobody has asked for."""
        for key in self._content:
            raise self.wrong(key, "is not known here")


def _configuration(top: _Table) -> Configuration:
    from mxwire.interop.impairments import treatment_by_name
    from mxwire.interop.matrix import chosen_parts

    left = _place(top.table("left", need=True))
    assert left is not None
    right = _place(top.table("right"))
    title = top.text("title", "Interoperability, live")
    names = top.names("implementations", implementation_by_name)
    make = top.take("make", bool, "true or false", False)
    found = Configuration(
        path=top.path,
        title=title,
        left=left,
        right=right,
        make=make,
        mtu=int(top.number("mtu", 9000, 576, 65535)),
        implementations=tuple(live(implementation_by_name(each), each) for each in names or ("open-mx-1.5",)),
        externals=tuple(_external(each) for each in top.tables("external")),
        cases=top.names("cases", lambda name: chosen_parts((name,))),
        impairments=top.names("impairments", treatment_by_name),
        patience=top.number("patience", PATIENCE, 0.1, 3600),
    )
    top.end()
    if make and (right is None or left.namespace is None or right.namespace is None):
        raise top.wrong("make", "needs left.namespace and right.namespace: the names of what is to be made")
    if right is None and not found.externals:
        raise top.wrong("right", "is missing: give [right] with an interface, or [[external]] hosts")
    every = [each.name for each in found.implementations] + [each.implementation.name for each in found.externals]
    for name in every:
        if every.count(name) > 1:
            raise top.wrong("external", f"two hosts are called {name}")
    return found


def _place(table: _Table | None) -> Place | None:
    if table is None:
        return None
    place = Place(table.text("interface", need=True), table.text("namespace"))
    table.end()
    return place


def _external(table: _Table) -> External:
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
        raise table.wrong("host", "is missing: give the name that it tells, or its Ethernet address as address")
    known = None if address is None else table.checked("address", mac_bytes, address)
    described = table.take("description", str, "a text", "")
    found = External(
        Implementation(name, name, dialect, None, "external", described),
        Implementation(name, name, dialect, taken.profile, "external", described),
        host,
        known,
        {},
        table.text("driver"),
    )
    for each in table.tables("program"):
        program = _program(each)
        if program.role in found.programs:
            raise each.wrong("role", f"there are two programs for {program.role!r}")
        found.programs[program.role] = program
    table.end()
    return found


def _answer(table: _Table, role: Role) -> Answer:
    known = ANSWERS.get(role, "content")
    found = table.text("answer", known)
    if role not in ANSWERS and found != known:
        raise table.wrong("answer", f"a program for {role!r} does not answer")
    answer = next((each for each in _ANSWERS if each == found), None)
    if answer is None:
        raise table.wrong("answer", f"{found!r} is not one of {', '.join(_ANSWERS)}")
    return answer


def _program(table: _Table) -> Program:
    role = table.text("role", need=True)
    if role not in _ROLES:
        raise table.wrong("role", f"{role!r} is not one of {', '.join(_ROLES)}")
    by = table.text("by", "command")
    if by not in get_args(How):
        raise table.wrong("by", f"{by!r} is not one of {', '.join(get_args(How))}")
    key = {"ssh": "target", "serial": "device"}.get(by)
    program = Program(
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
        for key, line in (("start", program.start), ("stop", program.stop or "")):
            try:
                shlex.split(line)
            except ValueError as error:
                raise table.wrong(key, f"{line!r} is no command line: {error}") from None
    return program

"""The matrix of live hosts: pairs of mxwire's own on two interfaces, and mxwire against external hosts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Final

from mxwire.errors import MxwireError
from mxwire.ethernet import SOURCE
from mxwire.interop.cases import CaseDefinition, case_by_name
from mxwire.interop.cases.perf import AGREEMENT
from mxwire.interop.cell_player import CaseOutcome, CellOrder, casting_of, cell_of, perform
from mxwire.interop.configuration import ExternalHost, InterfaceLocation, LiveConfiguration
from mxwire.interop.expectations import CellExpectation, expected_of
from mxwire.interop.external_programs import ExternalPrograms, ProgramError
from mxwire.interop.impairments import treatment_by_name
from mxwire.interop.live_testbed import ExternalPeer, LiveTestbed
from mxwire.interop.matrix import CellSelection, cell_by_name, selected_cases
from mxwire.interop.recorded_frames import HostTable, breaches_of, inherited, sessions_named
from mxwire.interop.result import Cell, Implementation
from mxwire.interop.roles import HostSetup, Introduction, UnplayableCase
from mxwire.lab.namespaces import inside, joined
from mxwire.link import Link, PacketLink
from mxwire.wire.dialect import Dialect

_IMPATIENCE: Final = 1.0
"""Seconds that a case waits for an event that must not occur."""
_BOTH: Final = "not played: the case must control both hosts, and the one on the right is external"
_OF_SEVERAL: Final = ("R-DISC-02",)
"""Rules that several programs at one address cannot follow together: each program of mxwire announces itself."""
_SILENCE: Final = 12.0
"""Seconds without a frame after which an external host counts as silent: time for two name queries."""


def plan(configuration: LiveConfiguration, selection: CellSelection) -> list[CellOrder]:
    """Return the cells of a configuration, pair by pair; the selection takes precedence over the file.

    Raises :class:`~mxwire.errors.MxwireError` for unknown names.
    """

    def find(name: str) -> Implementation:
        every = [*configuration.implementations, *(each.implementation for each in configuration.externals)]
        found = next((each for each in every if each.name == name.strip().lower() or each.name == name), None)
        if found is None:
            known = ", ".join(each.name for each in every)
            raise MxwireError(f"{shlex.join(configuration.words)}: unknown host {name!r}: use {known}")
        return found

    if selection.cells:
        return [cell_by_name(each, selection.seed, find, configuration.words) for each in selection.cells]
    chosen = [find(each) for each in dict.fromkeys(selection.implementations)]
    chosen_here = [each for each in configuration.implementations if not chosen or each in chosen]
    externals = [each.implementation for each in configuration.externals]
    others = [each for each in externals if not chosen or each in chosen]
    rights = (chosen_here if configuration.right is not None and not configuration.entries else []) + others
    parts = selected_cases(selection.cases or configuration.cases)
    impairments = selection.impairments or configuration.impairments or ("none",)
    names = [treatment_by_name(each).name for each in dict.fromkeys(impairments)]
    return [
        CellOrder(left, right, part.case.name, impairment, selection.seed, configuration.words)
        for left, right in product(chosen_here or list(configuration.implementations), rights or externals)
        for impairment in names
        for part in parts
    ]


class LivePlayer:
    """Plays the cells of a configuration in sequence; use :func:`opened`."""

    def __init__(self, configuration: LiveConfiguration, captures: Path | None, stack: ExitStack) -> None:
        self._configuration = configuration
        self._captures = captures
        self._externals = {each.implementation.name: each for each in configuration.externals}
        self._programs: dict[str, ExternalPrograms] = {}
        self._stack = stack
        self._heard: set[str] = set()
        self._earlier: set[int] = set()
        """Sessions of endpoints on the left that external hosts named before the current cell."""
        self._last: tuple[tuple[str, str], LiveTestbed] | None = None
        """The testbed against an external host, with the names of its pair."""

    def play(self, order: CellOrder) -> Cell:
        """Play a cell.

        Raises :class:`~mxwire.errors.MxwireError` if interfaces or programs do not work.
        """
        part = case_by_name(order.case)
        external = self._externals.get(order.right.name)
        if external is not None and part.role is None:
            return order.cell("missing", _BOTH)
        try:
            return self._play(order, part, external)
        except UnplayableCase as reason:
            return order.cell("missing", f"not played: {reason}")
        except ProgramError as error:
            if external is None or not external.is_entry:
                raise
            return order.cell("fail", str(error))

    def _play(self, order: CellOrder, part: CaseDefinition, external: ExternalHost | None) -> Cell:
        left = casting_of(order.left, "left")
        taken, name = (order.right, "right") if external is None else (external.taken_for, order.right.name)
        right = casting_of(taken, name)
        expected = _expected(part, left, right, external)
        patience = self._configuration.patience if expected.expectation == "works" else _IMPATIENCE
        if external is not None:
            testbed = self._against(external, order, left, patience)
            hosts = hosts_against(testbed, left, right, external)
            own = testbed.left.address
            self._earlier |= sessions_named(testbed.before, hosts, own)
            try:
                return self._judged(order, part, testbed, expected, hosts, self.programs(external))
            finally:
                self._earlier |= sessions_named(testbed.frames, hosts, own)
        testbed = between(self._configuration, (left, right), order.impairment, order.seed, part.introduction, patience)
        try:
            return self._judged(order, part, testbed, expected, HostTable.on(testbed, (left, right)))
        finally:
            testbed.close()

    def _judged(
        self,
        order: CellOrder,
        part: CaseDefinition,
        testbed: LiveTestbed,
        expected: CellExpectation,
        hosts: HostTable,
        programs: ExternalPrograms | None = None,
    ) -> Cell:
        works = False
        try:
            if programs is not None and programs.is_entry:
                assert part.role is not None
                programs.start(part.role)
            outcome = perform(part, testbed)
            crash = None if programs is None else programs.crash()
            if crash is not None:
                outcome = CaseOutcome(False, f"{crash}; in the case: {outcome.text}")
            works = outcome.works
        except KeyboardInterrupt:
            # The run ends, and its programs with it; the user must not be asked to restart one.
            works = True
            raise
        finally:
            if programs is not None and not works:
                programs.suspect(testbed.roles, f"{order.name} did not succeed")
        left_out: frozenset[int] = frozenset()
        if programs is not None:
            left_out = inherited(testbed.frames, hosts, testbed.left.address, self._earlier)
        findings = breaches_of(testbed.frames, hosts, exact=False, left_out=left_out, reboots=testbed.reboots)
        if any(each.several for each in self._programs.values()):
            findings = [each for each in findings if each.rule not in _OF_SEVERAL]
        return cell_of(order, part, testbed, expected, outcome, hosts, findings, self._captures, left_out)

    def _against(self, external: ExternalHost, order: CellOrder, left: HostSetup, patience: float) -> LiveTestbed:
        """Return the testbed with one host of mxwire, the same for all cases."""
        key = (order.left.name, order.right.name)
        if self._last is not None and self._last[0] != key:
            self._last[1].close()
            self._last = None
        programs = self.programs(external)
        if self._last is None:
            testbed = against(self._configuration, external, left, programs, order.seed)
            self._last = key, testbed
            self._stack.callback(testbed.close)
            if not external.is_entry:
                self.must_be_there(testbed, external)
        testbed = self._last[1]
        if external.is_entry:
            # A new process for each case, after the old one has acknowledged what it received.
            testbed.settle()
            programs.close()
            programs.begin(order.case, testbed.left.address)
        testbed.renew(treatment_by_name(order.impairment), order.seed, patience)
        return testbed

    def programs(self, external: ExternalHost) -> ExternalPrograms:
        """Return the programs of an external host; they end with the player."""
        name = external.implementation.name
        program = self._programs.get(name)
        if program is None:
            program = self._programs[name] = ExternalPrograms(external)
            self._stack.callback(program.close)
        return program

    def must_be_there(self, testbed: LiveTestbed, external: ExternalHost) -> None:
        """Wait, once, until an external host has sent any frame.

        Raises :class:`~mxwire.errors.MxwireError` with the hosts that were heard instead.
        """
        name = external.implementation.name
        if name in self._heard:
            return
        # The host may exist only while its program runs.
        role = next(iter(external.programs), None)
        if role is not None:
            self.programs(external).start(role)
        node, own = testbed.left.node, testbed.left.address
        known = external.address

        def heard() -> bool:
            if known is not None:
                return any(each.frame[SOURCE] == known for each in testbed.frames)
            return external.host is not None and node.peers.by_name(external.host) is not None

        if not testbed.find(heard, _SILENCE):
            others = {each.frame[SOURCE].hex(":") for each in testbed.frames if each.frame[SOURCE] != own}
            seen = f"; heard instead: {', '.join(sorted(others))}" if others else "; no other host was heard either"
            raise MxwireError(
                f"{name}: no frame received from {external.host or (known and known.hex(':'))} on "
                f"{self._configuration.left.interface} within {_SILENCE:g} s{seen}"
            )
        self._heard.add(name)


def _expected(
    part: CaseDefinition, left: HostSetup, right: HostSetup, external: ExternalHost | None
) -> CellExpectation:
    """Return the expectation, even if a program answers in place of the case."""
    if external is None or part.role is None:
        return expected_of(part, left, right)
    echoed, role = part.role == "echo", part.role
    if echoed and role not in external.programs and part.lengths(left.dialect):
        # With omx_perf alone, its parameters have to arrive first.
        part, role = replace(part, synchronous=AGREEMENT), "perf"
    program = external.programs.get(role)
    return expected_of(part, left, right, echoed=echoed, answer=None if program is None else program.answer)


def between(
    configuration: LiveConfiguration,
    castings: tuple[HostSetup, HostSetup],
    impairment: str,
    seed: int,
    introduction: Introduction,
    patience: float,
) -> LiveTestbed:
    """Return a testbed with two hosts of mxwire on the interfaces of a configuration.

    Raises :class:`~mxwire.link.errors.LinkError` if these cannot be used.
    """
    assert configuration.right is not None
    links = _open([configuration.left, configuration.right], [each.dialect for each in castings])
    treatment = treatment_by_name(impairment)
    return LiveTestbed(castings, links, treatment, seed, introduction=introduction, patience=patience)


def against(
    configuration: LiveConfiguration, external: ExternalHost, left: HostSetup, programs: ExternalPrograms, seed: int
) -> LiveTestbed:
    """Return a testbed with a host of mxwire on the left interface, against an external one.

    Raises :class:`~mxwire.link.errors.LinkError` if the interface cannot be used.
    """
    name = external.host or f"{external.implementation.name}:0"
    stranger = ExternalPeer(name, external.address, frozenset(external.programs), programs.start, programs.restart)
    links = _open([configuration.left], [left.dialect])
    return LiveTestbed((left,), links, treatment_by_name("none"), seed, stranger=stranger)


def hosts_against(testbed: LiveTestbed, left: HostSetup, right: HostSetup, external: ExternalHost) -> HostTable:
    """Return the host of mxwire, and the external one with its configured properties."""
    known = {testbed.left.address: left}
    if external.address is not None:
        known[external.address] = right
    defects = frozenset(defect.value for defect in right.profile.defects)
    return HostTable(known, right.dialect, defects, from_start=False)


def _open(places: list[InterfaceLocation], dialects: list[Dialect]) -> tuple[Link, ...]:
    from mxwire.host.mtu import needed_mtu

    links: list[Link] = []
    try:
        for place in places:
            with inside(place.namespace):
                links.append(PacketLink.open(place.interface))
        for link, dialect in zip(links, dialects, strict=True):
            if link.mtu < needed_mtu(dialect):
                raise UnplayableCase(f"the MTU of {link.name} is {link.mtu}, but {dialect} needs {needed_mtu(dialect)}")
    except BaseException:
        for link in links:
            link.close()
        raise
    return tuple(links)


@contextmanager
def opened(configuration: LiveConfiguration, captures: Path | None) -> Iterator[LivePlayer]:
    """Return a player for a configuration; at the end its programs are ended and the namespaces it created removed.

    Raises :class:`~mxwire.errors.MxwireError` if namespaces cannot be created.
    """
    with ExitStack() as stack:
        if configuration.make:
            left, right = configuration.left, configuration.right
            assert right is not None and left.namespace is not None and right.namespace is not None
            ends = (left.namespace, left.interface), (right.namespace, right.interface)
            stack.enter_context(joined(ends, configuration.mtu))
        if configuration.entries:
            assert configuration.right is not None
            with inside(configuration.right.namespace), PacketLink.open(configuration.right.interface) as link:
                address = link.address
            externals = tuple(replace(each, address=address) for each in configuration.externals)
            configuration = replace(configuration, externals=externals)
        yield LivePlayer(configuration, captures, stack)

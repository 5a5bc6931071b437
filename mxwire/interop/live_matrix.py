"""The matrix of live hosts: ours on two interfaces, and ours against external ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Final

from mxwire.errors import MxwireError
from mxwire.ethernet import SOURCE
from mxwire.interop.cases import Part, part_by_name
from mxwire.interop.cases.measuring import AGREEMENT
from mxwire.interop.casting import Casting, Introduction, Unsuitable
from mxwire.interop.configuration import Configuration, External, Place
from mxwire.interop.expectations import Expected, expected_of
from mxwire.interop.external import Programs
from mxwire.interop.impairments import treatment_by_name
from mxwire.interop.judging import Hosts, judge
from mxwire.interop.live import LiveStage, Stranger
from mxwire.interop.matrix import Selection, cell_by_name, chosen_parts
from mxwire.interop.namespaces import inside, made
from mxwire.interop.playing import Order, casting_of, cell_of, perform
from mxwire.interop.result import Cell, Implementation
from mxwire.link import Link, PacketLink
from mxwire.wire.dialect import Dialect

_IMPATIENCE: Final = 1.0
"""Seconds that a case waits for what must not work."""
_BOTH: Final = "not played: the case needs both hosts in its hand, and the right one is external"
_OF_SEVERAL: Final = ("R-DISC-02",)
"""Rules that programs at one address cannot keep together: each of mxwire announces itself."""
_SILENCE: Final = 12.0
"""Seconds after which an external host that has said nothing is taken for silent: it is asked twice for its name."""


def plan(configuration: Configuration, selection: Selection) -> list[Order]:
    """The cells of a file, pair by pair; what is selected goes before what the file says.

    Raises :class:`~mxwire.errors.MxwireError` for names that are none.
    """

    def find(name: str) -> Implementation:
        every = [*configuration.implementations, *(each.implementation for each in configuration.externals)]
        found = next((each for each in every if each.name == name.strip().lower() or each.name == name), None)
        if found is None:
            raise MxwireError(
                f"{configuration.path}: no host {name!r}: it has {', '.join(each.name for each in every)}"
            )
        return found

    if selection.cells:
        return [cell_by_name(each, selection.seed, find, configuration.path) for each in selection.cells]
    chosen = [find(each) for each in dict.fromkeys(selection.implementations)]
    ours = [each for each in configuration.implementations if not chosen or each in chosen]
    externals = [each.implementation for each in configuration.externals]
    others = [each for each in externals if not chosen or each in chosen]
    rights = (ours if configuration.right is not None else []) + others or externals
    parts = chosen_parts(selection.cases or configuration.cases)
    impairments = selection.impairments or configuration.impairments or ("none",)
    names = [treatment_by_name(each).name for each in dict.fromkeys(impairments)]
    return [
        Order(left, right, part.case.name, impairment, selection.seed, configuration.path)
        for left, right in product(ours or list(configuration.implementations), rights)
        for impairment in names
        for part in parts
    ]


class LivePlayer:
    """Plays the cells of a file, one after the other; use :func:`opened`."""

    def __init__(self, configuration: Configuration, captures: Path | None, stack: ExitStack) -> None:
        self._configuration = configuration
        self._captures = captures
        self._externals = {each.implementation.name: each for each in configuration.externals}
        self._programs: dict[str, Programs] = {}
        self._stack = stack
        self._heard: set[str] = set()
        self._last: tuple[tuple[str, str], LiveStage] | None = None
        """The stage against an external host, and whose it is."""

    def play(self, order: Order) -> Cell:
        """Play a cell.

        Raises :class:`~mxwire.errors.MxwireError` where interfaces or programs do not work.
        """
        part = part_by_name(order.case)
        external = self._externals.get(order.right.name)
        if external is not None and part.role is None:
            return order.cell("missing", _BOTH)
        try:
            return self._play(order, part, external)
        except Unsuitable as reason:
            return order.cell("missing", f"not played: {reason}")

    def _play(self, order: Order, part: Part, external: External | None) -> Cell:
        left = casting_of(order.left, "left")
        right = casting_of(order.right if external is None else external.taken_for, _right_name(order, external))
        expected = _expected(part, left, right, external)
        patience = self._configuration.patience if expected.expectation == "works" else _IMPATIENCE
        if external is not None:
            stage = self._against(external, order, left, patience)
            hosts = hosts_against(stage, left, right, external)
            return self._judged(order, part, stage, expected, hosts, self.programs(external))
        stage = self._both(order, part, (left, right), patience)
        try:
            castings = {side.address: each for side, each in zip(stage.sides, (left, right), strict=True)}
            return self._judged(order, part, stage, expected, Hosts(castings, right.dialect))
        finally:
            stage.close()

    def _judged(
        self,
        order: Order,
        part: Part,
        stage: LiveStage,
        expected: Expected,
        hosts: Hosts,
        programs: Programs | None = None,
    ) -> Cell:
        works = False
        try:
            outcome = perform(part, stage)
            works = outcome.works
        finally:
            if programs is not None and not works:
                programs.suspect(stage.roles, f"{order.name} did not succeed")
        findings = judge(stage.frames, hosts, exact=False, reboots=stage.reboots)
        if any(each.several for each in self._programs.values()):
            findings = [each for each in findings if each.rule not in _OF_SEVERAL]
        return cell_of(order, part, stage, expected, outcome, hosts, findings, self._captures)

    def _both(self, order: Order, part: Part, castings: tuple[Casting, Casting], patience: float) -> LiveStage:
        """A stage of two hosts of ours, as new."""
        return between(self._configuration, castings, order.impairment, order.seed, part.introduction, patience)

    def _against(self, external: External, order: Order, left: Casting, patience: float) -> LiveStage:
        """A stage of one host of ours, which stays the same from case to case."""
        key = (order.left.name, order.right.name)
        if self._last is not None and self._last[0] != key:
            self._last[1].close()
            self._last = None
        if self._last is None:
            stage = against(self._configuration, external, left, self.programs(external), order.seed)
            self._last = key, stage
            self._stack.callback(stage.close)
            self.must_be_there(stage, external)
        stage = self._last[1]
        stage.renew(treatment_by_name(order.impairment), order.seed, patience)
        return stage

    def programs(self, external: External) -> Programs:
        """The programs of an external host; they end with the player."""
        name = external.implementation.name
        found = self._programs.get(name)
        if found is None:
            found = self._programs[name] = Programs(external)
            self._stack.callback(found.close)
        return found

    def must_be_there(self, stage: LiveStage, external: External) -> None:
        """Wait, once, until an external host has said anything at all.

        Raises :class:`~mxwire.errors.MxwireError` with who was heard instead.
        """
        name = external.implementation.name
        if name in self._heard:
            return
        # A program may be what makes the host a host.
        role = next(iter(external.programs), None)
        if role is not None:
            self.programs(external).start(role)
        node, own = stage.left.node, stage.left.address
        known = external.address

        def heard() -> bool:
            if known is not None:
                return any(each.frame[SOURCE] == known for each in stage.frames)
            return external.host is not None and node.peers.by_name(external.host) is not None

        if not stage.find(heard, _SILENCE):
            others = {each.frame[SOURCE].hex(":") for each in stage.frames if each.frame[SOURCE] != own}
            seen = f"; heard instead: {', '.join(sorted(others))}" if others else "; nobody else was heard either"
            raise MxwireError(
                f"{name}: nothing is heard of {external.host or (known and known.hex(':'))} on "
                f"{self._configuration.left.interface} within {_SILENCE:g} s{seen}"
            )
        self._heard.add(name)


def _expected(part: Part, left: Casting, right: Casting, external: External | None) -> Expected:
    """What is expected, where a program answers in place of the case."""
    if external is None or part.role is None:
        return expected_of(part, left, right)
    echoed, role = part.role == "echo", part.role
    if echoed and role not in external.programs and part.lengths(left.dialect):
        # With omx_perf alone its parameters have to arrive first.
        part, role = replace(part, synchronous=AGREEMENT), "perf"
    program = external.programs.get(role)
    return expected_of(part, left, right, echoed=echoed, answer=None if program is None else program.answer)


def _right_name(order: Order, external: External | None) -> str:
    return "right" if external is None else order.right.name


def between(
    configuration: Configuration,
    castings: tuple[Casting, Casting],
    impairment: str,
    seed: int,
    introduction: Introduction,
    patience: float,
) -> LiveStage:
    """Two hosts of ours on the interfaces of a file.

    Raises :class:`~mxwire.link.errors.LinkError` where these cannot be used.
    """
    assert configuration.right is not None
    links = _open([configuration.left, configuration.right], [each.dialect for each in castings])
    treatment = treatment_by_name(impairment)
    return LiveStage(castings, links, treatment, seed, introduction=introduction, patience=patience)


def against(
    configuration: Configuration, external: External, left: Casting, programs: Programs, seed: int
) -> LiveStage:
    """A host of ours on the left interface of a file, against an external one.

    Raises :class:`~mxwire.link.errors.LinkError` where the interface cannot be used.
    """
    name = external.host or f"{external.implementation.name}:0"
    stranger = Stranger(name, external.address, frozenset(external.programs), programs.start, programs.restart)
    links = _open([configuration.left], [left.dialect])
    return LiveStage((left,), links, treatment_by_name("none"), seed, stranger=stranger)


def hosts_against(stage: LiveStage, left: Casting, right: Casting, external: External) -> Hosts:
    """Our host, and one of which only that is known what the file says."""
    known = {stage.left.address: left}
    if external.address is not None:
        known[external.address] = right
    defects = frozenset(defect.value for defect in right.profile.defects)
    return Hosts(known, right.dialect, defects, from_start=False)


def _open(places: list[Place], dialects: list[Dialect]) -> tuple[Link, ...]:
    from mxwire.host.base_host import longest_frame

    links: list[Link] = []
    try:
        for place in places:
            with inside(place.namespace):
                links.append(PacketLink.open(place.interface))
        for link, dialect in zip(links, dialects, strict=True):
            if link.mtu < longest_frame(dialect) - 14:
                raise Unsuitable(
                    f"the MTU of {link.name} is {link.mtu}, and {dialect} needs {longest_frame(dialect) - 14}"
                )
    except BaseException:
        for link in links:
            link.close()
        raise
    return tuple(links)


@contextmanager
def opened(configuration: Configuration, captures: Path | None) -> Iterator[LivePlayer]:
    """A player for a file; at the end no program is left running, and no namespace that was made.

    Raises :class:`~mxwire.errors.MxwireError` where namespaces are to be made and cannot be.
    """
    with ExitStack() as stack:
        if configuration.make:
            left, right = configuration.left, configuration.right
            assert right is not None and left.namespace is not None and right.namespace is not None
            ends = (left.namespace, left.interface), (right.namespace, right.interface)
            stack.enter_context(made(ends, configuration.mtu))
        yield LivePlayer(configuration, captures, stack)

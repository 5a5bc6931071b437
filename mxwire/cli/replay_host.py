"""``mxwire replay --as``: a host of a capture, played against a live or simulated one; ``replay`` imports it lazily."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from random import Random, SystemRandom
from typing import Final

import click

from mxwire.capture import create_capture
from mxwire.cli.live_options import LiveOptions, end_like_interrupt
from mxwire.cli.notes import EventReport, end_interrupted_line, note
from mxwire.cli.progress import bar
from mxwire.cli.reading import capture_of, decoded_batches, note_frames, refuse_overwriting
from mxwire.cli.replay import ReplayOptions
from mxwire.errors import MxwireError
from mxwire.ethernet import mac_bytes, mac_text
from mxwire.frames import FrameBatch
from mxwire.lab.find_host import FoundHost, find_host
from mxwire.link import Link, open_link
from mxwire.protocol import Node, profile_by_name
from mxwire.replay.stateful.actor import ReplayActor
from mxwire.replay.stateful.application import RecordedApplication
from mxwire.replay.stateful.comparison import Cause, KeepCallback, ReplayFinding, RuleWatch
from mxwire.replay.stateful.conversation import FIRST_INDEX
from mxwire.replay.stateful.live_play import play_live, refuse_long
from mxwire.replay.stateful.script import ReplayScript, script_of
from mxwire.replay.stateful.simulated_play import play_simulated
from mxwire.report.document import Paragraph, show, tabulate
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import dialect_or_auto
from mxwire.words import count_of

_ADDRESS, _OTHER = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
_HIGHEST_ENDPOINT: Final = 255
_SEED: Final = 1


def replay_host(options: ReplayOptions) -> None:
    """Play the host, and report how the answers differ; exit with 1 if they do."""
    if (options.interface is None) == (options.simulate is None):
        raise MxwireError(
            "name the interface of the live host with -i IF, or play against a simulated one with --simulate"
        )
    if options.simulate is not None:
        profile_by_name(options.simulate)
    script = _script(options)
    endpoints, keys = _endpoints(options, script), _keys(options, script)
    with ExitStack() as stack:
        testbed = _VirtualReplay(options, script) if options.simulate else _LiveReplay(options, script, stack)
        actor = ReplayActor(
            script,
            testbed.address,
            testbed.other,
            rng=testbed.rng,
            name=testbed.name,
            endpoints=endpoints,
            keys=keys,
            timeout=int(options.seconds * 1e9),
        )
        watch = RuleWatch(script.dialect, testbed.other, _keep(options, script, stack))
        reporter = _HostReplayReport(options.file, options.as_json, actor, watch, testbed.described)
        reporter.begin()
        interrupted = False
        with bar("frames", len(script.records), wanted=not (options.as_json or options.simulate)) as shown:
            try:
                testbed.run(actor, watch, shown.update if shown.shown else None)
            except KeyboardInterrupt:
                end_interrupted_line()
                interrupted = True
    reporter.end(interrupted)
    if interrupted:
        raise click.Abort
    if reporter.differs:
        sys.exit(1)


class _VirtualReplay:
    """A simulated host that acts as the recorded one did, in virtual time."""

    address, other = _ADDRESS, _OTHER

    def __init__(self, options: ReplayOptions, script: ReplayScript) -> None:
        assert options.simulate is not None
        self.rng = Random(_SEED)
        self.name = options.name or script.name or "replay:0"
        profile = profile_by_name(options.simulate)
        self._node = Node(
            self.other,
            "simulated",
            dialect=script.dialect,
            profile=profile,
            rng=Random(_SEED + 1),
            peers={self.address: self.name},
        )
        self._application = RecordedApplication(self._node, script, self.address)
        self.described = f"a simulated {profile.name}"

    def run(self, actor: ReplayActor, watch: RuleWatch, _progress: Callable[[int], object] | None) -> None:
        """Play."""
        play_simulated(actor, self._node, self._application, watch.see)


class _LiveReplay:
    """A live host on an Ethernet."""

    def __init__(self, options: ReplayOptions, script: ReplayScript, stack: ExitStack) -> None:
        assert options.interface is not None
        end_like_interrupt()
        LiveOptions(options.interface).check()
        self.rng = SystemRandom()
        self.name = options.name or script.name or "replay:0"
        self._link: Link = open_link(options.interface, options.via)
        stack.callback(self._link.close)
        refuse_long(script, self._link)
        self.address = self._link.address
        found = self._found(options)
        self.other = found.address
        called = f"{found.name} ({mac_text(found.address)})" if found.name else mac_text(found.address)
        self.described = f"{called} on {options.interface}"

    def _found(self, options: ReplayOptions) -> FoundHost:
        host = None if options.target is None else options.target.host
        if host is not None and host.count(":") > 1:
            return FoundHost(mac_bytes(host), "")
        serial = self.rng.getrandbits(32)
        return find_host(self._link, self.name, host, options.seconds, index=FIRST_INDEX, serial=serial)

    def run(self, actor: ReplayActor, watch: RuleWatch, progress: Callable[[int], object] | None) -> None:
        """Play."""
        play_live(actor, self._link, watch, progress)


# The script, and replaced numbers


def _script(options: ReplayOptions) -> ReplayScript:
    assert options.played is not None
    played, against = mac_bytes(options.played), None if options.against is None else mac_bytes(options.against)
    dialect = dialect_or_auto(options.dialect)
    decoder = Decoder(dialect, (options.ethertype,))
    with capture_of(options.file, options.skip_damage) as reader:
        decoded = list(decoded_batches(decoder, reader))
        note_frames(reader.name, decoder)
        script = script_of(decoded, reader.name, played, against, dialect)
    if script.malformed:
        note(f"{options.file}: {count_of(script.malformed, 'malformed frame')} left out")
    return script


def _endpoints(options: ReplayOptions, script: ReplayScript) -> dict[int, int]:
    endpoints: dict[int, int] = {}
    for each in options.endpoints:
        old, equals, new = each.partition("=") if "=" in each else ("", "", each)
        if not new.isdecimal() or int(new) > _HIGHEST_ENDPOINT or (equals and not old.isdecimal()):
            raise MxwireError(f"--endpoint {each}: write a number from 0 to 255, or RECORDED=LIVE like 3=1")
        if equals:
            endpoints[int(old)] = int(new)
        elif len(script.endpoints) == 1:
            endpoints[next(iter(script.endpoints))] = int(new)
        else:
            there = ", ".join(map(str, sorted(script.endpoints))) or "none"
            raise MxwireError(
                f"--endpoint {each}: the recorded host has the endpoints {there}; name one of them, "
                f"like --endpoint 3={each}"
            )
    return endpoints


def _keys(options: ReplayOptions, script: ReplayScript) -> dict[int, int]:
    if options.key is not None and not script.keys:
        raise MxwireError(f"--key: no connect succeeds in {options.file}, so there is no key to replace")
    return {} if options.key is None else dict.fromkeys(script.keys, options.key)


def _keep(options: ReplayOptions, script: ReplayScript, stack: ExitStack) -> KeepCallback | None:
    """A function that records frames in a capture file; None without ``--write``."""
    if options.write is None:
        return None
    refuse_overwriting([options.file], options.write)
    comment = f"mxwire replay {options.file} --as {mac_text(script.played)}"
    pcapng = options.write.suffix not in (".pcap", ".cap")
    writer = stack.enter_context(create_capture(options.write, comment=comment if pcapng else None))
    begin: list[int] = []

    def keep(now: int, raw: bytes) -> None:
        if not begin:
            begin.append(time.time_ns() - now if options.simulate is None else 0)
        writer.write(FrameBatch.from_frames([raw], [now + begin[0]]))

    return keep


# Report


class _HostReplayReport(EventReport):
    """Prints the hosts, their differences and the verdict."""

    def __init__(self, file: str, as_json: bool, actor: ReplayActor, watch: RuleWatch, opponent: str) -> None:
        super().__init__(as_json)
        self._file = file
        self._script = actor.script
        self._actor = actor
        self._watch = watch
        self._opponent = opponent

    @property
    def differs(self) -> bool:
        """True if the live host itself differs, or the capture could not be played to its end."""
        return bool(self._actor.failure) or any(each.kind is not Cause.APPLICATION for each in self._findings())

    def _findings(self) -> list[ReplayFinding]:
        return [*self._actor.findings, *self._watch.findings]

    def begin(self) -> None:
        """Print the hosts."""
        script, address = self._script, self._actor.conversation.address
        self.emit(
            "begin",
            played=mac_text(script.played),
            recorded=mac_text(script.met),
            address=mac_text(address),
            host=mac_text(self._actor.conversation.other),
            dialect=script.dialect.name,
        )
        self.print(
            f"{mac_text(script.played)} of {self._file}, here {mac_text(address)}, against {self._opponent}, "
            f"dialect {script.dialect.name}"
        )

    def end(self, interrupted: bool) -> None:
        """Print the differences, and the summary."""
        actor, groups = self._actor, _grouped(self._findings())
        for finding, count in groups:
            about = {"whose": finding.kind.value, "rule": finding.rule, "field": finding.field, "frame": finding.frame}
            self.emit("difference", **about, expected=finding.expected, found=finding.found, times=count)
        if groups and not self.as_json:
            rows = ((each.kind.value, each.rule, count, each) for each, count in groups)
            show([tabulate("whose, `rule, #count, ~difference", rows)])
        kinds = {kind.value: sum(each.kind is kind for each in self._findings()) for kind in Cause}
        expected = sum(not each.again for each in actor.expectations.all.values())
        came = sum(each.met and not each.again for each in actor.expectations.all.values())
        self.emit(
            "summary",
            played=actor.played,
            skipped=len(actor.skipped),
            came=came,
            expected=expected,
            differences=kinds,
            failure=actor.failure,
            interrupted=interrupted,
        )
        skipped = f", left out {len(actor.skipped)} that answer missing frames" if actor.skipped else ""
        frames = count_of(actor.played, "frame")
        self.print(f"played {frames}{skipped}; {came} of {expected} recorded answers arrived")
        if not self.as_json:
            show([Paragraph(self._verdict(kinds, interrupted))])

    def _verdict(self, kinds: dict[str, int], interrupted: bool) -> str:
        actor = self._actor
        if interrupted:
            return f"interrupted at frame {actor.position} of {len(self._script.records)}"
        if actor.failure:
            return f"the capture could not be played to its end: {actor.failure}"
        protocol, rules, application = (kinds[each.value] for each in (Cause.PROTOCOL, Cause.RULE, Cause.APPLICATION))
        if not any(kinds.values()):
            return "no difference: the live host answers as the recorded one did"
        host = f"the live host differs in {_places(protocol)}" if protocol else "the host itself shows no difference"
        broken = f"{', and' if protocol else ', but'} it breaks rules in {_places(rules)}" if rules else ""
        other = f"; its application did something else in {_places(application)}" if application else ""
        return host + broken + other


def _places(count: int) -> str:
    return count_of(count, "place")


def _grouped(findings: list[ReplayFinding]) -> list[tuple[ReplayFinding, int]]:
    """The first difference of each kind and the number of such differences; differences of the host itself come
    first.
    """
    first: dict[tuple[str, ...], ReplayFinding] = {}
    counts: dict[tuple[str, ...], int] = {}
    for each in findings:
        subject = each.field or f"{each.expected.split()[0]} {each.found[:12]}"
        like = each.kind.value, each.rule, subject
        first.setdefault(like, each)
        counts[like] = counts.get(like, 0) + 1
    order = (Cause.RULE, Cause.PROTOCOL, Cause.APPLICATION)
    return sorted(((first[like], counts[like]) for like in first), key=lambda each: order.index(each[0].kind))

"""What ``mxwire replay --as`` does: a host of a capture, played against a live or simulated one."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random, SystemRandom
from typing import Any, Final

import click

from mxwire.capture import create_capture
from mxwire.cli.live import DestinationType, Live, end_like_interrupt
from mxwire.cli.notes import end_interrupted_line, note
from mxwire.cli.progress import bar
from mxwire.cli.reading import capture_of, decoded_batches, refuse_overwriting, tell_notes
from mxwire.cli.replaying_host_report import Teller
from mxwire.errors import MxwireError
from mxwire.ethernet import ETHERTYPE_MXOE, mac_bytes, mac_text
from mxwire.frames import FrameBatch
from mxwire.link import PacketLink
from mxwire.protocol import Node, profile_by_name
from mxwire.replay.stateful import live, simulated
from mxwire.replay.stateful.actor import Actor
from mxwire.replay.stateful.application import RecordedApplication
from mxwire.replay.stateful.script import Script, script_of
from mxwire.replay.stateful.watching import Keep, Watch
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import Dialect, dialect_or_auto
from mxwire.words import count_of

_TIMEOUT: Final = 5.0
_OURS, _THEIRS = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
_HIGHEST_ENDPOINT: Final = 255
_SEED: Final = 1


@dataclass(frozen=True)
class HostWishes:
    """What the options say."""

    file: str
    interface: str | None
    played: bytes
    against: bytes | None
    host: str | None
    """The live host's name or address."""
    endpoints: tuple[str, ...]
    key: int | None
    name: str | None
    simulate: str | None
    timeout: float
    target: Path | None
    ethertype: int
    dialect: Dialect | None
    as_json: bool

    @classmethod
    def of(
        cls,
        *,
        played: str,
        against: str | None,
        hosts: tuple[str, ...],
        interface: str | None,
        simulate: str | None,
        timeout: float | None,
        ethertype: int | None,
        dialect: str,
        **rest: Any,
    ) -> HostWishes:
        """Understand the options; raises :class:`~mxwire.errors.MxwireError` for what is not possible."""
        if (interface is None) == (simulate is None):
            raise MxwireError("say where the live host is with -i IF, or play against a simulated one with --simulate")
        if len(hosts) > 1:
            raise MxwireError("--host names the live host: give it once")
        if hosts and simulate is not None:
            raise MxwireError("--host names a live host: it does not go with --simulate")
        if simulate is not None:
            profile_by_name(simulate)
        return cls(
            played=mac_bytes(played),
            against=None if against is None else mac_bytes(against),
            host=DestinationType().convert(hosts[0], None, None).host if hosts else None,
            interface=interface,
            simulate=simulate,
            timeout=_TIMEOUT if timeout is None else timeout,
            ethertype=ETHERTYPE_MXOE if ethertype is None else ethertype,
            dialect=dialect_or_auto(dialect),
            **rest,
        )


def run_host(wishes: HostWishes) -> None:
    """Play, and say how the answers differ; exits with 1 where they do."""
    script = _script(wishes)
    endpoints, keys = _endpoints(wishes, script), _keys(wishes, script)
    with ExitStack() as stack:
        play = _Simulation(wishes, script) if wishes.simulate else _Reality(wishes, script, stack)
        actor = Actor(
            script,
            play.ours,
            play.theirs,
            rng=play.rng,
            name=play.name,
            endpoints=endpoints,
            keys=keys,
            timeout=int(wishes.timeout * 1e9),
        )
        watch = Watch(script.dialect, play.theirs, _keep(wishes, stack))
        teller = Teller(wishes.file, wishes.as_json, actor, watch, play.who)
        teller.begin()
        wanted = not wishes.as_json and not wishes.simulate
        with bar("frames", len(script.records), wanted=wanted) as shown:
            progress = shown.update if shown.shown else None
            interrupted = _played(lambda: play.run(actor, watch, progress))
    teller.end(interrupted)
    if interrupted:
        raise click.Abort
    if teller.differs:
        sys.exit(1)


def _played(run: Callable[[], object]) -> bool:
    """Play to the end; returns whether the user has ended it."""
    try:
        run()
    except KeyboardInterrupt:
        end_interrupted_line()
        return True
    return False


class _Simulation:
    """A host in virtual time that does what the recorded one did."""

    ours, theirs = _OURS, _THEIRS

    def __init__(self, wishes: HostWishes, script: Script) -> None:
        assert wishes.simulate is not None
        self.rng = Random(_SEED)
        self.name = wishes.name or script.name or "replay:0"
        profile = profile_by_name(wishes.simulate)
        self._node = Node(
            self.theirs,
            "simulated",
            dialect=script.dialect,
            profile=profile,
            rng=Random(_SEED + 1),
            peers={self.ours: self.name},
        )
        self._application = RecordedApplication(self._node, script, self.ours)
        self.who = f"a simulated {profile.name}"

    def run(self, actor: Actor, watch: Watch, _progress: Callable[[int], object] | None) -> None:
        """Play."""
        simulated.play(actor, self._node, self._application, watch.see)


class _Reality:
    """A host on an Ethernet."""

    def __init__(self, wishes: HostWishes, script: Script, stack: ExitStack) -> None:
        assert wishes.interface is not None
        end_like_interrupt()
        Live(wishes.interface).check()
        self.rng = SystemRandom()
        self.name = wishes.name or script.name or "replay:0"
        self._link = stack.enter_context(PacketLink.open(wishes.interface))
        live.refuse_long(script, self._link)
        self.ours = self._link.address
        found = self._found(wishes)
        self.theirs = found.address
        called = f"{found.name} ({mac_text(found.address)})" if found.name else mac_text(found.address)
        self.who = f"{called} on {wishes.interface}"

    def _found(self, wishes: HostWishes) -> live.Found:
        if wishes.host is not None and wishes.host.count(":") > 1:
            return live.Found(mac_bytes(wishes.host), "")
        return live.find(self._link, self.name, wishes.host, wishes.timeout, self.rng)

    def run(self, actor: Actor, watch: Watch, progress: Callable[[int], object] | None) -> None:
        """Play."""
        live.play(actor, self._link, watch, progress)


# The capture and what is mapped.


def _script(wishes: HostWishes) -> Script:
    decoder = Decoder(wishes.dialect, (wishes.ethertype,))
    with capture_of(wishes.file) as reader:
        decoded = list(decoded_batches(decoder, reader))
        tell_notes(reader.name, decoder)
        script = script_of(decoded, reader.name, wishes.played, wishes.against, wishes.dialect)
    if script.malformed:
        note(f"{wishes.file}: {count_of(script.malformed, 'malformed frame')} left out")
    return script


def _endpoints(wishes: HostWishes, script: Script) -> dict[int, int]:
    found: dict[int, int] = {}
    for each in wishes.endpoints:
        old, equals, new = each.partition("=") if "=" in each else ("", "", each)
        if not new.isdecimal() or int(new) > _HIGHEST_ENDPOINT or (equals and not old.isdecimal()):
            raise MxwireError(f"--endpoint {each}: write a number from 0 to 255, or RECORDED=LIVE like 3=1")
        if equals:
            found[int(old)] = int(new)
        elif len(script.endpoints) == 1:
            found[next(iter(script.endpoints))] = int(new)
        else:
            there = ", ".join(map(str, sorted(script.endpoints))) or "none"
            raise MxwireError(
                f"--endpoint {each}: the endpoints of the host in the capture are {there}; say which one is meant, "
                f"like --endpoint 3={each}"
            )
    return found


def _keys(wishes: HostWishes, script: Script) -> dict[int, int]:
    if wishes.key is not None and not script.keys:
        raise MxwireError(f"--key: no connect succeeds in {wishes.file}, so that it has no key to be replaced")
    return {} if wishes.key is None else dict.fromkeys(script.keys, wishes.key)


def _keep(wishes: HostWishes, stack: ExitStack) -> Keep | None:
    """Writes what passes into a capture."""
    if wishes.target is None:
        return None
    refuse_overwriting([wishes.file], wishes.target)
    comment = f"mxwire replay {wishes.file} --as {mac_text(wishes.played)}"
    pcapng = wishes.target.suffix not in (".pcap", ".cap")
    writer = stack.enter_context(create_capture(wishes.target, comment=comment if pcapng else None))
    begin: list[int] = []

    def keep(now: int, raw: bytes) -> None:
        if not begin:
            begin.append(time.time_ns() - now if wishes.simulate is None else 0)
        writer.write(FrameBatch.from_frames([raw], [now + begin[0]]))

    return keep

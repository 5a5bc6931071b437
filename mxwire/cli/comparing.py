"""The work of ``mxwire compat``: which two hosts are compared, and what they show."""

from __future__ import annotations

from mxwire.analysis.compatibility import Side, Sides
from mxwire.analysis.compatibility.sides import Exchanged
from mxwire.cli.following import decoder_of
from mxwire.cli.notes import note
from mxwire.cli.reading import capture_of, judged_batches, refuse_twice, tell_notes
from mxwire.errors import MxwireError
from mxwire.ethernet import mac_bytes, mac_text


def sides_of(
    first: str, second: str | None, hosts: tuple[str, str] | None, ethertypes: tuple[int, ...]
) -> tuple[Side, Side, Exchanged | None]:
    """The two hosts that the user means, and what they said to each other if they are in one capture.

    Raises :class:`~mxwire.errors.MxwireError` where a capture cannot be read, or does not have them.
    """
    wanted: list[int | None] = [None, None]
    if hosts is not None:
        wanted = [int.from_bytes(mac_bytes(each), "big") for each in hosts]
    if hosts is not None and wanted[0] == wanted[1] and second is None:
        raise MxwireError(f"--hosts names {hosts[0]} twice: name two hosts")
    if second is None:
        return _of_one(first, wanted, ethertypes)
    refuse_twice(first, second, "name it once to compare the two hosts in it")
    sides = []
    for path, host in zip((first, second), wanted, strict=True):
        seen = _seen(path, ethertypes)
        sides.append(seen.side(_present(path, seen, host), f"{path}"))
    return sides[0], sides[1], None


def _of_one(path: str, wanted: list[int | None], ethertypes: tuple[int, ...]) -> tuple[Side, Side, Exchanged]:
    seen = _seen(path, ethertypes)
    if wanted == [None, None]:
        if len(seen.hosts) < 2:
            who = f"only {mac_text(seen.hosts[0])} sends" if seen.hosts else "nobody sends anything"
            raise MxwireError(f"{path}: {who}: give a capture with both hosts, or one of each")
        wanted = [*sorted(seen.hosts[:2])]
        if len(seen.hosts) > 2:
            note(f"{path}: {len(seen.hosts)} hosts; the two busiest are compared (--hosts chooses)")
    one, other = (seen.side(_present(path, seen, each), mac_text(each or 0)) for each in wanted)
    return one, other, seen.between(one.address, other.address)


def _seen(path: str, ethertypes: tuple[int, ...]) -> Sides:
    decoder, seen = decoder_of("auto", ethertypes), Sides()
    with capture_of(path) as reader:
        for decoded in judged_batches(decoder, reader):
            seen.observe(decoded)
        seen.finish()
        tell_notes(reader.name, decoder)
    return seen


def _present(path: str, seen: Sides, host: int | None) -> int:
    """The host, or the one of which most is known."""
    if host is None:
        if not seen.hosts:
            raise MxwireError(f"{path}: no host sends anything in it: record MXoE frames (EtherType 0x86DF)")
        return _best_known(path, seen)
    if host not in seen.hosts:
        there = ", ".join(map(mac_text, seen.hosts[:4])) or "nobody"
        raise MxwireError(f"{path}: {mac_text(host)} sends nothing in it; who does: {there}")
    return host


def _best_known(path: str, seen: Sides) -> int:
    sides = [seen.side(each, path) for each in seen.hosts]
    known = {each.build for each in sides if each.build is not None}
    if len(known) > 1:
        there = ", ".join(map(mac_text, seen.hosts[:4]))
        raise MxwireError(f"{path}: its hosts were not built alike; name one of each capture with --hosts: {there}")
    return min(sides, key=lambda each: len(each.candidates)).address

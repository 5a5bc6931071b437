"""``mxwire compat``: compatibility of two hosts, and the changes that they need."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mxwire.cli.filters import FilterOptions
from mxwire.cli.group import command_with
from mxwire.cli.notes import print_result
from mxwire.cli.option_class import argument, group, option, options_class
from mxwire.cli.option_groups import DecodingOptions
from mxwire.cli.options import FILE, host_type, json_option, peers_option
from mxwire.cli.reading import capture_of, judged_batches, note_frames, refuse_twice, selection_of
from mxwire.errors import MxwireError
from mxwire.ethernet import mac_text

if TYPE_CHECKING:
    from mxwire.analysis.compatibility import Side, Sides
    from mxwire.analysis.compatibility.sides import Exchanged
    from mxwire.analysis.host_names import HostChoice


@options_class
class CompatOptions:
    """The options of mxwire compat."""

    first: str = argument(metavar="FILE", type=FILE)
    second: str | None = argument(metavar="[FILE]", required=False, type=FILE)
    pair: tuple[HostChoice, HostChoice] | None = option(
        "Compare these hosts.  [default: the busiest]", "--pair A B", type=host_type, nargs=2
    )
    peers: Path | None = peers_option
    as_json: bool = json_option("JSON Lines: sides, classes, the conclusion.")
    decoding: DecodingOptions = group(DecodingOptions, "dialect")


@command_with(CompatOptions)
def command(options: CompatOptions) -> None:
    """Report how two hosts were built, which messages they can exchange, and what to change."""
    from mxwire.analysis.compatibility import judge_sides
    from mxwire.report.compatibility import compatibility_blocks, compatibility_results

    one, other, exchanged = _sides_of(options)
    judgement = judge_sides(one, other, {name for (_, name), (count, _) in (exchanged or {}).items() if count})
    found = one, other, judgement, exchanged
    records = (each.record() for each in compatibility_results(*found))
    print_result(options.as_json, records, lambda: compatibility_blocks(*found))
    if any(answer.word in ("no", "partly") for answer in judgement.values()):
        sys.exit(1)


def _sides_of(options: CompatOptions) -> tuple[Side, Side, Exchanged | None]:
    """The two hosts to compare, and the messages between them if they are in one capture.

    Raises :class:`~mxwire.errors.MxwireError` if a capture cannot be read, or lacks a host.
    """

    first, second, pair, decoding = options.first, options.second, options.pair, options.decoding
    addresses: list[int | None] = [None, None]
    if pair is not None:
        addresses = [
            _address(*each, options.peers, decoding) for each in zip((first, second or first), pair, strict=True)
        ]
    if pair is not None and addresses[0] == addresses[1] and second is None:
        raise MxwireError(f"--pair names {pair[0]} twice: name two hosts")
    if second is None:
        return _of_one(first, addresses, decoding)
    refuse_twice(first, second, "name it once to compare the two hosts in it")
    sides = []
    for path, host in zip((first, second), addresses, strict=True):
        seen = _seen(path, decoding)
        sides.append(seen.side(_present(path, seen, host), f"{path}"))
    return sides[0], sides[1], None


def _address(path: str, host: HostChoice, peers: Path | None, decoding: DecodingOptions) -> int:
    """The address of a host, which may be given by a name that the capture announces."""

    if host.endpoint is not None:
        raise MxwireError(f"--pair {host}: hosts are compared as a whole; leave out the endpoint")
    filters = FilterOptions(hosts=(host,), peers=peers)
    selection = selection_of(filters.selection(), filters.host_names(), path, decoding)
    addresses = selection.addresses or frozenset()
    if len(addresses) > 1:
        raise MxwireError(
            f"{path}: {host} has several addresses: name one of {', '.join(map(mac_text, sorted(addresses)))}"
        )
    return next(iter(addresses))


def _of_one(path: str, hosts: list[int | None], decoding: DecodingOptions) -> tuple[Side, Side, Exchanged]:
    from mxwire.cli.notes import note

    seen = _seen(path, decoding)
    if hosts == [None, None]:
        if len(seen.hosts) < 2:
            who = f"only {mac_text(seen.hosts[0])} sends" if seen.hosts else "no host sends anything"
            raise MxwireError(f"{path}: {who}: give a capture with both hosts, or one of each")
        hosts = [*sorted(seen.hosts[:2])]
        if len(seen.hosts) > 2:
            note(f"{path}: {len(seen.hosts)} hosts; the two busiest are compared (--pair chooses)")
    one, other = (seen.side(_present(path, seen, each), mac_text(each or 0)) for each in hosts)
    return one, other, seen.between(one.address, other.address)


def _seen(path: str, decoding: DecodingOptions) -> Sides:
    from mxwire.analysis.compatibility import Sides

    decoder, seen = decoding.decoder(), Sides()
    with capture_of(path, decoding.skip_damage) as reader:
        for decoded in judged_batches(decoder, reader):
            seen.observe(decoded)
        seen.finish()
        note_frames(reader.name, decoder)
    return seen


def _present(path: str, seen: Sides, host: int | None) -> int:
    """Check that ``host`` is in a capture; without ``host``, choose the host with the most evidence."""
    if host is None:
        if not seen.hosts:
            raise MxwireError(f"{path}: no host sends anything in it: record MXoE frames (EtherType 0x86DF)")
        return _best_known(path, seen)
    if host not in seen.hosts:
        there = ", ".join(map(mac_text, seen.hosts[:4])) or "none"
        raise MxwireError(f"{path}: {mac_text(host)} sends nothing in it; these hosts do: {there}")
    return host


def _best_known(path: str, seen: Sides) -> int:
    sides = [seen.side(each, path) for each in seen.hosts]
    known = {each.build for each in sides if each.build is not None}
    if len(known) > 1:
        there = ", ".join(map(mac_text, seen.hosts[:4]))
        raise MxwireError(f"{path}: its hosts were not built alike; choose one per capture with --pair: {there}")
    return min(sides, key=lambda each: len(each.candidates)).address

"""``mxwire discover``: the hosts on an Ethernet."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from mxwire.cli.group import Command
from mxwire.cli.live_options import LiveOptions
from mxwire.cli.notes import end_interrupted_line, note, print_records
from mxwire.cli.option_class import option, takes
from mxwire.cli.options import count_option, duration_option, json_option
from mxwire.words import count_of

if TYPE_CHECKING:
    from mxwire.host.survey import Survey, SurveyedHost
    from mxwire.link import Tap

BATCHES = 64
"""Batches of frames between other hosts that are examined per round: a busy network must not delay the next round."""


@click.command(cls=Command)
@takes(LiveOptions, name="live")
@duration_option(5.0, "Listen for S seconds.")
@count_option("Stop when N hosts have answered completely.")
@option(
    "Detect the dialect of hosts by a PULL that every host refuses.  [default: ask]",
    "--ask-dialect/--no-ask-dialect",
    default=True,
)
@json_option("JSON Lines: one object per host, at the end.")
def command(live: LiveOptions, seconds: float, count: int | None, ask_dialect: bool, as_json: bool) -> None:
    """Find the hosts on an Ethernet, their names, dialects and answer times.

    The local host announces itself, unless --no-announce: hosts do not answer hosts that they do not know. Hosts are
    queried for their names twice per second.
    """
    from mxwire.host.survey import Survey
    from mxwire.link import Tap

    with live.open(short_frames=True, background=False) as host, Tap.open(live.interface) as tap:
        survey = Survey(host, ask_dialect=ask_dialect)
        interrupted = False
        try:
            _follow(_until(survey, tap, seconds, count, ask_dialect), live_table=sys.stdout.isatty() and not as_json)
        except KeyboardInterrupt:
            interrupted = True
            end_interrupted_line()
        hosts = survey.hosts()
        _print(hosts, as_json)
        there = any(each.heard for each in hosts)
        if not there:
            frames = host.core.links[0].statistics().received
            note(f"no host was found on {live.interface}: {_why_none(frames)}")
    if interrupted:
        sys.exit(130)
    if not there:
        sys.exit(1)


def _why_none(frames: int) -> str:
    if frames:
        return f"{count_of(frames, 'frame')} arrived, but none was sent by a host"
    return "no frame arrived; is another host running (mxwire serve), and is it the right interface (mxwire doctor)?"


def _until(
    survey: Survey, tap: Tap, seconds: float, count: int | None, ask_dialect: bool
) -> Iterator[list[SurveyedHost]]:
    """Yield the rounds of a survey until the time has passed or enough hosts are known."""
    for _ in survey.rounds(seconds):
        for _ in range(BATCHES):
            if not len(batch := tap.receive(0.0)):
                break
            survey.observe(batch)
        hosts = survey.hosts()
        yield hosts
        known = sum(each.answer_ns is not None and (each.complete or not ask_dialect) for each in hosts)
        if count is not None and known >= count:
            return


def _follow(rounds: Iterator[list[SurveyedHost]], *, live_table: bool) -> None:
    """Run the survey, on a terminal with a live table."""
    if not live_table:
        for _ in rounds:
            pass
        return
    from mxwire.cli.progress import live_display
    from mxwire.report.discovered_hosts import hosts_table
    from mxwire.report.document import renderable

    with live_display() as draw:
        for hosts in rounds:
            draw(renderable(hosts_table([record(each) for each in hosts])))


def _print(hosts: list[SurveyedHost], as_json: bool) -> None:
    from mxwire.report.discovered_hosts import hosts_table
    from mxwire.report.document import show

    records = [record(each) for each in hosts]
    if as_json:
        print_records(records)
    elif records:
        show([hosts_table(records)])
    sys.stdout.flush()


def record(sighting: SurveyedHost) -> dict[str, Any]:
    """The JSON object of a host."""
    entry = asdict(sighting)
    del entry["long_frames"]
    return entry | {"remark": _remark(sighting)}


def _remark(sighting: SurveyedHost) -> str | None:
    """A remark on an unusual property of a host."""
    if not sighting.heard:
        return "none of its frames arrived: it is known only from --peers, or from another process on this machine"
    if sighting.name is None:
        return "has not answered: it does not know the local host (yet), or is down"
    if sighting.queries and not sighting.answers:
        return "sends frames, but does not answer host queries"
    return None

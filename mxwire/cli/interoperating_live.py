"""What ``mxwire interop CONFIG.toml`` does: the hosts of a file are opened, played, and closed again."""

from __future__ import annotations

from mxwire.cli.interoperating import Wishes, finish, prepare, progress
from mxwire.errors import MxwireError
from mxwire.interop import live_matrix, matrix
from mxwire.interop.configuration import read_configuration


def play(path: str, wishes: Wishes) -> int:
    """Play what a file describes, and tell it; returns the exit code."""
    configuration = read_configuration(path)
    if wishes.jobs is not None and wishes.jobs > 1:
        raise MxwireError("live hosts are played one cell after the other: leave --jobs out")
    orders = live_matrix.plan(configuration, wishes.selection)
    report = matrix.report_of(orders, configuration.title)
    captures = prepare(wishes)
    broken: MxwireError | None = None
    whole = True
    try:
        with live_matrix.opened(configuration, captures) as player, progress(len(orders)) as told:
            whole = matrix.run(orders, report, play=player.play, progress=told)
    except MxwireError as error:
        if all(each.verdict == "missing" for each in report.cells):
            raise
        broken = error
        report.cells += [each.cell("missing", f"not played: {error}") for each in orders[len(report.cells) :]]
    code = finish(report, wishes, whole=whole)
    if broken is not None:
        raise broken
    return code

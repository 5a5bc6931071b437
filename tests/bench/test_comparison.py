"""Two recordings of a study: points agree within their intervals, and disturbed ones are undecided."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from mxwire.bench.comparison import compare_recordings, differing_conditions
from mxwire.bench.record import Conditions, Measurement, Recording, Series
from mxwire.cli.bench import command
from mxwire.errors import MxwireError

ROUNDS = tuple(10 + each / 10 for each in range(9))


def recording(*points: Measurement, study: str = "path", **conditions) -> Recording:
    about = Conditions(testbed="namespaces", **conditions)
    return Recording(study, about, [Series("half round trip", "µs", measurements=list(points))])


def point(samples, name: str = "tcp", size: int = 64, marks=()) -> Measurement:
    return Measurement(name, "µs", tuple(samples), {"size": size}, marks=marks)


def outcomes(left: Recording, right: Recording, tolerance: float = 0.0) -> list[str]:
    return [each.outcome for each in compare_recordings([left], [right], tolerance)]


@pytest.mark.parametrize(("more", "tolerance", "outcome"), [(0.5, 0, "agree"), (2, 0, "differ"), (2, 0.2, "agree")])
def test_points_agree_if_their_intervals_overlap(more, tolerance, outcome):
    left, right = recording(point(ROUNDS)), recording(point([each + more for each in ROUNDS]))
    assert outcomes(left, right, tolerance) == outcomes(right, left, tolerance) == [outcome]


def test_a_disturbed_point_is_undecided_and_a_lone_one_is_missing():
    disturbed = recording(point([99.0] * 9, marks=("disturbed",)), point(ROUNDS, "udp"))
    assert outcomes(recording(point(ROUNDS)), disturbed) == ["undecided", "missing"]


def test_recordings_of_other_studies_or_testbeds_are_not_compared():
    left = recording(point(ROUNDS))
    for other in (recording(point(ROUNDS), study="logp"), Recording("path", Conditions(testbed="machines"))):
        with pytest.raises(MxwireError, match="no study in common"):
            list(compare_recordings([left], [other]))


def test_conditions_that_differ_are_named():
    left, right = recording(compiled=True, mtu=9000, load=1.0), recording(compiled=False, mtu=9000, load=5.0)
    assert differing_conditions([left], [right]) == ["path: compiled True and False"]


def test_the_command_exits_with_1_if_points_differ(tmp_path):
    names = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path, more in zip(names, (0, 5), strict=True):
        recording(point([each + more for each in ROUNDS]), point(ROUNDS, "udp")).write(path)
    done = CliRunner().invoke(command, ["compare", *map(str, names)])
    assert done.exit_code == 1 and done.output.startswith("1 of 2 points agree; 1 differ.")
    assert "half round trip, tcp" in done.output and "half round trip, udp" not in done.output
    done = CliRunner().invoke(command, ["compare", *map(str, names), "--tolerance", "50"])
    assert (done.exit_code, done.output) == (0, "2 of 2 points agree.\n")
    done = CliRunner().invoke(command, ["compare", *map(str, names), "--json"])
    assert [json.loads(line)["outcome"] for line in done.output.splitlines()] == ["differ", "agree"]
    names[1].write_text("nothing of the kind\n")
    assert CliRunner().invoke(command, ["compare", *map(str, names)]).exit_code != 0

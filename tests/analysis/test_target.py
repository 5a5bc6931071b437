"""The targets of all output are checked before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from mxwire.analysis.table_file import check_format, check_place
from mxwire.errors import MxwireError, OutputError
from tests.cli.support import EVERY_TYPE, mxwire


def test_a_format_is_known_by_the_end_of_the_name():
    check_format(Path("a.CSV"), "table format", (".csv", ".arrow"))
    with pytest.raises(MxwireError, match=r"^a\.xls: no table format for \.xls: use one of \.csv, \.arrow$"):
        check_format(Path("a.xls"), "table format", (".csv", ".arrow"))
    with pytest.raises(MxwireError, match="no figure for a name without suffix"):
        check_format(Path("csv"), "figure", (".svg",))


def test_a_target_is_a_file_in_an_existing_directory(tmp_path):
    check_place(tmp_path / "new")
    with pytest.raises(OutputError, match=r"cannot be written: it is a directory$"):
        check_place(tmp_path)
    with pytest.raises(OutputError, match=r"cannot be written: its directory does not exist$"):
        check_place(tmp_path / "none" / "new")


@pytest.mark.parametrize(
    "words",
    [
        ["decode", "--to", "none/a.csv"],
        ["messages", "--to", "none/a.csv"],
        ["stats", "--plot", "none/a.svg"],
        ["extract", "--message", "1", "-w", "none/a"],
    ],
    ids=lambda words: words[0],
)
def test_commands_report_an_impossible_target(words, tmp_path):
    run = mxwire(*words, EVERY_TYPE, cwd=tmp_path)
    assert (run.code, run.out) == (2, "")
    assert run.err == f"mxwire: {words[-1]}: cannot be written: its directory does not exist\n"

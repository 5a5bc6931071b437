"""``mxwire perf``: what is refused before anything is opened."""

from __future__ import annotations

import pytest

from .support import mxwire


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("none/x.svg", "No such file or directory; create its directory first"),
        ("file/x.svg", "Not a directory; a part of its path is a file: choose another place"),
    ],
)
def test_a_picture_that_has_no_folder_is_refused_before_the_measurement(tmp_path, name, why):
    pytest.importorskip("matplotlib")
    (tmp_path / "file").touch()
    path = tmp_path / name
    done = mxwire("perf", "-i", "nowhere0", "-d", "alpha", "--plot", path)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"mxwire: {path}: cannot be written: {why}\n"


def test_the_jq_example_of_the_help_selects_the_lengths():
    """The example of the help, whose other objects have no times."""
    text = mxwire("perf", "--help").out
    assert "jq 'select(.event==\"length\").median_us'" in text and "Exit code: 0 " in text


def test_lengths_have_no_upper_limit_that_is_only_a_machine_word():
    help_text = mxwire("perf", "--help").out
    assert "x>=0" in help_text and str((1 << 63) - 1) not in help_text
    done = mxwire("perf", "-S", 1 << 63)
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"mxwire: Invalid value for '-S': {1 << 63} is more than {(1 << 63) - 1}; see mxwire perf --help\n"
    )

"""``mxwire perf``: what is refused before anything is opened."""

from __future__ import annotations

import pytest

from .support import mxwire


@pytest.mark.parametrize(
    "option",
    [
        *("-r 0", "-S 0", "-E 4194305", "-M 2", "-I 0", "-N 1000", "-W 10", "-P 100"),
        *("-U", "-Y", "--plot x.svg", "--interval 1"),
    ],
)
def test_a_receiver_has_no_options_of_the_sender(option):
    """Not even those that say what is the default."""
    done = mxwire("perf", "-i", "nowhere0", *option.split())
    letter = option.split()[0]
    assert (done.code, done.out) == (2, "")
    assert done.err == f"mxwire: {letter} is for the sender: name the receiver with -d HOST\n"


def test_several_are_named_at_once():
    assert "-N, -U are for the sender" in mxwire("perf", "-i", "nowhere0", "-U", "-s", "-N", "5").err


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--as", "osu_bw", "-U"), "-U and --as: the benchmark defines the pattern; omit one"),
        (("--as", "imb:PingPong", "-Y"), "-Y and --as: the benchmark defines the pattern; omit one"),
        (("--as", "osu_latency", "--json"), "--json and --as: choose one form of output"),
        (("--as", "osu_latency", "--interval", "1"), "--interval and --as: choose one form of output"),
    ],
)
def test_options_that_contradict_the_columns_of_another_benchmark(options, error):
    done = mxwire("perf", "-i", "nowhere0", "-d", "alpha", *options)
    assert (done.code, done.out, done.err) == (2, "", f"mxwire: {error}\n")


def test_columns_are_for_the_sender():
    assert "--as is for the sender" in mxwire("perf", "-i", "nowhere0", "--as", "osu_latency").err


def test_options_of_both_are_taken_by_a_receiver():
    options = ("-a", "-b", "0", "-e", "3", "-s", "-B", "-y", "-v", "--json", "--timeout", "3")
    done = mxwire("perf", "-i", "nowhere0", *options)
    assert done.code == 2 and "nowhere0" in done.err and "sender" not in done.err


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


def test_the_letter_for_waiting_has_changed():
    done = mxwire("perf", "-i", "nowhere0", "-w")
    assert (done.code, done.out) == (2, "")
    assert done.err == "mxwire: -w is -B now (or --wait), as -w FILE writes a file in other commands\n"

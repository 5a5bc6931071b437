"""``mxwire compat``, as a user runs it."""

from __future__ import annotations

import pytest

from .support import CAPTURES, mxwire

MXOE, OMX1500, OMX9000 = (
    CAPTURES / name
    for name in ("mxoe-pingpong-small-medium.pcap", "omx1500-echo-pattern.pcap", "omx9000-pingpong-sync.pcap")
)
LOSSY = CAPTURES / "mxoe-lossy-1M.pcap"
ONE, OTHER = "52:54:00:0a:00:01", "52:54:00:0a:00:02"


def words(run) -> dict[str, str]:
    return {each["class"]: each["works"] for each in run.objects if each["record"] == "class"}


def test_hosts_of_incompatible_captures_cannot_talk_and_the_needed_change_is_named():
    run = mxwire("compat", MXOE, OMX1500)
    assert run.code == 1 and run.err == ""
    assert "Built as mxoe." in run.out and "Built as omx:1500." in run.out
    assert "They can communicate, but not with all classes" in run.out
    assert "wire compatibility with MX on, or off, on both" in " ".join(run.out.split())
    assert max(map(len, run.lines)) <= 100


def test_json_has_the_same_content():
    run = mxwire("compat", "--json", MXOE, OMX1500)
    assert run.code == 1
    assert words(run) == dict.fromkeys(("discovery", "connect", "tiny", "small"), "yes") | {
        "medium": "no",
        "large": "no",
    }
    sides = [each for each in run.objects if each["record"] == "side"]
    assert [(each["side"], each["candidates"], each["certain"]) for each in sides] == [
        ("A", ["mxoe"], True),
        ("B", ["omx:1500"], True),
    ]
    assert all(each["first_frame"] for each in sides[0]["shows"] if each["frames"])


def test_the_two_hosts_of_one_capture_are_compared_by_the_received_frames():
    run = mxwire("compat", "--json", MXOE)
    assert run.code == 0 and set(words(run).values()) == {"yes"}
    arrived = {each["class"]: each["arrived"] for each in run.objects if each["record"] == "class"}
    assert arrived["medium"]["A to B"][0] == arrived["medium"]["A to B"][1] > 0
    assert "Messages delivered" in mxwire("compat", MXOE).out


def test_single_resend_has_no_range():
    facts = [each for side in mxwire("compat", "--json", LOSSY).objects for each in side.get("shows", ())]
    assert [each["value"] for each in facts if each["what"] == "resend delay"] == ["509 ms (1 resend)"]


def test_hosts_can_be_chosen_and_their_order_is_kept():
    run = mxwire("compat", "--json", "--pair", OTHER, ONE, MXOE)
    assert [each["host"] for each in run.objects if each["record"] == "side"] == [OTHER, ONE]


def test_unseen_properties_are_unknown_and_not_a_failure():
    run = mxwire("compat", "--json", CAPTURES / "omx1500-connect.pcap", MXOE)
    assert run.code == 0
    assert words(run)["small"] == "yes" and words(run)["large"] == "unknown"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((CAPTURES / "mxoe-discovery-static.pcap",), f"only {ONE} sends"),
        (("--pair", ONE, ONE, MXOE), "twice"),
        ((MXOE, MXOE), "are the same file; name it once"),
        (("--pair", ONE, "02:00:00:00:00:77", MXOE), "02:00:00:00:00:77 sends nothing in it"),
        (("--pair", ONE, "beta", MXOE), "beta"),
        (("nosuch.pcap", MXOE), "nosuch.pcap"),
        ((), "Missing argument"),
    ],
)
def test_captures_that_cannot_be_compared_are_refused_in_one_line(arguments, complaint):
    run = mxwire("compat", *arguments)
    assert run.code == 2 and complaint in run.err and len(run.err.splitlines()) == 1 and run.out == ""

"""Requirements: their forms, and the results that meet them."""

from __future__ import annotations

import pytest

from mxwire.errors import MxwireError
from mxwire.linerate.rates import frame_rate, line_rate
from mxwire.linerate.requirement import Requirement, check_sizes, failures

RESULT = {
    "size": 4136,
    "percent": 96.0,
    "frames_per_second": 50_000.0,
    "bits_per_second": 1.6e9,
    "p99_ns": 18_000,
    "count": 500,
}


@pytest.mark.parametrize(
    "text",
    [
        *("4136:>=95%", ">=95%", "4136 : >= 95.5 %", ">=50k/s", ">=0.05M/s", ">=1.6Gbit/s", "<=2Gbit/s"),
        *("<=18us", "4136:<=0.018ms", "<=1s", ">=500", "<=500"),
    ],
)
def test_a_result_meets_its_requirement(text):
    assert Requirement.parse(text).failure(RESULT) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (">=97%", "4136 bytes: 96% does not meet >=97%"),
        (">=51k/s", "50,000/s does not meet"),
        ("<=1Gbit/s", "1.6e+09bit/s does not meet"),
        ("<=17.9us", "18 us does not meet"),
        (">=501", "500 does not meet"),
    ],
)
def test_a_requirement_that_is_not_met_is_explained(text, words):
    assert words in (Requirement.parse(text).failure(RESULT) or "")


@pytest.mark.parametrize("text", ["", "95%", ">95%", ">=", ">=95 apples", "x:>=1%", ">=5k%", ">=1ks", ">=-1", "==5"])
def test_other_forms_are_refused(text):
    with pytest.raises(MxwireError, match="--require"):
        Requirement.parse(text)


def test_a_requirement_without_a_result_is_not_met():
    assert failures((Requirement.parse("60:>=1%"),), [RESULT]) == ["60:>=1%: there is no result for it"]
    assert "cannot be judged" in failures((Requirement.parse(">=1%"),), [RESULT | {"percent": None}])[0]
    assert failures((Requirement.parse(">=1%"),), [RESULT]) == []


def test_a_requirement_for_a_length_that_is_not_tested_is_refused():
    check_sizes((Requirement.parse("60:>=1%"), Requirement.parse(">=1%")), (60, 1024))
    with pytest.raises(MxwireError, match="'99:>=1%': 99 bytes are not tested, only 60, 1024"):
        check_sizes((Requirement.parse("60:>=1%"), Requirement.parse("99:>=1%")), (60, 1024))


def test_line_rates_are_those_of_the_standards():
    """RFC 2544 and the tables of Ethernet: 64 and 1518 bytes with check sequence."""
    assert int(line_rate(10_000, 60)) == 14_880_952
    assert int(line_rate(1_000, 1514)) == 81_274
    assert int(line_rate(25_000, 4144)) == 749_760


def test_rates_are_frames_bits_or_a_share_of_the_line():
    assert frame_rate("50k/s", 100, None) == 50_000
    assert frame_rate("1Gbit/s", 125, None) == 1_000_000
    assert frame_rate("50%", 60, 10_000) == line_rate(10_000, 60) / 2
    for text, speed in (("50%", None), ("0%", 1000), ("much", 1000)):
        with pytest.raises(MxwireError):
            frame_rate(text, 60, speed)

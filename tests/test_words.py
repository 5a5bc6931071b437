"""Numbers are written as a person reads them."""

from __future__ import annotations

import pytest

from mxwire.words import count_of


@pytest.mark.parametrize(
    ("number", "output"), [(0, "0 frames"), (1, "1 frame"), (2, "2 frames"), (21, "21 frames"), (-1, "-1 frames")]
)
def test_a_number_has_the_plural_that_it_wants(number: int, output: str) -> None:
    assert count_of(number, "frame") == output


def test_a_plural_may_be_given_and_a_word_for_nothing() -> None:
    assert count_of(1, "host query", "host queries") == "1 host query"
    assert count_of(2, "host query", "host queries") == "2 host queries"
    assert count_of(0, "problem", none="no") == "no problems"

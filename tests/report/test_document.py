"""Blocks as plain text."""

from __future__ import annotations

import pytest

from mxwire.report.document import Listing, Paragraph, plain


@pytest.mark.parametrize("width", range(30, 60))
@pytest.mark.parametrize("block", [Paragraph, lambda text: Listing((text,))])
def test_no_line_begins_with_a_unit(block, width):
    text = "a message was refused after 0.25 ms (frame 8, at 3.257710 s), and again 12 us later"
    lines = plain([block(text)], width).splitlines()
    assert " ".join(each.strip().removeprefix("- ") for each in lines) == text
    assert not [each for each in lines if each.split()[0].rstrip("),") in ("s", "ms", "us")]
    assert max(map(len, lines)) <= width

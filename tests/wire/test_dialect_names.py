"""The names of dialects, and the dialects that can exist."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.errors import MxwireError
from mxwire.wire.dialect import MXOE, dialect_by_name, dialect_or_auto, omx

from .strategies import relaxed


@pytest.mark.parametrize(
    ("name", "dialect"),
    [("mxoe", MXOE), ("omx", omx(9000)), ("omx:1500", omx(1500)), (" OMX:4096 ", omx(4096)), ("Mxoe", MXOE)],
)
def test_names(name, dialect):
    assert dialect_by_name(name) == dialect


@pytest.mark.parametrize("dialect", [MXOE, omx(256), omx(1500), omx(65535)], ids=str)
def test_every_dialect_is_found_by_its_own_name(dialect):
    assert dialect_by_name(dialect.name) == dialect
    assert str(dialect) == dialect.name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "mx",
        "mxoe:9000",
        "mxoe:",
        "omx:",
        "omx:x",
        "omx:-1",
        "omx:1e3",
        "omx:1500:2",
        "omx:²",
        "omx:٣٠٠٠",
        "omx1500",
    ],
)
def test_other_names_are_refused_with_a_hint(name):
    with pytest.raises(MxwireError, match="use mxoe, omx"):
        dialect_by_name(name)


def test_auto_is_an_option_and_not_a_dialect():
    assert dialect_or_auto(" Auto ") is None
    assert dialect_or_auto("omx:1500") == omx(1500)
    with pytest.raises(MxwireError):
        dialect_by_name("auto")


@pytest.mark.parametrize("limit", [0, 255, 65536, 999999999])
def test_impossible_frame_limits(limit):
    with pytest.raises(MxwireError, match=f"frame limit {limit}"):
        dialect_by_name(f"omx:{limit}")


def test_older_generations_and_assumed_limits_show_in_the_name():
    assert omx(1500, "N3").name == "omx:1500/N3"
    assert omx(9000, frame_limit_known=False).name == "omx"
    assert omx(9000, "N2", frame_limit_known=False).name == "omx/N2"


@relaxed
@given(st.integers(256, 65535))
def test_sizes_fit_the_limit(limit):
    """Formulas of the wire format, section 7."""
    dialect = omx(limit)
    assert dialect.fragment_payload + 48 <= limit
    assert dialect.fragment_payload <= 8192
    assert dialect.reply_payload + 32 == limit
    assert dialect.fragment_payload <= dialect.receive_slot < 2 * dialect.fragment_payload
    assert dialect.receive_slot & (dialect.receive_slot - 1) == 0


@relaxed
@given(st.text(max_size=12))
def test_any_text_is_a_dialect_or_a_clear_error(name):
    try:
        dialect_by_name(name)
    except MxwireError as error:
        assert "\n" not in str(error)

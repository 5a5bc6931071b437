"""Ethernet addresses as text, and the small numbers that stand for large ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.errors import MxwireError
from mxwire.ethernet import BROADCAST, mac_bytes, mac_text
from mxwire.wire.codes import LIMIT, CodeTable

from .strategies import relaxed


@relaxed
@given(st.binary(min_size=6, max_size=6))
def test_text_and_bytes_undo_each_other(address):
    text = mac_text(address)
    assert mac_bytes(text) == mac_bytes(text.upper()) == mac_bytes(text.replace(":", "-")) == address
    assert mac_text(int.from_bytes(address, "big")) == text


def test_addresses_as_switches_write_them():
    assert mac_bytes("5254.000A.0001") == mac_bytes("5254000a0001") == bytes.fromhex("5254000a0001")


def test_broadcast():
    assert mac_text(BROADCAST) == "ff:ff:ff:ff:ff:ff"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1:2:3:4:5:6",
        "52:54:00:0a:00",
        "52:54:00:0a:00:01:02",
        "52-54:00:0a:00:01",
        "525400:0a:00:01",
        "5254.000a0001",
        "5254.000a.001",
        "5254000a000",
        "gg:54:00:0a:00:01",
    ],
)
def test_other_texts_are_refused(text):
    with pytest.raises(MxwireError, match="not an Ethernet address"):
        mac_bytes(text)


@relaxed
@given(st.lists(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5), max_size=20), max_size=8))
def test_codes_are_given_in_order_of_appearance(batches):
    table, wanted = CodeTable(), {}
    for keys in batches:
        codes = table.codes(np.array(keys, np.uint64))
        assert codes.tolist() == [wanted.setdefault(key, len(wanted)) for key in keys]
    assert table.keys == list(wanted)
    assert len(table) == len(wanted)


def test_a_full_table_no_longer_distinguishes_new_keys():
    """Memory is bounded whatever comes; what was known before keeps its code."""
    table = CodeTable()
    keys = np.arange(10, LIMIT + 110, dtype=np.uint64)
    for part in np.array_split(keys, 7):
        table.codes(part)
    assert table.is_full
    codes = table.codes(keys).tolist()
    assert codes[:LIMIT] == list(range(LIMIT))
    assert set(codes[LIMIT:]) == {table.others}
    assert table.keys[:LIMIT] == keys[:LIMIT].tolist()
    assert len(table) == LIMIT + 1

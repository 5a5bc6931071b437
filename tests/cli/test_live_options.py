"""How live commands are told of hosts."""

from __future__ import annotations

import click
import pytest

from mxwire.cli.live import Destination, DestinationType

MAC = "52:54:00:0a:00:01"


@pytest.mark.parametrize(
    ("text", "host", "endpoint"),
    [
        ("alpha", "alpha:0", None),
        ("alpha:0", "alpha:0", None),
        ("alpha:3", "alpha:3", None),
        ("alpha:0:3", "alpha:0", 3),
        ("alpha:10:255", "alpha:10", 255),
        ("alpha/3", "alpha:0", 3),
        ("alpha:1/3", "alpha:1", 3),
        ("node-7.example.org:0:0", "node-7.example.org:0", 0),
        (MAC, MAC, None),
        (MAC + ":3", MAC, 3),
        (MAC + "/31", MAC, 31),
        ("52-54-00-0A-00-01", "52-54-00-0A-00-01", None),
        (" alpha ", "alpha:0", None),
    ],
)
def test_a_host_and_its_endpoint(text, host, endpoint):
    assert DestinationType().convert(text, None, None) == Destination(host, endpoint)


@pytest.mark.parametrize("text", ["", "alpha:", ":3", "alpha:x", "alpha:0:x", "alpha:0:", "al pha", "alpha:0:3:4"])
def test_what_is_no_host(text):
    with pytest.raises(click.BadParameter, match="is no host: write alpha:0"):
        DestinationType().convert(text, None, None)


@pytest.mark.parametrize("text", ["alpha:0:256", MAC + ":1000"])
def test_endpoints_are_bytes(text):
    with pytest.raises(click.BadParameter, match="from 0 to 255"):
        DestinationType().convert(text, None, None)


@pytest.mark.parametrize("text", ["alpha:0", "alpha:0:3", MAC, MAC + ":3"])
def test_a_destination_is_written_as_it_is_read(text):
    assert str(DestinationType().convert(text, None, None)) == text

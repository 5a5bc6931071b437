"""Options by which live commands name hosts."""

from __future__ import annotations

import click
import pytest

from mxwire.analysis.host_names import HostChoice
from mxwire.cli.main import COMMANDS, cli
from mxwire.cli.options import Amount, host_type

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
    assert host_type(text) == HostChoice(host, endpoint)


@pytest.mark.parametrize("text", ["", "alpha:", ":3", "alpha:x", "alpha:0:x", "alpha:0:", "al pha", "alpha:0:3:4"])
def test_invalid_hosts(text):
    with pytest.raises(click.BadParameter, match="is not a host: write alpha:0"):
        host_type(text)


@pytest.mark.parametrize("text", ["alpha:0:256", MAC + ":1000"])
def test_endpoints_are_bytes(text):
    with pytest.raises(click.BadParameter, match="from 0 to 255"):
        host_type(text)


@pytest.mark.parametrize("text", ["alpha:0", "alpha:0:3", MAC, MAC + ":3"])
def test_a_destination_is_written_as_it_is_read(text):
    assert str(host_type(text)) == text


def test_no_number_is_without_end():
    """Seconds, speeds, parts: nan passes every comparison, and a wait without limit is requested by leaving the option
    out.
    """
    context = click.Context(cli)
    commands = [cli.get_command(context, name) for name in COMMANDS]
    options = [option for command in commands if command is not None for option in command.params]
    amounts = [each for each in options if isinstance(each.type, click.FloatRange)]
    assert len(amounts) > 10
    for option in amounts:
        assert isinstance(option.type, Amount), option
        for text in ("nan", "inf", "-inf", "1e400", "1e300"):
            with pytest.raises(click.BadParameter):
                option.type.convert(text, option, context)


@pytest.mark.parametrize("text", ["nan", "inf", "1e10"])
def test_invalid_amounts(text):
    with pytest.raises(click.BadParameter, match=f"'{text}' is not a number up to 1,000,000,000"):
        Amount(0).convert(text, None, None)
    assert Amount(0).convert("1e9", None, None) == 1e9

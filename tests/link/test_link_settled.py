"""The kernel's state of an interface, read once it has settled."""

from __future__ import annotations

import pytest

from mxwire.link.interface import NetworkInterface, read_settled


@pytest.mark.parametrize(
    ("states", "carrier", "looks"),
    [
        ([(True, False), (True, False), (True, True)], True, 3),  # just set up
        ([(True, True)], True, 1),
        ([(False, False)], False, 1),  # nothing to wait for
    ],
)
def test_an_interface_that_was_just_set_up_is_waited_for(monkeypatch, states, carrier, looks):
    seen = []

    def read(name):
        up, has_carrier = states[len(seen)]
        seen.append(name)
        return NetworkInterface(name, 1, bytes(6), 1500, up, has_carrier)

    monkeypatch.setattr("mxwire.link.interface.read_interface", read)
    assert read_settled("veth1", 60.0).carrier is carrier
    assert seen == ["veth1"] * looks


def test_the_wait_for_a_carrier_is_limited(monkeypatch):
    dead = NetworkInterface("veth1", 1, bytes(6), 1500, up=True, carrier=False)
    monkeypatch.setattr("mxwire.link.interface.read_interface", lambda _: dead)
    assert read_settled("veth1", 0.2) is dead

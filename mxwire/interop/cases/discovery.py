"""Discovery and host names."""

from __future__ import annotations

from mxwire.ethernet import mac_text
from mxwire.interop.cases.definition import CaseGroup
from mxwire.interop.roles import EndpointAddress, UnexpectedResult, UnplayableCase, require
from mxwire.interop.testbed import Testbed
from mxwire.protocol import LocalProtocolError, Status

CASES = CaseGroup("discovery")


@CASES.case(
    "hosts discover each other by announcements",
    "R-DISC-01 R-DISC-02 R-DISC-03 R-DISC-07 R-HOST-01 R-HOST-04 R-HOST-06",
    role="nothing",
    introduction="announcements",
)
def announcements(testbed: Testbed) -> None:
    """Neither host knows the other. Both announce themselves, and query each other's names. If the right host is
    external, the local one restarts with empty tables."""
    _find(testbed)


@CASES.case(
    "hosts answer name queries",
    "R-HOST-01 R-HOST-02 R-HOST-05 R-HOST-06 R-HOST-07 R-HOST-08",
    role="nothing",
    introduction="addresses",
    impaired=True,
)
def names(testbed: Testbed) -> None:
    """Each host has the address of the other in its table, without a name. If the right host is
    external, the local one has forgotten its name."""
    if testbed.right_is_controlled:
        _both_named(testbed)
    else:
        address = testbed.right_address
        testbed.left.node.forget_names()
        _right_named(testbed, address)


@CASES.case(
    "a newly discovered host accepts a connect",
    "R-DISC-03 R-HOST-07 R-CON-01 R-CON-08",
    introduction="announcements",
    lengths=lambda _: (5,),
    answered=True,
)
def found_and_connected(testbed: Testbed) -> None:
    """After discovery both connect at once, and exchange a message each."""
    _find(testbed)
    testbed.join().exchange(b"hello")


@CASES.case("an unknown host is not found", "R-DISC-01", role="nothing")
def unknown_host(testbed: Testbed) -> None:
    """A connect to a name that is not in the table is refused at once, and no frame is sent."""
    end = testbed.left.open(1)
    try:
        end.ask(EndpointAddress("unknown:0", 0))
    except LocalProtocolError as error:
        testbed.left.note(f"connect to an unknown host: {error.status.text}")
        require(error.status is Status.PEER_NOT_FOUND, f"the connect was refused as {error.status.text}")
    else:
        raise UnexpectedResult("a connect to an unknown host was not refused")


def _find(testbed: Testbed) -> None:
    """Let the hosts discover each other; if the right one is external, the local one restarts with empty tables."""
    if testbed.right_is_controlled:
        _both_named(testbed)
        return
    address = testbed.right_address
    testbed.left.reboot()
    if testbed.left.node.peers.by_address(address) is not None:
        raise UnplayableCase("the host is configured by address, so it need not announce itself")
    _right_named(testbed, address)


def _right_named(testbed: Testbed, address: bytes) -> None:
    def named() -> bool:
        peer = testbed.left.node.peers.by_address(address)
        return peer is not None and peer.name is not None

    require(testbed.until(named), f"{mac_text(address)} did not announce its name within {testbed.patience:g} s")


def _both_named(testbed: Testbed) -> None:
    left, right = testbed.sides
    for one, other in ((left, right), (right, left)):
        name = f"{other.name}:0"
        found = testbed.until(lambda one=one, name=name: one.node.peers.by_name(name) is not None)  # type: ignore[misc]
        require(found, f"{one.name} did not learn the name {name} within {testbed.patience:g} s")
        peer = one.node.peers.by_name(name)
        assert peer is not None
        require(peer.address == other.address, f"{one.name} has the name {name} for another address")

"""Connects: accepted, refused, repeated, crossing, and after a restart."""

from __future__ import annotations

from mxwire.interop.cases.definition import CaseGroup, data, of
from mxwire.interop.roles import EndpointAddress, require
from mxwire.interop.testbed import JoinedEndpoints, Testbed
from mxwire.protocol import Status
from mxwire.wire.numbers import DEFAULT_KEY

CASES = CaseGroup("connecting")
_WRONG_KEY = DEFAULT_KEY ^ 0xFF
_HELLO = b"here"
_CLOSED = 29
_BEYOND = 200
"""More than the number of endpoints of any host."""


@CASES.case("a connect succeeds", "R-CON-01 R-CON-05 R-CON-08", impaired=True)
def connect(testbed: Testbed) -> None:
    """The right key, and an open endpoint."""
    where = testbed.any_program()
    testbed.left.open(5).connect(where)


@CASES.case("a wrong key is refused", "R-CON-04 R-CON-08 R-CON-09", impaired=True)
def connect_bad_key(testbed: Testbed) -> None:
    """The connect ends with the status of a bad key; a second one with the right key succeeds."""
    where = testbed.any_program()
    end = testbed.left.open(5)
    refused = end.ask(where, key=_WRONG_KEY)
    end.wait(refused, Status.REMOTE_ENDPOINT_BAD_CONNECTION_KEY, "connect with a wrong key")
    end.connect(where)


@CASES.case("a closed endpoint refuses", "R-EP-01 R-CON-15", impaired=True)
def connect_closed(testbed: Testbed) -> None:
    """The endpoint number is valid, but not open."""
    where = testbed.any_program()
    end = testbed.left.open(5)
    refused = end.ask(EndpointAddress(where.host, _CLOSED))
    end.wait(refused, Status.REMOTE_ENDPOINT_CLOSED, f"connect to endpoint {_CLOSED}")


@CASES.case("an invalid endpoint number is refused", "R-EP-01 R-CON-15")
def connect_no_endpoint(testbed: Testbed) -> None:
    """The number is beyond the range of any host."""
    where = testbed.any_program()
    end = testbed.left.open(5)
    refused = end.ask(EndpointAddress(where.host, _BEYOND))
    end.wait(refused, Status.REMOTE_ENDPOINT_BAD_ID, f"connect to endpoint {_BEYOND}")


@CASES.case("a repeated connect changes nothing", "R-CON-03 R-CON-05 R-CON-06", lengths=of(8), answered=True)
def connect_repeated(testbed: Testbed) -> None:
    """Connects to the same endpoint, including two at a time, with messages in between: sequence numbers continue."""
    where = testbed.program("echo")
    end = testbed.left.open(5)
    partner = end.connect(where)
    for number in range(2):
        posted = end.receive(64, number)
        end.send(partner, b"%08d" % number, number)
        end.took(posted, b"%08d" % number)
        for request in [end.ask(where) for _ in range(1 + number)]:
            end.wait(request, Status.SUCCESS, "connect again")
            require(request.partner is partner, "the second connect returned another partner")


@CASES.case("two connects cross", "R-CON-10 R-CON-14", lengths=of(4), answered=True, role=None, impaired=True)
def connect_crossing(testbed: Testbed) -> None:
    """Both hosts connect at the same time, and then exchange messages."""
    testbed.join().exchange(_HELLO)


@CASES.case("the other side connects back before it answers", "R-CON-11 R-CON-12", lengths=of(3, 40_000), answered=True)
def connect_back(testbed: Testbed) -> None:
    """A short and a large message are returned by an application that has only been connected to."""
    where = testbed.program("echo")
    end = testbed.left.open(5)
    partner = end.connect(where)
    for number, length in enumerate((3, 40_000)):
        posted = end.receive(length, number)
        end.send(partner, data(number, length), number)
        end.took(posted, data(number, length))


@CASES.case("an endpoint is reopened", "R-EP-02 R-NAK-05 R-CLS-04 R-CLS-05 R-CLS-07", lengths=of(4), answered=True)
def restart_endpoint(testbed: Testbed) -> None:
    """The right application restarts with the same endpoint number. A send to the old session is refused; after the new
    application has connected, messages arrive. If the right host is external, its program is restarted, and the
    local one connects first."""
    joined = testbed.join()
    joined.exchange(_HELLO)
    testbed.settle()
    if not testbed.right_is_controlled:
        _talk_to_a_new_program(testbed, joined)
        return
    joined.two.close()
    testbed.right.open(joined.two.number)
    again = testbed.right.ends[-1]
    lost = joined.one.send(joined.to_two, b"lost", synchronous=True)
    joined.one.wait(lost, Status.REMOTE_ENDPOINT_BAD_SESSION, "send to the old session")
    to_one = again.connect(joined.one.where)
    to_two = joined.one.connect(again.where)
    JoinedEndpoints(joined.one, again, to_two, to_one).exchange(_HELLO)


def _talk_to_a_new_program(testbed: Testbed, joined: JoinedEndpoints) -> None:
    """Exchange messages with a restarted right program.

    The left host forgets the old program first, because the new one does not connect first (D-3).
    """
    joined.one.engine.disconnect(joined.to_two)
    where = testbed.restart("echo")
    partner = joined.one.connect(where)
    JoinedEndpoints(joined.one, joined.one, partner, partner).exchange(_HELLO)


@CASES.case("a host is power-cycled", "R-CLS-04 R-CLS-05 R-CLS-07 W-5", lengths=of(4), answered=True)
def restart_host(testbed: Testbed) -> None:
    """The right host restarts with empty tables, and connects; then messages are exchanged again. If the right host is
    external, the local one restarts instead."""
    joined = testbed.join()
    joined.exchange(_HELLO)
    testbed.settle()
    if not testbed.right_is_controlled:
        # The right host is external: the local one restarts, with the same endpoint.
        testbed.left.reboot()
        testbed.join().exchange(_HELLO)
        return
    testbed.right.reboot()
    again = testbed.right.open(joined.two.number)
    to_one = again.connect(joined.one.where)
    to_two = joined.one.connect(again.where)
    JoinedEndpoints(joined.one, again, to_two, to_one).exchange(_HELLO)

"""Opening hosts and endpoints, finding peers, and what goes wrong with them."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from mxwire.errors import MxwireError
from mxwire.host import DEFAULT_KEY, AsyncHost, Host, HostError, HostTimeoutError
from mxwire.host.peer_names import own_name, peer_key, read_peers
from mxwire.link import MemoryNetwork
from mxwire.protocol import Counter, EngineEndpoint, LocalProtocolError, Status
from mxwire.protocol.profile import OPEN_MX_1_5
from mxwire.wire.dialect import MXOE, omx

from .agents import interface_name
from .conftest import PATIENCE, without_agent


def test_the_name_of_a_host():
    node = os.uname().nodename.split(".")[0]
    assert [own_name(each) for each in (None, "alpha", "alpha:0", " alpha ")] == [node, "alpha", "alpha", "alpha"]
    for bad in ("", ":0", "alpha:1", "two words", "nul\0", "bell\a", "no\udcfftext"):
        with pytest.raises(MxwireError, match="is not a host name"):
            own_name(bad)
    with pytest.raises(MxwireError, match="too long: with :0 at most 79 bytes are allowed"):
        own_name("x" * 78)
    assert own_name("x" * 77)


def test_the_host_that_a_user_names():
    assert peer_key("alpha") == peer_key("alpha:0") == "alpha:0"
    assert peer_key("alpha:1") == "alpha:1"
    assert peer_key("52:54:00:0A:00:01") == peer_key("52-54-00-0a-00-01") == peer_key(bytes.fromhex("5254000a0001"))
    for bad, text in (("", "a host is missing"), (b"123", "6 bytes, not 3")):
        with pytest.raises(MxwireError, match=text):
            peer_key(bad)


def test_a_file_of_peers(tmp_path):
    path = tmp_path / "peers"
    path.write_text("# ours\n52:54:00:0a:00:01 alpha:0\n\n52:54:00:0a:00:02  # nameless\n52:54:00:0a:00:03 gamma\n")
    found = read_peers(path)
    assert list(found.values()) == ["alpha:0", None, "gamma:0"]
    assert next(iter(found)) == bytes.fromhex("5254000a0001")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("52:54:00:0a:00 alpha", "is not an Ethernet address"),
        ("52:54:00:0a:00:01 alpha:0 more", "is more than an address and a name"),
        ("52:54:00:0a:00:09 alpha", "is listed twice"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, text):
    path = tmp_path / "peers"
    path.write_text(f"52:54:00:0a:00:09 first\n# a comment\n{line}\n")
    with pytest.raises(MxwireError, match=f"peers:3: .*{text}"):
        read_peers(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(MxwireError, match="absent: the peers cannot be read: No such file"):
        read_peers(tmp_path / "absent")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MxwireError, match="binary: the peers cannot be read: it is not a text file"):
        read_peers(tmp_path / "binary")


def test_hosts_that_do_not_announce_talk_through_static_peers(network, tmp_path):
    links = network.attach(), network.attach()
    path = tmp_path / "peers"
    path.write_text("".join(f"{each.address.hex(':')} {name}\n" for each, name in zip(links, ("x", "y"), strict=True)))
    names = {each.address: name for each, name in zip(links, ("x", "y:0"), strict=True)}
    with Host(links[0], name="x", peers=path, announce=False) as x, Host(links[1], name="y", peers=names) as y:
        y.open_endpoint(0)
        assert x.open_endpoint().connect("y", timeout=PATIENCE).peer.name == "y:0"
        assert [(each.name, each.own) for each in x.peers()] == [("x:0", True), ("y:0", False)]


def test_hosts_find_each_other_by_announcement(network):
    with Host(network.attach(), name="alpha") as alpha, Host(network.attach(), name="beta:0") as beta:
        assert alpha.name == "alpha:0"
        assert alpha.wait_for_peer("beta", PATIENCE).address == bytes.fromhex(beta.addresses[0].replace(":", ""))
        assert beta.wait_for_peer(alpha.addresses[0], PATIENCE).name == "alpha:0"


def test_a_missing_peer_is_reported_with_the_attempts(pair):
    with pytest.raises(
        HostTimeoutError, match=r"gamma:0 was not found within 0.01 s: hosts seen on a\S*: beta:0 \(02:"
    ):
        pair.alpha.wait_for_peer("gamma", 0.01)
    none = pytest.raises(HostTimeoutError, match=r"no other host was seen on lonely \(0 frames heard\); sent \d+ ann")
    with Host(MemoryNetwork().attach("lonely"), name="alone") as alone, none:
        alone.wait_for_peer("gamma", 0.01)
    with pytest.raises(HostTimeoutError, match="has not answered 1 connect requests for endpoint 0 within") as error:
        pair.one.connect("02:00:00:00:00:77", timeout=0.01)
    assert error.value.status is Status.TIMEOUT and "does not know this host (02:00:00:00:00:01)" in str(error.value)
    assert not pair.one.engine.requests


@pytest.mark.rule("R-MEA-19", "R-RTX-05")
def test_a_blocking_connect_times_out_at_the_resend_limit(network):
    """The engine's own connect, which does not block, ends as unreachable."""
    profile = replace(OPEN_MX_1_5, hz=1000, resend_maximum=1)
    with Host(network.attach("a"), name="alpha", profile=profile) as alpha, alpha.open_endpoint(1) as one:
        with pytest.raises(HostTimeoutError, match="has not answered 2 connect requests for endpoint 0: ") as error:
            one.connect("02:00:00:00:00:77", timeout=None)
        assert error.value.status is Status.TIMEOUT
        assert error.value.request.status is Status.REMOTE_ENDPOINT_UNREACHABLE


def test_an_unheard_host_is_not_listed_as_seen(network):
    static = {"02:00:00:00:00:88": "delta", "02:00:00:00:00:99": None}
    with Host(network.attach("a"), name="alpha", peers=static) as alpha, Host(network.attach("b"), name="beta"):
        alpha.wait_for_peer("beta", PATIENCE)
        with pytest.raises(HostTimeoutError) as raised:
            alpha.wait_for_peer("02:00:00:00:00:77", 0.01)
        assert "hosts seen on a: beta:0 (02:00:00:00:00:02); sent" in str(raised.value)
        assert {each.address for each in alpha.peers()} > {"02:00:00:00:00:77", *static}


@pytest.mark.parametrize(
    ("announcements", "queries", "sent"),
    [
        (0, 0, "0 announcements and 0 host queries"),
        (9, 1, "9 announcements and 1 host query"),
        (1, 2, "1 announcement and 2 host queries"),
    ],
)
@pytest.mark.parametrize("how", ["wait", "connect"])
def test_attempts_are_described_in_words(network, how, announcements, queries, sent):
    # It keeps silent: nothing but this is counted. The counts of both interfaces are added up.
    with Host([network.attach(), network.attach()], name="alpha", announce=False) as host:
        one, two = (each.counters for each in host.core.node.interfaces)
        one[Counter.SEND_RAW] = announcements
        two[Counter.SEND_HOST_QUERY] = queries
        with pytest.raises(HostTimeoutError) as raised:
            host.wait_for_peer("beta", 0.001) if how == "wait" else host.open_endpoint().connect("beta", timeout=0.001)
    assert str(raised.value).endswith(f"; sent {sent}")


@pytest.mark.parametrize(("dialect", "advice"), [("mxoe", "9000"), ("omx:9000", "9000"), ("omx:20000", "19986")])
def test_the_mtu_that_is_advised_is_enough(dialect, advice):
    link = MemoryNetwork(mtu=1500).attach("eth0")
    with pytest.raises(HostError, match=rf"\(ip link set eth0 mtu {advice}\), or use dialect omx:1500 on all hosts"):
        Host(link, dialect=dialect)


def test_a_connect_may_be_refused(pair):
    with pytest.raises(HostError, match="connect beta:0 endpoint 4 failed: remote endpoint closed") as error:
        pair.one.connect("beta", 4, timeout=PATIENCE)
    assert error.value.status is Status.REMOTE_ENDPOINT_CLOSED
    with pytest.raises(HostError, match="bad connection key") as error:
        pair.one.connect("beta", 3, DEFAULT_KEY + 1, timeout=PATIENCE)
    assert error.value.status is Status.REMOTE_ENDPOINT_BAD_CONNECTION_KEY
    with pytest.raises(LocalProtocolError, match="endpoint number 300"):
        pair.one.connect("beta", 300)


def test_endpoints_take_numbers_that_are_free(pair):
    assert [pair.alpha.open_endpoint().number for _ in range(2)] == [1, 2]
    with pytest.raises(MxwireError, match="endpoint 1 of alpha:0 is open already"):
        pair.alpha.open_endpoint(1)
    with pytest.raises(MxwireError, match=r"endpoint .*32 is not"):
        pair.alpha.open_endpoint(32)
    pair.one.close()
    pair.one.close()
    assert pair.alpha.open_endpoint().number == 0


def test_several_interfaces_make_one_host(network):
    other = MemoryNetwork()
    links = network.attach("first"), other.attach("second", b"\2\1\0\0\0\1")
    far = other.attach(address=b"\2\1\0\0\0\2")
    with Host(links, name="both") as both, Host(network.attach(), name="x") as x, Host(far, name="y") as y:
        endpoints = both.open_endpoint(0), both.open_endpoint(0, interface="second")
        for host, endpoint, name in ((x, endpoints[0], "both:0"), (y, endpoints[1], "both:1")):
            near = host.open_endpoint()
            near.send(near.connect(name, 0, timeout=PATIENCE), b"hello", timeout=PATIENCE)
            assert bytes(endpoint.receive(timeout=PATIENCE)) == b"hello"
        with pytest.raises(HostError, match="has no interface third: it has first, second"):
            both.open_endpoint(interface="third")
        with pytest.raises(LocalProtocolError, match="no interface 2"):
            both.open_endpoint(5, interface=2)


@pytest.mark.parametrize("dialect", [MXOE, "omx:1500", omx(9000)])
def test_dialects(dialect):
    network = MemoryNetwork()
    links = network.attach(), network.attach()
    with Host(links[0], name="x", dialect=dialect) as x, Host(links[1], name="y", dialect=dialect) as y:
        one, two = x.open_endpoint(), y.open_endpoint(0)
        request = one.isend(one.connect("y", timeout=PATIENCE), bytes(range(256)) * 1000)
        assert bytes(two.receive(timeout=PATIENCE)) == bytes(range(256)) * 1000
        one.wait(request, PATIENCE)


def test_a_link_must_carry_the_longest_frames_of_the_dialect():
    link = MemoryNetwork(mtu=1500).attach("thin")
    with pytest.raises(HostError, match=r"thin: its MTU of 1500 is too small for dialect mxoe, which needs 4130"):
        Host(link)
    Host(link, dialect="omx:1500").close()
    link = MemoryNetwork(mtu=4130).attach("enough")
    Host(link).close()
    Host(MemoryNetwork(mtu=1500).attach(), small_mtu=True).close()


def test_wrong_options_are_refused(network):
    for options, text in (
        ({"dialect": "latin"}, "no dialect 'latin'"),
        ({"profile": "perfect"}, "no profile 'perfect'"),
        ({"peers": {"nonsense": "x"}}, "is not an Ethernet address"),
    ):
        with pytest.raises(MxwireError, match=text):
            Host(network.attach(), **options)
    with pytest.raises(MxwireError, match="at least one interface"):
        Host([])


@pytest.mark.interpreted("compiled code calls the function directly")
@pytest.mark.parametrize("option", ["sharing", "attachment"])
@pytest.mark.parametrize("kind", [Host, AsyncHost])
def test_state_that_belongs_to_interfaces_is_not_replaced(monkeypatch, kind, option):
    """Not silently: a caller with such state has links of its own."""
    link = MemoryNetwork().attach("a")
    monkeypatch.setattr("mxwire.host.base_host.open_link", lambda *_, **__: link)
    with pytest.raises(MxwireError, match=rf"{option}= is for .* call Host\(links, {option}=…\), or omit it"):
        kind.open(interface_name("o"), **{option: None})
    assert link.fileno() == -1


def test_a_partner_that_vanishes_is_abandoned(network):
    """R-RTX-05: with a limit of two retransmissions, that takes a second and a half."""
    from mxwire.protocol.profile import OPEN_MX_1_5

    links = network.attach(), network.attach()
    hasty = replace(OPEN_MX_1_5, resend_maximum=2)
    events: list[str] = []
    with (
        Host(links[0], name="x", profile=hasty, on_event=lambda event: events.append(str(event.kind))) as x,
        Host(links[1], name="y") as y,
    ):
        one = x.open_endpoint()
        y.open_endpoint(0)
        partner = one.connect("y", timeout=PATIENCE)
        y.core.links[0].up = False
        request = one.issend(partner, b"anybody there?")
        one.send(partner, b"lost")
        with pytest.raises(HostError, match="send y:0 endpoint 0 failed: remote endpoint unreachable"):
            one.wait(request, PATIENCE)
        assert one.undelivered == 1
        one.flush(PATIENCE)  # reports only what is lost while it waits
        assert "partner lost" in events
        # A closed endpoint leaves nothing behind, although events about it were reported.
        session = one.engine.session
        one.close()
        del one, partner, request
        gc.collect()
        assert not [each for each in gc.get_objects() if isinstance(each, EngineEndpoint) and each.session == session]


@without_agent
def test_memory_stays_flat(pair):
    import tracemalloc

    def some(count: int) -> None:
        for number in range(count):
            request = pair.two.ireceive(number, maximum=64)
            pair.one.send(pair.partner, bytes(number % 64), number)
            pair.two.wait(request, PATIENCE)
        pair.one.flush(PATIENCE)

    tracemalloc.start()
    some(1000)
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    some(3000)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 40_000, f"{grown} bytes more after 3000 messages"


HEAP = """
import resource
from mxwire.host import Host
from mxwire.link import MemoryNetwork

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def window():
    [bytearray(32768) for _ in range(64)]

with Host(MemoryNetwork().attach(), background=False):
    window()
    before = faults()
    for _ in range(10):
        window()
    print(faults() - before)
"""


def test_the_memory_of_a_window_stays_with_the_process():
    """A host lets the C library keep the memory of freed messages: without it, each of these windows would cause three
    hundred page faults."""
    done = subprocess.run([sys.executable, "-c", HEAP], capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) < 300


CYCLES = """
import gc
gc.freeze()
import weakref
from mxwire.host import Host
from mxwire.link import MemoryNetwork

class Cycle:
    def __init__(self):
        self.own = self

def cycle():
    return weakref.ref(Cycle())

network = MemoryNetwork()
with Host(network.attach(), background=False):
    pass
print(gc.get_freeze_count() > 0)
gc.unfreeze()
gc.disable()
before = cycle()
with Host(network.attach(), background=False):
    during = cycle()
    with Host(network.attach(), background=False):
        pass
    gc.collect()
    print(before() is None, during() is None)
gc.collect()
print(before() is None)
"""


def test_older_objects_are_not_searched_for_cycles_while_a_host_is_open():
    """A search of all imported objects would delay one window of messages in some thousand by 10 to 20 ms. Objects
    that the application has exempted itself, before it imports mxwire, stay so."""
    done = subprocess.run([sys.executable, "-c", CYCLES], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["True", "False", "True", "True"]


DROPPED = """
import gc
from mxwire.errors import MxwireError
from mxwire.host import Host
from mxwire.link import MemoryNetwork

network = MemoryNetwork()
frozen = gc.get_freeze_count()
host = Host(network.attach(), background=False)
endpoint = host.open_endpoint(0)
print(gc.get_freeze_count() > frozen)
del host, endpoint
gc.collect()
print(gc.get_freeze_count() > frozen)
try:
    Host(network.attach(), background=False, name="x" * 1000)
except MxwireError:
    print(gc.get_freeze_count() > frozen)
"""


def test_a_host_that_is_dropped_or_refused_does_not_keep_objects_from_garbage_collection():
    done = subprocess.run([sys.executable, "-c", DROPPED], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["True", "False", "False"]

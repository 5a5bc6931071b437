"""Questions that other hosts answer by themselves: surveys and pings, on a network in memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import pytest

from mxwire.frames import FrameBatch
from mxwire.host import Host
from mxwire.host.control_frames import NO_ENDPOINT, dialect_answer, dialect_query
from mxwire.host.ping import ConnectMethod, HostQueryMethod, Pinger, PingStatistics
from mxwire.host.survey import Survey, SurveyedHost
from mxwire.link import LinkWrapper
from mxwire.protocol import Peer, profile_by_name
from mxwire.wire.codec import Malformed, codec_of
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import dialect_by_name
from mxwire.wire.enums import PacketType
from mxwire.wire.numbers import HOST_QUERY_MAGIC
from mxwire.wire.packets import Announcement, NackMcp, Pull
from tests.frames import make_frame

from .conftest import PATIENCE

DIALECTS = ["mxoe", "omx:1500", "omx:9000"]
OWN = bytes.fromhex("020000000001")


def surveyed(host: Host, **options) -> list[SurveyedHost]:
    """The hosts, once one has answered everything."""
    survey = Survey(host, **options)
    try:
        for hosts in survey.rounds(PATIENCE, every=0.05):
            if any(each.complete and ("length" not in options or each.long_frames) for each in hosts):
                return hosts
        raise AssertionError(hosts)
    finally:
        survey.close()
        assert not host.core.observers


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("profile", ["open-mx", "open-mx-1.5-as-found", "native-mx"])
def test_a_host_is_found_with_name_index_and_dialect(network, dialect, profile):
    with (
        Host(network.attach(), name="alpha", dialect=dialect, profile=profile) as alpha,
        Host(network.attach(), name="beta", background=False) as beta,
    ):
        [found] = surveyed(beta)
        assert (found.address, found.name) == (alpha.addresses[0], "alpha:0")
        assert found.dialect == dialect.partition(":")[0]
        assert found.index == next(each.index for each in alpha.peers() if each.name == "beta:0")
        assert found.our_index == next(each.index for each in beta.peers() if each.name == "alpha:0")
        assert found.answer_ns is not None and 0 < found.answers <= found.queries


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("asking", ["questions", "frames"])
def test_frames_of_a_large_message_show_the_frame_limit(network, dialect, asking):
    with (
        Host(network.attach(), name="alpha", dialect=dialect) as alpha,
        Host(network.attach(), name="beta", dialect=dialect, background=False) as beta,
    ):
        received = beta.open_endpoint(0).ireceive(maximum=1_000_000)
        survey = Survey(beta, ask_dialect=asking == "questions")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(_send_large, alpha, beta.addresses[0])
            rounds = survey.rounds(PATIENCE, every=0.05)
            [found] = next(each for each in rounds if received.done)
        assert found.dialect == dialect
        survey.close()


def test_a_short_survey_queries_once(network):
    with Host(network.attach(), name="alpha", background=False) as alpha:
        survey = Survey(alpha)
        assert list(survey.rounds(0.1, every=1)) == [[]]
        survey.close()


def _send_large(host: Host, address: str) -> None:
    endpoint = host.open_endpoint(0)
    endpoint.isend(endpoint.connect(address, 0, timeout=PATIENCE), bytes(1_000_000))


def test_a_host_whose_answer_contradicts_its_frames_is_reported_by_its_answer(network):
    with (
        Host(network.attach(), name="alpha", dialect="mxoe") as alpha,
        Host(network.attach(), name="beta", background=False) as beta,
    ):
        survey = Survey(beta)
        address = bytes.fromhex(alpha.addresses[0].replace(":", ""))
        pull = dialect_pull(address, "omx:9000")
        survey.observe(FrameBatch.from_frames([pull]))
        rounds = survey.rounds(PATIENCE, every=0.05)
        assert next(each for each in rounds if each and each[0].complete)[0].dialect == "mxoe"
        survey.close()


def dialect_pull(source: bytes, dialect: str) -> bytes:
    """The first PULL for a long message in a dialect."""
    codec = codec_of(dialect_by_name(dialect))
    return codec.build(
        make_frame(
            Pull,
            dst_mac=OWN,
            src_mac=source,
            dst_src_peer_index=1,
            total_length=1_000_000,
            block_length=dialect_by_name(dialect).block_length,
        )
    )


def test_nothing_but_names_is_asked_where_that_is_not_wanted(network):
    with Host(network.attach(), name="alpha"), Host(network.attach(), name="beta", background=False) as beta:
        survey = Survey(beta, ask_dialect=False)
        found = next(each for each in survey.rounds(PATIENCE, every=0.05) if each and each[0].answers > 2)
        assert found[0].name == "alpha:0" and found[0].dialect is None


class LateNames(LinkWrapper):
    """A link past which the engine's own queries for names get no answer."""

    def receive(self, timeout: float | None = 0.0) -> FrameBatch:
        taken, magic = self.link.receive(timeout), HOST_QUERY_MAGIC.to_bytes(4, "big")
        frames = [taken.frame(place) for place in range(len(taken))]
        return FrameBatch.from_frames(
            [each for each in frames if not (each[16] == PacketType.HOST_REPLY and magic in each)]
        )


def test_the_name_in_an_answer_is_enough(network):
    """Processes of one interface query for names together, once in 5 s: a survey does not wait for that."""
    with (
        Host(network.attach(), name="alpha"),
        Host(LateNames(network.attach()), name="beta", background=False) as beta,
    ):
        assert surveyed(beta)[0].name == "alpha:0"
        assert [each.name for each in beta.peers() if each.name != "beta:0"] == [None]


def test_a_quiet_host_is_found_by_the_hosts_that_it_queries(network):
    beta_link, alpha_link = network.attach(), network.attach()
    with (
        Host(beta_link, name="beta", background=False) as beta,
        Host(alpha_link, name="alpha", announce=False, peers={beta_link.address: None}),
    ):
        [found] = surveyed(beta)
        assert found.name == "alpha:0" and not found.announced


def test_a_quiet_survey_sees_announcements_but_gets_no_name(network):
    with (
        Host(network.attach(), name="alpha") as alpha,
        Host(network.attach(), name="beta", announce=False, background=False) as beta,
    ):
        survey = Survey(beta)
        found = next(each for each in survey.rounds(PATIENCE, every=0.05) if each and each[0].queries > 2)
        assert [(each.address, each.name, each.announced) for each in found] == [(alpha.addresses[0], None, True)]
        assert found[0].heard


def test_a_host_known_beforehand_is_heard_with_its_first_frame(network):
    silent = "02:00:00:00:00:99"
    with (
        Host(network.attach(), name="alpha") as alpha,
        Host(
            network.attach(), name="beta", background=False, peers={silent: "gamma", alpha.addresses[0]: None}
        ) as beta,
    ):
        survey = Survey(beta)
        found = next(each for each in survey.rounds(PATIENCE, every=0.05) if any(one.heard for one in each))
        assert {each.name: each.heard for each in found} == {"gamma:0": False, "alpha:0": True}


def test_long_frames_that_do_not_pass_are_noticed(network):
    with Host(network.attach(), name="alpha"), Host(network.attach(), name="beta", background=False) as beta:
        assert surveyed(beta, length=9014)[0].long_frames is True
    with Host(network.attach(), name="gamma"), Host(network.attach(), name="delta", background=False) as delta:
        survey = Survey(delta, length=9015)
        rounds = survey.rounds(PATIENCE, every=0.05)
        assert next(each for each in rounds if each and each[0].long_frames is not None)[0].long_frames is False
        assert [each[0].long_frames for each in islice(rounds, 3)] == [False] * 3


def test_a_duplicate_address_is_noticed(network):
    link = network.attach()
    with Host(link, name="beta", background=False) as beta:
        survey = Survey(beta)
        frame = Announcement(dst_mac=b"\xff" * 6, src_mac=link.address, nic_id_hi=0x0200, nic_id_lo=1, serial=7)
        network.attach().send(FrameBatch.from_frames([codec_of(dialect_by_name("mxoe")).build(frame)]))
        next(iter(survey.rounds(PATIENCE, every=0.05)))
        assert (survey.impostors, survey.echoes) == (1, 0)


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("length", [0, 1514])
def test_the_question_is_a_legal_pull_in_every_dialect(name, length):
    """Each dialect reads a handle of its own out of the one frame, and the same magic."""
    codec = codec_of(dialect_by_name(name))
    frame = dialect_query(OWN, Peer(1, b"\2" * 6), length)
    pull = codec.parse(frame)
    assert isinstance(pull, Pull) and pull.dst_endpoint == NO_ENDPOINT and pull.block_length == 1
    assert len(frame) >= length
    nack = make_frame(
        NackMcp,
        dst_mac=OWN,
        src_mac=b"\2" * 6,
        src_endpoint=NO_ENDPOINT,
        nack_type=1,
        src_pull_handle=pull.src_pull_handle,
        src_magic=pull.src_magic,
    )
    answer = codec.parse(codec.build(nack))
    assert not isinstance(answer, Malformed) and isinstance(answer, NackMcp)
    assert dialect_answer(answer) == (name.partition(":")[0], length > 0)


@pytest.mark.parametrize("length", [0, 1514, 4144, 9000])
def test_the_query_does_not_mislead_readers_of_a_capture(length):
    decoder = Decoder()
    decoder.decode(FrameBatch.from_frames([dialect_query(OWN, Peer(1, b"\2" * 6), length)]))
    assert [each.dialect for each in decoder.detections()] == [None]


@pytest.fixture
def two(network):
    """alpha, with endpoint 3 and key 7 open; beta, which asks, and alpha as its peer."""
    with (
        Host(network.attach(), name="alpha") as alpha,
        Host(network.attach(), name="beta", background=False) as beta,
    ):
        alpha.open_endpoint(3, 7)
        yield alpha, beta, beta.wait_for_peer("alpha", PATIENCE)


def test_queries_are_answered_in_turn(two):
    pinging = Pinger(two[1], HostQueryMethod(two[1], two[2]))
    outcomes = list(pinging.run(5, 0.0, PATIENCE))
    assert [each.sequence for each in outcomes] == [1, 2, 3, 4, 5]
    assert all(each.nanoseconds is not None and not each.duplicate for each in outcomes)
    statistics = pinging.statistics
    assert (statistics.sent, statistics.answered, statistics.loss) == (5, 5, 0)
    times = statistics.times()
    assert times is not None and times.minimum <= times.median <= times.percentile_99 <= times.maximum


def test_connects_are_answered_by_the_endpoint(two):
    connects = ConnectMethod(two[1].open_endpoint(), two[2], 3, 7)
    outcomes = list(Pinger(two[1], connects).run(5, 0.01, PATIENCE))
    assert sorted(each.sequence for each in outcomes) == [1, 2, 3, 4, 5]
    assert all(each.nanoseconds is not None for each in outcomes)


@pytest.mark.parametrize(("number", "key", "why"), [(4, 7, "closed"), (3, 8, "key"), (77, 7, "id")])
def test_a_refusal_is_an_answer_of_its_kind(two, number, key, why):
    pinging = Pinger(two[1], ConnectMethod(two[1].open_endpoint(), two[2], number, key))
    [outcome] = pinging.run(1, 1.0, PATIENCE)
    assert outcome.nanoseconds is None and outcome.refusal is not None and why in outcome.refusal
    assert (pinging.statistics.answered, pinging.statistics.refused, pinging.statistics.loss) == (0, 1, 0)


@pytest.mark.parametrize("kind", ["query", "connect"])
def test_silence_is_loss(two, kind):
    alpha, beta, peer = two
    asker = HostQueryMethod(beta, peer) if kind == "query" else ConnectMethod(beta.open_endpoint(), peer, 3, 7)
    pinging = Pinger(beta, asker)
    alpha.close()
    outcomes = list(pinging.run(3, 0.0, 0.05))
    assert [(each.sequence, each.nanoseconds, each.refusal) for each in outcomes] == [
        (n, None, None) for n in (1, 2, 3)
    ]
    assert pinging.statistics.loss == 1 and pinging.statistics.times() is None
    pinging.close()


def test_it_may_be_left_at_any_time_and_knows_its_statistics(two):
    pinging = Pinger(two[1], HostQueryMethod(two[1], two[2]))
    assert len(list(islice(pinging.run(None, 0.0, PATIENCE), 7))) == 7
    pinging.close()
    assert pinging.statistics.answered == 7


def test_a_second_answer_is_a_duplicate(network):
    """A hub that two hosts of one address share: both answer."""
    link, repeated = network.attach("one"), []
    real = link.send_few
    # Before the host is opened, which keeps the method.
    link.send_few = lambda frames: real(frames) + sum(map(real, [frames] * len(repeated)))  # type: ignore[method-assign]
    with Host(link, name="alpha"), Host(network.attach("two"), name="beta", background=False) as beta:
        peer = beta.wait_for_peer("alpha", PATIENCE)
        repeated.append("from now on")
        pinging = Pinger(beta, HostQueryMethod(beta, peer))
        outcomes = list(islice(pinging.run(None, 0.0, PATIENCE), 4))
        assert [each.sequence for each in outcomes if not each.duplicate] == [1, 2]
        assert pinging.statistics.duplicates == 2


def test_a_profile_that_repeats_no_index_is_pinged_as_well(network):
    profile = profile_by_name("native-mx")
    with (
        Host(network.attach(), name="alpha", profile=profile),
        Host(network.attach(), name="beta", background=False) as beta,
    ):
        pinging = Pinger(beta, HostQueryMethod(beta, beta.wait_for_peer("alpha", PATIENCE)))
        assert all(each.nanoseconds is not None for each in pinging.run(2, 0.0, PATIENCE))


def test_statistics_are_those_of_ping():
    trips = PingStatistics()
    trips.sent = 5
    for each in (2, 4, 4, 6):
        trips.add(each)
    times = trips.times()
    assert times is not None
    assert (times.minimum, times.average, times.maximum, times.deviation) == (2, 4.0, 6, 2**0.5)
    assert (times.median, times.percentile_99, trips.loss) == (4, 6, pytest.approx(0.2))


def test_sources_without_a_place_in_the_peer_table_are_not_noted(network):
    link = network.attach()
    with Host(network.attach(), name="beta", background=False) as beta:
        survey = Survey(beta)
        frame = Announcement(dst_mac=b"\xff" * 6, src_mac=link.address, nic_id_hi=0x0200, nic_id_lo=1, serial=7)
        raw = codec_of(dialect_by_name("mxoe")).build(frame)
        rounds = survey.rounds(PATIENCE, every=0.0)
        next(rounds)
        for first in range(0, 5000, 500):
            sources = [b"\2\7" + number.to_bytes(4, "big") for number in range(first, first + 500)]
            link.send(FrameBatch.from_frames([raw[:6] + each + raw[12:] for each in sources]))
            next(rounds)
        most = beta.core.node.peers.maximum
        assert len(survey.hosts()) == most - 1
        assert len(survey._notes) <= 2 * most

"""For each diagnosis, a play in which it is correct and a similar play in which it would be wrong.

A play that has further findings names them. The plays of diagnoses that no real capture shows are also the examples of
the documentation; ``python -m tests.analysis.diagnosis.write`` saves them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from mxwire.ethernet import BROADCAST
from mxwire.wire.dialect import MXOE, Dialect, omx
from mxwire.wire.packets import Raw

from .scene import RESEND_MS, Scene

Play = Callable[[Scene], None]
SMALL_FRAMES = omx(256)
"""Frames of 256 bytes: large messages of many blocks stay small captures."""
UNKNOWN = 0xFFFFFFFF


@dataclass(frozen=True)
class Case:
    id: str
    play: Play
    dialect: Dialect = MXOE
    others: frozenset[str] = field(default_factory=frozenset)
    """Other findings that are right."""

    def scene(self) -> Scene:
        made = Scene(self.dialect)
        self.play(made)
        return made


SHOWS: dict[str, Case] = {}
"""By id: it must be found."""
MISSES: dict[str, Case] = {}
"""By id: it must not be found."""

MORE: list[Case] = []
"""Variants of the plays, in which the diagnosis must be found as well."""
QUIET: list[Case] = []
"""Further plays that look faulty but are harmless: only the findings that they name may be reported."""


def registrar(keep: Callable[[Case], object]) -> Callable[..., Callable[[Play], Play]]:
    """A decorator that keeps a play as a case: of a name, with other findings, in a dialect."""

    def decorate(name: str, *others: str, dialect: Dialect = MXOE) -> Callable[[Play], Play]:
        def register(play: Play) -> Play:
            keep(Case(name, play, dialect, frozenset(others)))
            return play

        return register

    return decorate


shows = registrar(lambda case: SHOWS.setdefault(case.id, case))
misses = registrar(lambda case: MISSES.setdefault(case.id, case))
also = registrar(MORE.append)
quiet = partial(registrar(QUIET.append), "nothing")


# How hosts were built


def mediums(on: Scene, side, dialect: Dialect, length: int = 600, transmissions: int = 1) -> None:
    on.dialect = dialect
    count = -(-length // dialect.fragment_payload)
    fragments = [side.medium(length, place) for place in range(count)]
    on.send(*fragments)
    on.again(*fragments, times=transmissions - 1)


@shows("dialect-mismatch")
def one_build_compatible_with_mx(on):
    on.connect()
    mediums(on, on.a, MXOE, transmissions=3)
    mediums(on, on.b, omx(9000), transmissions=3)


@misses("dialect-mismatch")
def two_native_builds(on):
    on.connect()
    mediums(on, on.a, omx(9000))
    mediums(on, on.b, omx(9000))
    on.send(on.a.liback())


@shows("generation-mismatch")
def old_and_new_native_builds(on):
    on.connect()
    mediums(on, on.a, omx(9000), transmissions=3)
    mediums(on, on.b, omx(9000, "N3"), transmissions=3)


@misses("generation-mismatch")
def two_old_native_builds(on):
    on.connect()
    mediums(on, on.a, omx(9000, "N3"))
    mediums(on, on.b, omx(9000, "N3"))
    on.send(on.a.liback())


def pulls(on: Scene, owner, puller, dialect: Dialect, total: int) -> None:
    on.dialect = dialect
    on.send(owner.rndv(total), *(puller.pull(total, block) for block in range(4)), puller.liback())
    puller.handle += 1


@shows("frame-limit-mismatch")
def frames_of_1500_and_9000_bytes(on):
    on.connect()
    pulls(on, on.a, on.b, omx(1500), 500_000)
    pulls(on, on.b, on.a, omx(9000), 2_000_000)


@misses("frame-limit-mismatch")
def frames_of_9000_bytes(on):
    on.connect()
    pulls(on, on.a, on.b, omx(9000), 2_000_000)
    pulls(on, on.b, on.a, omx(9000), 2_000_000)


@shows("byte-order-mismatch")
def one_host_without_the_option(on):
    on.swapped.add(on.b.mac)
    on.again(on.a.query(), on.b.query(), times=3, every_ms=5000)


@misses("byte-order-mismatch")
def both_hosts_without_the_option(on):
    on.swapped |= {on.a.mac, on.b.mac}
    on.send(on.a.query(), on.b.name(), on.b.query(), on.a.name(hostname=b"other:0\0"))


# The path


def with_type(raw: bytes, ethertype: int) -> bytes:
    return raw[:12] + ethertype.to_bytes(2, "big") + raw[14:]


@shows("ethertype-changed")
def mxoe_as_86dd(on):
    on.connect().send(on.a.rndv(8), on.b.pull(8), on.a.data(8, 0), on.b.notify(8), on.a.liback())
    on.frames = [with_type(each, 0x86DD) for each in on.frames]
    on.send(on.a.announcement(), on.b.announcement())


@misses("ethertype-changed")
def real_version_6_of_ip(on):
    on.connect()
    for number in range(40):
        body = bytes([0x60, 0, 0, 0, 0, 40, 58, 255]) + bytes((number * place) & 0xFF for place in range(80))
        on.send_bytes(on.b.mac + on.a.mac + b"\x86\xdd" + body)


def ip(on: Scene, source, destination, count: int) -> None:
    for number in range(count):
        on.send_bytes(destination.mac + source.mac + b"\x08\0" + bytes([0x45, 0, 0, 84, 0, number]) + bytes(78), 200)


@shows("ethertype-filtered")
def ping_works_and_mxoe_does_not(on):
    request = on.a.request()
    on.send(request)
    on.again(request, times=2)
    ip(on, on.b, on.a, 4)
    on.again(request, times=3)


@misses("ethertype-filtered", "mute-peer")
def nothing_comes_at_all(on):
    request = on.a.request()
    on.send(request)
    ip(on, on.a, on.b, 4)
    on.again(request, times=5)


@shows("mtu-too-small")
def frames_above_1500_bytes_vanish(on):
    on.connect().send(on.a.small(), on.b.liback())
    mediums(on, on.a, MXOE, 1200)
    on.send(on.b.liback())
    fragments = [on.a.medium(3000, 0)]
    on.send(*fragments)
    for _ in range(5):
        on.again(*fragments, times=1)
        on.b.expected = 3
        on.send(on.b.tiny())


@also("mtu-too-small")
def replies_vanish_and_shorter_fragments_pass(on):
    """Captured before the place that drops the frames, of a host whose fragments are shorter than its replies
    (R-MED-02).
    """
    on.connect()
    short = {"frag_pipeline": 11, "frag_length": 2048, "data": bytes(2048)}
    on.send(*(on.a.medium(6144, place, **short) for place in range(3)), on.b.liback())
    total = 36_863
    blocks = [on.a.rndv(total), on.b.liback(), on.b.pull(total, 0), on.b.pull(total, 1)]
    on.send(*blocks, *(on.a.data(total, place) for place in range(9)))
    # The last reply is a short one, and arrives: the first block is re-requested at once (R-PUL-07).
    on.send(on.b.pull(total, 0), *(on.a.data(total, place) for place in range(8)), after_ms=0.1)
    for _ in range(3):
        on.send(on.b.pull(total, 0), after_ms=1004)
        on.send(*(on.a.data(total, place) for place in range(8)), after_ms=0.1)


@also("mtu-too-small")
def a_number_never_comes_and_later_ones_do(on):
    """Captured behind the place that drops long frames; the waiting host sends many other frames."""
    on.connect().send(on.a.small(), on.b.liback())
    on.a.next += 1
    waiting = [on.a.tiny(), on.a.small()]
    on.b.expected = 2
    on.send(*waiting)
    on.again(*waiting, times=6)


@misses("mtu-too-small", "frames-lost")
def a_long_frame_is_lost_and_repeated(on):
    on.connect()
    fragments = [on.a.medium(3000, 0)]
    on.send(*fragments)
    for _ in range(3):
        on.b.expected = 1
        on.send(on.b.tiny())
        on.again(*fragments, times=1)
    on.b.expected = 2
    on.send(on.b.liback())


@also("partner-abandoned")
def counting_begins_anew_and_goes_on(on):
    """The same numbers once more, after later ones, and all in order."""
    on.connect()
    messages = [on.a.tiny() for _ in range(3)]
    on.send(*messages)
    on.b.expected = 1
    for _ in range(4):
        on.wait(504)
        on.send(on.b.small())
        on.again(*messages, times=1, every_ms=0.1)
    on.a.expected, on.a.next, on.b.next = 0x70F1, 1, 0x70F1
    on.send(on.a.request(), on.b.reply(), on.b.request(), on.a.reply())
    for _ in range(3):
        on.send(on.a.tiny(b"something else"), on.b.liback(), after_ms=700)


# Peers


@shows("mute-peer")
def nobody_answers_connects(on):
    request = on.a.request()
    on.send(request)
    on.again(request, times=6)


@misses("mute-peer")
def the_third_connect_is_answered(on):
    request = on.a.request()
    on.send(request)
    on.again(request, times=2)
    on.send(on.b.reply())


@shows("discovery-incomplete")
def who_announces_itself_tells_no_name(on):
    on.send(on.a.announcement(), on.b.announcement())
    on.again(on.a.query(), times=4, every_ms=5000)


@misses("discovery-incomplete")
def the_second_query_is_answered(on):
    on.send(on.a.announcement(), on.b.announcement(), on.a.query())
    on.send(on.a.query(), after_ms=5000)
    on.send(on.b.name())


@shows("name-not-reported")
def who_talks_never_tells_its_name(on):
    on.connect()
    for _ in range(4):
        on.send(on.a.tiny(), on.b.liback())
        on.send(on.a.query(), after_ms=5000)


@misses("name-not-reported")
def who_talks_tells_its_name_late(on):
    on.connect()
    for _ in range(4):
        on.send(on.a.tiny(), on.b.liback())
        on.send(on.a.query(), after_ms=5000)
    on.send(on.b.name())


@shows("mixed-discovery-daemons")
def omxoed_and_another_one(on):
    other = on.host(0x0C)
    for number in range(3):
        on.send(on.a.announcement(), on.b.announcement())
        on.send(Raw(dst_mac=BROADCAST, src_mac=other.mac, opaque=bytes([1, number]) * 60), after_ms=900)


@misses("mixed-discovery-daemons")
def omxoed_everywhere(on):
    other = on.host(0x0C)
    on.send(on.a.announcement(), on.b.announcement(), other.announcement())


@shows("duplicate-mac")
def two_machines_with_one_address(on):
    for serial in (0x1111, 0x2222, 0x1111, 0x2222):
        on.send(on.b.announcement(serial=serial), after_ms=500)


@misses("duplicate-mac")
def a_daemon_is_restarted(on):
    for serial in (0x1111, 0x1111, 0x2222, 0x2222):
        on.send(on.b.announcement(serial=serial), after_ms=500)


@shows("duplicate-name")
def two_hosts_with_one_name(on):
    other = on.host(0x0C)
    other.peer = on.a
    on.send(on.a.query(), on.b.name(), on.a.query(dst_mac=other.mac, src_dst_peer_index=2), other.name())


@misses("duplicate-name")
def two_interfaces_of_a_host(on):
    other = on.host(0x0C)
    other.peer = on.a
    on.send(
        on.a.query(), on.b.name(), on.a.query(dst_mac=other.mac, src_dst_peer_index=2), other.name(hostname=b"node:1\0")
    )


@shows("stale-peer-index")
def the_old_index_after_a_new_one(on):
    on.connect().send(on.a.tiny(), on.b.liback())
    on.send(on.b.query(src_dst_peer_index=9))
    message = on.a.tiny(dst_src_peer_index=3)
    on.send(message, after_ms=100)
    on.again(message, times=4)


@misses("stale-peer-index")
def the_new_index_after_a_new_one(on):
    on.connect().send(on.a.tiny(), on.b.liback())
    on.send(on.b.query(src_dst_peer_index=9), on.a.name())
    on.wait(100)
    for _ in range(4):
        on.send(on.a.tiny(), on.b.liback(), after_ms=20)


@shows("peer-index-reused")
def two_hosts_are_told_one_index(on):
    other = on.host(0x0C, index=1)
    on.connect()
    on.b.peer = other
    on.send(on.b.query(src_dst_peer_index=3), other.name(), on.a.tiny())


@misses("peer-index-reused")
def both_are_told_anew(on):
    other = on.host(0x0C, index=1)
    on.connect()
    on.b.peer = other
    on.send(on.b.query(src_dst_peer_index=3), other.name())
    on.b.peer = on.a
    on.send(on.b.query(src_dst_peer_index=4), on.a.name(hostname=b"other:0\0"))


# Connections


@shows("endpoint-closed")
def a_message_to_a_closed_endpoint(on):
    on.connect().send(on.a.tiny(), on.b.nack(2, 1))


@misses("endpoint-closed")
def a_notify_to_an_endpoint_that_has_ended(on):
    on.connect().large(8)
    number = on.b.next - 1
    on.send(on.a.nack(2, number))


@shows("endpoint-out-of-range")
def a_connect_to_endpoint_40(on):
    on.b.endpoint = 40
    on.send(on.a.request(), on.b.nack(1, 0))


@misses("endpoint-out-of-range", "endpoint-closed")
def a_connect_to_a_closed_endpoint(on):
    on.send(on.a.request(), on.b.nack(2, 0))


def many_endpoints(on: Scene, count: int) -> None:
    for endpoint in range(count):
        on.b.endpoint, on.b.session = endpoint, 0x7000 + endpoint
        on.b.connects = on.a.connects = 0
        on.connect()


@shows("endpoints-exhausted")
def thirty_two_endpoints(on):
    many_endpoints(on, 32)


@misses("endpoints-exhausted")
def thirty_one_endpoints(on):
    many_endpoints(on, 31)


@shows("wrong-key")
def a_key_that_does_not_fit(on):
    on.send(on.a.request(app_key=0xDEADBEEF), on.b.reply(connect_status_code=11))


@misses("wrong-key")
def a_key_that_fits(on):
    on.connect()


def one_way_large(on: Scene, notifies: int = 3):
    """A large message from a to b, acknowledged to a session that a does not know."""
    on.send(on.a.request(), on.b.reply(), on.a.rndv(8), on.b.pull(8), on.a.data(8, 0))
    notify = on.b.notify(8)
    on.send(notify, on.a.liback(session=UNKNOWN, liback_session_id=UNKNOWN))
    on.again(notify, times=notifies - 1)


@shows("no-reverse-connect")
def nobody_connects_back(on):
    one_way_large(on)


@misses("no-reverse-connect", "late-reverse-connect")
def somebody_connects_back_in_the_end(on):
    one_way_large(on, notifies=1)
    notify = on.b.notify(8, lib_seqnum=1, lib_piggyack=2, pulled_rdma_seqnum=23)
    on.send(on.b.request(), on.a.reply())
    on.again(notify, times=1)
    on.send(on.a.liback())


@shows("late-reverse-connect")
def the_server_connects_after_its_notify(on):
    somebody_connects_back_in_the_end(on)


@misses("late-reverse-connect")
def the_server_connects_first(on):
    on.connect().large(8)
    on.send(on.a.liback())


@shows("session-changed")
def messages_for_a_former_process(on):
    on.connect().send(on.a.tiny(), on.b.liback())
    for number in (2, 3):
        on.send(on.a.tiny(), on.b.nack(3, number))


@misses("session-changed", "no-reverse-connect")
def pulls_without_a_session(on):
    on.send(on.a.request(), on.b.reply(), on.b.rndv(8), on.a.pull(8, session=UNKNOWN), on.b.nack_pull(3))


@shows("session-number-differs", "receiver-not-progressing")
def upper_bits_that_are_forgotten(on):
    on.b.expected = 0x4001
    on.connect()
    message = on.a.tiny(lib_seqnum=1, lib_piggyack=1)
    on.send(message, after_ms=100)
    on.again(message, times=4)


@misses("session-number-differs")
def upper_bits_that_are_kept(on):
    on.b.expected = 0x4001
    on.connect()
    on.wait(100)
    on.a.next, on.b.expected = 0x4001, 0x4001
    for _ in range(4):
        on.send(on.a.tiny(), on.b.liback())


# Processes


@shows("receiver-not-progressing")
def a_process_is_stopped_for_three_seconds(on):
    on.connect()
    messages = on.a.tiny(), on.a.small()
    on.send(*messages, after_ms=300)
    on.again(*messages, times=5)
    on.wait(250)
    on.send(on.b.liback())


@misses("receiver-not-progressing")
def a_process_is_away_for_half_a_second(on):
    on.connect()
    messages = on.a.tiny(), on.a.small()
    on.send(*messages, after_ms=300)
    on.again(*messages, times=1)
    on.wait(250)
    on.send(on.b.liback())


@shows("resend-limit-near", "receiver-not-progressing")
def half_of_all_transmissions(on):
    on.connect()
    message = on.a.tiny()
    on.send(message)
    on.again(message, times=510)


@misses("resend-limit-near", "receiver-not-progressing")
def a_third_of_all_transmissions(on):
    on.connect()
    message = on.a.tiny()
    on.send(message)
    on.again(message, times=330)


@shows("partner-abandoned")
def a_connect_after_giving_up(on):
    on.connect()
    on.send(on.a.request(target_recv_seqnum_start=0x70F1), on.b.reply())


@misses("partner-abandoned")
def a_connect_after_a_restart(on):
    on.connect()
    on.a.session += 1
    on.a.connects, on.a.expected = 0, 1
    on.send(on.a.request(), on.b.reply())


TRANSFER = 8 * SMALL_FRAMES.block_length
"""Eight blocks of 32 replies."""


def pulled(on: Scene, blocks: Iterable[int], *, leave_out: frozenset[int] = frozenset()) -> None:
    """Blocks of the large message of a, requested and served, without the replies of some numbers."""
    for block in blocks:
        on.send(on.b.pull(TRANSFER, block), after_ms=0.1)
        first = block * SMALL_FRAMES.frames_per_block
        for place in range(first, first + SMALL_FRAMES.frames_per_block):
            if place not in leave_out:
                on.send(on.a.data(TRANSFER, place), after_ms=0.003)


def finished(on: Scene) -> None:
    on.send(on.b.notify(TRANSFER), on.a.liback())


@shows("zombie-pull", dialect=SMALL_FRAMES)
def blocks_that_nobody_takes(on):
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    pulled(on, range(6))
    for _ in range(3):
        on.wait(1004)
        pulled(on, range(2, 6))


@misses("zombie-pull", "frames-lost", dialect=SMALL_FRAMES)
def blocks_that_are_asked_for_once_more(on):
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    pulled(on, range(6))
    on.wait(1004)
    pulled(on, range(2, 8))
    finished(on)


@shows("pull-stopped", dialect=SMALL_FRAMES)
def a_pull_ends_in_the_middle_and_the_process_is_started_again(on):
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    pulled(on, range(4))
    on.wait(8000)
    on.b.reopen()
    on.send(on.b.request(), on.a.reply())


@misses("pull-stopped", dialect=SMALL_FRAMES)
def a_capture_ends_in_the_middle_of_a_pull(on):
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    pulled(on, range(4))
    on.wait(2000)
    on.send(on.a.tiny(), on.b.liback())


@shows("nack-storm", "endpoint-closed")
def sixty_nacks_in_a_second(on):
    on.connect()
    for number in range(1, 61):
        on.send(on.a.tiny(), on.b.nack(2, number), after_ms=0.2)


@misses("nack-storm", "endpoint-closed")
def twenty_nacks_in_a_second(on):
    on.connect()
    for number in range(1, 21):
        on.send(on.a.tiny(), on.b.nack(2, number), after_ms=0.2)


# The network


@shows("frames-lost")
def a_message_is_lost(on):
    on.connect()
    for _ in range(2):
        message = on.a.tiny()
        on.b.expected -= 1
        on.send(message, on.b.tiny(), after_ms=5)
        on.again(message, times=1)
        on.b.expected += 1
        on.send(on.b.liback(), on.a.liback())


@misses("frames-lost")
def a_message_waits_for_its_receiver(on):
    on.connect()
    message = on.a.tiny()
    on.send(message, after_ms=200)
    on.again(message, times=1)
    on.wait(200)
    on.send(on.b.liback())


@quiet()
def a_slow_receiver_has_a_message_all_along(on):
    """Its ack follows the transmission by more than a second, and crosses a retransmission; it spoke in between."""
    on.connect()
    message = on.a.tiny()
    on.send(message)
    on.wait(300)
    on.send(on.b.liback())
    on.wait(200)
    message = on.a.tiny()
    on.send(message)
    on.wait(700)
    on.send(on.b.liback())
    on.send(message, after_ms=90)
    on.wait(300)
    on.send(on.b.liback())


@shows("tail-loss", "frames-lost", dialect=SMALL_FRAMES)
def the_last_reply_is_lost(on):
    last = TRANSFER // SMALL_FRAMES.reply_payload - 1
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    pulled(on, range(8), leave_out=frozenset({last}))
    on.wait(1004)
    pulled(on, range(7, 8))
    finished(on)


@misses("tail-loss", "frames-lost", dialect=SMALL_FRAMES)
def a_reply_in_the_middle_is_lost(on):
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    pulled(on, range(8), leave_out=frozenset({70}))
    on.wait(2)
    pulled(on, range(2, 3))
    finished(on)


@shows("burst-loss", "frames-lost", dialect=SMALL_FRAMES)
def twelve_replies_in_a_row_are_lost(on):
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    pulled(on, range(8), leave_out=frozenset(range(80, 92)) | frozenset(range(140, 152)))
    on.wait(2)
    pulled(on, range(2, 3))
    pulled(on, range(4, 5))
    finished(on)


@misses("burst-loss", "frames-lost", dialect=SMALL_FRAMES)
def three_replies_here_and_there_are_lost(on):
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    pulled(on, range(8), leave_out=frozenset({80, 85, 91, 140}))
    on.wait(2)
    pulled(on, range(2, 3))
    pulled(on, range(4, 5))
    finished(on)


@shows("frames-out-of-order")
def the_first_of_five_comes_last(on):
    on.connect()
    first, *others = [on.a.tiny(bytes([number])) for number in range(5)]
    on.send(*others, after_ms=0.1)
    on.send(first, after_ms=3)
    on.b.expected = 3
    on.send(on.b.liback())
    for expected, message in ((3, others[0]), (5, others[1]), (5, others[2]), (6, others[3])):
        on.again(message, times=1)
        on.b.expected = expected
        on.send(on.b.liback())


@misses("frames-out-of-order")
def five_in_order(on):
    on.connect()
    on.send(*(on.a.tiny(bytes([number])) for number in range(5)), on.b.liback())


def in_order(on: Scene, numbers: list[int], *, first: int = 0) -> None:
    """Replies that pass in this order, and the NOTIFY of the message."""
    on.send(*(on.a.data(TRANSFER, first + number) for number in numbers), after_ms=0.005)


@also("frames-out-of-order", dialect=SMALL_FRAMES)
def replies_to_one_pull_pass_each_other(on):
    """Nothing is lost, and nothing is sent twice."""
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    for block in range(8):
        on.send(on.b.pull(TRANSFER, block), after_ms=0.1)
        in_order(on, [*range(3), *range(4, 8), 3, *range(8, 32)], first=32 * block)
    finished(on)


@also("frames-out-of-order", dialect=SMALL_FRAMES)
def a_reply_passes_only_after_its_block_is_requested_again(on):
    """The later block is complete first, so that the puller requests the earlier one once more (R-PUL-07)."""
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    for block in range(0, 8, 2):
        on.send(on.b.pull(TRANSFER, block), on.b.pull(TRANSFER, block + 1), after_ms=0.1)
        in_order(on, [*range(3), *range(4, 64)], first=32 * block)
        on.send(on.b.pull(TRANSFER, block), after_ms=0.1)
        in_order(on, [3, *range(32)], first=32 * block)
    finished(on)


@also("frames-out-of-order")
def fragments_of_one_message_pass_each_other(on):
    on.connect()
    for _ in range(3):
        fragments = [on.a.medium(20_000, place) for place in range(5)]
        on.send(*(fragments[place] for place in (0, 2, 1, 3, 4)), after_ms=0.01)
        on.send(on.b.liback())


@also("frames-lost", dialect=SMALL_FRAMES)
def lost_replies_come_behind_later_ones_of_their_block(on):
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    pulled(on, range(8), leave_out=frozenset({96, 99, 140}))
    on.send(on.b.pull(TRANSFER, 3), after_ms=0.1)
    in_order(on, list(range(32)), first=96)
    on.send(on.b.pull(TRANSFER, 4), after_ms=0.1)
    in_order(on, list(range(32)), first=128)
    finished(on)


@quiet(dialect=SMALL_FRAMES)
def replies_in_no_order_and_before_their_pulls(on):
    """The capture has them in this order: in a network, an answer never precedes its request."""
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    for block in range(8):
        in_order(on, [0, 1], first=32 * block)
        on.send(on.b.pull(TRANSFER, block), after_ms=0.01)
        in_order(on, [2, 4, 3, *range(5, 32)], first=32 * block)
    finished(on)


@quiet()
def a_message_is_sent_three_times_at_the_end(on):
    """A very lossy network may have dropped all of its few frames: no sign that its receiver's library is silent."""
    on.connect()
    message = on.a.tiny()
    on.send(message)
    on.again(message, times=2)


@quiet()
def a_message_is_sent_again_after_later_ones(on):
    """Its first transmission was lost before the place where this was captured."""
    on.connect()
    on.send(on.a.tiny(), on.b.liback(), after_ms=300)
    lost, later = on.a.tiny(b"lost"), on.a.tiny(b"later")
    on.send(later, after_ms=400)
    on.send(lost, after_ms=104)
    on.b.expected = 4
    on.send(on.b.liback())


def a_sender_dies(on: Scene) -> None:
    """Its endpoint is opened again by another process, which connects."""
    on.connect().send(on.a.rndv(40_000), on.b.liback(), on.b.pull(40_000), on.a.nack_pull(2))
    on.a.session += 1
    on.a.connects = on.b.connects = 0
    on.a.next = on.a.expected = on.b.next = on.b.expected = 1
    on.connect()


@shows("notify-for-former-process")
def the_successor_of_a_killed_sender_gets_its_notify(on):
    a_sender_dies(on)
    on.send(on.b.notify(0), on.a.liback())


@misses("notify-for-former-process")
def the_notify_is_for_another_region(on):
    a_sender_dies(on)
    on.send(on.b.notify(0, pulled_rdma_id=5), on.a.liback())


PULLS_OF_A_BUSY_HOST = [0, 1, 4, 2, 3, 5, 6, 7]


@shows("pulls-out-of-order", dialect=SMALL_FRAMES)
def a_later_block_is_requested_first(on):
    """The later block is complete first, so that two others are re-requested, as in recordings of real hosts."""
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    on.send(*(on.b.pull(TRANSFER, block) for block in PULLS_OF_A_BUSY_HOST[:5]), after_ms=0.1)
    for block in PULLS_OF_A_BUSY_HOST[:3]:
        in_order(on, list(range(32)), first=32 * block)
    in_order(on, list(range(20)), first=64)
    on.send(on.b.pull(TRANSFER, 2), on.b.pull(TRANSFER, 3), after_ms=0.1)
    in_order(on, list(range(20, 64)), first=64)
    in_order(on, list(range(64)), first=64)
    for block in PULLS_OF_A_BUSY_HOST[5:]:
        on.send(on.b.pull(TRANSFER, block), after_ms=0.1)
        in_order(on, list(range(32)), first=32 * block)
    finished(on)


@misses("pulls-out-of-order", dialect=SMALL_FRAMES)
def a_pull_is_lost_before_it_is_captured(on):
    """The next block is complete, and the previous one is re-requested (R-PUL-07)."""
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    pulled(on, [0, 1, 3])
    pulled(on, range(2, 3))
    pulled(on, range(4, 8))
    finished(on)


@shows("frames-duplicated")
def every_third_message_comes_twice(on):
    on.connect()
    for number in range(9):
        message = on.a.tiny(bytes([number]))
        on.send(message)
        if number % 3 == 0:
            on.send(message, after_ms=0.4)
        on.send(on.b.tiny(bytes([number])))


@misses("frames-duplicated")
def messages_are_sent_again(on):
    on.connect()
    for _ in range(3):
        message = on.a.tiny()
        on.send(message, after_ms=300)
        on.again(message, times=1)
        on.wait(200)
        on.send(on.b.liback())


@quiet(dialect=SMALL_FRAMES)
def a_capture_ends_after_two_losses_behind_it(on):
    """Blocks whose replies all passed are requested again, each twice: their puller may be alive."""
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    pulled(on, range(6))
    for _ in range(2):
        on.wait(1004)
        pulled(on, range(2, 6))


@also("tail-loss", "frames-lost", dialect=SMALL_FRAMES)
def a_puller_repeats_its_requests_around_the_timer(on):
    """R-MEA-27: the same PULL up to three times within 2 ms, after a loss."""
    last = TRANSFER // SMALL_FRAMES.reply_payload - 1
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    pulled(on, range(8), leave_out=frozenset({last}))
    on.wait(1004)
    pulled(on, range(7, 8))
    on.send(on.b.pull(TRANSFER, 7), on.b.pull(TRANSFER, 7), after_ms=0.5)
    finished(on)


# Latency


def blocks_in_bunches(on: Scene, pause_us: Callable[[int], float]) -> None:
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    for block in range(8):
        on.send(on.b.pull(TRANSFER, block), after_ms=0.2)
        first = block * SMALL_FRAMES.frames_per_block
        for place in range(first, first + SMALL_FRAMES.frames_per_block):
            on.send(on.a.data(TRANSFER, place), after_ms=pause_us(place) / 1000 if place % 4 == 0 else 0.001)
    finished(on)


@shows("interrupt-coalescing", dialect=SMALL_FRAMES)
def bunches_of_four_every_50_microseconds(on):
    blocks_in_bunches(on, lambda place: 50 + place % 3)


@misses("interrupt-coalescing", dialect=SMALL_FRAMES)
def a_host_that_is_interrupted_now_and_then(on):
    blocks_in_bunches(on, lambda place: 16 + place * 37 % 200)


def echoes(on: Scene, pauses_ms: list[float], trip_us: Callable[[float], float]) -> None:
    on.connect()
    for pause in pauses_ms:
        on.send(on.a.tiny(), after_ms=pause)
        on.send(on.b.tiny(), after_ms=trip_us(pause) / 1000)


@shows("latency-after-idle")
def echoes_after_pauses_are_slow(on):
    echoes(on, [0.02] * 20 + [20.0] * 20, lambda pause: 120 if pause > 1 else 25)


@misses("latency-after-idle")
def echoes_are_alike(on):
    echoes(on, [0.02] * 20 + [20.0] * 20, lambda pause: 25 + pause / 4)


# The capture itself


def conversation(on: Scene) -> None:
    on.connect()
    for number in range(12):
        on.send(on.a.tiny(bytes([number])), on.b.tiny(bytes([number])))


@shows("capture-frames-doubled")
def a_mirror_of_two_ports(on):
    conversation(on)
    doubled = [(raw, time_ns + extra) for raw, time_ns in zip(on.frames, on.times, strict=True) for extra in (0, 4000)]
    on.frames, on.times = [raw for raw, _ in doubled], [time_ns for _, time_ns in doubled]
    on.wire_lengths = [len(raw) for raw in on.frames]


@misses("capture-frames-doubled", "frames-duplicated")
def one_direction_is_doubled(on):
    conversation(on)
    doubled = [
        (raw, time_ns + extra)
        for raw, time_ns in zip(on.frames, on.times, strict=True)
        for extra in ((0, 4000) if raw[6:12] == on.a.mac else (0,))
    ]
    on.frames, on.times = [raw for raw, _ in doubled], [time_ns for _, time_ns in doubled]
    on.wire_lengths = [len(raw) for raw in on.frames]


@shows("capture-incomplete")
def frames_that_only_the_receiver_has(on):
    conversation(on)
    for place in (10, 12, 14):
        on.frames[place] = b""
    kept = [place for place, raw in enumerate(on.frames) if raw]
    on.frames = [on.frames[place] for place in kept]
    on.times = [on.times[place] for place in kept]
    on.wire_lengths = [len(raw) for raw in on.frames]


@misses("capture-incomplete")
def frames_that_everybody_has(on):
    conversation(on)


@shows("capture-frames-cut")
def frames_cut_at_64_bytes(on):
    conversation(on)
    on.send_bytes(b"".join((on.b.mac, on.a.mac, b"\x86\xdf", bytes(50))), wire_length=200)
    on.send(on.a.small(bytes(100)), on.b.liback())
    on.frames[-3] = on.frames[-2][:64]
    on.wire_lengths[-3] = on.wire_lengths[-2]
    del on.frames[-2], on.wire_lengths[-2], on.times[-2]


@misses("capture-frames-cut")
def whole_frames(on):
    conversation(on)


def of(on: Scene, mac: bytes) -> None:
    kept = [place for place, raw in enumerate(on.frames) if raw[6:12] == mac]
    on.frames = [on.frames[place] for place in kept]
    on.times = [on.times[place] for place in kept]
    on.wire_lengths = [on.wire_lengths[place] for place in kept]


@shows("capture-one-direction")
def only_what_one_host_sends(on):
    conversation(on)
    of(on, on.a.mac)


@misses("capture-one-direction", "mute-peer")
def a_host_that_is_really_not_there(on):
    request = on.a.request()
    on.send(request)
    on.again(request, times=3, every_ms=RESEND_MS)


# Other shapes


@also("mtu-too-small", dialect=MXOE)
def data_of_large_messages_vanishes(on):
    on.connect().send(on.a.small(), on.b.liback(), on.a.rndv(5000), on.b.liback())
    pull = on.b.pull(5000)
    for _ in range(4):
        on.send(pull, on.a.data(5000, 0), on.a.data(5000, 1))
        on.wait(1004)


@also("duplicate-mac")
def one_address_with_two_names(on):
    for name in (b"one:0\0", b"other:0\0", b"one:0\0"):
        on.send(on.a.query(), on.b.name(hostname=name), after_ms=400)


@also("duplicate-mac")
def two_addresses_with_one_nic_id(on):
    other = on.host(0x0C)
    on.send(on.b.announcement(), on.b.announcement(src_mac=other.mac))


@also("duplicate-mac")
def sessions_in_turn(on):
    for session in (1, 2, 1, 2):
        on.b.session = session
        on.a.connects = on.b.connects = 0
        on.connect()


@also("endpoints-exhausted", "endpoint-out-of-range")
def thirty_six_endpoints_of_thirty_six(on):
    many_endpoints(on, 36)
    on.b.endpoint = 36
    on.send(on.a.request(), on.b.nack(1, 0))


@also("resend-limit-near", "mute-peer")
def connects_without_an_end(on):
    request = on.a.request()
    on.send(request)
    on.again(request, times=510)


@also("resend-limit-near", "no-reverse-connect")
def a_notify_without_an_end(on):
    one_way_large(on, notifies=510)


@also("resend-limit-near", "mtu-too-small")
def a_pull_without_an_end(on):
    on.connect().send(on.a.rndv(5000), on.b.liback())
    pull = on.b.pull(5000)
    for _ in range(260):
        on.send(pull, on.a.data(5000, 0), on.a.data(5000, 1))
        on.wait(1004)


@also("zombie-pull", "session-changed", dialect=SMALL_FRAMES)
def pulls_after_a_nack(on):
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    pulled(on, range(2))
    on.send(on.b.pull(TRANSFER, 2), on.a.nack_pull(3))
    for _ in range(3):
        on.send(on.b.pull(TRANSFER, 2), after_ms=1004)


@also("pull-stopped", dialect=SMALL_FRAMES)
def a_pull_ends_in_the_middle_and_the_capture_goes_on(on):
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    pulled(on, range(2))
    on.wait(5000)
    on.send(on.host(9).request())


@also("frames-lost", dialect=SMALL_FRAMES)
def replies_behind_the_place_of_capture(on):
    """All replies pass, and a block is re-requested: they were lost later."""
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    pulled(on, range(8))
    on.wait(120)
    pulled(on, range(2, 3))
    finished(on)


@quiet(dialect=SMALL_FRAMES)
def a_pull_comes_after_the_next_block_is_complete(on):
    """An earlier frame may have been lost or late, at the host or in the network: the capture does not show which."""
    on.connect().send(on.a.rndv(TRANSFER), on.b.liback())
    for block in (0, 2, 1, 3, 4, 5, 6, 7):
        pulled(on, range(block, block + 1))
    on.wait(120)
    pulled(on, range(1, 2))
    finished(on)


@also("frame-limit-mismatch")
def old_builds_with_other_replies(on):
    on.connect()
    pulls(on, on.a, on.b, omx(9000, "N2"), 2_000_000)
    pulls(on, on.b, on.a, omx(1500, "N2"), 500_000)


# Harmless plays


@quiet()
def old_native_builds_send_mediums_as_mx_does(on):
    """The layout of MEDIUM is that of mxoe up to generation N2; the PULLs are not."""
    on.connect()
    on.dialect = omx(9000, "N2")
    on.send(*(on.a.medium(9000, place, frag_pipeline=12) for place in range(3)), on.b.liback())
    pulls(on, on.a, on.b, omx(9000, "N2"), 2_000_000)


@quiet()
def announcements_are_heard_on_two_interfaces(on):
    """A capture of a host with two interfaces on one network; unicast frames are received only once."""
    on.connect()
    for _ in range(20):
        announcement = on.b.announcement()
        on.send(announcement, after_ms=1000)
        on.send(announcement, after_ms=0.01)


@quiet()
def pulls_do_not_tell_generation_3_from_4(on):
    on.connect()
    mediums(on, on.a, omx(9000, "N3"), 12_000)
    on.send(on.b.liback())
    pulls(on, on.a, on.b, omx(9000, "N3"), 2_000_000)


@quiet()
def one_host_only_sends_short_messages(on):
    on.connect()
    mediums(on, on.a, omx(1500), 5000)
    on.send(on.b.tiny(), on.a.liback())


@quiet()
def an_index_is_given_away_when_its_host_has_left(on):
    other = on.host(0x0C, index=1)
    on.connect().send(on.a.tiny(), on.b.liback())
    on.b.peer = other
    on.send(on.b.query(src_dst_peer_index=3), other.name(), after_ms=5000)


@quiet()
def a_receiver_that_is_busy_for_a_while(on):
    on.connect()
    for _ in range(3):
        message = on.a.tiny()
        on.send(message, after_ms=300)
        on.wait(700)
        on.again(message, times=1)
        on.send(on.b.liback())

"""For each rule that the judge applies: conversations that break it, and nothing else.

A row is the rule, how bad it is, and a play on a testbed whose hosts are connected in both directions (``fresh``: who
have never met). All other conduct in a play is right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mxwire.rules import CAPTURE, LOST, SENDERS, Vantage
from mxwire.wire.codec import build
from mxwire.wire.dialect import MXOE, Dialect, omx

from .testbed import KEY, Testbed

Play = Callable[[Testbed], None]
STARTED = replace(CAPTURE, from_start=True)
"""A capture that was begun before the endpoints were opened."""


@dataclass(frozen=True)
class Case:
    rule: str
    severity: str
    play: Play
    dialect: Dialect = MXOE
    vantage: Vantage = SENDERS
    fresh: bool = False

    @property
    def title(self) -> str:
        return f"{self.rule}-{self.play.__name__}"


CASES: list[Case] = []


NOTES: list[Case] = []
"""Plays of what real hosts are known to do."""


def breaks(rule: str, severity: str = "violation", **settings) -> Callable[[Play], Play]:
    def register(play: Play) -> Play:
        (NOTES if severity == "note" else CASES).append(Case(rule, severity, play, **settings))
        return play

    return register


# Wire format


@breaks("W-2")
def frame_of_59_bytes(on):
    on.send_bytes(build(on.a.tiny(), on.dialect)[:59])


@breaks("W-2")
def frame_that_ends_in_its_header(on):
    on.send_bytes(build(on.a.tiny(), on.dialect)[:39])


@breaks("W-2", dialect=omx(1500))
def frame_beyond_the_limit(on):
    on.send_bytes(build(on.a.medium(1452, 0), on.dialect) + b"\0")


@breaks("W-2", "deviation")
def needless_padding(on):
    on.send_bytes(build(on.a.tiny(), on.dialect) + b"\0")


@breaks("W-2", "deviation")
def broadcast_query(on):
    on.send(on.a.query(dst_mac=b"\xff" * 6))


@breaks("W-5")
def index_never_taught(on):
    on.send(on.a.tiny(dst_src_peer_index=2))


@breaks("W-5")
def unknown_index_after_it_was_taught(on):
    on.send(on.a.tiny(dst_src_peer_index=0xFFFF))


@breaks("W-5", fresh=True)
def index_before_it_was_taught(on):
    on.a.index_there = 3
    on.send(on.a.request())


@breaks("W-5")
def outdated_index(on):
    on.send(on.b.query(src_dst_peer_index=9), delivered_ns=on.time_ns + 2_000_000)
    on.a.index_there = 3
    on.send(on.a.tiny(), after_ms=20)


@breaks("W-5", vantage=CAPTURE)
def index_of_another_interface_in_a_capture(on):
    """A CONNECT teaches the session and the index together (R-LOC-03)."""
    on.send(on.a.tiny(dst_src_peer_index=2))


@breaks("W-5", vantage=CAPTURE, fresh=True)
def reply_with_another_index_than_the_request_taught(on):
    on.send(on.a.request(), on.b.reply(dst_src_peer_index=2))


@breaks("W-6")
def unknown_packet_type(on):
    raw = bytearray(build(on.a.tiny(), on.dialect))
    raw[16] = 77
    on.send_bytes(bytes(raw))


@breaks("W-6", "deviation")
def packet_type_of_native_mx(on):
    raw = bytearray(build(on.a.tiny(), on.dialect))
    raw[16] = 32
    on.send_bytes(bytes(raw))


@breaks("W-6.1", "deviation")
def announcement_of_somebody_else(on):
    on.send(on.a.announcement(nic_id_lo=5))


@breaks("W-6.1", "deviation")
def announcement_to_one_host(on):
    on.send(on.a.announcement(dst_mac=on.b.mac))


@breaks("W-6.4")
def truc_of_another_kind(on):
    on.send(on.a.tiny(), on.b.liback(liback_type=0x56))


@breaks("W-6.4")
def liback_with_two_sessions(on):
    on.send(on.a.tiny(), on.b.liback(liback_session_id=5))


@breaks("W-6.4")
def short_liback(on):
    on.send(on.a.tiny(), on.b.liback(length=12))


@breaks("W-6.5")
def numbered_connect(on):
    on.send(on.a.request(lib_seqnum=1))


@breaks("W-6.5", "deviation")
def reply_with_another_flag(on):
    on.send(on.a.request(), on.b.reply(is_reply=2))


@breaks("W-6.7")
def fragment_with_another_match(on):
    on.send(on.a.medium(5000, 0), on.a.medium(5000, 1, match_b=8))


@breaks("W-6.8")
def rndv_with_longer_data(on):
    on.send(on.a.rndv(50_000, length=9))


@breaks("W-7")
def tiny_of_33_bytes(on):
    on.send(on.a.tiny(bytes(33)))


@breaks("W-7")
def data_beyond_the_frame(on):
    on.send_bytes(build(on.a.small(bytes(100)), on.dialect)[:80])


# Discovery, names, local traffic


@breaks("R-DISC-02", "deviation")
def two_announcements_in_a_moment(on):
    on.send(on.a.announcement(), on.a.announcement())


@breaks("R-DISC-06")
def raw_of_1025_bytes(on):
    raw = build(on.a.announcement(), on.dialect)
    on.send_bytes(raw.ljust(1025, b"\1"))


@breaks("R-HOST-02", "deviation")
def three_queries_in_a_moment(on):
    on.send(on.a.query(), on.a.query(), on.a.query())


@breaks("R-HOST-03", "deviation")
def query_with_any_magic(on):
    on.send(on.a.query(magic=5))


@breaks("R-HOST-04", "deviation")
def name_that_nobody_asked_for(on):
    on.send(on.a.name())


@breaks("R-HOST-04", "deviation")
def two_names_for_one_query(on):
    on.send(on.b.query(), delivered_ns=on.time_ns + 1)
    on.send(on.a.name(), on.a.name(), delivered_ns=on.time_ns + 1)


@breaks("R-HOST-06")
def name_with_another_magic(on):
    on.send(on.b.query(), on.a.name(magic=6))


@breaks("R-HOST-06", fresh=True)
def name_with_the_index_of_the_query(on):
    """Defect of Open-MX before 0.7.0."""
    on.send(on.a.query(), on.b.query(), on.b.name(src_dst_peer_index=1))


@breaks("R-HOST-08")
def name_of_81_bytes(on):
    on.send(on.b.query(), on.a.name(hostname=bytes(81)))


@breaks("R-HOST-08")
def name_without_nul(on):
    on.send(on.b.query(), on.a.name(hostname=b"node:0"))


@breaks("R-LOC-02", "deviation")
def connect_within_a_host(on):
    on.send(on.a.request(dst_mac=on.a.mac, dst_endpoint=7, dst_src_peer_index=0xFFFF, connect_seqnum=0))


# Endpoints and connects


@breaks("R-EP-01")
def endpoint_in_use_beyond_the_limit(on):
    on.send(on.a.tiny(), on.b.nack(1, 1))


@breaks("R-EP-01")
def two_limits(on):
    on.send(on.a.request(dst_endpoint=40, connect_seqnum=0), on.b.nack(1, 0, src_endpoint=40))
    on.send(on.a.request(dst_endpoint=50, connect_seqnum=0), on.b.nack(2, 0, src_endpoint=50))


@breaks("R-EP-02")
def session_never_told(on):
    on.send(on.a.tiny(session=0x99999999))


@breaks("R-EP-02", fresh=True)
def message_without_any_handshake(on):
    on.send(on.a.tiny())


@breaks("R-EP-02", vantage=STARTED, fresh=True)
def message_without_any_handshake_in_a_capture(on):
    on.send(on.a.tiny())


@breaks("R-EP-02")
def session_comes_back(on):
    on.send(on.a.request(src_session_id=0x77777777, connect_seqnum=0))
    on.send(on.a.request(connect_seqnum=0))


@breaks("R-EP-02")
def session_alive_after_it_was_denied(on):
    on.send(on.a.tiny(), on.b.nack(3, 1), on.b.request())


@breaks("R-EP-02", vantage=replace(SENDERS, excused=frozenset()))
def liback_to_nobody_where_that_is_no_excuse(on):
    on.send(on.a.tiny(), on.b.liback(session=0xFFFFFFFF, liback_session_id=0xFFFFFFFF))


@breaks("R-CON-01", "deviation")
def connect_number_left_out(on):
    on.send(on.a.request(connect_seqnum=4))


@breaks("R-CON-01")
def expects_what_was_not_sent(on):
    on.send(on.b.tiny(), on.a.request(target_recv_seqnum_start=4), on.b.reply(), on.b.tiny(lib_seqnum=4))


@breaks("R-CON-01", fresh=True)
def does_not_begin_with_one(on):
    on.send(on.a.request(), on.b.reply(target_recv_seqnum_start=2))


@breaks("R-CON-02")
def repeated_request_with_another_key(on):
    on.send(on.a.request())
    on.send(on.a.request(connect_seqnum=1, app_key=5), after_ms=510)


@breaks("R-CON-02", "deviation")
def request_repeated_too_early(on):
    on.send(on.a.request())
    on.send(on.a.request(connect_seqnum=1), after_ms=200)


@breaks("R-CON-02", "deviation", vantage=replace(SENDERS, resends_maximum=2))
def request_repeated_too_often(on):
    on.send(on.a.request())
    on.send(*(on.a.request(connect_seqnum=1) for _ in range(3)), after_ms=510)


@breaks("R-CON-04")
def reply_with_another_status(on):
    on.send(on.a.request(app_key=KEY + 1), on.b.reply(connect_status_code=34))
    on.found = [each for each in on.found if each.rule != "R-CON-08"]


@breaks("R-CON-08")
def reply_to_nothing(on):
    on.send(on.b.reply(connect_seqnum=9))


@breaks("R-CON-08")
def reply_to_another_session(on):
    on.send(on.a.request(), on.b.reply(src_session_id=0x12121212))


@breaks("R-CON-08")
def two_replies_to_one_request(on):
    on.send(on.a.request(), delivered_ns=on.time_ns + 1)
    on.send(on.b.reply(), on.b.reply(), delivered_ns=on.time_ns + 1)


@breaks("R-CON-08")
def refused_with_the_right_key(on):
    on.send(on.a.request(), on.b.reply(connect_status_code=11))


@breaks("R-CON-08")
def accepted_with_the_wrong_key(on):
    on.send(on.a.request(app_key=KEY + 1), on.b.reply())


@breaks("R-CON-09")
def connect_refused_for_its_session(on):
    on.send(on.a.request(dst_endpoint=6, connect_seqnum=0), on.b.nack(3, 0, src_endpoint=6))


@breaks("R-CON-12")
def pull_without_session_is_served(on):
    on.send(on.a.rndv(50_000), on.b.pull(50_000, session=0xFFFFFFFF), on.a.data(50_000, 0))


# Numbers


@breaks("R-SEQ-03")
def another_session_number(on):
    on.send(on.a.tiny(), on.a.tiny(lib_seqnum=0x4002))


@breaks("R-SEQ-03", vantage=STARTED, fresh=True)
def asks_for_another_session_number_than_before(on):
    """A partner is abandoned after two transmissions at the earliest (R-RTX-05)."""
    on.send(on.b.request(target_recv_seqnum_start=0x8001))
    on.send(on.b.request(target_recv_seqnum_start=1), on.b.request(target_recv_seqnum_start=0x8001), after_ms=200)


@breaks("R-SEQ-04")
def number_left_out(on):
    on.send(on.a.tiny(), on.a.tiny(lib_seqnum=3))


@breaks("R-SEQ-05")
def another_first_number(on):
    on.send(on.a.tiny(lib_seqnum=2))


@breaks("R-SEQ-05", vantage=STARTED)
def first_number_of_another_session_number_in_a_capture(on):
    on.send(on.a.tiny(lib_seqnum=0x4001))


@breaks("R-SEQ-05")
def number_before_the_first(on):
    on.send(on.a.tiny(), on.a.tiny(lib_seqnum=0))


@breaks("R-SEQ-06")
def more_than_8191_outstanding(on):
    on.send(*(on.a.tiny() for _ in range(8191)), after_ms=0.001)
    assert not on.found
    on.send(on.a.tiny(), after_ms=0.001)


# Sending


@breaks("R-SND-01", "deviation")
def small_of_32_bytes(on):
    on.send(on.a.small(bytes(32)))


@breaks("R-SND-03", "deviation")
def short_fragment(on):
    on.send(on.a.medium(5000, 0, frag_length=4000, data=bytes(4000)))


@breaks("R-SND-03", "deviation")
def fragments_out_of_order(on):
    first = on.a.medium(9000, 0)
    on.send(first, on.a.medium(9000, 2), on.a.medium(9000, 1))


@breaks("R-MED-03", dialect=omx(1500))
def thirty_third_fragment(on):
    on.send(*(on.a.medium(50_000, place) for place in range(33)))


@breaks("R-MED-04")
def fragment_beyond_the_message(on):
    on.send(on.a.medium(5000, 0), on.a.medium(5000, 1, frag_length=1000, data=bytes(1000)))
    on.found = [each for each in on.found if each.rule != "R-SND-03"]


# Acknowledgements


@breaks("R-ACK-01")
def acknowledges_what_was_not_sent(on):
    on.send(on.a.tiny(), on.b.tiny(lib_piggyack=3))


@breaks("R-ACK-01")
def acknowledges_when_nothing_was_sent(on):
    on.send(on.b.tiny(lib_piggyack=5))


@breaks("R-ACK-01")
def acknowledges_half_a_message(on):
    """The piggyback is the present acknowledgement, no more (R-ACK-03)."""
    on.send(on.a.medium(5000, 0), on.b.tiny())


@breaks("R-ACK-01")
def acknowledges_what_was_lost(on):
    on.send(on.a.tiny(), delivered_ns=LOST)
    on.send(on.b.liback())


@breaks("R-ACK-01")
def acknowledges_backwards(on):
    on.send(on.a.tiny(), on.b.tiny(), on.b.tiny(lib_piggyack=1))


@breaks("R-ACK-01", vantage=STARTED)
def acknowledges_backwards_in_a_capture(on):
    on.send(on.a.tiny(), on.b.tiny())
    on.send(on.b.tiny(lib_piggyack=1), after_ms=200)


@breaks("R-ACK-04", "deviation")
def liback_with_another_send_seq(on):
    on.send(on.a.tiny(), on.b.liback(liback_send_seq=7))


@breaks("R-ACK-04", "deviation")
def liback_resent(on):
    on.send(on.a.tiny(), on.b.liback(liback_resent=1))


@breaks("R-ACK-06")
def liback_number_zero(on):
    on.send(on.a.tiny(), on.b.liback(liback_acknum=0))


@breaks("R-ACK-06")
def liback_number_again(on):
    on.send(on.a.tiny(), on.b.liback(), on.a.tiny(), on.b.liback(liback_acknum=1))


@breaks("R-ACK-06", "deviation")
def liback_number_left_out(on):
    on.send(on.a.tiny(), on.b.liback(), on.a.tiny(), on.b.liback(liback_acknum=3))


# Retransmission


@breaks("R-RTX-01", "deviation")
def resent_too_early(on):
    on.send(on.a.tiny())
    on.send(on.a.tiny(lib_seqnum=1), after_ms=300)


@breaks("R-RTX-01", "deviation", vantage=STARTED)
def resent_too_early_in_a_capture(on):
    on.send(on.a.tiny(), on.b.tiny())
    on.send(on.a.tiny(lib_seqnum=1), after_ms=300)


@breaks("R-RTX-01", "deviation")
def medium_resent_too_early(on):
    on.send(on.a.medium(5000, 0), on.a.medium(5000, 1))
    on.send(on.a.medium(5000, 0, lib_seqnum=1), after_ms=100)


@breaks("R-RTX-02")
def resent_with_other_data(on):
    on.send(on.a.tiny())
    on.send(on.a.tiny(b"HELLO", lib_seqnum=1), after_ms=510)


@breaks("R-RTX-02")
def resent_with_another_match(on):
    on.send(on.a.tiny())
    on.send(on.a.tiny(lib_seqnum=1, match_b=9), after_ms=510)


@breaks("R-RTX-02")
def resent_as_another_type(on):
    on.send(on.a.tiny())
    on.send(on.a.rndv(50_000, lib_seqnum=1), after_ms=510)


@breaks("R-RTX-02")
def resent_with_another_region(on):
    on.send(on.a.rndv(50_000))
    on.send(on.a.rndv(50_000, lib_seqnum=1, pulled_rdma_seqnum=24), after_ms=510)


@breaks("R-RTX-02")
def notify_resent_with_another_length(on):
    on.large(50_000)
    on.send(on.b.notify(0, lib_seqnum=1), after_ms=510)


@breaks("R-RTX-02")
def fragment_resent_with_other_data(on):
    on.send(on.a.medium(5000, 0), on.a.medium(5000, 1))
    on.send(on.a.medium(5000, 0, lib_seqnum=1, data=bytes(4095) + b"x"), after_ms=510)


@breaks("R-RTX-02")
def only_some_fragments_resent(on):
    on.send(on.a.medium(9000, 0), on.a.medium(9000, 1), on.a.medium(9000, 2))
    on.send(on.a.medium(9000, 0, lib_seqnum=1), after_ms=510)
    on.send(on.a.medium(9000, 0, lib_seqnum=1), after_ms=510)


@breaks("R-RTX-02", vantage=CAPTURE)
def only_the_later_message_resent(on):
    """The missing fragments are those of the message that is not acknowledged."""
    on.send(on.a.medium(5000, 0), on.a.medium(5000, 1), on.a.tiny())
    for _ in range(8):
        on.send(on.a.tiny(lib_seqnum=2), after_ms=510)


@breaks("R-RTX-03", "deviation", vantage=replace(SENDERS, resends_maximum=2))
def resent_too_often(on):
    on.send(on.a.tiny())
    on.send(*(on.a.tiny(lib_seqnum=1) for _ in range(3)), after_ms=510)


@breaks("R-RTX-04")
def resent_with_another_session(on):
    on.large(50_000)
    on.send(on.b.notify(50_000, lib_seqnum=1, session=0xFFFFFFFF), after_ms=510)


# Large messages


@breaks("R-RDV-01")
def counter_used_again(on):
    on.send(on.a.rndv(50_000, pulled_rdma_seqnum=23), on.a.rndv(50_000, pulled_rdma_seqnum=23))


@breaks("R-RDV-01", "deviation")
def counter_left_out(on):
    on.large(50_000)
    on.send(on.a.rndv(50_000, pulled_rdma_seqnum=25))


@breaks("R-RDV-01")
def region_used_again_before_its_notify(on):
    """Its send cannot have ended yet (R-NOT-02)."""
    on.send(on.a.rndv(50_000), on.a.rndv(50_000))


@breaks("R-RDV-01", vantage=STARTED)
def region_used_again_before_its_notify_in_a_capture(on):
    on.send(on.a.rndv(50_000), on.a.rndv(50_000))


@breaks("R-RDV-04")
def empty_pull(on):
    """A message without data to pull gets no PULL (R-PUL-11)."""
    on.send(on.a.rndv(0), on.b.pull(0))
    on.found = [each for each in on.found if each.rule != "R-PUL-01"]


@breaks("R-PUL-01")
def part_of_a_block(on):
    on.send(on.a.rndv(50_000), on.b.pull(50_000, block_length=4096))


@breaks("R-PUL-01")
def block_that_begins_anywhere(on):
    on.send(on.a.rndv(50_000), on.b.pull(50_000, frame_index=3))


@breaks("R-PUL-01")
def block_that_begins_beyond_its_first_frame(on):
    """A real host serves it (D-15)."""
    on.send(on.a.rndv(50_000), on.b.pull(50_000, first_frame_offset=4096))


@breaks("R-PUL-01", dialect=omx(9000))
def block_beyond_the_message(on):
    on.send(on.a.rndv(50_000), on.b.pull(50_000, frame_index=32))


@breaks("R-PUL-01")
def offset_not_taken_into_account(on):
    on.send(on.a.rndv(50_000, pulled_rdma_offset=100), on.b.pull(50_000, pulled_rdma_offset=100))


@breaks("R-PUL-02")
def fifth_block_as_the_first(on):
    on.send(on.a.rndv(200_000), on.b.pull(200_000, 4))


@breaks("R-PUL-02")
def fifth_block(on):
    on.send(on.a.rndv(200_000), *(on.b.pull(200_000, block) for block in range(5)))


@breaks("R-PUL-02")
def fifth_block_while_the_first_misses_a_lost_frame(on):
    on.send(on.a.rndv(200_000), *(on.b.pull(200_000, block) for block in range(4)))
    on.send(on.a.data(200_000, 0), delivered_ns=LOST)
    on.send(*(on.a.data(200_000, place) for place in range(1, 32)), delivered_ns=on.time_ns)
    on.send(on.b.pull(200_000, 4))


@breaks("R-PUL-03")
def total_changes_in_a_transfer(on):
    on.send(on.a.rndv(200_000), on.b.pull(200_000), on.b.pull(199_999, 1))


@breaks("R-PUL-03", "deviation")
def another_magic(on):
    on.send(on.a.rndv(50_000), on.b.pull(50_000, src_magic=1))


@breaks("R-PUL-04")
def pull_of_nothing_announced(on):
    on.send(on.b.pull(50_000))


@breaks("R-PUL-04")
def pull_of_another_region(on):
    on.send(on.a.rndv(50_000), on.b.pull(50_000, pulled_rdma_id=3))


@breaks("R-PUL-04")
def pulls_more_than_announced(on):
    on.send(on.a.rndv(50_000), on.b.pull(50_001))


@breaks("R-PUL-04")
def offset_not_copied(on):
    """From the RNDV into the PULL (R-RDV-02)."""
    on.send(on.a.rndv(30_000, pulled_rdma_offset=100), on.b.pull(30_000))


@breaks("R-PUL-08", "deviation")
def requested_again_too_early(on):
    on.send(on.a.rndv(200_000), on.b.pull(200_000))
    on.send(on.b.pull(200_000), after_ms=300)


@breaks("R-PUL-08", "deviation")
def requested_again_twice_for_a_later_block(on):
    """Once between two expiries of the timer (R-PUL-07)."""
    on.send(on.a.rndv(200_000), on.b.pull(200_000), on.b.pull(200_000, 1))
    on.send(*(on.a.data(200_000, place) for place in range(8, 16)))
    on.send(on.b.pull(200_000), on.b.pull(200_000))


@breaks("R-PUL-09", "deviation")
def pull_without_end(on):
    on.send(on.a.rndv(50_000), on.b.pull(50_000))
    on.send(on.b.pull(50_000), after_ms=600_000)


@breaks("R-PUL-10")
def pull_after_its_notify(on):
    on.large(50_000)
    on.b.handle -= 1
    on.send(on.b.pull(50_000), after_ms=1010)


@breaks("R-PUL-10", vantage=CAPTURE)
def pull_long_after_its_notify_in_a_capture(on):
    on.large(50_000)
    on.b.handle -= 1
    on.send(on.b.pull(50_000), after_ms=50)
    assert not on.found
    on.send(on.b.pull(50_000), after_ms=1010)


@breaks("R-PUL-12")
def answered_twice(on):
    on.send(on.a.rndv(50_000))
    on.send(on.b.pull(50_000), delivered_ns=on.time_ns)
    on.send(*(on.a.data(50_000, place) for place in range(8)), on.a.data(50_000, 0))


@breaks("R-PUL-12", "deviation")
def answered_out_of_order(on):
    on.send(on.a.rndv(50_000), on.b.pull(50_000))
    on.send(on.a.data(50_000, 1))


@breaks("R-PUL-13")
def reply_to_no_pull(on):
    on.send(on.a.rndv(50_000), on.a.data(50_000, 0))


@breaks("R-PUL-13")
def reply_to_another_block(on):
    on.send(on.a.rndv(100_000), on.b.pull(100_000), on.a.data(100_000, 8))


@breaks("R-PUL-13")
def reply_with_another_number(on):
    on.send(on.a.rndv(50_000), on.b.pull(50_000), on.a.data(50_000, 0, frame_seqnum=1))


@breaks("R-PUL-13")
def short_reply(on):
    on.send(on.a.rndv(50_000), on.b.pull(50_000), on.a.data(50_000, 0, frame_length=4095))


@breaks("R-PUL-13")
def reply_at_another_offset(on):
    on.send(on.a.rndv(50_000), on.b.pull(50_000), on.a.data(50_000, 0, msg_offset=1))


@breaks("R-PUL-13")
def reply_with_other_data(on):
    on.send(on.a.rndv(30_000), on.b.pull(30_000), on.a.data(30_000, 0))
    on.send(on.b.pull(30_000), after_ms=1010)
    on.send(on.a.data(30_000, 0, data=bytes(4095) + b"x"))


@breaks("R-PUL-14")
def former_session_is_served(on):
    on.send(on.a.rndv(50_000), on.b.pull(50_000))
    on.send(on.a.request(src_session_id=0x77777777, connect_seqnum=0))
    on.send(on.a.data(50_000, 0), after_ms=10)


@breaks("R-NOT-01")
def notify_of_nothing(on):
    on.send(on.b.notify(0))


@breaks("R-NOT-01")
def notify_of_what_was_not_pulled(on):
    on.send(on.a.rndv(50_000), on.b.notify(50_000))


@breaks("R-NOT-01")
def notify_of_another_length(on):
    on.send(on.a.rndv(4000), on.b.pull(4000), on.a.data(4000, 0), on.b.notify(3999))


@breaks("R-NOT-01")
def notify_before_all_was_sent(on):
    on.send(on.a.rndv(5000), on.b.pull(5000), on.a.data(5000, 0), on.b.notify(5000))


@breaks("R-NOT-01")
def second_notify(on):
    on.large(5000)
    on.send(on.b.notify(5000))


# Nacks


@breaks("R-NAK-02")
def nack_of_nothing(on):
    on.send(on.a.tiny(), on.b.nack(2, 9))


@breaks("R-NAK-02")
def two_nacks_of_one_packet(on):
    on.send(on.a.tiny(), delivered_ns=on.time_ns)
    on.send(on.b.nack(2, 1), on.b.nack(2, 1))


@breaks("R-NAK-02")
def nack_of_an_acknowledgement(on):
    """A TRUC is never nacked (R-ACK-10, R-NAK-01)."""
    on.send(on.a.tiny(), on.b.liback(), on.a.nack(2, 2))


@breaks("R-NAK-02", vantage=replace(SENDERS, excused=frozenset()))
def nack_to_somebody_else(on):
    on.send(on.b.nack(2, 1, dst_endpoint=30))


@breaks("R-NAK-02")
def nack_of_no_pull(on):
    on.send(on.a.nack_pull(4))


@breaks("R-NAK-02")
def two_nacks_of_one_pull(on):
    on.send(on.a.rndv(50_000))
    on.send(on.b.pull(50_000), delivered_ns=on.time_ns)
    on.send(on.a.nack_pull(4), on.a.nack_pull(4))


@breaks("R-NAK-03", "deviation")
def nack_with_two_indexes(on):
    on.send(on.a.tiny(), on.b.nack(2, 1, dst_src_peer_index_copy=8))


@breaks("R-NAK-03", "deviation")
def nack_names_the_wrong_endpoint(on):
    on.send(on.a.rndv(50_000), on.b.pull(50_000), on.a.nack_pull(4, src_endpoint=0))


@breaks("R-NAK-07")
def nack_that_aborts(on):
    on.send(on.a.tiny(), on.b.nack(4, 1))


@breaks("R-NAK-09")
def nack_of_a_pull_that_means_success(on):
    on.send(on.a.rndv(50_000), on.b.pull(50_000), on.a.nack_pull(0))


@breaks("R-NAK-09", "note")
def notify_after_a_nack_that_means_success(on):
    """The NOTIFY reports what was never sent; the violation is that of the host which sent the nack."""
    on.send(on.a.rndv(50_000), on.b.pull(50_000), on.a.nack_pull(0), on.b.notify(50_000))
    on.found = [each for each in on.found if each.severity == "note"]


# Local traffic last, because a host that sends to itself is both source and destination.


@breaks("R-LOC-01")
def endpoint_talks_to_itself(on):
    """Nor does it connect to itself with a packet (R-CON-07)."""
    on.send(on.a.request(dst_mac=on.a.mac, dst_endpoint=0, dst_src_peer_index=0xFFFF, connect_seqnum=0))
    on.found = [each for each in on.found if each.rule != "R-LOC-02"]


# Known defects


@breaks("D-1", "note")
def liback_to_nobody(on):
    on.send(on.a.tiny(), on.b.liback(session=0xFFFFFFFF, liback_session_id=0xFFFFFFFF))


@breaks("D-1", "note")
def notify_to_nobody(on):
    on.send(on.a.rndv(0), on.b.notify(0, session=0xFFFFFFFF))


@breaks("R-CON-12", "note", fresh=True)
def message_before_the_own_connect(on):
    on.send(on.a.request(), on.b.reply(), on.b.tiny(), on.b.tiny())


@breaks("D-6", "note")
def nack_that_went_astray(on):
    on.send(on.b.nack(2, 1, dst_endpoint=30))


@breaks("D-7", "note")
def nonsense_when_the_timer_expires(on):
    """Such a PULL does not request a block (R-PUL-01)."""
    on.send(on.a.rndv(50_000), on.b.pull(50_000), on.b.pull(50_000, 1))
    on.send(on.b.pull(50_000, frame_index=77, block_length=12), after_ms=1010)


@breaks("D-14", "note")
def name_from_the_own_address(on):
    on.send(on.b.query(dst_mac=on.b.mac), on.b.name(dst_mac=on.b.mac))


@breaks("R-MEA-14", "note")
def notify_to_the_next_session(on):
    """The sender dies while it is pulled; its successor gets the NOTIFY of 0 bytes (R-NOT-01)."""
    on.send(on.a.rndv(50_000), on.b.pull(50_000), on.a.nack_pull(2))
    on.a.reopen()
    on.send(on.a.request(), on.b.reply(), on.b.notify(0))


@breaks("R-RTX-05", "note")
def message_to_a_partner_that_was_given_up(on):
    on.send(on.a.tiny())
    on.send(on.a.tiny(lib_seqnum=0xFFFF, session=0xFFFFFFFF, lib_piggyack=0x4F0E))

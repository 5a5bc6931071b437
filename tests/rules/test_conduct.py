"""Correct behaviour is not reported, whatever the network does; and no input upsets the judge."""

from __future__ import annotations

import random
import sys
from dataclasses import replace

import pytest

from mxwire.rules import CAPTURE, LOST, SENDERS, Judge
from mxwire.wire.codec import codec_of, parse
from mxwire.wire.dialect import MXOE, omx
from tests.frames import QUERY_MAGIC
from tests.wire.support import CAPTURES, dialect_of, read_capture

from .testbed import KEY, MILLISECOND, Testbed

DIALECTS = pytest.mark.parametrize("dialect", [MXOE, omx(1500), omx(9000)], ids=str)


def quiet(testbed: Testbed) -> bool:
    assert not testbed.found, "\n".join(map(str, testbed.found))
    return True


@DIALECTS
def test_one_of_everything(dialect):
    on = Testbed(dialect)
    on.send(on.a.announcement(), on.b.query())
    on.send(on.a.name())
    on.connect()
    fragments = -(-20_000 // dialect.fragment_payload)
    on.send(on.a.tiny(), on.b.small(), *(on.a.medium(20_000, place) for place in range(fragments)), on.b.liback())
    for total in (100_000, 1, 131_072):
        on.large(total)
    on.send(on.a.liback(), on.b.tiny())
    assert quiet(on)


def test_long_transfer_moves_its_window():
    on = Testbed().connect()
    blocks, total = 40, 40 * MXOE.block_length - 5
    on.send(on.a.rndv(total), *(on.b.pull(total, block) for block in range(4)))
    for block in range(blocks):
        for place in range(8 * block, min(8 * block + 8, -(-total // 4096))):
            on.send(on.a.data(total, place))
        if block + 4 < blocks:
            on.send(on.b.pull(total, block + 4))
    on.send(on.b.notify(total))
    assert quiet(on)


@pytest.mark.rule("R-CON-12", "R-RTX-02")
@pytest.mark.parametrize("from_start", [False, True])
def test_a_lost_number_that_the_receiver_requests_does_not_start_a_stream(from_start):
    """In a capture the first sight of a number may be its retransmission, even if a late CONNECT of the receiver
    requests this very number."""
    on = Testbed(vantage=replace(CAPTURE, from_start=from_start))
    on.send(on.a.request(), on.b.reply())
    on.send(on.a.rndv(100, lib_seqnum=2), on.a.tiny(lib_seqnum=3))
    on.send(on.b.request(target_recv_seqnum_start=1), on.a.reply())
    on.send(on.a.tiny(lib_seqnum=1), on.a.rndv(100, lib_seqnum=2), on.a.tiny(lib_seqnum=3), after_ms=510)
    on.b.expected = on.a.next = 4
    on.send(on.b.liback(), on.a.tiny())
    assert quiet(on)


@pytest.mark.rule("R-PUL-14", "R-MEA-28")
@pytest.mark.parametrize("both", [True, False], ids=["both", "owner"])
def test_a_handle_of_another_process_is_not_that_of_the_process_before(both):
    """New processes pull more blocks with a handle that their predecessors used, and repeat a block that is settled."""
    on = Testbed(vantage=CAPTURE).connect()
    total = 16 * MXOE.block_length

    def transfer() -> None:
        on.send(on.a.rndv(total))
        for block in range(16):
            on.send(on.b.pull(total, block), *(on.a.data(total, 8 * block + place) for place in range(8)))

    transfer()
    on.send(on.b.notify(total))
    for host, session in ((on.a, 0x77777777), (on.b, 0x66666666)) if both else ((on.a, 0x77777777),):
        host.session = session
    on.a.next = on.b.next = on.a.expected = on.b.expected = 1
    on.a.connects = on.b.connects = 0
    on.a.rdma_counter = 1
    on.time_ns += 1000 * MILLISECOND
    on.connect()
    transfer()
    on.send(on.b.pull(total, 2), after_ms=1100)
    on.send(*(on.a.data(total, 16 + place) for place in range(8)))
    assert "R-PUL-14" not in {rule for rule, _ in on.rules}


@pytest.mark.rule("R-PUL-03", "R-MEA-21")
def test_pulls_of_openings_before_the_capture_may_share_a_handle():
    """D-13: both pulls continue, and only their sessions differ."""
    on = Testbed(vantage=CAPTURE)
    on.send(on.b.pull(50_000, session=0x11111111), on.b.pull(60_000, session=0x22222222))
    assert "R-PUL-03" not in {rule for rule, _ in on.rules}


@pytest.mark.rule("R-PUL-01", "R-PUL-13", "R-SND-03")
def test_sizes_are_not_judged_without_a_known_frame_limit():
    """Hosts with frames of 1500 bytes, read as if they had the usual 9000."""
    right = Testbed(omx(1500)).connect()
    right.send(right.a.medium(3000, 0), right.a.medium(3000, 1), right.a.medium(3000, 2), right.b.liback())
    right.large(100_000)
    for known in (True, False):
        judge, found = Judge(replace(omx(9000), frame_limit_known=known), replace(CAPTURE, from_start=True)), []
        for time, raw in right.sent:
            found += judge.observe(time, parse(raw, omx(9000)), raw, len(found) + 1)
        assert bool(found) == known, found


def test_resent_in_time_with_the_present_acknowledgement():
    on = Testbed().connect()
    on.send(on.a.tiny(), on.b.tiny(lib_piggyack=1))
    on.send(on.a.tiny(lib_seqnum=1), after_ms=510)
    on.send(on.a.medium(5000, 0), on.a.medium(5000, 1))
    on.send(on.a.medium(5000, 0, lib_seqnum=2), after_ms=510)
    on.send(on.a.medium(5000, 1, lib_seqnum=2))
    assert quiet(on)


@pytest.mark.rule("R-SEQ-03")
def test_the_requested_session_number_may_increase_by_one_at_any_time():
    on = Testbed()
    on.send(on.b.request(target_recv_seqnum_start=0x4001))
    on.send(on.b.request(target_recv_seqnum_start=0x8001), after_ms=200)
    assert quiet(on)


@pytest.mark.rule("W-5")
def test_a_host_that_has_taught_two_indexes_may_have_taught_others_before_the_capture():
    on = Testbed(vantage=CAPTURE).connect()
    on.send(on.b.query(src_dst_peer_index=9), on.a.tiny(dst_src_peer_index=5), after_ms=100)
    assert quiet(on)


def test_numbers_wrap():
    """After 14 bits, and differences with them (R-SEQ-01, R-SEQ-02)."""
    on = Testbed().connect()
    for _ in range(0x4000 + 10):
        on.a.next &= 0x3FFF
        on.b.expected = on.a.next
        on.send(on.a.tiny(lib_seqnum=on.a.next), after_ms=0.01)
        on.a.next += 1
        on.b.expected = on.a.next & 0x3FFF
        on.send(on.b.liback(), after_ms=0.01)
    assert quiet(on)


def test_lost_frames_are_retransmitted():
    on = Testbed().connect()
    on.send(on.a.tiny(), delivered_ns=LOST)
    on.send(on.a.tiny())
    on.send(on.a.tiny(lib_seqnum=1), on.a.tiny(lib_seqnum=2), after_ms=510)
    on.send(on.b.liback())
    assert quiet(on)


def test_a_partner_reopens_its_endpoint():
    on = Testbed().connect()
    on.send(on.a.tiny(), on.b.tiny(), on.a.tiny())
    on.b.session, on.b.next, on.b.expected, on.b.connects, on.a.expected = 0x55556666, 1, 1, 0, 1
    on.a.libacks = 0
    on.send(on.b.request())
    on.a.next = 1
    on.send(on.a.reply(), on.a.request())
    on.send(on.b.reply(), on.a.tiny(), on.b.tiny(), on.a.liback())
    assert quiet(on)


def reopen(side, elsewhere):
    """A new opening of a side's endpoint, which a frame to another host shows first."""
    side.reopen()
    side.index_there = 0xFFFF
    side.testbed.send(side.request(dst_mac=elsewhere))
    side.connects, side.index_there = 0, side.peer.index_of_peer


@pytest.mark.rule("R-CON-10", "R-EP-02")
def test_a_request_may_have_reached_the_new_opening_although_the_replies_were_lost():
    on = Testbed(vantage=replace(CAPTURE, from_start=True)).connect()
    on.send(on.a.tiny(), on.a.request())
    reopen(on.b, b"\x02\0\0\0\0\x0c")
    on.send(on.b.request(), on.a.rndv(5000), on.b.pull(5000), after_ms=100)
    assert quiet(on)


@pytest.mark.rule("R-CON-08", "R-EP-02")
def test_a_duplicate_of_an_answered_request_introduces_its_sender_to_the_next_opening():
    on = Testbed()
    on.send(on.a.request(), delivered_ns=on.time_ns, arrivals=2)
    on.send(on.b.reply())
    reopen(on.b, b"\x02\0\0\0\0\x0c")
    on.send(on.b.reply(connect_seqnum=0), on.a.rndv(5000), on.b.pull(5000))
    assert quiet(on)


@pytest.mark.rule("R-MEA-14", "R-NOT-01")
@pytest.mark.parametrize(
    "vantage", [SENDERS, CAPTURE, replace(CAPTURE, from_start=True)], ids=["senders", "capture", "started"]
)
def test_messages_of_two_openings_may_look_alike(vantage):
    """Both count regions and their uses from the start: a NOTIFY of 0 bytes for the message of the one ends nothing of
    the other."""
    on = Testbed(vantage=vantage).connect()
    on.send(on.a.rndv(50_000), on.b.pull(50_000), on.a.nack_pull(2))
    on.a.reopen()
    on.a.rdma_counter = 23
    on.send(on.a.request(), on.b.reply(), on.b.request(), on.a.reply())
    on.send(on.a.rndv(5000), on.b.notify(0))
    on.b.handle += 1
    on.send(on.b.pull(5000), on.a.data(5000, 0), on.a.data(5000, 1), on.b.notify(5000))
    assert quiet(on)


@pytest.mark.rule("R-MEA-14", "R-RDV-01")
def test_a_message_of_0_bytes_may_look_like_one_of_a_former_opening():
    """Its region is free after its NOTIFY, although that might have been for the other one (seed 30003034)."""
    on = Testbed().connect()
    on.send(on.a.rndv(50_000), on.b.pull(50_000), on.a.nack_pull(3))
    on.a.reopen()
    on.a.rdma_counter = 23
    on.send(on.a.request(), on.b.reply(), on.b.request(), on.a.reply())
    on.send(on.a.rndv(0), on.b.notify(0), on.a.rndv(0), on.b.notify(0))
    assert quiet(on)


@pytest.mark.rule("R-MEA-14", "R-NOT-01")
def test_one_notify_of_0_bytes_ends_each_refused_message():
    """A second one for the same message is as wrong as ever."""
    on = Testbed().connect()
    on.send(on.a.rndv(50_000), on.b.pull(50_000), on.a.nack_pull(2))
    on.a.reopen()
    on.send(on.a.request(), on.b.reply(), on.b.request(), on.a.reply(), on.b.notify(0))
    assert {each.rule for each in on.found} == {"R-MEA-14"}
    on.send(on.b.notify(0))
    assert on.rules == {("R-NOT-01", "violation")}


@pytest.mark.rule("R-MEA-14", "R-NOT-01")
def test_only_0_bytes_are_excused():
    on = Testbed().connect()
    on.send(on.a.rndv(5000), on.b.pull(5000), on.a.nack_pull(2))
    on.a.reopen()
    on.send(on.a.request(), on.b.reply(), on.b.request(), on.a.reply(), on.b.notify(5000))
    assert on.rules == {("R-NOT-01", "violation")}


@pytest.mark.rule("R-MEA-14", "R-NOT-01")
def test_the_message_of_a_former_opening_may_have_been_missed():
    """The capture was begun between its RNDV and the end of its sender."""
    on = Testbed(vantage=CAPTURE)
    on.a.index_there = on.b.index_there = 1
    on.send(on.a.tiny(), on.b.tiny())
    on.a.reopen()
    on.send(on.a.request(), on.b.reply(), on.b.request(), on.a.reply(), on.b.notify(0))
    assert quiet(on)


@pytest.mark.rule("R-MEA-20", "R-PUL-08", "R-HOST-02")
@pytest.mark.parametrize("late_ms", [0, 12, 32])
def test_timers_of_real_hosts_are_late(late_ms):
    """Also where it is known how often their clock ticks."""
    on = Testbed(vantage=replace(SENDERS, hz=250)).connect()
    on.send(on.a.rndv(50_000), on.b.pull(50_000), on.b.pull(50_000, 1))
    for _ in range(3):
        on.send(on.b.pull(50_000), after_ms=1000 + late_ms)
        on.send(on.b.pull(50_000, 1), after_ms=0.01)
    for _ in range(4):
        on.send(on.a.query(), after_ms=5000 + 4 * late_ms)
    assert quiet(on)


@pytest.mark.rule("R-MEA-15", "R-PUL-02")
@DIALECTS
def test_first_pulls_out_of_order(dialect):
    """As a busy host sends them: blocks 0, 1, 4, 2, 3, 5; two are requested again when block 4 is complete."""
    on = Testbed(dialect).connect()
    total, frames = 9 * dialect.block_length, dialect.frames_per_block
    payload = dialect.reply_payload

    def replies(block):
        return [
            on.a.data(total, place) for place in range(block * frames, min((block + 1) * frames, -(-total // payload)))
        ]

    on.send(on.a.rndv(total), on.b.pull(total, 0), on.b.pull(total, 1), *replies(0))
    on.send(
        on.b.pull(total, 4), on.b.pull(total, 2), on.b.pull(total, 3), *replies(1), on.b.pull(total, 5), *replies(4)
    )
    on.send(on.b.pull(total, 2), on.b.pull(total, 3), *replies(2), *replies(3), *replies(5), *replies(2), *replies(3))
    on.send(*(on.b.pull(total, block) for block in (6, 7, 8)), *replies(6), *replies(7), *replies(8))
    on.send(on.b.notify(total))
    assert quiet(on)


def test_a_host_restarts():
    on = Testbed().connect()
    on.send(on.a.tiny())
    on.judge.restarted(on.b.mac)
    on.judge.restarted(b"nobody")
    on.b.index_there, on.b.session, on.b.connects, on.b.expected, on.b.next = 0xFFFF, 0x55556666, 0, 1, 1
    on.a.next = on.a.expected = 1
    on.send(on.b.request())
    on.send(on.a.reply())
    assert quiet(on)


def test_a_large_message_of_a_former_opening_is_pulled_late():
    """Its sender has gone; the puller does not know yet, and is refused."""
    on = Testbed().connect()
    on.send(on.a.rndv(5000))
    former = on.a.session
    on.send(on.a.request(src_session_id=0x77777777, connect_seqnum=0), delivered_ns=LOST)
    on.send(on.b.pull(5000, session=former), on.a.nack_pull(3), on.b.notify(0, session=former), on.a.nack(3, 1))
    assert quiet(on)


def test_a_reply_may_be_refused():
    """The requester was closed in the meantime."""
    on = Testbed().connect()
    on.send(on.a.request(), on.b.reply(), on.a.nack(2, 0))
    assert quiet(on)


def test_connect_numbers_restart_for_a_restarted_partner():
    on = Testbed()
    on.send(on.a.request(), on.b.request())
    on.send(on.a.reply(), on.b.request(src_session_id=0x77777777, connect_seqnum=0))
    on.send(on.a.reply(src_session_id=0x77777777, connect_seqnum=0))
    on.send(on.a.request(connect_seqnum=0), after_ms=100)
    assert quiet(on)


def test_all_connect_numbers_restart_for_a_restarted_partner():
    """The numbers after 0 as well, with whatever key."""
    on = Testbed()
    on.send(on.a.request(), on.a.request(app_key=1), on.b.request())
    on.send(on.a.reply(), on.b.request(src_session_id=0x77777777, connect_seqnum=0))
    on.send(on.a.reply(src_session_id=0x77777777, connect_seqnum=0))
    on.send(on.a.request(connect_seqnum=0), on.a.request(connect_seqnum=1), after_ms=100)
    assert quiet(on)


def test_all_connect_numbers_restart_after_a_disconnect():
    """Numbers that were refused then come again, with whatever key (R-CLS-03)."""
    on = Testbed()
    on.send(on.a.request(), on.a.request(app_key=1), on.b.nack(2, 0), on.b.nack(2, 0))
    on.send(on.a.request(connect_seqnum=0), on.a.request(connect_seqnum=1), after_ms=600)
    assert quiet(on)


def test_a_connect_with_a_wrong_key_is_over_once_it_is_answered():
    """Number 0 with another key then belongs to a new count."""
    on = Testbed()
    on.send(on.a.request(app_key=1), on.b.reply(connect_status_code=11))
    on.send(on.a.request(connect_seqnum=0), after_ms=5000)
    assert quiet(on)


def test_a_restarted_host_queries_names_again():
    on = Testbed().connect()
    for _ in range(2):
        on.send(on.a.query(), delivered_ns=on.time_ns)
        on.send(on.b.name(), delivered_ns=on.time_ns)
        on.judge.restarted(on.a.mac)
    assert quiet(on)


def test_network_duplicates_are_not_retransmissions():
    on = Testbed(vantage=replace(CAPTURE, from_start=True)).connect()
    first = on.a.tiny()
    on.send(first, first)
    on.send(on.a.medium(5000, 0), on.a.medium(5000, 1), on.a.medium(5000, 0, lib_seqnum=2))
    assert quiet(on)


def test_findings_name_the_earlier_frame():
    on = Testbed().connect()
    on.send(on.a.tiny())
    on.send(on.a.tiny(b"HELLO", lib_seqnum=1), after_ms=510)
    (found,) = on.found
    assert found.frames == (5, 6)
    assert found.host == on.a.mac
    assert str(found) == (
        "violation of R-RTX-02 (02:00:00:00:00:0a, frame 5, 6): TINY with different data; "
        "expected: 0x0001 retransmitted unchanged, as TINY"
    )


@pytest.mark.parametrize("vantage", [CAPTURE, SENDERS], ids=["capture", "senders"])
@pytest.mark.parametrize("capture", CAPTURES)
def test_no_frame_upsets_the_judge(capture, vantage):
    """Real conversations with changed bytes; the only requirement is that the judge continues."""
    batch = read_capture(capture)
    codec = codec_of(dialect_of(capture))
    rng = random.Random(capture)
    judge = Judge(dialect_of(capture), vantage)
    for index in range(min(len(batch), 400)):
        raw = bytearray(batch.frame(index))
        for _ in range(rng.choice((0, 1, 1, 3))):
            raw[rng.randrange(14, min(len(raw), 60))] = rng.choice((0, 1, 0x7F, 0xFF, rng.randrange(256)))
        judge.observe(int(batch.timestamp_ns[index]), codec.parse(bytes(raw)), bytes(raw), index)
    judge.finish()


def test_memory_of_a_conversation_is_bounded():
    """One direction without any acknowledgement, far beyond the window."""
    on = Testbed().connect()
    on.judge.vantage = SENDERS
    raw = on.a.tiny()
    for number in range(2, 30_000):
        frame = replace(raw, lib_seqnum=number & 0x3FFF)
        on.judge.observe(on.time_ns + number, frame, bytes(60), number)
    (flow,) = [each for each in on.judge._pairs[on.b.mac + on.a.mac].flows.values() if each.stream]
    assert len(flow.stream.messages) < 8400
    assert sys.getsizeof(flow.stream.messages) < 1 << 20


def test_short_garbage():
    judge = Judge(MXOE)
    for raw in (b"", b"\0", bytes(12), bytes(17)):
        judge.observe(0, parse(raw, MXOE), raw, 1)


@pytest.mark.rule("R-RTX-05")
def test_nothing_counts_as_received_after_a_partner_was_abandoned():
    """An ack at that time has the session number of the former stream, and no meaning."""
    on = Testbed()
    on.a.expected = on.b.next = 0x4001
    on.connect().send(on.b.tiny(), on.a.liback())
    on.a.session, on.a.connects, on.a.expected = 0x55556666, 0, 0x70F1
    on.a.next = on.b.expected = 1
    on.send(on.a.request())
    on.send(on.b.reply(), on.a.tiny(lib_piggyack=0x4F0E))
    assert quiet(on)


@pytest.mark.rule("R-RTX-05")
def test_connect_numbers_restart_after_a_partner_was_abandoned():
    on = Testbed()
    on.send(on.a.request(app_key=1))
    on.send(on.a.request(connect_seqnum=0, target_recv_seqnum_start=0x70F1), after_ms=5000)
    assert quiet(on)


@pytest.mark.rule("R-RTX-05", "R-ACK-01")
def test_an_abandoned_medium_is_not_missing_later():
    """Its receiver asks for the number behind it, and then acknowledges what comes."""
    on = Testbed().connect()
    on.send(on.a.medium(10_000, 0), on.a.medium(10_000, 1, lib_seqnum=1), delivered_ns=LOST)
    on.send(on.b.request(target_recv_seqnum_start=2))
    on.a.connects = 1
    on.send(on.a.request(connect_seqnum=0, target_recv_seqnum_start=0x70F1), after_ms=5000)
    on.send(on.b.reply(target_recv_seqnum_start=2), on.a.rndv(5000), on.b.liback())
    assert quiet(on)


def test_a_suspended_target_answers_requests_from_before_it_was_abandoned():
    on = Testbed()
    for start in (1, 0x70F1):
        on.send(on.a.request(connect_seqnum=0, target_recv_seqnum_start=start), after_ms=5000, delivered_ns=on.time_ns)
    on.a.connects = 1
    for _ in range(2):
        on.send(on.b.reply(), delivered_ns=on.time_ns)
    assert quiet(on)
    on.send(on.b.reply(), delivered_ns=on.time_ns)
    assert [each.rule for each in on.found] == ["R-CON-08"]


@pytest.mark.rule("R-CON-08", "R-RTX-05", "R-GEN-01")
@pytest.mark.parametrize("vantage", [SENDERS, replace(CAPTURE, from_start=True)], ids=["senders", "capture"])
def test_a_suspended_target_refuses_the_key_of_an_abandoned_connect(vantage):
    """It answers after its requester has connected again, with another key and the same number."""
    on = Testbed(vantage=vantage).connect()
    on.a.connects = 1
    times = {"delivered_ns": on.time_ns} if vantage is SENDERS else {}
    on.send(on.a.request(connect_seqnum=3, app_key=KEY + 1), after_ms=5000, **times)
    on.send(on.a.request(connect_seqnum=3, target_recv_seqnum_start=0x70F1), after_ms=5000, **times)
    on.a.connects = 4
    on.send(on.b.reply(connect_status_code=11), on.b.reply(), **times)
    assert "R-CON-08" not in [each.rule for each in on.found]


@pytest.mark.rule("R-CLS-05", "R-RTX-05")
def test_number_1_is_expected_after_a_reset_of_an_abandoned_partner():
    on = Testbed()
    on.a.expected = on.b.next = 0x70F1
    on.connect().send(on.b.tiny(), on.b.tiny(), on.a.liback())
    on.a.expected, on.a.libacks = 0x4001, 0
    on.send(on.a.request())
    on.send(on.b.reply(), on.a.tiny())
    assert quiet(on)


def test_a_restarted_host_received_the_frames_in_flight():
    """Indexes taught before the restart are forgotten; frames that arrive after it are not."""
    on = Testbed().connect()
    on.send(on.a.request(), delivered_ns=on.time_ns + 50 * MILLISECOND)
    on.judge.restarted(on.b.mac, on.time_ns + 20 * MILLISECOND)
    on.send(on.b.nack(2, 0), after_ms=50)
    assert quiet(on)
    on.judge.restarted(on.b.mac, on.time_ns)
    on.send(on.b.nack(2, 0))
    assert [each.rule for each in on.found] == ["W-5"]


@pytest.mark.rule("R-SEQ-03", "R-RTX-05")
@pytest.mark.parametrize(("after_ms", "found"), [(200, True), (700, True), (1000, False)])
def test_a_partner_may_be_abandoned_twice_within_two_retransmissions(after_ms, found):
    """Each time but the first takes two further transmissions at least, and the session number grows by one."""
    on = Testbed(vantage=replace(CAPTURE, from_start=True))
    on.send(on.b.request(target_recv_seqnum_start=0x8001))
    on.send(on.b.request(target_recv_seqnum_start=1), on.b.request(target_recv_seqnum_start=0x8001), after_ms=after_ms)
    assert ("R-SEQ-03" in {rule for rule, _ in on.rules}) is found


@pytest.mark.rule("R-PUL-07", "R-PUL-08")
def test_a_duplicate_of_a_pull_does_not_count_as_an_early_re_request():
    """The puller may still re-request the block once, as a later one is complete."""
    on = Testbed(vantage=CAPTURE).connect()
    on.send(on.a.rndv(200_000), first := on.b.pull(200_000), on.b.pull(200_000, 1))
    on.send(first, after_ms=0.01)
    on.send(*(on.a.data(200_000, place) for place in range(8, 16)))
    on.send(on.b.pull(200_000), after_ms=150)
    assert quiet(on)


@pytest.mark.rule("R-HOST-03")
def test_the_magic_of_queries_is_incremented_when_names_are_cleared():
    on = Testbed()
    on.send(*(on.a.query(magic=QUERY_MAGIC + cleared) for cleared in range(3)), after_ms=6000)
    assert quiet(on)

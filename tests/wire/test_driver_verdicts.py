"""The real driver's verdict on single frames: refused for a length or the type if and only if mxwire reports malformed.

One kind of frame is left out, by rule and not by list: the driver tests the length of a TRUC only after peer index,
endpoint and session (behaviour, section 21), so whether it gets that far depends on what the receiver knows, and a
TRUC is never malformed by its length.
"""

from __future__ import annotations

import pytest

from mxwire.frames import FrameBatch
from mxwire.wire.checks import Reason
from mxwire.wire.codec import Malformed, codec_of, parse
from mxwire.wire.columns import decode_columns
from mxwire.wire.decoder import Decoder
from mxwire.wire.encapsulation import locate
from mxwire.wire.enums import PacketType

from .support import BAD_LENGTHS_AND_TYPES, DIALECTS, VERDICT_FILES, Verdict, read_verdicts


def type_of(verdict: Verdict) -> int | None:
    """The type byte, behind a VLAN tag if there is one."""
    untagged = verdict.frame[4:] if verdict.frame[12:14] == b"\x81\x00" else verdict.frame
    return untagged[16] if len(untagged) > 16 else None


def wanted(verdict: Verdict) -> str:
    return "" if type_of(verdict) == PacketType.TRUC else verdict.refused_for


@pytest.fixture(params=VERDICT_FILES)
def name(request):
    return request.param


@pytest.fixture
def dialect(name):
    return DIALECTS[name]


@pytest.fixture
def sent(name):
    """The frames with MXoE's EtherType; the rest never reaches the driver."""
    return [each for each in read_verdicts(name) if each.frame[12:14] in (b"\x86\xdf", b"\x81\x00")]


@pytest.fixture
def batch(name):
    return FrameBatch.from_frames([each.frame for each in read_verdicts(name)])


def differences(sent, reasons):
    assert len(sent) == len(reasons)
    return [
        (each.number, each.what, wanted(each), reason)
        for each, reason in zip(sent, reasons, strict=True)
        if wanted(each) != reason
    ]


def test_the_files_are_worth_their_name(sent):
    """Every reason occurs, and most frames are well formed."""
    met = {each.refused_for for each in sent}
    assert met >= set(BAD_LENGTHS_AND_TYPES.values()) - {"bad header length"}
    assert sum(not each.refused_for for each in sent) > 800


def test_truc_is_left_out_for_a_reason(sent):
    """Of two TRUCs with the same impossible length, the driver calls only the one it gets to badly sized."""
    trucs = [each for each in sent if type_of(each) == PacketType.TRUC and each.frame[12:14] == b"\x86\xdf"]
    short = [each for each in trucs if each.frame[20] < 16]
    assert {each.refused_for for each in short} == {"", "bad data length"}


def test_frame_by_frame(sent, dialect):
    reasons = []
    for verdict in sent:
        located = locate(FrameBatch.from_frames([verdict.frame]))
        read = codec_of(dialect).parse(located.frame(0))
        reasons.append(read.reason.text if isinstance(read, Malformed) else "")
    assert not differences(sent, reasons)


def test_as_columns(sent, batch, dialect):
    columns = decode_columns(batch, dialect)
    assert not differences(sent, [Reason(each).text for each in columns.reason])


def test_other_ethertypes_are_skipped(name, sent, batch):
    others = [each for each in read_verdicts(name) if each.frame[12:14] not in (b"\x86\xdf", b"\x81\x00")]
    located = locate(batch)
    assert located.skipped == len(others) > 0
    assert not any(each.counters for each in others)
    assert located.batch.length.tolist() == [len(each.frame) for each in sent]


def test_decoder_that_knows_the_dialect(sent, batch, dialect):
    decoder = Decoder(dialect)
    decoded = decoder.decode(batch)
    assert not differences(sent, [Reason(each).text for each in decoded.columns.reason])
    assert not decoder.swapped_hosts()
    assert decoder.decoded == len(sent)


def test_a_decoder_that_detects_from_all_frames(sent, batch):
    """Hostile frames among them do not mislead it."""
    decoder = Decoder()
    decoded = decoder.decode(batch)
    assert not differences(sent, [Reason(each).text for each in decoded.columns.reason])
    assert not decoder.swapped_hosts()
    for index, verdict in enumerate(sent):
        read = decoded.frame(index)
        assert wanted(verdict) == (read.reason.text if isinstance(read, Malformed) else "")


def test_decoder_that_sees_a_single_frame(sent, dialect):
    """The same verdict even so, unless the dialects differ on a MEDIUM: nothing in one fragment shows the slot size."""
    depends_on_dialect = 0
    for verdict in sent:
        decoder = Decoder()
        decoded = decoder.decode(FrameBatch.from_frames([verdict.frame]))
        reason = Reason(decoded.columns.reason[0]).text
        assert not decoder.swapped_hosts(), verdict
        if reason == wanted(verdict):
            continue
        assert dialect.family == "omx", verdict
        assert type_of(verdict) == PacketType.MEDIUM, verdict
        answers = [parse(verdict.frame, each) for each in DIALECTS.values()]
        verdicts = {each.reason.text if isinstance(each, Malformed) else "" for each in answers}
        assert {reason, wanted(verdict)} <= verdicts, verdict
        depends_on_dialect += 1
    assert depends_on_dialect <= 12

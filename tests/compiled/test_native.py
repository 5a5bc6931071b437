"""The parts of mxwire in C (``mxwire/native.c``) do what their parts in Python do."""

from __future__ import annotations

import array
import mmap
import socket
import struct
import sys
import threading
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mxwire.errors import InvalidRecordError
from mxwire.link import record_ring, ring_v2
from mxwire.link.ring import SHORT, USER, VLAN_VALID
from mxwire.protocol.arguments import _array_address, _assign_slice, _is_flat_view
from mxwire.protocol.card.replies import REPLY_PARTS
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import MXOE
from mxwire.wire.enums import PacketType
from mxwire.wire.layout import TYPE_OFFSET
from mxwire.wire.packets import PullReply
from tests.compiled.test_compiled import compiled  # noqa: F401  # A fixture.


@pytest.fixture(scope="module")
def native(compiled) -> Any:  # noqa: F811
    """The module in C."""
    (path,) = (compiled / "mxwire").glob("_native*.so")
    spec = spec_from_file_location("mxwire._native", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Struct.

NUMBERS = {"B": 1, "H": 2, "I": 4, "Q": 8}
VALUES = st.one_of(st.integers(-2, 300), st.integers(0, 1 << 65), st.binary(max_size=9), st.just("no bytes"))


def outcome(call, *arguments):
    try:
        return call(*arguments)
    except struct.error:
        return struct.error


@st.composite
def formats(draw):
    items = draw(st.lists(st.tuples(st.sampled_from("BHIQsx"), st.sampled_from(["", "0", "1", "3", "6"])), max_size=8))
    return draw(st.sampled_from("<>=!")) + "".join(count + code for code, count in items)


@settings(max_examples=300)
@given(form=formats(), data=st.data())
def test_struct_packs_and_unpacks_as_that_of_python(native, form, data):
    ours, theirs = native.Struct(form), struct.Struct(form)
    assert (ours.size, ours.format) == (theirs.size, theirs.format)
    content, offset = data.draw(st.binary(min_size=0, max_size=80)), data.draw(st.integers(0, 4))
    for buffer in (content, bytearray(content), memoryview(content)):
        assert outcome(ours.unpack_from, buffer, offset) == outcome(theirs.unpack_from, buffer, offset)
    values = outcome(theirs.unpack_from, content)
    if values is not struct.error:
        assert ours.pack(*values) == theirs.pack(*values)
    count = len(theirs.unpack_from(bytes(theirs.size)))
    others = data.draw(st.lists(VALUES, min_size=max(0, count - 1), max_size=count + 1))
    assert outcome(ours.pack, *others) == outcome(theirs.pack, *others)


@pytest.mark.parametrize("form", ["", "4B", "@I", ">i", ">P", ">65B", ">99999999999999999999x"])
def test_struct_refuses_formats_that_it_does_not_support(native, form):
    with pytest.raises(struct.error):
        native.Struct(form)


def test_a_struct_is_made_once_even_while_it_packs(native):
    form = native.Struct(">H")

    class Hostile:
        def __index__(self) -> int:
            with pytest.raises(TypeError, match="made once"):
                form.__init__("<64Q")
            return 258

    assert form.pack(Hostile()) == b"\1\2"
    assert (form.size, form.format) == (2, ">H")
    with pytest.raises(struct.error, match="null"):
        native.Struct(">B\0Q")
    unmade = native.Struct.__new__(native.Struct)
    assert (unmade.pack(), unmade.unpack_from(b"")) == (b"", ())


def test_numbers_of_4_bytes_have_no_sign(native):
    packed = native.Struct(">2I").pack(0x7FFF_FFFF, 0xFFFF_FFFF)
    assert native.Struct(">2I").unpack_from(packed) == (0x7FFF_FFFF, 0xFFFF_FFFF)
    for value in (-1, 1 << 32, "text"):
        with pytest.raises(struct.error, match=f"^{value!r} is not an integer of 4 bytes without a sign$"):
            native.Struct(">I").pack(value)


# Lock.


def test_the_lock_belongs_to_one_thread_to_any_depth(native):
    lock, found = native.Lock(), []
    condition = threading.Condition(lock)

    def other():
        with condition:
            found.append("inside")
            condition.notify()

    lock.acquire()
    with lock:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(0.05)
        assert found == [] and lock._is_owned()
        # The wait releases both levels.
        assert condition.wait(10)
        assert found == ["inside"] and lock._is_owned()
    assert lock._is_owned()
    lock.release()
    thread.join()
    assert not lock._is_owned()


def test_a_lock_that_is_not_held_cannot_be_released(native):
    lock = native.Lock()
    for release in (lock.release, lock._release_save):
        with pytest.raises(RuntimeError):
            release()
    lock.acquire()
    refusals = []

    def other():
        with pytest.raises(RuntimeError) as caught:
            lock.release()
        refusals.append(caught)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert refusals and lock._is_owned()


# Rings of the kernel.

NOTE = struct.Struct("IIIH")
SLOT, SLOTS, MAC = 1024, 4, 80


def slot_ring(memory: bytearray) -> Any:
    """A ring in Python over memory that no kernel writes."""
    ring = ring_v2.SlotRing.__new__(ring_v2.SlotRing)
    ring._mapped, ring._words = memory, memoryview(memory).cast("I")
    ring._words_per_slot, ring._slot, ring.slots = SLOT // 4, SLOT, SLOTS
    ring._first, ring._taken, ring._quiet = 0, 0, False
    return ring


FRAMES = st.tuples(st.integers(0, SHORT + 2), st.sampled_from([0, 0, 0, 1]), st.sampled_from([0, 0, 0, VLAN_VALID]))
STEPS = st.lists(st.one_of(st.just("take"), FRAMES), max_size=30)


@pytest.mark.interpreted("compares with the ring in Python")
@given(steps=STEPS)
def test_frames_are_taken_from_slots_as_in_python(native, steps):
    memories = bytearray(SLOT * SLOTS), bytearray(SLOT * SLOTS)
    ring = slot_ring(memories[0])
    reader = native.SlotReader(memories[1], SLOT, ring_v2._FEW, SHORT)
    place = 0
    for step in [*steps, "take", "take"]:
        if step == "take":
            assert reader.take() == ring._take_short()
            assert reader.head == ring._first
            assert memories[0] == memories[1]
            continue
        length, cut, flags = step
        start = place * SLOT
        if NOTE.unpack_from(memories[0], start)[0] & USER:
            continue
        for memory in memories:
            memory[start + MAC : start + MAC + length] = bytes([place]) * length
            NOTE.pack_into(memory, start, USER | flags, length + cut, length, MAC)
        place = (place + 1) % SLOTS


def test_frames_are_sent_up_to_the_first_that_is_refused(native):
    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, two:
        frames = [bytes([number]) * number for number in range(1, 5)]
        assert native.send_frames(one.fileno(), [*frames, memoryview(b"view")], -1) == 5
        assert [two.recv(100) for _ in range(5)] == [*frames, b"view"]
        assert native.send_frames(one.fileno(), [b"a", bytes(1 << 22), b"b"], -1) == 1
        assert native.send_frames(-1, [b"a"], -1) == 0


def test_gathered_frames_are_sent_like_others_and_hold_their_memory(native):
    form, head, memory = native.RunForm(*REPLY_PARTS), bytes(range(len(REPLY_PARTS[0]))), bytearray(range(100))
    frames = form.gather(head, memory, 3, 0, [50, 1, 0])
    # Their data is that of the moment at which they are sent.
    memory[0] = 77
    copies = form.build(head, memory, 3, 0, [50, 1, 0])
    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, two:
        for place in range(3):
            assert native.send_frames(one.fileno(), [frames[place]], -1) == 1
            assert two.recv(100) == copies[place]
        assert native.send_frames(one.fileno(), [b"first", *frames, b"last"], -1) == 5
        assert [two.recv(100) for _ in range(5)] == [b"first", *copies, b"last"]
    with pytest.raises(BufferError):
        memory.clear()
    frames.clear()
    memory.clear()
    with pytest.raises(TypeError):
        native.GatheredFrame()


def test_long_frames_pass_through_the_second_socket_with_the_length_to_keep_in_one_piece(native):
    form, head, memory = native.RunForm(*REPLY_PARTS), bytes(range(len(REPLY_PARTS[0]))), bytes(range(256)) * 80
    lengths = [8968, 1, 8000]
    frames, copies = (make(head, memory, 3, 0, lengths) for make in (form.gather, form.build))
    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    whole, long = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    two.setblocking(False)
    with one, two, whole, long:
        assert native.send_frames(one.fileno(), [*frames, bytes(20_000)], whole.fileno()) == 4
        for frame in (*copies, bytes(20_000)):
            received = long.recv(1 << 16)
            assert received[10:] == frame
            assert struct.unpack("=BBHHHH", received[:10]) == (0, 0, min(len(frame), 15_000), 0, 0, 0)
        with pytest.raises(BlockingIOError):
            two.recv(1)
        assert native.send_frames(one.fileno(), [bytes(3999)], whole.fileno()) == 1
        assert two.recv(1 << 16) == bytes(3999)


def test_a_run_without_offsets_is_gathered_and_never_taken(native):
    fixed, shortest, number, length, _ = REPLY_PARTS
    form, head = native.RunForm(fixed, shortest, number, length, -1), bytes(len(fixed))
    (one, two) = form.build(head, b"ab", 7, 99, [1, 1])
    assert (one[number], two[number], one[length : length + 2], two[length + 2 :].strip(b"\0")) == (7, 8, b"\0\1", b"b")
    with pytest.raises(TypeError):
        form.fill([one], 0, 1, bytearray(9), 0)


# Runs of replies to PULLs.

PAYLOAD = 48
REPLIES = codec_of(MXOE)


def reply(number: int, offset: int, data: bytes) -> PullReply:
    return PullReply(
        dst_mac=bytes(range(6)),
        src_mac=bytes(range(6, 12)),
        frame_seqnum=number & 0xFF,
        frame_length=len(data),
        msg_offset=offset & 0xFFFF_FFFF,
        dst_pull_handle=5,
        dst_magic=7,
        data=data,
    )


@pytest.fixture(scope="module")
def form(native) -> Any:
    return native.RunForm(*REPLY_PARTS)


PLACES = st.sampled_from([0, 1, 250, 255]), st.sampled_from([0, 4096, (1 << 32) - 100])


@given(lengths=st.lists(st.sampled_from([0, 1, 27, 28, 29, PAYLOAD]), max_size=9), number=PLACES[0], offset=PLACES[1])
def test_replies_are_built_as_by_the_codec(form, lengths, number, offset):
    data, taken, expected = bytes(range(256)) * 2, 0, []
    for place, length in enumerate(lengths):
        expected.append(REPLIES.build(reply(number + place, offset + taken, data[taken : taken + length])))
        taken += length
    head = REPLIES.build(reply(0, 0, b""))[: len(REPLY_PARTS[0])]
    for memory in (data, memoryview(bytearray(data)), memoryview(data)[:taken]):
        assert form.build(head, memory, number, offset, lengths) == expected
        gathered = form.gather(head, memory, number, offset, lengths)
        assert [bytes(each) for each in gathered] == expected
        assert [len(each) for each in gathered] == [len(each) for each in expected]
    for make in (form.build, form.gather):
        for wrong in ([taken + 1], [-1], [*lengths, 1], [1 << 16], [1 << 70]):
            with pytest.raises((ValueError, OverflowError)):
                make(head, data[:taken], number, offset, wrong)
        for wrong in (head[:-1], head + b"a", bytearray(head)):
            with pytest.raises(TypeError):
                make(wrong, data, number, offset, lengths)


@given(
    number=PLACES[0],
    offset=PLACES[1],
    count=st.integers(0, 9),
    at=st.integers(0, 3 * PAYLOAD),
    damage=st.lists(
        st.tuples(st.integers(0, 7), st.one_of(st.integers(0, 40), st.sampled_from(["cut", "drop", "swap", "view"]))),
        max_size=2,
    ),
    place=st.integers(0, 8),
)
def test_runs_of_replies_are_taken_up_to_the_first_that_does_not_continue_them(
    form, number, offset, count, at, damage, place
):
    """In comparison with the frames one by one, as the codec reads them."""
    frames: list[Any] = [
        REPLIES.build(reply(number + each, offset + each * PAYLOAD, bytes([each + 1]) * PAYLOAD)) for each in range(8)
    ]
    for victim, how in damage:
        victim %= len(frames)
        if how == "drop":
            del frames[victim]
        elif how == "cut":
            frames[victim] = frames[victim][: 20 + 10 * victim]
        elif how == "swap":
            frames[victim], frames[0] = frames[0], frames[victim]
        elif how == "view":
            frames[victim] = memoryview(frames[victim])
        elif how < len(frames[victim]):
            frames[victim] = bytes(each ^ (place == how) for place, each in enumerate(bytes(frames[victim])))
    # The caller has read the type of the first frame.
    assume(place >= len(frames) or bytes(frames[place])[TYPE_OFFSET:][:1] == bytes([PacketType.PULL_REPLY]))
    memory, expected, taken = bytearray(6 * PAYLOAD), bytearray(6 * PAYLOAD), 0
    first = None
    for frame in frames[place:]:
        read = REPLIES.parse(frame) if isinstance(frame, bytes) else None
        if taken == count or not isinstance(read, PullReply):
            break
        first = first or read
        length, end = first.frame_length, at + (taken + 1) * first.frame_length
        if end > len(expected) or read != replace(
            first,
            frame_seqnum=(first.frame_seqnum + taken) & 0xFF,
            msg_offset=(first.msg_offset + taken * length) & 0xFFFF_FFFF,
            data=read.data,
        ):
            break
        expected[end - length : end] = read.data
        taken += 1
    assert form.fill(frames, place, count, memory, at) == taken
    assert form.fill(frames, place, taken, None, at) == taken
    assert memory == expected


def test_a_form_of_replies_checks_its_arguments(native, form):
    fixed, shortest, *offsets = REPLY_PARTS
    for wrong in (
        (bytes(65), 70, *offsets),
        (fixed, len(fixed) - 1, *offsets),
        (fixed, shortest, len(fixed), *offsets[1:]),
        (fixed, shortest, offsets[0], -1, offsets[2]),
        (fixed, shortest, offsets[0], offsets[1], -2),
        (fixed, len(fixed) + 65, *offsets),
        (fixed, shortest, *offsets[:2], len(fixed) - 3),
    ):
        with pytest.raises(ValueError, match="no such fields"):
            native.RunForm(*wrong)
    with pytest.raises(BufferError):
        form.fill([], 0, 1, b"read-only", 0)
    for arguments in (((), 0, 1, bytearray(), 0), ([], 0, 1, bytearray()), ([], "0", 1, bytearray(), 0)):
        with pytest.raises(TypeError):
            form.fill(*arguments)
    for place, at in ((-1, 0), (0, -1), (1 << 40, 0), (0, 1 << 40)):
        assert form.fill([bytes(100)], place, 1, bytearray(9), at) == 0


# Rings between processes.

SIDE = record_ring.SIDE
LAYOUT = record_ring.RING_LAYOUT


class Both:
    """The writers or readers in Python and in C, each on memory of its own, which must agree on all."""

    def __init__(self, python, compiled_one):
        self.both = python, compiled_one

    def __call__(self, name, *arguments):
        found = []
        for each in self.both:
            try:
                value = getattr(each, name)(*arguments)
                found.append(bytes(value) if isinstance(value, memoryview) else value)
            except InvalidRecordError as error:
                found.append(str(error))
        assert found[0] == found[1]
        one, two = ({key: getattr(each, key) for key in ("position", "seen")} for each in self.both)
        assert one == two
        return found[0]


RECORDS = st.tuples(st.just("put"), st.integers(0, 40), st.sampled_from([0, 3, 500, 4096, 32768, 65000]))
HOSTILE = st.tuples(
    st.just("overwrite"),
    st.sampled_from([record_ring.PRODUCED, record_ring.CONSUMED, 512, 513, 600]),
    st.sampled_from([0, 7, 8, 9, 1 << 16, (1 << 16) + 1, 1 << 18, (1 << 64) - 1]),
)
CALLS = st.sampled_from([("peek",), ("advance",), ("waits",), ("take_starved",), ("take_sleep",), ("has_room",)])


@pytest.mark.interpreted("compares with the rings in Python")
@given(steps=st.lists(st.one_of(RECORDS, RECORDS, CALLS, CALLS, HOSTILE), max_size=40))
def test_records_are_written_and_read_as_in_python(native, steps):
    memories = [mmap.mmap(-1, SIDE) for _ in range(2)]
    views = [memoryview(each) for each in memories]
    writer = Both(record_ring.RecordWriter(views[0], *LAYOUT), native.RecordWriter(views[1], *LAYOUT))
    reader = Both(record_ring.RecordReader(views[0], *LAYOUT), native.RecordReader(views[1], *LAYOUT))
    peeked = False
    for name, *arguments in steps:
        if name == "put":
            writer("put", bytes([1]) * arguments[0], bytes([2]) * arguments[1])
        elif name == "overwrite":
            for view in views:
                view.cast("Q")[arguments[0]] = arguments[1]
        elif name in ("take_sleep", "has_room"):
            writer(name, *([4104] if name == "has_room" else []))
        elif name == "advance":
            if peeked:
                reader(name)
                peeked = False
        else:
            found = reader(name)
            peeked |= name == "peek" and isinstance(found, bytes)
        assert memories[0][:] == memories[1][:]
    for both in (writer, reader):
        both("close")
    assert reader("peek") is None and not reader("waits") and not writer("put", b"", b"")


def test_a_ring_refuses_memory_that_is_not_one(native):
    control, longest, *places = LAYOUT
    for size in (control, control + 1000, 4096):
        with pytest.raises(ValueError, match="no such ring"):
            native.RecordReader(mmap.mmap(-1, size), *LAYOUT)
    with pytest.raises(ValueError, match="no such ring"):
        native.RecordReader(mmap.mmap(-1, SIDE), control, longest, *places[:3], control // 8)
    with pytest.raises(ValueError, match="no such ring"):
        native.RecordReader(mmap.mmap(-1, SIDE), control, SIDE, *places)
    with pytest.raises(TypeError):
        native.RecordWriter(array.array("Q", [0]), control)
    writer = native.RecordWriter(mmap.mmap(-1, SIDE), *LAYOUT)
    assert not writer.has_room((1 << 64) - 1)


def stored(store, memory, *arguments):
    """The memory after a call, or None if it was refused."""
    try:
        store(memory, *arguments)
    except (ValueError, TypeError, BufferError):
        return None
    return bytes(memory)


@given(
    room=st.integers(0, 40),
    offset=st.integers(0, 45),
    data=st.binary(min_size=1, max_size=40),
    start=st.integers(0, 39),
    size=st.integers(0, 39),
    read_only=st.booleans(),
)
def test_data_stored_in_memory(native, room, offset, data, start, size, read_only):
    start %= len(data)
    size = 1 + size % (len(data) - start)
    found = []
    for store in (native.store, _assign_slice):
        memory = memoryview(bytearray(range(room)))
        found.append(stored(store, memory.toreadonly() if read_only else memory, offset, data, start, size))
    assert found[0] == found[1]
    room = bytearray(2)
    for wrong in ((), (room, 0, b""), (room, "0", b"", 0, 0), (room, 0, "text", 0, 0), ("text", 0, b"", 0, 0)):
        with pytest.raises((TypeError, BufferError)):
            native.store(*wrong)
    for places in ((-1, 0, 1), (0, -1, 1), (0, 0, -1), (0, 0, 3), (0, 2, 1), (3, 0, 0), (sys.maxsize, 0, sys.maxsize)):
        with pytest.raises(ValueError, match="no room"):
            native.store(room, places[0], b"1", *places[1:])


def test_the_address_of_a_buffer(native):
    memory = bytearray(b"abcdef")
    view = memoryview(memory)
    for each in (memory, view, view[2:], bytes(memory), array.array("Q", [1, 2])):
        assert native.address_of(each) == _array_address(each)
    for wrong in (view[::2], 7, "text"):
        with pytest.raises((TypeError, BufferError)):
            native.address_of(wrong)


@given(
    data=st.binary(max_size=16),
    form=st.sampled_from(["B", "b", "c", "H", "Q"]),
    step=st.sampled_from([1, 2, -1]),
    rows=st.booleans(),
    read_only=st.booleans(),
    released=st.booleans(),
)
def test_a_view_is_plain_bytes_or_not(native, data, form, step, rows, read_only, released):
    memory = data[: len(data) & ~7]
    view = memoryview(memory if read_only else bytearray(memory))
    view = view.cast("B", [2, len(memory) // 2]) if rows and memory else view.cast(form)[::step]
    if released:
        view.release()
    for writable in (False, True):
        assert native.is_flat(view, writable) == _is_flat_view(view, writable)
    for wrong in ((), (view,), (memory, True), (7, True)):
        with pytest.raises(TypeError):
            native.is_flat(*wrong)


def test_slots_outside_of_the_memory_are_refused(native):
    with pytest.raises(ValueError, match="no slot"):
        native.SlotReader(bytearray(SLOT - 1), SLOT, ring_v2._FEW, SHORT)
    with pytest.raises(ValueError, match="too small"):
        native.SlotReader(bytearray(SLOT), SLOT, ring_v2._FEW, -1)
    reader = native.SlotReader(bytearray(SLOT * SLOTS), SLOT, ring_v2._FEW, SHORT)
    for place in (-1, SLOTS, 1 << 40):
        reader.head = place
        with pytest.raises(ValueError, match="no such slot"):
            reader.take()

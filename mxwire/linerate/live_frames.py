"""Live frames: test frames that a BPF program in the kernel makes, numbers, paces and sends (BPF_PROG_TEST_RUN).

Theory of operation
-------------------
The kernel can run an XDP program for frames that it makes itself, millions per second, and a program can redirect each
of them to an interface. No socket and no system call per frame is involved; one call makes many frames.

*Content.* The kernel reuses the memory of its frames, with what an earlier run of the program has left there. With one
template all frames have its bytes from the start, and the program writes only stamp and patched fields. With several,
a map has the bytes of each; the program shortens the frame to the length of the template whose turn it is and copies it
there. Numbers, streams and patched fields are those of :class:`~mxwire.linerate.slots.FrameSlots`.

*Pace.* Without a rate, a call makes as many frames as are wanted. With a rate, each run of the program is a poll: it
compares the clock with the time at which the next frame is due, and drops the frame if it is early. The precision of a
frame is therefore that of a poll, about 0.1 µs, and does not depend on Python. The time of the next frame is in a map,
as are burst, limits and forgone frames, by the rules of :class:`~mxwire.linerate.pacing.TokenBucket`. Polling occupies
a CPU; if the next frame is due much later, the process sleeps first.

*Calls.* A call ends when its number of frames or polls is reached, or with a signal. It is kept short, so that limits,
progress and interrupts are noticed. That costs little as long as the program is on standby
(:meth:`~mxwire.link.bpf.BpfProgram.standby`); otherwise calls are long, since each has a fixed cost.
"""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from enum import IntEnum
from typing import Final

import numpy as np

from mxwire.errors import MxwireError
from mxwire.linerate.generator import ClockMonitor, GeneratorPlan, GeneratorResult
from mxwire.linerate.pacing import burst_gap
from mxwire.linerate.template import RUN_SHIFT, STAMP, STREAM_SHIFT, FieldPatch, FrameTemplate, prepare_stamps
from mxwire.link.bpf import LONGEST_LIVE_FRAME, MAPPABLE, BpfMap, BpfProgram, MapKind
from mxwire.link.bpf_code import (
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
    Code,
    Context,
    Helper,
    Instruction,
    Size,
    XdpAction,
    call,
    compute,
    give,
    jump,
    jump_if,
    leave,
    load,
    load_constant,
    load_map,
    load_value_address,
    store,
    to_big_endian,
)
from mxwire.link.errors import LinkError
from mxwire.link.interface import NetworkInterface, read_interface
from mxwire.units import MILLISECOND, SECOND

NOT_POLLED: Final = (
    "frames made by the kernel reach a veth interface only if it polls (NAPI): run the sink with --via xdp "
    "--xdp-mode native, or set ethtool -K IF gro on there"
)
"""The usual reason why no live frame arrives."""


class _State(IntEnum):
    """Offsets of the words of 8 bytes that program and process share. Times are in ns of the monotonic clock."""

    SENT = 0
    """Frames sent."""
    DAY = 8
    """Difference of the clock of day from the monotonic clock."""
    LAST = 16
    """Time of the last frame."""
    DUE = 24
    """Time at which the next frame is due."""
    FRACTION = 32
    """Its fraction, in 2**-32 ns."""
    LEFT = 40
    """Frames left in the current burst."""
    FORGONE = 48
    LIMIT = 56
    """Number of frames at which a paced run ends."""
    END = 64
    """Time at which it ends."""


_SAMPLES_AT: Final = 128
"""Offset of the samples in the same map: how late frames were, each at its number modulo ``_SAMPLES``."""
_SAMPLES: Final = 1 << 16
_UNLIMITED: Final = (1 << 63) - 1
_LONGEST_GAP: Final = (1 << 62) << 32
_FRAME_AT: Final = 8
"""Offset of a template's bytes in its entry of the map, after their number."""
_FIRST_CHUNK: Final = 1 << 14
_FRAMES_MAXIMUM: Final = 1 << 30
_CALL_NS: Final = 50 * MILLISECOND
"""Duration of a call, which only a signal ends early."""
_LONG_CALL_NS: Final = 2 * SECOND
"""The same if each call has a fixed cost."""
_POLL_NS: Final = 100
"""Duration of a poll, until one was measured."""
_POLLS_AT_ONCE: Final = 16
"""Polls per batch of the kernel, which sends the frames at the end of a batch: they wait for at most about 2 µs."""
_FRAMES_AT_ONCE: Final = 64
_BATCH_MAXIMUM: Final = 256
_SPIN_NS: Final = MILLISECOND
"""Time before the next frame at which polling begins."""
assert STAMP.fields is not None
_PLACE_AT: Final = STAMP.fields["place"][1]
_TIME_AT: Final = STAMP.fields["time"][1]
"""Offsets in a stamp."""
_WHOLE: Final = {1: Size.BYTE, 2: Size.HALF, 4: Size.WORD}

# The program. R6 is the context, R7 the number of the frame, R8 the state; the stack has the time and the turn.

_TIME, _TURN, _KEY = -8, -16, -20
_EARLY: Final = "drop"
"""Label of the end of the program for a frame that is not sent."""


def live_program(
    templates: Sequence[FrameTemplate],
    state: BpfMap,
    frames: BpfMap | None,
    interface: int,
    *,
    plan: GeneratorPlan,
    streams: int,
    run: int,
) -> Code:
    """Build the program that turns live frames into the next frames of a run, and sends them through the interface.

    ``frames`` has the bytes of several templates; without it all live frames have those of the only template.
    """
    code: list[Instruction | str] = [
        # Calls of helpers keep R6 to R9, and overwrite R0 to R5.
        *(compute(R6, "=", R1), *load_value_address(R8, state.descriptor)),
        *(call(Helper.NANOSECONDS), store(Size.DOUBLE, R10, _TIME, R0)),
        *([] if plan.rate is None else _pace(plan, plan.rate, state)),
        load(Size.DOUBLE, R7, R8, _State.SENT),
        *([] if frames is None else _take_template(templates, frames)),
        *_stamp(templates, streams, run, known=frames is None),
        *_patch(templates),
        *(load(Size.DOUBLE, R1, R8, _State.SENT), compute(R1, "+", 1), store(Size.DOUBLE, R8, _State.SENT, R1)),
        *(load(Size.DOUBLE, R1, R10, _TIME), store(Size.DOUBLE, R8, _State.LAST, R1)),
        *(compute(R1, "=", interface), compute(R2, "=", 0), call(Helper.REDIRECT), leave()),
        _EARLY,
        *give(XdpAction.DROP),
    ]
    return code


def _pace(plan: GeneratorPlan, rate: float, state: BpfMap) -> Code:
    """Drop the frame unless one is due at the time in R0; otherwise count it, and note how late it is."""
    # In 2**-32 ns: at 100 million frames per second, whole ns would change the rate by up to 5%.
    gap = min(int(burst_gap(rate, plan.burst) * (1 << 32)), _LONGEST_GAP)
    return [
        *(load(Size.DOUBLE, R1, R8, _State.END), jump_if(R0, ">=", R1, _EARLY)),
        *(load(Size.DOUBLE, R3, R8, _State.SENT), load(Size.DOUBLE, R1, R8, _State.LIMIT)),
        jump_if(R3, ">=", R1, _EARLY),
        *(load(Size.DOUBLE, R1, R8, _State.DUE), jump_if(R0, "<", R1, _EARLY)),
        *(compute(R2, "=", R0), compute(R2, "-", R1)),
        # Later than frames may be caught up with: forgo the bursts before.
        *(*load_constant(R5, plan.catch_up_ns), jump_if(R2, "<=", R5, "caught up")),
        *(compute(R4, "=", R2), compute(R4, "-", R5), *load_constant(R5, max(gap >> 32, 1)), compute(R4, "/", R5)),
        *(compute(R5, "*", R4), compute(R1, "+", R5), compute(R2, "-", R5), store(Size.DOUBLE, R8, _State.DUE, R1)),
        *(compute(R4, "*", plan.burst), load(Size.DOUBLE, R5, R8, _State.FORGONE), compute(R5, "+", R4)),
        *(store(Size.DOUBLE, R8, _State.FORGONE, R5), "caught up"),
        *(compute(R3, "&", _SAMPLES - 1), compute(R3, "<<", 3)),
        *(*load_value_address(R4, state.descriptor, _SAMPLES_AT), compute(R4, "+", R3), store(Size.DOUBLE, R4, 0, R2)),
        # After the last frame of a burst, the next burst is due a gap later.
        *(load(Size.DOUBLE, R3, R8, _State.LEFT), compute(R3, "-", 1), jump_if(R3, "!=", 0, "in burst")),
        *(load(Size.DOUBLE, R4, R8, _State.FRACTION), *load_constant(R5, gap & 0xFFFF_FFFF), compute(R4, "+", R5)),
        *(compute(R5, "=", R4), compute(R5, ">>", 32), compute(R1, "+", R5)),
        *(*load_constant(R5, gap >> 32), compute(R1, "+", R5), store(Size.DOUBLE, R8, _State.DUE, R1)),
        *(compute(R4, "<<", 32), compute(R4, ">>", 32), store(Size.DOUBLE, R8, _State.FRACTION, R4)),
        *(compute(R3, "=", plan.burst), "in burst", store(Size.DOUBLE, R8, _State.LEFT, R3)),
    ]


def _take_template(templates: Sequence[FrameTemplate], frames: BpfMap) -> Code:
    """Make the frame one of the template whose turn it is, and leave the number of its bytes in R9."""
    longest, shortest = max(map(len, templates)), min(map(len, templates))
    return [
        *(compute(R1, "=", R7), compute(R1, "%", len(templates)), store(Size.DOUBLE, R10, _TURN, R1)),
        *(store(Size.WORD, R10, _KEY, R1), *load_map(R1, frames.descriptor)),
        *(compute(R2, "=", R10), compute(R2, "+", _KEY), call(Helper.MAP_LOOKUP), jump_if(R0, "==", 0, _EARLY)),
        *(compute(R9, "=", R0), load(Size.WORD, R2, R9, 0), compute(R2, "-", longest), compute(R1, "=", R6)),
        *(call(Helper.ADJUST_TAIL), jump_if(R0, "!=", 0, _EARLY)),
        # The verifier requires proof that the bytes lie within the entry.
        *(load(Size.WORD, R4, R9, 0), jump_if(R4, ">", longest, _EARLY), jump_if(R4, "<", shortest, _EARLY)),
        *(compute(R3, "=", R9), compute(R3, "+", _FRAME_AT), compute(R9, "=", R4)),
        *(compute(R2, "=", 0), compute(R1, "=", R6), call(Helper.STORE_BYTES), jump_if(R0, "!=", 0, _EARLY)),
    ]


def _stamp(templates: Sequence[FrameTemplate], streams: int, run: int, *, known: bool) -> Code:
    """Number and stamp the frame; leave the sequence number in R7, the frame in R2 and its end in R3."""
    place = compute(R5, "+", templates[0].stamp_at) if known else compute(R5, "+", R9)
    stream = [
        *(compute(R1, "=", R7), compute(R1, "%", streams), compute(R1, "<<", STREAM_SHIFT)),
        *(compute(R4, "|", R1), compute(R7, "/", streams)),
    ]
    return [
        *(*load_constant(R4, run << RUN_SHIFT), *(stream if streams > 1 else [])),
        *([] if known else [compute(R9, "-", STAMP.itemsize)]),
        *(load(Size.WORD, R2, R6, Context.DATA), load(Size.WORD, R3, R6, Context.DATA_END)),
        *(compute(R5, "=", R2), place, compute(R1, "=", R5), compute(R1, "+", STAMP.itemsize)),
        *(jump_if(R1, ">", R3, _EARLY), compute(R4, "|", R7), store(Size.DOUBLE, R5, _PLACE_AT, R4)),
        *(load(Size.DOUBLE, R1, R10, _TIME), load(Size.DOUBLE, R4, R8, _State.DAY), compute(R1, "+", R4)),
        store(Size.DOUBLE, R5, _TIME_AT, R1),
    ]


def _patch(templates: Sequence[FrameTemplate]) -> Code:
    """Write the patched fields of the template whose turn it is."""
    code: list[Instruction | str] = []
    for turn, template in enumerate(templates):
        if template.patches:
            end = max(each.offset + each.size for each in template.patches)
            code += [
                *([] if len(templates) == 1 else _unless_turn(turn)),
                *(compute(R4, "=", R2), compute(R4, "+", end), jump_if(R4, ">", R3, _EARLY)),
                *(step for each in template.patches for step in _field(each)),
                *(jump("patched"), f"not {turn}"),
            ]
    return [*code, "patched"]


def _unless_turn(turn: int) -> Code:
    return [load(Size.DOUBLE, R1, R10, _TURN), jump_if(R1, "!=", turn, f"not {turn}")]


def _field(patch: FieldPatch) -> Code:
    """Write one field as a function of the sequence number."""
    return [
        *(compute(R1, "=", R7), compute(R1, "*", patch.factor)),
        # A mask of 4 bytes would be sign-extended; the width of the field has the same effect.
        *([compute(R1, "&", patch.mask)] if patch.mask < 1 << 31 else []),
        *([to_big_endian(R1, 8 * patch.size)] if patch.size > 1 else []),
        store(_WHOLE[patch.size], R2, patch.offset, R1),
    ]


def check_live_length(longest: int) -> None:
    """Raise :class:`~mxwire.errors.MxwireError` if the kernel cannot make frames of ``longest`` bytes."""
    if longest > LONGEST_LIVE_FRAME:
        raise MxwireError(
            f"--via kernel sends frames of at most {LONGEST_LIVE_FRAME} bytes, not {longest}: shorten them "
            f"(a packet type with --size {LONGEST_LIVE_FRAME}), or use --via xdp"
        )


class KernelTransmitter:
    """Has the kernel make and send frames, which never pass through a socket.

    Raises :class:`~mxwire.link.errors.LinkError` without permission.
    """

    mode = None

    def __init__(self, interface: str) -> None:
        self._interface = read_interface(interface)
        # The refusal must come before a test has begun.
        BpfProgram.load(give(XdpAction.DROP)).close()

    @property
    def name(self) -> str:
        """Name of the interface."""
        return self._interface.name

    def generator(
        self, templates: Sequence[FrameTemplate], plan: GeneratorPlan, *, streams: int, run: int
    ) -> KernelGenerator:
        """Prepare a run.

        Raises :class:`~mxwire.errors.MxwireError` for frames that are too long, and
        :class:`~mxwire.link.errors.LinkError` without permission.
        """
        check_live_length(max(map(len, templates)))
        return KernelGenerator(self._interface, templates, plan, streams=streams, run=run)


def _day_offset() -> int:
    """Return the time of day less the kernel's monotonic clock, in ns.

    The process may be preempted between reading the two clocks, so of several readings the one that took the least time
    counts. The earlier offset is returned: a frame must not appear to arrive before it was sent.
    """
    readings = [(time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(16)]
    _before, day, after = min(readings, key=lambda each: each[2] - each[0])
    return day - after


class KernelGenerator:
    """Runs the program of some templates in the kernel."""

    def __init__(
        self,
        interface: NetworkInterface,
        templates: Sequence[FrameTemplate],
        plan: GeneratorPlan,
        *,
        streams: int,
        run: int,
    ) -> None:
        self._interface = interface
        self._plan = plan
        self._frame = _stamped(max(templates, key=len), streams)
        self._octets = np.cumsum([0, *map(len, templates)]).tolist()
        self._begun = self._end = 0
        self._poll_ns = _POLL_NS
        self._call_ns = _LONG_CALL_NS
        self.stopped = False
        self.result = GeneratorResult(rate=plan.rate)
        size = _SAMPLES_AT + (0 if plan.rate is None else 8 * _SAMPLES)
        with ExitStack() as stack:
            state = stack.enter_context(BpfMap.create(MapKind.ARRAY, size, 1, MAPPABLE))
            frames = None
            if len(templates) > 1:
                entry = _FRAME_AT + len(self._frame)
                frames = stack.enter_context(BpfMap.create(MapKind.ARRAY, entry, len(templates)))
                for place, each in enumerate(templates):
                    frames.update(place, struct.pack("=Q", len(each)) + _stamped(each, streams))
            code = live_program(templates, state, frames, interface.index, plan=plan, streams=streams, run=run)
            self._program = stack.enter_context(BpfProgram.load(code))
            self._memory: mmap.mmap = stack.enter_context(state.memory())
            self._held = stack.pop_all()

    def run(self, progress: Callable[[GeneratorResult], None] | None = None) -> GeneratorResult:
        """Send until the plan is fulfilled; call ``progress`` some times per second.

        Raises :class:`~mxwire.link.errors.LinkError` if the interface goes down, which the kernel does not report: it
        drops the frames, and the program has counted those of the last call.
        """
        result, used = self.result, time.process_time_ns()
        monitor = ClockMonitor(time.monotonic_ns, time.time_ns)
        usual = _FRAMES_AT_ONCE if self._plan.rate is None else _POLLS_AT_ONCE
        batch = min(self._plan.batch or usual, _BATCH_MAXIMUM)
        with self._held, self._program.standby() as immediate:
            self._call_ns = _CALL_NS if immediate else _LONG_CALL_NS
            self._begin()
            try:
                while count := self._next_call():
                    # A signal ends the call. Its handler runs here; if it does not raise, the run continues.
                    with suppress(InterruptedError):
                        self._poll_ns = max(self._program.transmit(self._frame, count, batch), 1)
                    self._note()
                    if not read_interface(self._interface.name).up:
                        raise LinkError(f"{self._interface.name}: went down, so some of the last frames were not sent")
                    if monitor.check():
                        result.clock_steps += 1
                        self._set(_State.DAY, _day_offset())
                    if progress is not None:
                        progress(result)
            finally:
                self._note()
                result.processor_ns = time.process_time_ns() - used
        return result

    def _get(self, word: _State) -> int:
        return int(struct.unpack_from("=q", self._memory, word)[0])

    def _set(self, word: _State, value: int) -> None:
        struct.pack_into("=q", self._memory, word, value)

    def _begin(self) -> None:
        plan = self._plan
        self._begun = begun = time.monotonic_ns()
        self._end = _UNLIMITED if plan.seconds is None else begun + int(plan.seconds * SECOND)
        words = {
            _State.DAY: _day_offset(),
            _State.DUE: begun,
            _State.LEFT: plan.burst,
            _State.LIMIT: _UNLIMITED if plan.count is None else plan.count,
            _State.END: self._end,
        }
        for word, value in words.items():
            self._set(word, value)

    def _note(self) -> None:
        """Update the result from the state."""
        result, before, plan = self.result, self.result.frames, self._plan
        result.frames = frames = self._get(_State.SENT)
        cycles, rest = divmod(frames, len(self._octets) - 1)
        result.bytes = cycles * self._octets[-1] + self._octets[rest]
        # The run ends with its last frame, although polls may follow.
        complete = frames == plan.count
        result.duration_ns = (self._get(_State.LAST) if complete else min(time.monotonic_ns(), self._end)) - self._begun
        if plan.rate is not None:
            result.forgone = self._get(_State.FORGONE)
            # A call with more frames than samples has overwritten its first ones.
            samples = np.frombuffer(self._memory, np.int64, _SAMPLES, _SAMPLES_AT)
            result.lateness.add(samples[np.arange(max(before, frames - _SAMPLES), frames) % _SAMPLES])

    def _next_call(self) -> int:
        """Number of frames, or of polls with a rate, for the next call of the kernel; 0 at the end of the run."""
        plan, frames = self._plan, self.result.frames
        now = time.monotonic_ns()
        if self.stopped or frames == plan.count or now >= self._end:
            return 0
        time_left = min(self._call_ns, self._end - now)
        if plan.rate is None:
            # Only the first call shows how long a frame takes.
            count = _FIRST_CHUNK if not frames else int(time_left / self._poll_ns)
            return max(min(count, _FRAMES_MAXIMUM, _UNLIMITED if plan.count is None else plan.count - frames), 1)
        if self._call_ns == _CALL_NS and burst_gap(plan.rate, plan.burst) > 2 * _SPIN_NS:
            wait = self._get(_State.DUE) - now - _SPIN_NS
            if wait > 0:
                time.sleep(min(wait, time_left) / SECOND)
            time_left = 2 * _SPIN_NS if wait < time_left else 0
        if plan.count is not None:
            time_left = min(time_left, int((plan.count - frames) / plan.rate * SECOND))
        return max(min(int(time_left / self._poll_ns), _FRAMES_MAXIMUM), _POLLS_AT_ONCE)


def _stamped(template: FrameTemplate, streams: int) -> bytes:
    """The frame with the part of the stamp that is the same in all frames."""
    frame = np.frombuffer(bytearray(template.frame), np.uint8)
    prepare_stamps(np.ndarray(1, STAMP, frame, template.stamp_at), streams, captured=template.captured)
    return frame.tobytes()

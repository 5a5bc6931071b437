"""Transmitters: a packet socket, an AF_XDP socket, or live frames made by the kernel, each with its generator."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from enum import StrEnum
from typing import Any, Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from mxwire.errors import MxwireError
from mxwire.linerate.generator import ClockMonitor, FrameGenerator, GeneratorPlan, GeneratorResult
from mxwire.linerate.slots import FrameSlots
from mxwire.linerate.template import CAPTURED, MAGIC, RUN_SHIFT, STAMP, STREAM_SHIFT, FrameTemplate
from mxwire.link import Link, Mode, PacketLink
from mxwire.link.bpf import LONGEST_LIVE_FRAME, MAPPABLE, BpfMap, BpfProgram, MapKind, XdpMode
from mxwire.link.bpf_code import (
    R0,
    R1,
    R2,
    R3,
    R4,
    R6,
    R7,
    R8,
    R9,
    Code,
    Context,
    Helper,
    Instruction,
    Size,
    XdpAction,
    call,
    compute,
    give,
    jump_if,
    leave,
    load,
    load_constant,
    load_value_address,
    store,
    to_big_endian,
)
from mxwire.link.errors import LinkError
from mxwire.link.interface import NetworkInterface, read_interface
from mxwire.link.xdp import XdpLink, XdpSender
from mxwire.link.xdp_transmit import TRANSMIT_BYTES
from mxwire.units import SECOND

SINK_RING_BYTES: Final = 32 << 20
"""Default size of the receive ring of a sink."""
_SPIN: Final = 0.2
"""Seconds for which a sink polls before it sleeps: to wake it for each frame would cost the sender more than the
frame."""
_XDP_BATCH: Final = 256
"""Frames per batch of AF_XDP, whose cost per frame is so small that the cost of a batch matters longer."""
_CHUNK_BYTES: Final = 4096
_CHUNKS_MAXIMUM: Final = 1 << 16


class Via(StrEnum):
    """Ways of a frame into and out of the kernel."""

    PACKET = "packet"
    """AF_PACKET: any interface, needs CAP_NET_RAW."""
    XDP = "xdp"
    """AF_XDP: takes a queue of the interface for itself."""
    KERNEL = "kernel"
    """Live frames made by the kernel: only for sending, and only as fast as possible."""


class RunningGenerator(Protocol):
    """A generator for one run."""

    stopped: bool
    """May be set, also by a signal handler: the run ends soon."""

    @property
    def result(self) -> GeneratorResult:
        """The run so far; valid at any time, also after an error."""

    def run(self, progress: Callable[[GeneratorResult], None] | None = None) -> GeneratorResult:
        """Send until the plan is fulfilled; call ``progress`` some times per second."""


class Transmitter(Protocol):
    """The sending side of an interface."""

    @property
    def name(self) -> str:
        """Name of the interface."""

    def generator(
        self, templates: Sequence[FrameTemplate], plan: GeneratorPlan, *, streams: int, run: int
    ) -> RunningGenerator:
        """Prepare a run."""


def open_sink_link(
    interface: str,
    via: Via = Via.PACKET,
    ring_bytes: int = SINK_RING_BYTES,
    mode: XdpMode | str = XdpMode.AUTO,
) -> PacketLink | XdpLink:
    """Open a link to receive on, with a receive ring of some ``ring_bytes``; ``mode`` is that of AF_XDP's program.

    The ring of a packet socket is one of blocks: it packs short frames, so it holds a hundred times as many of them as
    one of slots, for moments in which the sink does not have the processor.
    Raises :class:`~mxwire.link.errors.LinkError` if that is not possible here.
    """
    link: PacketLink | XdpLink
    if via is Via.XDP:
        chunks = min(1 << (max(ring_bytes // _CHUNK_BYTES, 1) - 1).bit_length(), _CHUNKS_MAXIMUM)
        link = XdpLink.open(interface, mode=mode, chunks=chunks)
    else:
        link = PacketLink.open(interface, mode=Mode.BULK, ring_bytes=ring_bytes)
    link.spin = _SPIN
    return link


@contextmanager
def open_transmitter(own: Link, via: Via = Via.PACKET) -> Iterator[Transmitter]:
    """Open the sending side of a generator whose control messages pass through ``own``.

    Raises :class:`~mxwire.link.errors.LinkError` if this way is not possible here, with the reason.
    """
    if via is Via.PACKET:
        yield LinkTransmitter(own)
    elif via is Via.XDP:
        with XdpSender.open(own.name) as sender:
            yield XdpTransmitter(sender)
    else:
        yield KernelTransmitter(own.name)


class LinkTransmitter:
    """Sends through a link."""

    def __init__(self, link: Link) -> None:
        self._link = link

    @property
    def name(self) -> str:
        """Name of the interface."""
        return self._link.name

    def generator(
        self, templates: Sequence[FrameTemplate], plan: GeneratorPlan, *, streams: int, run: int
    ) -> FrameGenerator:
        """Prepare a run."""
        return FrameGenerator(self._link, FrameSlots(templates, streams=streams, run=run), plan)


class XdpTransmitter:
    """Sends through AF_XDP. The slots lie in the memory that is shared with the kernel, unless the driver refuses."""

    def __init__(self, sender: XdpSender) -> None:
        self._sender = sender
        self._shared = False

    @property
    def name(self) -> str:
        """Name of the interface."""
        return self._sender.name

    def generator(
        self, templates: Sequence[FrameTemplate], plan: GeneratorPlan, *, streams: int, run: int
    ) -> FrameGenerator:
        """Prepare a run."""
        # Half of the memory: slots in use stay in the cache of the CPU.
        slots = FrameSlots(templates, streams=streams, run=run, room=self._room, most_bytes=TRANSMIT_BYTES // 2)
        held = self._shared and self._sender.hold(slots.offset, slots.length)
        if not held:
            return FrameGenerator(self._sender, slots, plan)
        return FrameGenerator(self._sender, slots, plan, send=self._sender.send_held, batch=_XDP_BATCH)

    def _room(self, count: int) -> NDArray[np.uint8]:
        found = self._sender.room(count)
        self._shared = found is not None
        if found is None:
            return np.zeros(count, np.uint8)
        found[:] = 0
        return found


# Live frames

_STATE: Final = struct.Struct("=Qq")
"""State of the program in its map: frames sent, and the difference of the clock of day from the monotonic one."""
_FIRST_CHUNK: Final = 1 << 16
_CHUNK_SECONDS: Final = 0.5
"""Duration of a call of the kernel, which cannot be paced or stopped but by a signal: long enough that its fixed cost
of 25 ms is small."""
_CHUNK_MAXIMUM: Final = 1 << 24
_WHOLE: Final = {1: Size.BYTE, 2: Size.HALF, 4: Size.WORD}


def live_program(template: FrameTemplate, state: BpfMap, interface: int, *, streams: int, run: int) -> Code:
    """Build the program that stamps a live frame, and sends it through the interface with that number.

    It does in the kernel what :meth:`FrameSlots.batch <mxwire.linerate.slots.FrameSlots.batch>` does: the first value
    of ``state`` counts the frames.
    """
    stamp = template.stamp_at
    code: list[Instruction | str] = [
        *(load(Size.WORD, R6, R1, Context.DATA), load(Size.WORD, R3, R1, Context.DATA_END)),
        *(compute(R4, "=", R6), compute(R4, "+", len(template)), jump_if(R4, ">", R3, "drop")),
        *load_value_address(R8, state.descriptor),
        *(load(Size.DOUBLE, R7, R8, 0), compute(R1, "=", R7), compute(R1, "+", 1), store(Size.DOUBLE, R8, 0, R1)),
        *load_constant(R9, run << RUN_SHIFT),
    ]
    if streams > 1:
        code += [
            *(compute(R1, "=", R7), compute(R1, "%", streams), compute(R1, "<<", STREAM_SHIFT)),
            *(compute(R9, "|", R1), compute(R7, "/", streams)),
        ]
    code += [compute(R9, "|", R7), store(Size.DOUBLE, R6, stamp + 4, R9)]
    for patch in template.patches:
        code += [compute(R1, "=", R7), compute(R1, "*", patch.factor)]
        # A mask of 4 bytes would be extended by its sign; the width of the field has the same effect.
        code += [compute(R1, "&", patch.mask)] if patch.mask < 1 << 31 else []
        code += [to_big_endian(R1, 8 * patch.size)] if patch.size > 1 else []
        code.append(store(_WHOLE[patch.size], R6, patch.offset, R1))
    code += [
        *(call(Helper.NANOSECONDS), load(Size.DOUBLE, R1, R8, 8), compute(R0, "+", R1)),
        store(Size.DOUBLE, R6, stamp + 12, R0),
        *(compute(R1, "=", interface), compute(R2, "=", 0), call(Helper.REDIRECT), leave()),
        "drop",
        *give(XdpAction.DROP),
    ]
    return code


class KernelTransmitter:
    """Has the kernel make and send frames (BPF_PROG_TEST_RUN), which never pass through a socket."""

    def __init__(self, interface: str) -> None:
        self._interface = read_interface(interface)

    @property
    def name(self) -> str:
        """Name of the interface."""
        return self._interface.name

    def generator(
        self, templates: Sequence[FrameTemplate], plan: GeneratorPlan, *, streams: int, run: int
    ) -> KernelGenerator:
        """Prepare a run.

        Raises :class:`~mxwire.errors.MxwireError` for several templates, a pace, or frames that are too long, and
        :class:`~mxwire.link.errors.LinkError` without permission.
        """
        if len(templates) > 1:
            raise MxwireError("--via kernel repeats one frame: choose one packet type, or --via xdp")
        if plan.rate is not None:
            raise MxwireError("--via kernel sends as fast as possible: omit --rate, or use --via xdp")
        if len(templates[0]) > LONGEST_LIVE_FRAME:
            raise MxwireError(
                f"--via kernel has frames of at most {LONGEST_LIVE_FRAME} bytes, not {len(templates[0])}: give a "
                f"shorter --size, or use --via xdp"
            )
        return KernelGenerator(self._interface, templates[0], plan, streams=streams, run=run)


def _day_offset() -> int:
    """Return the time of day less the kernel's monotonic clock, in ns.

    Of several readings the one with the least time between the clocks counts, as the process may be preempted there.
    The earlier offset is returned: a frame must not appear to arrive before it was sent.
    """
    readings = [(time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(16)]
    _before, day, after = min(readings, key=lambda each: each[2] - each[0])
    return day - after


class KernelGenerator:
    """Runs the program of a template in the kernel."""

    def __init__(
        self, interface: NetworkInterface, template: FrameTemplate, plan: GeneratorPlan, *, streams: int, run: int
    ) -> None:
        self._interface = interface
        self._plan = plan
        self._length = len(template)
        self._frame = _stamped(template, streams)
        self.stopped = False
        self.result = GeneratorResult()
        with ExitStack() as stack:
            self._state = stack.enter_context(BpfMap.create(MapKind.ARRAY, _STATE.size, 1, MAPPABLE))
            code = live_program(template, self._state, interface.index, streams=streams, run=run)
            self._program = stack.enter_context(BpfProgram.load(code))
            stack.pop_all()

    def run(self, progress: Callable[[GeneratorResult], None] | None = None) -> GeneratorResult:
        """Send until the plan is fulfilled; call ``progress`` some times per second.

        Raises :class:`~mxwire.link.errors.LinkError` if the interface goes down, which the kernel does not report: it
        drops the frames, and the program has counted those of the last call.
        """
        result, begun = self.result, time.monotonic_ns()
        used = time.process_time_ns()
        monitor = ClockMonitor()
        self._state.update(0, _STATE.pack(0, _day_offset()))
        try:
            while count := self._next_chunk(begun):
                # A signal ends the call. Its handler runs here; if it does not raise, the run continues.
                with suppress(InterruptedError):
                    self._program.transmit(self._frame, count)
                self._note(begun)
                if not read_interface(self._interface.name).up:
                    raise LinkError(f"{self._interface.name}: went down, so some of the last frames were not sent")
                result.clock_steps += monitor.check()
                if progress is not None:
                    progress(result)
        finally:
            self._note(begun)
            result.processor_ns = time.process_time_ns() - used
            self._program.close()
            self._state.close()
        return result

    def _note(self, begun: int) -> None:
        frames = int(_STATE.unpack(self._state.lookup(0))[0])
        self.result.frames, self.result.bytes = frames, frames * self._length
        self.result.duration_ns = time.monotonic_ns() - begun

    def _next_chunk(self, begun: int) -> int:
        """Number of frames for the next call of the kernel; 0 at the end of the run."""
        plan, result = self._plan, self.result
        if self.stopped:
            return 0
        rate = result.frames_per_second
        count = max(int(rate * _CHUNK_SECONDS), 1) if rate else _FIRST_CHUNK
        if plan.seconds is not None:
            left = plan.seconds - (time.monotonic_ns() - begun) / SECOND
            if left <= 0:
                return 0
            count = min(count, max(int(rate * left), 1)) if rate else count
        if plan.count is not None:
            count = min(count, plan.count - result.frames)
        return min(count, _CHUNK_MAXIMUM)


def _stamped(template: FrameTemplate, streams: int) -> bytes:
    """The frame with the part of the stamp that is the same in all frames."""
    frame = np.frombuffer(bytearray(template.frame), np.uint8)
    stamp = cast("Any", np.ndarray(1, STAMP, frame, template.stamp_at))
    stamp["magic"], stamp["streams"] = MAGIC, streams | (CAPTURED if template.captured else 0)
    return frame.tobytes()

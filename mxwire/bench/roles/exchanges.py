"""Roles of the studies over a channel: trips, floods with work, parametrised round trips, and both directions at once.

Both sides run the same function with the same parameters; the active side measures. The first tenth of the operations
warms up and is not counted.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

from mxwire.bench.channels.channel import Channel
from mxwire.bench.processors import read_use
from mxwire.bench.roles.common import WARM

_ANSWER: Final = 0
"""Size of the messages that return credit."""


def summary(times: list[int], divisor: int = 1) -> dict[str, float]:
    """Statistics of single operations in ns, the warm-up left out; ``divisor`` 2 halves round trips."""
    counted = sorted(times[int(len(times) * WARM) :])
    last = len(counted) - 1
    return {
        "least": counted[0] / divisor,
        "median": counted[len(counted) // 2] / divisor,
        "mean": sum(counted) / len(counted) / divisor,
        "p99": counted[min(int(len(counted) * 0.99), last)] / divisor,
        "count": len(counted),
    }


def trips(channel: Channel, sizes: list[int], counts: list[int]) -> dict[str, Any]:
    """Ping-pong of each size: half round trips in ns."""
    points: dict[str, Any] = {}
    channel.barrier()
    before, frames = read_use(), channel.frames()
    for size, count in zip(sizes, counts, strict=True):
        times = ping_pong(channel, size, count)
        if channel.active:
            points[str(size)] = summary(times, 2)
            channel.check(size)
    use = use_since(channel, before, frames)
    # Both sides must run until a large message has arrived, even the last one.
    channel.barrier()
    return {"points": points, "trips": sum(counts)} | use


def ping_pong(channel: Channel, size: int, count: int) -> list[int]:
    """Send and receive a message ``count`` times; return the times of the round trips in ns, of the active side."""
    # Local names: looking an attribute up would be part of each measured time.
    clock, send, receive = channel.clock, channel.send, channel.receive
    times: list[int] = []
    for _ in range(count):
        if channel.active:
            begun = clock()
            send(size)
            receive(size)
            times.append(clock() - begun)
        else:
            receive(size)
            send(size)
    return times


def use_since(channel: Channel, before: Any, frames: dict[str, int]) -> dict[str, Any]:
    """The use of the processor since ``before``, and the frames since their counts were ``frames``."""
    after = channel.frames()
    return {
        "use": (read_use() - before).record(),
        "frames": {name: value - frames.get(name, 0) for name, value in after.items()},
    }


def flood(
    channel: Channel, size: int, count: int, window: int, work: int = 0, active_sends: bool = True
) -> dict[str, Any]:
    """Messages in one direction, with ``work`` ns of spinning after each at the active side: the interval in ns.

    At most ``window`` messages are in flight: the receiver returns credit for half of it at a time, so that the
    interval is that of the steady state, in which each new message needs one delivered. It is measured once the first
    window has been used up.
    """
    channel.barrier()
    before, frames = read_use(), channel.frames()
    sends = channel.active is active_sends
    # The work of one side at a time shows its overhead.
    work = work if channel.active else 0
    interval = (_send_all if sends else _receive_all)(channel, size, count, window, work)
    if not sends:
        channel.check(size)
    use = use_since(channel, before, frames)
    channel.barrier()
    return ({"interval": interval} if channel.active else {}) | use


def _send_all(channel: Channel, size: int, count: int, window: int, work: int) -> float:
    clock, half = channel.clock, max(window // 2, 1)
    # One message may follow half a window that has been delivered.
    free, times = 2 * half, []
    for number in range(count):
        if not free:
            channel.receive(_ANSWER)
            free = half
        if number % window == 0:
            times.append(clock())
        channel.send(size)
        free -= 1
        if work:
            channel.work(work)
    times.append(clock())
    # Credit that has not been used yet.
    for _ in range(count // half - _used(count, half)):
        channel.receive(_ANSWER)
    return _interval(times, window, count)


def _interval(times: list[int], window: int, count: int) -> float:
    """Interval of messages, from the times of the windows and of the end: the median over the windows after the first.

    The median ignores the few windows in which the process was preempted. Parts of a window cannot be compared, because
    large messages that are in flight together also end together. The last window may be shorter, and counts only if it
    is the only one.
    """
    windows = [(later - earlier) / window for earlier, later in pairwise(times)]
    steady = sorted(windows[1 : count // window])
    return steady[len(steady) // 2] if steady else (times[-1] - times[0]) / count


def _used(count: int, half: int) -> int:
    """Number of credits taken while ``count`` messages are sent, of which the first two halves need none."""
    return max(-(-(count - 2 * half) // half), 0)


def _receive_all(channel: Channel, size: int, count: int, window: int, work: int) -> float:
    clock, half = channel.clock, max(window // 2, 1)
    times = []
    for number in range(count):
        if number % window == 0:
            times.append(clock())
        channel.receive(size)
        if number % half == half - 1:
            channel.send(_ANSWER)
        if work:
            channel.work(work)
    times.append(clock())
    return _interval(times, window, count)


def loaded_flood(
    channel: Channel, size: int, count: int, window: int, multiples: list[int], *, active_sends: bool = True
) -> dict[str, Any]:
    """The ``interval`` of a flood, and the intervals ``loaded`` with work of ``multiples`` percent of it each."""
    interval = flood(channel, size, count, window, 0, active_sends).get("interval", 0.0)
    loaded = []
    for each in multiples:
        work = int(interval * each / 100)
        loaded.append([work, flood(channel, size, count, window, work, active_sends).get("interval", 0.0)])
    return {"interval": interval, "loaded": loaded}


def parametrised(channel: Channel, size: int, number: int, gap: int, repetitions: int) -> dict[str, Any]:
    """Round trips of ``number`` messages, ``gap`` ns of spinning apart, and one answer of the same size, in ns."""
    channel.barrier()
    clock, times = channel.clock, []
    for _ in range(repetitions):
        if channel.active:
            begun = clock()
            # The last message is not followed by work, which would delay the receipt of the answer.
            for _ in range(number - 1):
                channel.send(size)
                if gap:
                    channel.work(gap)
            channel.send(size)
            channel.receive(size)
            times.append(clock() - begun)
        else:
            for _ in range(number):
                channel.receive(size)
            channel.send(size)
    channel.barrier()
    return summary(times) if channel.active else {}


def arrived(channel: Channel, size: int, wait: int, repetitions: int) -> dict[str, Any]:
    """Time in ns to receive a message that has already arrived: the answer is left waiting for ``wait`` ns."""
    channel.barrier()
    clock, times = channel.clock, []
    for _ in range(repetitions):
        if channel.active:
            channel.send(size)
            channel.work(wait)
            begun = clock()
            channel.receive(size)
            times.append(clock() - begun)
        else:
            channel.receive(size)
            channel.send(size)
    channel.barrier()
    return summary(times) if channel.active else {}


def simultaneous(channel: Channel, size: int, count: int) -> dict[str, Any]:
    """Both sides: send and receive, ``count`` times; the time per exchange in ns."""
    channel.barrier()
    warm = max(int(count * WARM), 1)
    before, frames = read_use(), channel.frames()
    begun = channel.clock()
    for number in range(count + warm):
        if number == warm:
            begun = channel.clock()
        channel.exchange(size)
    interval = (channel.clock() - begun) / count
    channel.check(size)
    use = use_since(channel, before, frames)
    channel.barrier()
    return {"interval": interval} | use


def spin_error(channel: Channel, durations: list[int]) -> dict[str, Any]:
    """Relative error of work of some durations in ns; the passive side has nothing to do."""
    channel.barrier()
    return {str(each): channel.spin_error(each) for each in durations} if channel.active else {}


def fragments(
    channel: Channel,
    sizes: list[int],
    counts: list[int],
    windows: list[int],
    multiples: list[int],
    number: int,
    repetitions: list[int],
    both: bool = True,
) -> dict[str, Any]:
    """All measurements for LogP, for each size, in ns: round trips, floods with work at the sender and at the receiver,
    parametrised round trips, messages that have arrived, and both directions at once if ``both``.

    The work of floods is ``multiples`` hundredths of the interval without work; the passive side does not use it.
    """
    points: dict[str, Any] = {}
    before, frames = read_use(), channel.frames()
    for size, count, window, times in zip(sizes, counts, windows, repetitions, strict=True):
        channel.barrier()
        taken = ping_pong(channel, size, count)
        trip = summary(taken) if channel.active else {}
        round_trip = int(trip.get("median", 0))
        found: dict[str, Any] = {"round trip": trip}
        # One window that fills the path and does not count, and at least two of the steady state.
        total = window + max(count, 2 * window)
        found["send"] = loaded_flood(channel, size, total, window, multiples)
        found["receive"] = loaded_flood(channel, size, total, window, multiples, active_sends=False)
        found["burst"] = parametrised(channel, size, number, 0, times)
        found["apart"] = parametrised(channel, size, number, round_trip, times)
        # Twice the median: by then, the answer of a slow round trip has arrived as well.
        found["arrived"] = arrived(channel, size, 2 * round_trip, times)
        if both:
            found["both"] = simultaneous(channel, size, count)["interval"]
        if channel.active:
            points[str(size)] = found
    return {"points": points} | use_since(channel, before, frames)

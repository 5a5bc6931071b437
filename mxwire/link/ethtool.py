"""Settings that a driver reports, as shown by ``ethtool``: speed, coalescing, offloads, rings, flow control."""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct
from dataclasses import dataclass, field
from typing import Final

_ETHTOOL: Final = 0x8946
_SETTINGS, _DRIVER, _COALESCE, _RING, _PAUSE, _FLAGS, _CHANNELS = 0x01, 0x03, 0x0E, 0x10, 0x12, 0x25, 0x3C
_SWITCHES: Final = {"rx-checksum": 0x14, "scatter-gather": 0x18, "tso": 0x1E, "gso": 0x23, "gro": 0x2B}
_LARGE_RECEIVE: Final = 1 << 15
_UNKNOWN_SPEED: Final = 0xFFFF_FFFF
_ADAPTIVE: Final = 10
"""Index of use_adaptive_rx_coalesce among the words of struct ethtool_coalesce."""


@dataclass(frozen=True, slots=True)
class Coalescing:
    """Interrupt coalescing: delay of received frames, so that one interrupt covers several."""

    microseconds: int
    frames: int
    adaptive: bool
    """True if the driver adapts the delay to the load."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """Settings of an interface; None if the driver does not report one."""

    driver: str | None = None
    megabits: int | None = None
    """Speed in Mb/s."""
    coalescing: Coalescing | None = None
    offloads: dict[str, bool] = field(default_factory=dict)
    """State of each reported offload, by the names of ``ethtool -k``."""
    receive_ring: tuple[int, int] | None = None
    """Configured and maximum size of the receive ring in frames."""
    flow_control: bool | None = None
    """True if the interface sends pause frames, which make a switch hold frames back."""
    queues: int | None = None
    """Number of receive queues."""


def read_hardware(name: str) -> Hardware:
    """Read the settings of an interface in the network namespace of this thread; needs no privilege."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as asking:
        ask = _EthtoolQuery(asking.fileno(), name)
        return Hardware(
            driver=_driver(ask(_DRIVER, 196)),
            megabits=_speed(ask(_SETTINGS, 44)),
            coalescing=_coalescing(ask(_COALESCE, 92)),
            offloads=_offloads(ask),
            receive_ring=_ring(ask(_RING, 36)),
            flow_control=_pause(ask(_PAUSE, 16)),
            queues=_queues(ask(_CHANNELS, 36)),
        )


def change_offload(name: str, offload: str, on: bool) -> None:
    """Turn an offload of an interface on or off, by its name in :attr:`Hardware.offloads`; needs CAP_NET_ADMIN.

    A driver without this offload ignores the request.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as asking:
        # The command that changes a switch follows the one that reads it.
        _EthtoolQuery(asking.fileno(), name)(_SWITCHES[offload] + 1, 8, int(on))


class _EthtoolQuery:
    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._name = name.encode()

    def __call__(self, command: int, size: int, value: int = 0) -> bytes | None:
        """Answer to a command; None if the driver does not support it, or permission is missing."""
        answer = ctypes.create_string_buffer(struct.pack("II", command, value).ljust(size, b"\0"), size)
        try:
            fcntl.ioctl(
                self._descriptor, _ETHTOOL, struct.pack("16sP", self._name, ctypes.addressof(answer)).ljust(40, b"\0")
            )
        except OSError:
            return None
        return answer.raw


def _driver(answer: bytes | None) -> str | None:
    return answer[4:36].split(b"\0")[0].decode("utf-8", "replace") or None if answer else None


def _speed(answer: bytes | None) -> int | None:
    if not answer:
        return None
    low, high = struct.unpack_from("H", answer, 12)[0], struct.unpack_from("H", answer, 28)[0]
    speed = high << 16 | low
    return speed if speed not in (0, 0xFFFF, _UNKNOWN_SPEED) else None


def _coalescing(answer: bytes | None) -> Coalescing | None:
    if not answer:
        return None
    words = struct.unpack("23I", answer)
    return Coalescing(words[1], words[2], bool(words[_ADAPTIVE]))


def _offloads(ask: _EthtoolQuery) -> dict[str, bool]:
    answers = {name: ask(command, 8) for name, command in _SWITCHES.items()}
    offloads = {name: bool(struct.unpack_from("I", answer, 4)[0]) for name, answer in answers.items() if answer}
    flags = ask(_FLAGS, 8)
    if flags:
        offloads["lro"] = bool(struct.unpack_from("I", flags, 4)[0] & _LARGE_RECEIVE)
    return offloads


def _ring(answer: bytes | None) -> tuple[int, int] | None:
    if not answer:
        return None
    words = struct.unpack("9I", answer)
    return (words[5], words[1]) if words[1] else None


def _pause(answer: bytes | None) -> bool | None:
    return bool(struct.unpack_from("I", answer, 12)[0]) if answer else None


def _queues(answer: bytes | None) -> int | None:
    if not answer:
        return None
    words = struct.unpack("9I", answer)
    # Queues for receiving only, and those for both directions.
    return words[5] + words[8] or None

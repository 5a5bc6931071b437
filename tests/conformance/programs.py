"""The calls of the applications of each capture, in ``words``: for each host its programs, one after the other.

They come from the logs of the recordings. Where another tool than ``ptool`` was used, its calls are written in the same
words; an application that was killed closes its endpoint, as its host does then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

MATCH: Final = "1234567887654321"
"""Match information of ``omx_perf``."""
EDGES: Final = (0, 1, 16, 32, 33, 127, 128, 129, 1000, 4095, 4096, 4097, 8191, 8192, 8193, 12288, 32767, 32768)
LARGE: Final = (32769, 40000, 65536, 131072)
CHECKSUMMED: Final = (0, 1, 8, 32, 33, 100, 128, 129, 4096, 5000, 20000, 32768, 32769, 40000, 100000)
UNINITIALISED: Final = (0, 8, 100, 5000, 20000, 32769, 100000) * 2
PERF: Final = (0, 1, 16, 32, 33, 128, 129, 1000, 4096, 4097, 8192, 32768)
PERF_SYNCHRONOUS: Final = (0, 1, 128, 4096)
MANY: Final = (13, 111, 1234, 12345, 123456, 1234567)


def echo(*lengths: int) -> str:
    """A message of each length, for which the same is expected back."""
    return " ".join(
        f"irecv:200000:{0x1000 + place:x}:ffffffffffffffff isend:{length}:{0x1000 + place:x} waitall"
        for place, length in enumerate(lengths)
    )


def perf_client(*lengths: int, times: int = 3, send: str = "send") -> list[str]:
    """``omx_perf -d vm2:0`` once for each length: 44 bytes of parameters, an answer, then ping-pong."""
    return [
        f"-e 0 connect:vm2/0:0:12345678 ssend:44:{MATCH} recv:0:0:0 "
        + " ".join([f"{send}:{length}:{MATCH} recv:{length}:0:0"] * times)
        for length in lengths
    ]


def perf_server(*lengths: int, times: int = 3, send: str = "send") -> list[str]:
    """``omx_perf -s``: one endpoint for all clients."""
    pings = {length: " ".join([f"recv:{length}:0:0 {send}:{length}:{MATCH}"] * times) for length in lengths}
    return ["-e 0 " + " ".join(f"recv:44:0:0 connectback ssend:0:0 {each}" for each in pings.values())]


REAL_PAYLOAD: Final = {"many-small", "many", "pingpong-small-medium", "pingpong-sync"}
"""Captures whose messages have contents that follow no pattern."""

PROGRAMS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "burst": {
        "A": [
            """-e 5 connect:vm2/0:3:12345678 isend:8:10:40 isend:100:20:20 isend:6000:30:10 isend:50000:40:4
            waitall progress:1000"""
        ],
        "B": ["-e 3 irecv:60000:0:0:74 progress:1 waitall progress:1000"],
    },
    "cancel": {
        "A": [
            "-e 5 connect:vm2/0:3:12345678 isend:50:1 isend:50000:2 waitall progress:300",
            "-e 1 iconnect:vm2/0:0:12345678 cancelconnect iconnect:vm2/0:0:12345678 cancelconnect",
        ],
        "B": [
            """-e 3 irecv:100:1:ff cancel irecv:60000:2:ff cancel progress:2000
            irecv:60000:9:ff cancel recv:60000:2:ff recv:100:1:ff progress:1000""",
            "-e 0",
        ],
    },
    "connect": {
        "A": [
            """-e 5 -k 11112222 connect:vm2/0:3:11112222 connect:vm2/0:3:11112222 connect:vm2/0:3:deadbeef:3000
            disconnect connect:vm2/0:3:11112222""",
            "-e 5 -k 11112222 connect:vm2/0:3:11112222 send:5:77",
        ],
        "B": ["-e 3 -k 11112222 irecv:100:0:0 progress:7000 waitall"],
    },
    "connect-cross": {
        "A": [
            """-e 5 sleep:400 connect:vm2/0:3:12345678 irecv:2000:0:0:3
            isend:10:b1 isend:100:b2 isend:1000:b3 waitall progress:500"""
        ],
        "B": [
            """-e 3 sleep:1000 connect:vm1/0:5:12345678 irecv:2000:0:0:3
            isend:10:a1 isend:100:a2 isend:1000:a3 waitall progress:500"""
        ],
    },
    "discovery-static": {"A": ["-e 1 connect:vm2/0:3:12345678:3000"], "B": ["-e 3 progress:5000"]},
    "early": {"real": ["-e 6 irecv:100000:0:0:100 progress:10000"]},
    "echo-checksum-debug": {
        "A": [f"-e 5 connect:vm2/0:3:12345678 {echo(*CHECKSUMMED)}"],
        "B": ["-e 3 pong:15:200000 progress:300"],
    },
    "echo-pattern": {
        "A": [f"-e 5 connect:vm2/0:3:12345678 {echo(*EDGES, *LARGE)}"],
        "B": ["-e 3 pong:22:200000 progress:300"],
    },
    "lossy-1M": {
        "A": [
            """-e 5 connect:vm2/0:3:12345678 irecv:1100000:2000:ffffffffffffffff isend:1048576:2000
            waitall progress:1500"""
        ],
        "B": ["-e 3 pong:1:1100000 progress:1500"],
    },
    "many": {
        "A": ["-e 0 connect:vm2/0:0:12345678 " + " ".join(f"isend:{length}:0" for length in MANY * 2) + " waitall"],
        "B": ["-e 0 irecv:1300000:0:0:12 waitall"],
    },
    "many-small": {
        "A": ["-e 0 connect:vm2/0:0:12345678 isend:100:0:20 waitall"],
        "B": ["-e 0 irecv:100:0:0:20 waitall"],
    },
    "medium-pipeline11": {"real": ["-e 8 irecv:100000:0:0:100 progress:10000"]},
    "nack-lib": {
        "A": [
            "-e 5 connect:vm2/0:7:12345678:3000 connect:vm2/0:40:12345678:3000",
            "-e 5 connect:vm2/0:3:12345678 sleep:2500 send:8:1 send:100:2 send:5000:3 send:50000:4 ssend:8:5",
            "-e 5 connect:vm2/0:3:12345678 sleep:3500 send:8:1 send:100:2 send:5000:3 send:50000:4",
        ],
        "B": ["-e 3 progress:2000 close", "-e 3 progress:1500 close", "-e 3 progress:10000"],
    },
    "nack-mcp-closed": {
        "A": ["-e 5 connect:vm2/0:3:12345678 isend:4000000:1 progress:300 close"],
        "B": ["-e 3 irecv:17000000:0:0 waitall progress:1500"],
    },
    "nack-mcp-rdmawin": {
        "A": ["-e 5 connect:vm2/0:3:12345678 " + "ssend:8:1 sleep:150 " * 14 + "progress:1000"],
        "B": ["-e 3 irecv:100:0:0:14 progress:1 waitall progress:1500"],
    },
    "nack-mcp-session": {
        "A": ["-e 5 connect:vm2/0:3:12345678 isend:4000000:1 progress:300 sleep:700 close", "-e 5 progress:9000"],
        "B": ["-e 3 irecv:17000000:0:0 waitall progress:1500"],
    },
    "no-reverse-connect": {
        "A": ["-e 5 connect:vm2/0:3:12345678 " + echo(0, 8, 100, 5000, 32768, 32769)],
        "B": ["-e 3 pong0:6:200000 progress:300"],
    },
    "pingpong-small-medium": {"A": perf_client(*PERF), "B": perf_server(*PERF)},
    "pingpong-sync": {
        "A": perf_client(*PERF_SYNCHRONOUS, times=2, send="ssend"),
        "B": perf_server(*PERF_SYNCHRONOUS, times=2, send="ssend"),
    },
    "receiver-killed": {
        "A": ["-e 5 connect:vm2/0:3:12345678 isend:4000000:1 progress:6000 send:8:2"],
        "B": ["-e 3 irecv:17000000:0:0 progress:1200 close"],
    },
    "resends-exhausted": {
        "A": [
            """-e 5 connect:vm2/0:3:12345678 sleep:1500 isend:8:1 isend:100:2 isend:5000:3 issend:8:9 waitall
            progress:3500 isend:8:4 waitall progress:300 connect:vm2/0:3:12345678 isend:8:5 waitall progress:300"""
        ],
        "B": ["-e 3 irecv:60000:0:0:6 progress:1 progress:100000"],
    },
    "rndv-offset": {"real": ["-e 7 irecv:300000:0:0:100 progress:10000"]},
    "stopped-receiver": {
        "A": [
            """-e 5 connect:vm2/0:3:12345678 sleep:1500 isend:8:1 isend:100:2 isend:5000:3 isend:50000:4
            waitall progress:500"""
        ],
        "B": ["-e 3 irecv:60000:0:0:4 progress:1 waitall progress:1500"],
    },
    "truncated": {
        "A": [
            """-e 5 connect:vm2/0:3:12345678 send:8:1 send:100:2 send:5000:3 send:20000:4 send:50000:5 send:70000:6
            progress:500"""
        ],
        "B": [
            """-e 3 irecv:4:1:ff irecv:50:2:ff irecv:1000:3:ff irecv:4100:4:ff irecv:10000:5:ff irecv:0:6:ff
            progress:1 waitall progress:1000"""
        ],
    },
    "unexpected": {
        "A": [
            """-e 5 connect:vm2/0:3:12345678 isend:8:1 isend:100:2 isend:5000:3 isend:20000:4 isend:50000:5 issend:8:6
            waitall progress:500"""
        ],
        "B": [
            """-e 3 progress:2500 recv:60000:5:ff recv:60000:1:ff recv:60000:3:ff recv:60000:2:ff recv:60000:4:ff
            recv:60000:6:ff progress:1000"""
        ],
    },
    "uninit": {
        "A": [
            f"-e 5 connect:vm2/0:3:12345678 {echo(*UNINITIALISED)}",
            "-e 5 connect:vm2/0:7:12345678:3000 connect:vm2/0:40:12345678:3000",
        ],
        "B": ["-e 3 pong:14:200000 progress:300"],
    },
    "vect": {
        "A": [
            """-e 5 connect:vm2/0:3:12345678 vsend:3,5:1 vsend:60,40:2 vsend:1000,2000,1500:3
            vsend:4097,1,8000,0,100:4 vsend:30000,10,20000:5 vsend:65536,65537:6 progress:500"""
        ],
        "B": [
            """-e 3 irecv:5000:1:ff irecv:5000:2:ff irecv:5000:3:ff ivrecv:5000,5000,20000:4:ff
            ivrecv:1,50000,10000:5:ff ivrecv:100,131000:6:ff waitall progress:1000"""
        ],
    },
}

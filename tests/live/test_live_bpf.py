"""BPF programs in this kernel: frames made, counted and dropped, and refusals."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import sys
import time

import pytest

from mxwire.link import LinkError
from mxwire.link.bpf import (
    LONGEST_LIVE_FRAME,
    MAPPABLE,
    BpfAttachment,
    BpfMap,
    BpfProgram,
    MapKind,
    XdpMode,
    missing_capabilities,
)
from mxwire.link.bpf_code import (
    Code,
    Context,
    Helper,
    Register,
    Size,
    XdpAction,
    call,
    compute,
    fetch_and_add,
    give,
    jump_if,
    leave,
    load,
    load_value_address,
    store,
)

from .namespaces import Laboratory, Port, as_nobody

pytestmark = pytest.mark.usefixtures("_programs_work")

R0, R1, R2, R3, R4, R5 = (Register(number) for number in range(6))
FRAME = bytes(12) + b"\x88\xb5" + bytes(46)
NUMBER_AT = 16


def number_of(port: Port) -> int:
    return int(port.namespace.ip("-o", "link", "show", "dev", port.interface).split(":")[0])


def attach(program: BpfProgram, port: Port, mode: XdpMode) -> BpfAttachment:
    with port.namespace.inside():
        return program.attach(port.interface, number_of(port), mode)


def numbering(counter: BpfMap, interface: int) -> Code:
    """Write the number of each frame into it, and send it through an interface."""
    return [
        *(load(Size.WORD, R2, R1, Context.DATA), load(Size.WORD, R3, R1, Context.DATA_END)),
        *(compute(R4, "=", R2), compute(R4, "+", NUMBER_AT + 8), jump_if(R4, ">", R3, "drop")),
        *(*load_value_address(R5, counter.descriptor), compute(R0, "=", 1), fetch_and_add(R5, 0, R0)),
        *(store(Size.DOUBLE, R2, NUMBER_AT, R0), compute(R1, "=", interface), compute(R2, "=", 0)),
        *(call(Helper.REDIRECT), leave(), "drop", *give(XdpAction.DROP)),
    ]


def summing(sums: BpfMap) -> Code:
    """Count frames, add up their numbers, and drop them."""
    return [
        *(load(Size.WORD, R2, R1, Context.DATA), load(Size.WORD, R3, R1, Context.DATA_END)),
        *(compute(R4, "=", R2), compute(R4, "+", NUMBER_AT + 8), jump_if(R4, ">", R3, "pass")),
        *(load(Size.HALF, R4, R2, 12), jump_if(R4, "!=", int.from_bytes(FRAME[12:14], sys.byteorder), "pass")),
        *(*load_value_address(R5, sums.descriptor), compute(R0, "=", 1), fetch_and_add(R5, 0, R0)),
        *(load(Size.DOUBLE, R0, R2, NUMBER_AT), fetch_and_add(R5, 8, R0)),
        *(*give(XdpAction.DROP), "pass", *give(XdpAction.PASS)),
    ]


@pytest.mark.parametrize("length", [60, 1500, LONGEST_LIVE_FRAME])
def test_frames_made_by_the_kernel_arrive_each_once(laboratory: Laboratory, length: int) -> None:
    one, other = laboratory.pair(9000)
    count = 100_000
    with (
        BpfMap.create(MapKind.ARRAY, 8, flags=MAPPABLE) as counter,
        BpfMap.create(MapKind.ARRAY, 16) as sums,
        BpfProgram.load(numbering(counter, number_of(one))) as source,
        BpfProgram.load(summing(sums)) as sink,
        attach(sink, other, XdpMode.NATIVE),
    ):
        with one.namespace.inside():
            assert source.transmit(FRAME.ljust(length, b"\0"), count) > 0
        assert struct.unpack("=QQ", sums.lookup(0)) == (count, count * (count - 1) // 2)
        with counter.memory() as memory:
            assert struct.unpack_from("=Q", memory)[0] == count
            memory[:8] = struct.pack("=Q", 7)
        assert counter.lookup(0) == struct.pack("=Q", 7)


def test_a_frame_longer_than_a_page_is_refused():
    with (
        BpfProgram.load(give(XdpAction.DROP)) as program,
        pytest.raises(LinkError, match="at most 3408 bytes, not 3409"),
    ):
        program.transmit(bytes(LONGEST_LIVE_FRAME + 1), 1)


def test_a_wrong_program_is_refused_with_the_reason():
    with pytest.raises(LinkError, match="the kernel refuses a BPF program: R0 !read_ok"):
        BpfProgram.load([leave()])


def test_entries_outside_a_map_are_refused():
    with BpfMap.create(MapKind.ARRAY, 4, 2) as values:
        values.update(1, b"abcd")
        assert values.lookup(1) == b"abcd"
        with pytest.raises(LinkError, match="entry 2 of a BPF map"):
            values.update(2, b"abcd")


@pytest.mark.parametrize("second", XdpMode)
@pytest.mark.parametrize("first", [XdpMode.GENERIC, XdpMode.NATIVE])
def test_an_interface_has_one_program(laboratory: Laboratory, first: XdpMode, second: XdpMode) -> None:
    port, _ = laboratory.pair()
    with BpfProgram.load(give(XdpAction.PASS)) as program:
        with attach(program, port, first) as held:
            assert held.is_attached()
            with pytest.raises(LinkError, match=r"veth0: .*there is another one already.*ip link show veth0"):
                attach(program, port, second)
        attach(program, port, second).close()


def test_a_driver_without_native_programs_is_named(laboratory: Laboratory) -> None:
    machine = laboratory.machine()
    machine.ip("link", "add", "br0", "type", "bridge")
    with BpfProgram.load(give(XdpAction.PASS)) as program:
        with pytest.raises(LinkError, match=r"br0: .*its driver has no native XDP; use generic mode"):
            attach(program, Port(machine, "br0"), XdpMode.NATIVE)
        attach(program, Port(machine, "br0"), XdpMode.AUTO).close()


def test_native_mode_without_fragments_names_the_mtu(jumbo_cable: tuple[Port, Port]) -> None:
    with (
        BpfProgram.load(give(XdpAction.PASS), fragments=False) as program,
        pytest.raises(LinkError, match="its driver refuses this MTU"),
    ):
        attach(program, jumbo_cable[0], XdpMode.NATIVE)


def test_an_attachment_reports_that_its_interface_has_gone(laboratory: Laboratory) -> None:
    port, _ = laboratory.pair()
    with BpfProgram.load(give(XdpAction.PASS)) as program, attach(program, port, XdpMode.GENERIC) as held:
        port.delete()
        until = time.monotonic() + 10
        while held.is_attached() and time.monotonic() < until:
            time.sleep(0.01)
        assert not held.is_attached()


ATTACH = """
import socket, time
from mxwire.link.bpf import BpfProgram
from mxwire.link.bpf_code import XdpAction, give
held = BpfProgram.load(give(XdpAction.PASS)).attach("veth0", socket.if_nametoindex("veth0"))
print("attached", flush=True)
time.sleep(60)
"""


def test_a_killed_process_leaves_no_program(laboratory: Laboratory) -> None:
    port, _ = laboratory.pair()
    process = port.namespace.start(sys.executable, "-c", ATTACH)
    assert process.stdout is not None and process.stdout.readline() == "attached\n"
    assert "prog/xdp" in port.namespace.ip("link", "show", "dev", "veth0")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    until = time.monotonic() + 10
    while "prog/xdp" in (shown := port.namespace.ip("link", "show", "dev", "veth0")):
        assert time.monotonic() < until, shown
        time.sleep(0.01)


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="the program setpriv is not installed (util-linux)")
@pytest.mark.parametrize(
    ("held", "named"), [("net_raw", "CAP_BPF and CAP_NET_ADMIN"), ("net_admin", "CAP_BPF"), ("bpf", "CAP_NET_ADMIN")]
)
def test_the_missing_capabilities_are_named(laboratory: Laboratory, held: str, named: str) -> None:
    code = "from mxwire.link.bpf import *; from mxwire.link.bpf_code import *; BpfProgram.load(give(XdpAction.PASS))"
    refused = laboratory.machine().run(*as_nobody(code, held))
    reported = refused.stderr.splitlines()[-1]
    assert reported.startswith(f"mxwire.link.errors.LinkError: cannot load a BPF program: this needs {named}: ")


def test_this_process_has_all_capabilities(laboratory: Laboratory) -> None:
    assert missing_capabilities(["CAP_BPF", "CAP_NET_ADMIN", "CAP_NET_RAW"]) == []

"""BPF by bare system calls: maps, programs, attachments to interfaces, live frames.

Theory of operation
-------------------
An AF_XDP socket receives only the frames that a program in the kernel redirects to it, and a program can also transmit
frames that no socket has created. Both need only a few instructions, one or two maps, and three commands of bpf(2).
libbpf and clang would be large dependencies for that, so the programs are written here as lists of instructions
(``bpf_code.py``), and the commands are made by ``ctypes``.

Three kinds of kernel objects are used, each released when its last file descriptor is closed:

* :class:`BpfMap`: memory shared by programs and this process; an XSKMAP refers to AF_XDP sockets by queue.
* :class:`BpfProgram`: verified instructions. It runs for each frame while it is attached to an interface, or for frames
  made by :meth:`BpfProgram.transmit`.
* :class:`BpfAttachment`: a program on an interface (a bpf_link). The kernel detaches the program when the descriptor is
  closed, so a process that is killed leaves nothing behind, and other programs cannot replace it by mistake.

An attachment has a mode. A native program runs in the driver, before the kernel has a socket buffer for the frame; a
generic one runs later, for any driver. The kernel attaches one program per interface.

Capabilities. Maps and programs need CAP_BPF and CAP_NET_ADMIN, attachments CAP_NET_ADMIN. The kernel reports EPERM for
all of them; the errors here name the capabilities that this process lacks.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Final, Self

from mxwire.link.bpf_code import Code, assemble
from mxwire.link.errors import LinkError
from mxwire.link.namespace import CLONE_NEWNET, NetworkNamespace

# Commands, types and flags of linux/bpf.h.

_CALL_NUMBERS: Final = {
    "x86_64": 321,
    "aarch64": 280,
    "riscv64": 280,
    "loongarch64": 280,
    "ppc64le": 361,
    "s390x": 351,
}
"""Number of the system call by machine."""


class _BpfCommand(IntEnum):
    MAP_CREATE = 0
    MAP_LOOKUP_ELEMENT = 1
    MAP_UPDATE_ELEMENT = 2
    PROGRAM_LOAD = 5
    PROGRAM_TEST_RUN = 10
    OBJECT_INFO = 15
    LINK_CREATE = 28


class MapKind(IntEnum):
    """Kinds of maps."""

    ARRAY = 2
    SOCKETS = 17
    """XSKMAP: AF_XDP sockets by queue."""


class XdpMode(StrEnum):
    """Manner in which a program is attached."""

    AUTO = "auto"
    """Native if the driver can, otherwise generic."""
    NATIVE = "native"
    """In the driver."""
    GENERIC = "generic"
    """In the kernel's receive path, for any driver."""


MAPPABLE: Final = 1 << 10
"""Flag of an ARRAY map: :meth:`BpfMap.memory` maps its values."""
_ATTACH_FLAGS: Final = {XdpMode.AUTO: 0, XdpMode.GENERIC: 1 << 1, XdpMode.NATIVE: 1 << 2}
_XDP_PROGRAM: Final = 6
_XDP_ATTACHMENT: Final = 37
_HAS_FRAGMENTS: Final = 1 << 5
_LIVE_FRAMES: Final = 1 << 1
_NAME: Final = b"mxwire"
_LICENCE: Final = b"MIT"
_LOG_BYTES: Final = 1 << 18
LONGEST_LIVE_FRAME: Final = 3408
"""Maximum frame length of :meth:`BpfProgram.transmit` in bytes: frame and kernel data must fit into a page."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _bpf(command: _BpfCommand, attributes: ctypes.Array[ctypes.c_char]) -> int:
    number = _CALL_NUMBERS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    arguments = ctypes.c_int(command), attributes, ctypes.c_uint(len(attributes))
    result = int(_libc.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _attributes(layout: str, *values: int | bytes) -> ctypes.Array[ctypes.c_char]:
    packed = struct.pack("=" + layout, *values)
    return ctypes.create_string_buffer(packed, len(packed))


_CAPABILITIES: Final = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_BPF": 39}
_ADMINISTRATOR: Final = 1 << 21
"""CAP_SYS_ADMIN, which includes CAP_BPF."""


def missing_capabilities(wanted: Iterable[str]) -> list[str]:
    """Return those of the capabilities ``wanted`` (CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF) that this thread lacks."""
    held = 0
    for line in Path("/proc/thread-self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("CapEff:"):
            held = int(line.split()[1], 16)
    if held & _ADMINISTRATOR:
        held |= 1 << _CAPABILITIES["CAP_BPF"]
    return [each for each in wanted if not held >> _CAPABILITIES[each] & 1]


def _refusal(what: str, error: OSError, *capabilities: str) -> LinkError:
    """Return the error of a command that the kernel refused, with the remedy."""
    if error.errno == errno.ENOSYS:
        return LinkError(f"{what}: this kernel has no BPF; use AF_PACKET (--via packet)")
    if error.errno in (errno.EPERM, errno.EACCES) and capabilities:
        lacking = missing_capabilities(capabilities)
        if lacking:
            return LinkError(f"{what}: this needs {' and '.join(lacking)}: use sudo, or AF_PACKET (--via packet)")
        return LinkError(
            f"{what}: the kernel refuses BPF to this process although it has {' and '.join(capabilities)}, as in a "
            f"container or a user namespace; use AF_PACKET (--via packet)"
        )
    return LinkError(f"{what}: {error.strerror}")


class UnsupportedModeError(LinkError):
    """A driver cannot run a program in the requested mode."""


class _KernelObject:
    """An object of the kernel that lives as long as its descriptor is open."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        """Number of the file descriptor; -1 once closed."""

    def close(self) -> None:
        """Release the object; closing it again does nothing."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the object."""
        self.close()

    def __del__(self) -> None:
        """Release the object."""
        self.close()


class BpfMap(_KernelObject):
    """A map whose keys are numbers of 4 bytes."""

    def __init__(self, descriptor: int, value_bytes: int, entries: int) -> None:
        super().__init__(descriptor)
        self.value_bytes = value_bytes
        """Size of a value in bytes."""
        self.entries = entries
        """Number of values."""

    @classmethod
    def create(cls, kind: MapKind, value_bytes: int = 4, entries: int = 1, flags: int = 0) -> Self:
        """Create a map for keys from 0 up to, not including, ``entries``.

        Raises :class:`~mxwire.link.errors.LinkError` with the missing capability.
        """
        try:
            made = _bpf(_BpfCommand.MAP_CREATE, _attributes("IIIII", kind, 4, value_bytes, entries, flags))
        except OSError as error:
            raise _refusal("cannot create a BPF map", error, "CAP_BPF", "CAP_NET_ADMIN") from error
        return cls(made, value_bytes, entries)

    def update(self, key: int, value: bytes) -> None:
        """Set the value of a key. Raises LinkError if the map has no such key."""
        self._element(_BpfCommand.MAP_UPDATE_ELEMENT, key, ctypes.create_string_buffer(value, self.value_bytes))

    def lookup(self, key: int) -> bytes:
        """Return the value of a key. Raises LinkError if the map has no such key."""
        value = ctypes.create_string_buffer(self.value_bytes)
        self._element(_BpfCommand.MAP_LOOKUP_ELEMENT, key, value)
        return value.raw

    def _element(self, command: _BpfCommand, key: int, value: ctypes.Array[ctypes.c_char]) -> None:
        key_memory = ctypes.c_uint32(key)
        places = ctypes.addressof(key_memory), ctypes.addressof(value)
        try:
            _bpf(command, _attributes("IxxxxQQQ", self.descriptor, *places, 0))
        except OSError as error:
            raise _refusal(f"entry {key} of a BPF map", error) from error

    def memory(self) -> mmap.mmap:
        """Map the values of an ARRAY map that was created ``MAPPABLE``; each begins at a multiple of 8 bytes."""
        each = -(-self.value_bytes // 8) * 8
        return mmap.mmap(self.descriptor, -(-each * self.entries // mmap.PAGESIZE) * mmap.PAGESIZE)


class BpfProgram(_KernelObject):
    """An XDP program."""

    @classmethod
    def load(cls, code: Code, *, fragments: bool = True) -> Self:
        """Load a program; ``fragments`` permits frames of more than one page, which native mode needs for a long MTU.

        Raises :class:`~mxwire.link.errors.LinkError` with the missing capability, or with the last line of the
        verifier.
        """
        assembled = assemble(code)
        instructions = ctypes.create_string_buffer(assembled, len(assembled))
        licence = ctypes.create_string_buffer(_LICENCE)
        flags = _HAS_FRAGMENTS if fragments else 0

        def attempt(level: int, log: ctypes.Array[ctypes.c_char] | None) -> int:
            where = ctypes.addressof(log) if log is not None else 0
            values = (
                *(_XDP_PROGRAM, len(assembled) // 8, ctypes.addressof(instructions), ctypes.addressof(licence)),
                *(level, len(log) if log is not None else 0, where, 0, flags, _NAME, 0, _XDP_ATTACHMENT),
            )
            return _bpf(_BpfCommand.PROGRAM_LOAD, _attributes("IIQQIIQII16sII", *values))

        try:
            return cls(attempt(0, None))
        except OSError as error:
            refused = error
        if refused.errno in (errno.EPERM, errno.ENOSYS):
            raise _refusal("cannot load a BPF program", refused, "CAP_BPF", "CAP_NET_ADMIN")
        # The verifier gives its reasons only on request.
        log = ctypes.create_string_buffer(_LOG_BYTES)
        try:
            return cls(attempt(1, log))
        except OSError as error:
            lines = [line for line in log.value.decode(errors="replace").splitlines() if line.strip()]
            # The last line is a statistic.
            cause = next((line for line in reversed(lines) if not line.startswith("processed ")), error.strerror)
            raise LinkError(f"the kernel refuses a BPF program: {cause}") from error

    def attach(self, interface: str, index: int, mode: XdpMode | str = XdpMode.AUTO) -> BpfAttachment:
        """Attach the program to the interface with that name and number.

        Raises :class:`~mxwire.link.errors.LinkError` if there is another program, if the driver lacks the mode, and
        without permission.
        """
        mode = XdpMode(mode)
        try:
            made = _bpf(
                _BpfCommand.LINK_CREATE,
                _attributes("IIII", self.descriptor, index, _XDP_ATTACHMENT, _ATTACH_FLAGS[mode]),
            )
        except OSError as error:
            raise _attach_refusal(interface, mode, error) from error
        return BpfAttachment(made)

    def transmit(self, frame: bytes, repeat: int, batch: int = 64, *, interface: int = 0) -> int:
        """Run the program for ``repeat`` copies of a frame made by the kernel (live frames), which the program sends by
        returning REDIRECT or TRANSMIT; return the nanoseconds per frame.

        The kernel reuses the memory of frames without restoring it, so a program finds the changes of an earlier run.
        The kernel makes ``batch`` frames before it sends those of them that are redirected. A call takes some 25 ms in
        addition to the time for its frames, except while the program is on :meth:`standby`. ``interface`` is the number
        of the interface on which the frames pretend to have arrived (0: loopback). Raises InterruptedError after a
        signal, and :class:`~mxwire.link.errors.LinkError` if the frame is longer than ``LONGEST_LIVE_FRAME``, and
        without permission.
        """
        if len(frame) > LONGEST_LIVE_FRAME:
            raise LinkError(f"the kernel makes frames of at most {LONGEST_LIVE_FRAME} bytes, not {len(frame)}")
        data = ctypes.create_string_buffer(frame, len(frame))
        # struct xdp_md: the frame's start and end, its metadata, and the interface and queue on which it arrived.
        about = struct.pack("=IIIIII", 0, len(frame), 0, interface, 0, 0)
        context = ctypes.create_string_buffer(about, len(about))
        given = (len(about), 0, ctypes.addressof(context), 0) if interface else (0, 0, 0, 0)
        attributes = _attributes(
            "IIIIQQIIIIQQIIIxxxx",
            *(self.descriptor, 0, len(frame), 0, ctypes.addressof(data), 0, repeat, 0, *given),
            *(_LIVE_FRAMES, 0, batch),
        )
        try:
            _bpf(_BpfCommand.PROGRAM_TEST_RUN, attributes)
        except InterruptedError:
            raise
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise LinkError("this kernel does not make live frames (Linux 5.18 or later does)") from error
            raise _refusal("cannot make live frames", error, "CAP_BPF", "CAP_NET_ADMIN") from error
        return int(struct.unpack_from("=I", attributes.raw, _DURATION_OFFSET)[0])

    @contextmanager
    def standby(self) -> Iterator[bool]:
        """Avoid the fixed cost of :meth:`transmit` within the context; the value of the context is False if that is not
        permitted.

        The kernel keeps a table of the programs that run. A call enters its program and removes it afterwards, and
        waits each time until no CPU uses the old table. A program that is attached to an interface is in the table
        already: here to the loopback of an empty network namespace, where no frame arrives. Creating the namespace
        needs CAP_SYS_ADMIN.
        """
        with ExitStack() as stack:
            here = stack.enter_context(NetworkNamespace())
            if _libc.unshare(CLONE_NEWNET):
                yield False
                return
            try:
                # A namespace exists for as long as a socket in it is open.
                stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC))
                stack.enter_context(self.attach("lo", socket.if_nametoindex("lo"), XdpMode.GENERIC))
            finally:
                here.enter()
            yield True


_DURATION_OFFSET: Final = struct.calcsize("=IIIIQQI")


def _attach_refusal(interface: str, mode: XdpMode, error: OSError) -> LinkError:
    what = f"{interface}: cannot attach a BPF program"
    if error.errno in (errno.EBUSY, errno.EEXIST):
        return LinkError(
            f"{what}: there is another one already ('ip link show {interface}' shows it); end its program, or use "
            f"AF_PACKET (--via packet)"
        )
    if error.errno in (errno.EOPNOTSUPP, errno.ERANGE) and mode is XdpMode.NATIVE:
        why = "its driver has no native XDP" if error.errno == errno.EOPNOTSUPP else "its driver refuses this MTU"
        return UnsupportedModeError(f"{what}: {why}; use generic mode")
    return _refusal(what, error, "CAP_NET_ADMIN")


class BpfAttachment(_KernelObject):
    """A program that is attached to an interface until this is closed."""

    def is_attached(self) -> bool:
        """Return whether the program is still attached: a program with privileges can detach it, and it is detached
        when its interface disappears."""
        # struct bpf_link_info: type, number, program; then, by type, the number of the interface, 0 once detached.
        info = ctypes.create_string_buffer(_INFO_BYTES)
        attributes = _attributes("IIQ", self.descriptor, len(info), ctypes.addressof(info))
        try:
            _bpf(_BpfCommand.OBJECT_INFO, attributes)
        except OSError:
            return False
        return bool(struct.unpack_from("=I", info.raw, _INFO_INTERFACE)[0])


_INFO_INTERFACE: Final = 16
_INFO_BYTES: Final = _INFO_INTERFACE + 8

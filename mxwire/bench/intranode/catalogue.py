"""Names of the mechanisms, in the order of the reports, and where their classes are.

A pair imports the file of its own mechanism only: that of mxwire's path needs hosts and the engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from mxwire.errors import MxwireError
from mxwire.words import suggestion

if TYPE_CHECKING:
    from mxwire.bench.intranode.mechanism import Mechanism

_CLASSES: Final = {
    "shared-buffer": "shared_buffer.SharedBuffer",
    "memfd": "shared_buffer.MemfdBuffer",
    "cell-queue": "cell_queue.CellQueue",
    "cell-stack": "cell_queue.CellStack",
    "heap": "heap.SharedHeap",
    "system-v-queue": "system_v_queue.SystemVQueue",
    "posix-queue": "posix_queue.PosixQueue",
    "pipe": "pipe.Pipe",
    "vmsplice": "pipe.Vmsplice",
    "unix-stream": "stream_socket.UnixStream",
    "unix-stream-polled": "stream_socket.PolledUnixStream",
    "unix-packets": "stream_socket.UnixPackets",
    "ptrace": "process_file.PtraceGet",
    "process-file": "process_file.ProcessFile",
    "cma-get": "cross_memory.CrossMemoryGet",
    "cma-put": "cross_memory.CrossMemoryPut",
    "tcp": "stream_socket.LoopbackTcp",
    "veth": "raw_veth.RawVeth",
    "mx-local": "local_path.MxLocal",
    "mx-local-two-copies": "local_path.MxLocalTwoCopies",
    "adapter-copy": "adapter_copy.AdapterCopy",
    "token-get": "adapter_copy.TokenGet",
    "token-put": "adapter_copy.TokenPut",
}
MECHANISMS: Final = tuple(_CLASSES)
WITHOUT_TWIN: Final = ("cell-stack", "mx-local", "mx-local-two-copies", "adapter-copy", "token-get", "token-put")
"""Mechanisms that have no twin in C. The limits of mxwire's own are ``cma-get`` and ``shared-buffer``, which have no
semantics of MX.
"""


def mechanism_named(name: str) -> type[Mechanism]:
    """The mechanism of a name. Raises :class:`~mxwire.errors.MxwireError` for an unknown one."""
    if name not in _CLASSES:
        raise MxwireError(f"no mechanism {name!r}{suggestion(name, MECHANISMS)}: use {', '.join(MECHANISMS)}")
    module, _, own = _CLASSES[name].partition(".")
    found: type[Mechanism] = getattr(import_module(f"mxwire.bench.intranode.{module}"), own)
    return found

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
    "shared-buffer": "shared_memory.SharedBuffer",
    "memfd": "shared_memory.MemfdBuffer",
    "cell-queue": "shared_memory.CellQueue",
    "cell-stack": "shared_memory.CellStack",
    "heap": "shared_memory.SharedHeap",
    "system-v-queue": "message_queue.SystemVQueue",
    "posix-queue": "message_queue.PosixQueue",
    "pipe": "byte_stream.Pipe",
    "vmsplice": "byte_stream.Vmsplice",
    "unix-stream": "byte_stream.UnixStream",
    "unix-stream-polled": "byte_stream.PolledUnixStream",
    "unix-packets": "byte_stream.UnixPackets",
    "ptrace": "process_memory.PtraceGet",
    "process-file": "process_memory.ProcessFile",
    "cma-get": "process_memory.CrossMemoryGet",
    "cma-put": "process_memory.CrossMemoryPut",
    "tcp": "byte_stream.LoopbackTcp",
    "veth": "raw_veth.RawVeth",
    "mx-local": "local_path.MxLocal",
    "mx-local-one-copy": "local_path.MxLocalOneCopy",
    "adapter-copy": "adapter_copy.AdapterCopy",
    "token-get": "adapter_copy.TokenGet",
    "token-put": "adapter_copy.TokenPut",
}
MECHANISMS: Final = tuple(_CLASSES)
KINDS: Final = {
    "shared memory": ("shared-buffer", "memfd", "cell-queue", "cell-stack", "heap"),
    "queues of the kernel": ("system-v-queue", "posix-queue", "pipe", "vmsplice"),
    "sockets": ("unix-stream", "unix-stream-polled", "unix-packets", "tcp", "veth"),
    "memory of the other process": ("ptrace", "process-file", "cma-get", "cma-put"),
    "mxwire": ("mx-local", "mx-local-one-copy", "adapter-copy", "token-get", "token-put"),
}
"""Mechanisms that share a panel of a figure."""
WITHOUT_TWIN: Final = ("cell-stack", "mx-local", "mx-local-one-copy", "adapter-copy", "token-get", "token-put")
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

"""The active side as a program in C that uses libmyriexpress: its system calls and copies, counted by tracing."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

from mxwire.bench.roles.tracing import PROGRAM_MARK, WARM_TRIPS, trace
from mxwire.errors import MxwireError
from mxwire.myriexpress.build import Installation, compiler, default_prefix
from mxwire.myriexpress.launch import environment
from mxwire.wire.numbers import DEFAULT_KEY

_SOURCE: Final = f"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <myriexpress.h>

#define MUST(call) if ((call) != MX_SUCCESS) {{ fprintf(stderr, "%s\\n", #call); return 1; }}

static char *out, *in;
static mx_endpoint_t endpoint;
static mx_endpoint_addr_t partner;

static int trip(uint32_t size)
{{
    mx_segment_t from = {{out, size}}, to = {{in, size}};
    mx_request_t sent, received;
    mx_status_t status;
    uint32_t result;
    MUST(mx_irecv(endpoint, &to, 1, 0, 0, NULL, &received));
    MUST(mx_isend(endpoint, &from, 1, partner, 0, NULL, &sent));
    MUST(mx_wait(endpoint, &sent, MX_INFINITE, &status, &result));
    MUST(mx_wait(endpoint, &received, MX_INFINITE, &status, &result));
    return 0;
}}

int main(int argc, char **argv)
{{
    uint32_t size = atoi(argv[1]), count = atoi(argv[2]), warm = atoi(argv[argc - 1]);
    uint64_t nic_id;
    out = calloc(1, size + 64);
    in = calloc(1, size + 64);
    MUST(mx_init());
    MUST(mx_open_endpoint(0, 0, {DEFAULT_KEY:#x}, NULL, 0, &endpoint));
    MUST(mx_hostname_to_nic_id("beta:0", &nic_id));
    MUST(mx_connect(endpoint, nic_id, 0, {DEFAULT_KEY:#x}, 10000, &partner));
    if (trip(0))
        return 1;
    for (uint32_t number = 0; number < warm + count; number++) {{
        if (number >= warm)
            syscall(SYS_getppid, out, size, {PROGRAM_MARK:#x}L);
        if (trip(size))
            return 1;
    }}
    syscall(SYS_getppid, out, size, {PROGRAM_MARK:#x}L);
    mx_close_endpoint(endpoint);
    mx_finalize();
    return 0;
}}
"""


def library_refusal() -> str | None:
    """Return the reason why programs cannot use libmyriexpress here; None if they can."""
    installation = Installation(default_prefix())
    try:
        installation.require()
        compiler()
    except MxwireError as error:
        # Recordings and pages are published, and name no folder of this machine.
        return str(error).replace(f"{installation.library.parent}/", "")
    return None


def traced_library(interface: str, other: str, size: int, count: int) -> dict[str, Any]:
    """Ping-pong of a program in C with the host ``beta`` at the Ethernet address ``other``; counts per round trip.

    The host plays ``traced trips``. Raises :class:`~mxwire.errors.MxwireError` if the library is not built, or the
    program fails.
    """
    installation = Installation(default_prefix())
    installation.require()
    with tempfile.TemporaryDirectory(prefix="mxwire-bench-") as folder:
        program = str(Path(folder, "trips"))
        command = [
            *compiler(),
            "-x",
            "c",
            "-",
            "-o",
            program,
            f"-I{installation.include}",
            f"-L{installation.folder}",
            "-lmyriexpress",
        ]
        compiled = subprocess.run(command, input=_SOURCE, capture_output=True, text=True, check=False)
        if compiled.returncode:
            raise MxwireError(f"a program with libmyriexpress cannot be compiled: {compiled.stderr.strip()[:200]}")
        peers = Path(folder, "peers")
        peers.write_text(f"{other} beta:0\n", encoding="utf-8")
        variables = {"MXWIRE_INTERFACE": interface, "MXWIRE_NAME": "alpha:0", "MXWIRE_PEERS": str(peers)}
        surroundings = environment(installation, os.environ) | variables
        words = [program, str(size), str(count), str(WARM_TRIPS)]
        return trace(lambda: os.execve(program, words, surroundings), count).record(count)

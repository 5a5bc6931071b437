"""Detect whether this kernel permits BPF programs, for tests that need them."""

from __future__ import annotations

from functools import cache

from mxwire.link import LinkError
from mxwire.link.bpf import BpfProgram
from mxwire.link.bpf_code import XdpAction, give


@cache
def missing() -> str | None:
    """Why there cannot be programs here, None if there can."""
    try:
        with BpfProgram.load(give(XdpAction.PASS)):
            return None
    except LinkError as error:
        return str(error)

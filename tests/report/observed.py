"""An observer of live traffic that has seen a whole capture."""

from __future__ import annotations

import time
from pathlib import Path

from mxwire.analysis.host_names import HostNames
from mxwire.analysis.observer import TrafficObserver
from mxwire.capture import open_capture
from mxwire.wire.decoder import Decoder


def names_of(names: dict[int, str] | None) -> HostNames:
    return HostNames({address.to_bytes(6, "big"): name for address, name in (names or {}).items()})


def observed(path: Path, names: dict[int, str] | None = None) -> TrafficObserver:
    found = TrafficObserver(
        Decoder, clock=time.monotonic_ns, processor_time=time.thread_time_ns, share=None, names=names_of(names)
    )
    with open_capture(str(path)) as reader:
        for batch in reader:
            found.observe(batch)
    found.settle()
    return found

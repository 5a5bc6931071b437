"""``mxwire compat``, as a user runs it."""

from __future__ import annotations

from .support import CAPTURES

MXOE, OMX1500, OMX9000 = (
    CAPTURES / name
    for name in ("mxoe-pingpong-small-medium.pcap", "omx1500-echo-pattern.pcap", "omx9000-pingpong-sync.pcap")
)
LOSSY = CAPTURES / "mxoe-lossy-1M.pcap"
ONE, OTHER = "52:54:00:0a:00:01", "52:54:00:0a:00:02"


def words(run) -> dict[str, str]:
    return {each["class"]: each["works"] for each in run.objects if each["record"] == "class"}

"""The extras for users: the purpose of each, its packages, and what it adds to an installation."""

from __future__ import annotations

from importlib.metadata import requires

from packaging.requirements import Requirement

from mxwire.report.document import Column, Row
from rendering.packages import declared, installed_size
from rendering.tables import table_of_markdown

PURPOSES = {
    "fast": "reading large captures faster",
    "table": "Parquet and Arrow files (`--to`), and data frames in Python; CSV and NDJSON need no extra",
    "plot": "figures (`--plot`)",
    "report": "pages (`--html` of `mxwire report`, `mxwire interop` and `mxwire bench`)",
    "scapy": "[scapy](scapy.md) layers",
    "pyshark": "[pyshark](pyshark.md) with the plugin",
    "top": "the screen of `mxwire top` ([Monitoring](monitor.md))",
    "watch": "findings and figures of a live interface for Prometheus (`mxwire watch`)",
    "library": "`mxwire library build`: [libmyriexpress.so](myriexpress.md) and the provider for [MPI](mpi.md); "
    "also needs a C compiler",
    "dask": "[campaigns](campaigns.md) on the processors of this machine, of others, and of Slurm (`--on dask:…`)",
    "mpi": "campaigns under `mpirun` (`--on mpi`); also needs the MPI library of the cluster",
    "all": "all of these",
}
"""The purpose of each extra for users; the others are for the development of mxwire."""


def named_by(requirements: list[str], extra: str) -> list[str]:
    """Return the packages that an extra itself names."""
    found = [Requirement(each) for each in requirements]
    return [each.name for each in found if each.marker and each.marker.evaluate({"extra": extra}) and not each.extras]


def made() -> str:
    """Return a table with a row per extra, measured in this environment."""
    requirements = requires("mxwire") or []
    core = declared(requirements)
    rows = []
    for extra, purpose in PURPOSES.items():
        found = declared(requirements, extra)
        packages = [package for name, package in found.items() if name not in core and name != "mxwire"]
        names = "" if extra == "all" else ", ".join(named_by(requirements, extra))
        size = installed_size(packages) / 1e6
        rows.append(Row((f"`{extra}`", purpose, names, f"{max(size, 1):.0f} MB")))
    columns = (Column("extra"), Column("for"), Column("packages"), Column("adds", right=True))
    size = installed_size(core.values()) / 1e6
    return f"{table_of_markdown(columns, rows)}\nWithout extras, the packages that mxwire needs take {size:.0f} MB.\n"

"""Plots of latency and bandwidth by message length, for ``mxwire perf``; matplotlib is an optional extra."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mxwire.errors import OutputError
from mxwire.report.plot import FONT, Measurement, bandwidth, check, latency, length_axis, marks, tidy
from mxwire.wire.dialect import Dialect

__all__ = ["Measurement", "check", "draw"]


def draw(
    path: Path, measured: Sequence[Measurement], dialect: Dialect, partner: str, *, unidirectional: bool = False
) -> None:
    """Draw measurements into the file ``path``; its suffix selects the format.

    Raises :class:`~mxwire.errors.MxwireError` if matplotlib is not installed, or the file cannot be written.
    """
    check()
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    with mpl.rc_context(FONT):
        figure, (above, below) = pyplot.subplots(
            2, 1, sharex=True, figsize=(9, 7.2), layout="constrained", gridspec_kw={"hspace": 0.04}
        )
        try:
            latency(above, measured, unidirectional)
            bandwidth(below, measured)
            for axes in (above, below):
                marks(axes, measured, dialect, named=axes is above)
                tidy(axes)
            length_axis(below, measured)
            figure.suptitle(f"Messages to {partner} and back, dialect {dialect}", x=0.01, ha="left", fontsize=13)
            metadata = {"Date": None} if path.suffix in (".svg", ".pdf") else None
            figure.savefig(path, dpi=150, metadata=metadata)
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from None
        finally:
            pyplot.close(figure)

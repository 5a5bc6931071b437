"""The columns of IMB and OSU, compared with recorded lines of both, and read by the expressions of their users."""

from __future__ import annotations

import re

import pytest

from mxwire.bench.imb.columns import (
    OSU_TESTS,
    ImbRow,
    imb_banner,
    imb_end,
    imb_head,
    imb_row,
    netpipe_row,
    osu_head,
    osu_row,
    osu_values,
)
from mxwire.bench.imb.patterns import BENCHMARKS, benchmark_by_name, repetitions_of
from mxwire.errors import MxwireError

REFRAME = re.compile(r"^(?P<size>\d+)\s+(?P<val>\S+)")
"""The expression by which ReFrame's checks read the lines of OSU."""
REFRAME_IMB = re.compile(r"^\s+(?P<size>\d+)\s+(?P<repetitions>\d+)\s+(?P<time>\S+)\s+(?P<rate>\S+)$")

PINGPONG = """
#---------------------------------------------------
# Benchmarking PingPong 
# #processes = 2 
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
            0         1000         7.31         0.00
"""  # noqa: W291
OSU_LATENCY = """
# OSU MPI Latency Test v7.4
# Datatype: MPI_CHAR.
# Size         Avg Latency(us)
1                         7.31
"""


def test_ping_pong_is_that_of_imb():
    benchmark = benchmark_by_name("PingPong")
    lines = [*imb_head(benchmark, 2), imb_row(benchmark, ImbRow(0, 1000, 14.62, 14.62, 14.62))]
    assert "\n".join(lines) + "\n" == PINGPONG


def test_latency_is_that_of_osu_with_mxwire_on_a_comment_line():
    lines = [*osu_head("osu_latency", "1.2"), osu_row("osu_latency", 1, 7.31)]
    assert "# mxwire 1.2" in lines
    assert "\n".join(each for each in lines if "mxwire" not in each) + "\n" == OSU_LATENCY


@pytest.mark.parametrize(
    ("name", "columns", "rule"),
    [
        ("PingPing", "       #bytes #repetitions      t[usec]   Mbytes/sec", 4),
        ("Sendrecv", "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec", 6),
        ("Exchange", "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec", 6),
        ("Allreduce", "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]", 5),
        ("Barrier", " #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]", 4),
        ("Uniband", "       #bytes #repetitions   Mbytes/sec      Msg/sec", 4),
    ],
)
def test_columns_of_imb(name, columns, rule):
    lines = list(imb_head(benchmark_by_name(name), 4))
    assert lines[-1] == columns
    assert lines[1] == "#" + "-" * (13 * rule - 1)


def test_idle_processes_are_mentioned():
    assert "# ( 2 additional processes waiting in MPI_Barrier)" in list(imb_head(benchmark_by_name("PingPong"), 4))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("PingPong", "      1048576           40       500.00      2097.15"),
        ("PingPing", "      1048576           40      1000.00      1048.58"),
        ("Sendrecv", "      1048576           40       900.00      1000.00       950.00      2097.15"),
        ("Exchange", "      1048576           40       900.00      1000.00       950.00      4194.30"),
        ("Bcast", "      1048576           40       900.00      1000.00       950.00"),
        ("Barrier", "           40       900.00      1000.00       950.00"),
        ("Uniband", "      1048576           40     67108.86        64000"),
        ("Biband", "      1048576           40    134217.73       128000"),
    ],
)
def test_factors_of_imb(name, expected):
    assert imb_row(benchmark_by_name(name), ImbRow(1 << 20, 40, 900, 1000, 950)) == expected


def test_rows_are_means_over_repetitions_and_extremes_over_ranks():
    row = ImbRow.of(8, [[1000, 3000], [4000, 4000], [1000, 1000]])
    assert (row.repetitions, row.least, row.most) == (2, 1.0, 4.0)
    assert row.mean == pytest.approx(7 / 3)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("osu_bw", "\n# OSU MPI Bandwidth Test v7.4\n{}# Size        Bandwidth (MB/s)\n"),
        ("osu_bibw", "\n# OSU MPI Bi-Directional Bandwidth Test v7.4\n{}# Size        Bandwidth (MB/s)\n"),
        (
            "osu_mbw_mr",
            "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n# [ pairs: 1 ] [ window size: 64 ]\n"
            "{}# Size                    MB/s          Messages/s\n",
        ),
        ("osu_bcast", "\n# OSU MPI Broadcast Latency Test v7.4\n{}# Size         Avg Latency(us)\n"),
        (
            "osu_alltoall",
            "\n# OSU MPI All-to-All Personalized Exchange Latency Test v7.4\n{}# Size         Avg Latency(us)\n",
        ),
    ],
)
def test_heads_are_those_of_osu(name, expected):
    lines = "".join(f"{each}\n" for each in osu_head(name, "1.2"))
    assert lines == expected.format("# Datatype: MPI_CHAR.\n# mxwire 1.2\n")


def test_parsers_read_every_row_of_osu():
    for name, test in OSU_TESTS.items():
        benchmark = benchmark_by_name(name)
        values = osu_values(name, benchmark, ImbRow(4096, 10, 100.0, 200.0, 150.0))
        line = osu_row(name, 4096, *values)
        assert len(values) == len(test.columns)
        if name != "osu_barrier":
            found = REFRAME.match(line)
            assert found is not None
            assert found["size"] == "4096"
        assert all(each.startswith("#") for each in osu_head(name, "1") if each)
    assert list(osu_head("osu_barrier", "1"))[1::2] == ["# OSU MPI Barrier Latency Test v7.4", "# Avg Latency(us)"]
    assert osu_row("osu_barrier", 0, 5.6) == "             5.60"
    assert osu_row("osu_bw", 1, 12.5) == "1                        12.50"
    assert osu_row("osu_mbw_mr", 8, 1.5, 187500.0) == "8                         1.50           187500.00"


def test_parsers_read_every_row_of_imb():
    found = REFRAME_IMB.match(imb_row(benchmark_by_name("PingPong"), ImbRow(64, 1000, 10.0, 10.0, 10.0)))
    assert found is not None
    assert found.groupdict() == {"size": "64", "repetitions": "1000", "time": "5.00", "rate": "12.80"}


def test_banner_and_end_are_comments():
    lines = [*imb_banner("1.2", "mxwire bench imb PingPong", ["PingPong"], 4, 1024), *imb_end()]
    assert all(each.startswith("#") for each in lines if each)
    assert lines[0] == "#" + "-" * 64
    assert "# All processes entering MPI_Finalize" in lines
    assert "# PingPong" in lines
    assert "# Minimum message length in bytes:   4" in lines
    assert "# Maximum message length in bytes:   1024" in lines


def test_netpipe_row():
    assert netpipe_row(0, 1, 1000, 7.31) == "  0:       1 bytes   1000 times -->     1.09 Mbps in       7.31 usec"


def test_repetitions_move_at_most_forty_megabytes():
    assert [repetitions_of(each) for each in (0, 4096, 1 << 20, 4 << 20, 64 << 20)] == [1000, 1000, 40, 10, 1]


def test_sizes_begin_where_imb_begins():
    assert benchmark_by_name("Allreduce").sizes(16) == (0, 4, 8, 16)
    assert benchmark_by_name("pingpong").sizes(4) == (0, 1, 2, 4)
    assert benchmark_by_name("Barrier").sizes(1 << 20) == (0,)


def test_unknown_benchmarks_and_algorithms_are_refused():
    with pytest.raises(MxwireError, match="did you mean PingPong"):
        benchmark_by_name("PingPon")
    with pytest.raises(MxwireError, match="Bcast has no algorithm 'tree': use binomial, scatter\\+ring"):
        BENCHMARKS["bcast"].algorithm(8, "tree")

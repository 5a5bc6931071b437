"""Studies that repeat the measurements of papers on user-space communication: path, LogP, latency, bandwidth, cost.

Begin with ``record.py`` (a recording: conditions, series, measurements), ``testbed.py`` (two sides, each a process,
which run roles together) and ``channels/`` (one API for mxwire's hosts, TCP, UDP and bare frames). ``roles/`` has the
roles of both sides, ``rounds.py`` and ``study.py`` the part that all studies share; ``report.py`` draws their figures.
``imb/`` has the benchmarks of IMB and OSU, ``cost/`` the model of processors, for hardware that is not available here,
``overlap.py`` messages beside work, ``models/`` the classic libraries, and ``claims/`` the statements of papers that
these studies judge.
"""

"""Measure as the papers on user-space communication did: where the time goes, LogP, latency, bandwidth, costs.

Begin with ``record.py`` (a recording: conditions, series, measurements), ``stage.py`` (two sides, each a process, which
run roles together) and ``channels/`` (one API for mxwire's hosts, TCP, UDP and bare frames). ``roles/`` has the
roles of both sides, ``rounds.py`` and ``study.py`` the part that all studies share; ``report.py`` draws their figures.
``imb/`` has the benchmarks of IMB and OSU, ``cost/`` the model of processors, for hardware that is not available here.
"""

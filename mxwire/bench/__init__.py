"""Measure as the papers on user-space communication did: latency, bandwidth, and the costs of a path.

``imb/`` has the benchmarks of IMB and OSU, ``cost/`` the model of processors that answers for hardware that is not
here.
"""

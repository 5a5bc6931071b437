"""The interoperability matrix: pairs of implementations, tested in cases and under impairments.

``implementations.py``, ``cases/`` and ``impairments.py`` list what is combined; ``expectations.py`` has the expected
result of each combination. ``matrix.py`` plays all cells, ``cell_player.py`` one of them, on the testbed of
``simulated_testbed.py`` or ``live_testbed.py``. ``site/`` writes the report as pages.
"""

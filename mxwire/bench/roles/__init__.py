"""Roles: the work of the two sides of a measurement.

``exchanges.py`` and ``tracing.py`` have the roles of studies over any channel, ``alone.py`` and ``program.py`` those of
one side alone.
"""

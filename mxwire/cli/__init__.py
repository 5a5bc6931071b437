"""The ``mxwire`` command: one file per command, which parses options, calls a room and prints.

A new command is a file here and an entry in ``catalogue.md``. ``main.py`` loads commands and turns errors into exit
codes, ``options.py`` and ``option_groups.py`` have the options that several commands share, and ``reading.py`` the
captures and interfaces that they read.
"""

from mxwire.cli.main import main

__all__ = ["main"]

"""The ``mxwire`` command: one file a command, thin; the work is done by the library."""

from mxwire.cli.main import main

__all__ = ["main"]

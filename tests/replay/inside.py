"""The command in this process: as it is called, but without the start of another Python."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout

from mxwire.cli.main import main
from tests.cli.support import Run


def mxwire(*arguments: object) -> Run:
    """The command's exit code and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(each) for each in arguments])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        sys.stdout.flush()
    return Run(code, out.getvalue(), err.getvalue())

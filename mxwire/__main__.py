"""The ``mxwire`` command, and ``python -m mxwire``: Ctrl-C is handled before anything is imported."""

import _thread
import os
import sys
import time

_SIGINT = 2
"""As a number, because its module imports others."""


def _interrupt_again(ignored: "sys.UnraisableHookArgs") -> None:
    """Interrupt once more after Python has ignored Ctrl-C, as it does in the callback at the end of each import."""
    if ignored.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(ignored)
        return

    def interrupt() -> None:
        # By then the callback has returned.
        time.sleep(0.01)
        os.kill(os.getpid(), _SIGINT)

    _thread.start_new_thread(interrupt, ())


def main() -> None:
    """Run the command line and exit; Ctrl-C exits silently with 130, even during imports."""
    sys.unraisablehook = _interrupt_again
    try:
        from mxwire.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

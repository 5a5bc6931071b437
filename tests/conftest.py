"""What all tests share."""

from __future__ import annotations

import signal

# A shell that starts the tests in the background has them ignore Ctrl-C, and they would pass that on to the programs
# that they start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

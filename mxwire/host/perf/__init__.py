"""The application protocol of omx_perf, in both roles: ping-pong of messages of growing length."""

from mxwire.host.perf.parameters import MATCH, PARAMETERS_LENGTH, PerfParameters
from mxwire.host.perf.receiver import PerfReceiver
from mxwire.host.perf.result import PerfResult
from mxwire.host.perf.sender import PerfSender

__all__ = ["MATCH", "PARAMETERS_LENGTH", "PerfParameters", "PerfReceiver", "PerfResult", "PerfSender"]

"""The application protocol of omx_perf, in both roles: ping-pong of messages of growing length."""

from mxwire.host.perf.parameters import MATCH, PARAMETERS_LENGTH, PerfParameters, PerfResult
from mxwire.host.perf.roles import PerfReceiver, PerfSender

__all__ = ["MATCH", "PARAMETERS_LENGTH", "PerfParameters", "PerfReceiver", "PerfResult", "PerfSender"]

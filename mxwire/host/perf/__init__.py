"""The application protocol of omx_perf, in both roles: ping-pong of messages of growing length.

``roles.py`` has the loops of the sender, which measures round trips, and of the receiver, which answers;
``parameters.py`` the parameters that they exchange, and the line per length.
"""

from mxwire.host.perf.parameters import MATCH, PARAMETERS_LENGTH, PerfParameters, PerfResult
from mxwire.host.perf.roles import PerfReceiver, PerfSender

__all__ = ["MATCH", "PARAMETERS_LENGTH", "PerfParameters", "PerfReceiver", "PerfResult", "PerfSender"]

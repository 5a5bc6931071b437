"""The application protocol of omx_perf, both roles: ping-pong of messages of growing length, with any such host."""

from mxwire.host.perf.parameters import MATCH, PARAMETERS_LENGTH, Parameters
from mxwire.host.perf.receiver import Receiver
from mxwire.host.perf.result import Result
from mxwire.host.perf.sender import Sender

__all__ = ["MATCH", "PARAMETERS_LENGTH", "Parameters", "Receiver", "Result", "Sender"]

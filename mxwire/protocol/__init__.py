"""The protocol engine: a complete MXoE host as a sans-IO state machine.

It knows no socket, file, thread, clock or randomness of its own: frames, calls and the time go in; frames, events and
the next deadline come out. So every run can be repeated from its seed.
"""

from mxwire.protocol.counters import Counter, Counters
from mxwire.protocol.errors import LocalProtocolError
from mxwire.protocol.event import Event, EventKind
from mxwire.protocol.library.endpoint import Endpoint
from mxwire.protocol.library.matching import ALL_BITS
from mxwire.protocol.library.partner import Partner
from mxwire.protocol.library.request import Request, RequestKind
from mxwire.protocol.node import Node
from mxwire.protocol.peers import Peer
from mxwire.protocol.profile import PROFILES, Defect, Profile, profile_by_name
from mxwire.protocol.status import Status

__all__ = [
    "ALL_BITS",
    "PROFILES",
    "Counter",
    "Counters",
    "Defect",
    "Endpoint",
    "Event",
    "EventKind",
    "LocalProtocolError",
    "Node",
    "Partner",
    "Peer",
    "Profile",
    "Request",
    "RequestKind",
    "Status",
    "profile_by_name",
]

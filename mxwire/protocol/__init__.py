"""The protocol engine: a complete MXoE host as a sans-IO state machine.

It has no socket, file, thread, clock or randomness of its own: frames, calls and the time go in; frames, events and
the next deadline come out. Every run can therefore be repeated from its seed.

``node.py`` is a host, with its peer table in ``peers.py``. Its card (``card/``) checks each received frame and refuses
it with a nack if its endpoint or session is wrong (``card/interface.py``), transfers large messages (``card/pull.py``),
and packs the headers of transmitted frames (``card/outgoing.py``). Its library (``library/``) connects endpoints,
numbers and matches messages, and acknowledges packets: received packets, including early and duplicate ones and the
fragments of a MEDIUM, pass ``library/inbound.py``; ``library/reliability.py`` retransmits messages, and abandons a
partner that does not answer. The life of a message and of a received frame is described in ``library/endpoint.py``, the
state of a remote endpoint in ``library/partner.py``. ``agent/`` lets programs use a host that is in another process;
begin with ``agent/records.py``.

Constants are in two places: ``profile.py`` has those that an implementation may choose, such as the resend delay in
ticks and the number of retransmissions after which a partner is abandoned; :mod:`mxwire.wire.numbers` has those that
the protocol fixes. ``counters.py`` names the counters.
"""

from mxwire.protocol.counters import Counter, Counters
from mxwire.protocol.library.endpoint import EngineEndpoint
from mxwire.protocol.library.matching import ALL_BITS
from mxwire.protocol.library.partner import Event, Partner, Request, RequestKind
from mxwire.protocol.node import Node
from mxwire.protocol.peers import Peer
from mxwire.protocol.profile import PROFILES, Defect, Profile, profile_by_name
from mxwire.protocol.status import EventKind, LocalProtocolError, Status

__all__ = [
    "ALL_BITS",
    "PROFILES",
    "Counter",
    "Counters",
    "Defect",
    "EngineEndpoint",
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

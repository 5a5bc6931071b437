"""Defects of a receiver that only scenarios can detect: the simulator's hosts never trigger them in each other.

Each is one place of the engine, broken; some are what Open-MX once had, and the simulator cannot distinguish from right
behaviour.
"""

from __future__ import annotations

from tests.mutants import Mutant

_CARD = "card/interface.py"
_WINDOW = "library/inbound.py"
_ACKS = "library/reliability.py"
_PARTNER = "library/partner.py"
_CONNECT = "library/connect.py"

RECEIVER_MUTANTS = (
    # The checks of the card, and their order (sections 16 and 21).
    Mutant(
        "an index of somebody else is taken",
        "R-NAK-02",
        _CARD,
        "if peer is None or (self.strict_address and peer.address != frame.src_mac):",
        "if peer is None:",
    ),
    Mutant(
        "endpoints beyond the limit are only closed",
        "R-EP-01",
        _CARD,
        "if number < self.profile.endpoint",
        "if 0 <= number or number < self.profile.endpoint",
    ),
    Mutant(
        "a TRUC is nacked",
        "R-ACK-10",
        _CARD,
        "self._target(frame, _keep_silent)",
        "self._target(frame, self._nack_lib)",
    ),
    Mutant("the sub-type of a TRUC is ignored", "R-ACK-10", _CARD, " or frame.liback_type != TrucType.ACK:", ":"),
    Mutant("the length of a TRUC is ignored", "R-ACK-10", _CARD, "if frame.length < LIBACK_LENGTH:", "if False:"),
    Mutant(
        "the inner session of a TRUC is ignored",
        "R-ACK-10",
        _CARD,
        "elif frame.liback_session_id != endpoint.session:",
        "elif False:",
    ),
    Mutant(
        "too many frames are sent",
        "R-PUL-14",
        _CARD,
        "if count > self.dialect.frames_per_block:",
        "if count > 1 << 20:",
    ),
    Mutant(
        "an unknown region is not nacked",
        "R-PUL-14",
        _CARD,
        "            self._nack_mcp(peer, NackType.BAD_RDMAWIN, frame)\n",
        "",
    ),
    Mutant("a range is not tested", "R-PUL-14", _CARD, "if end > region.length or (beyond", "if (beyond"),
    Mutant("a query to everybody is answered", "R-HOST-04", _CARD, "if frame.dst_mac != self.address:", "if False:"),
    Mutant("any magic will do", "R-HOST-07", _CARD, "if frame.magic != self.names.magic:", "if False:"),
    Mutant(
        "a query teaches no index",
        "R-HOST-05",
        _CARD,
        "        peer.learn(self.number, frame.src_dst_peer_index)\n        self.names.answer",
        "        self.names.answer",
    ),
    Mutant(
        "a refused request teaches no index",
        "R-CON-15",
        _CARD,
        "        peer.learn(self.number, frame.src_dst_peer_index)\n"
        "        endpoint = self.endpoints.get(frame.dst_endpoint)\n"
        "        if endpoint is None:\n",
        "        endpoint = self.endpoints.get(frame.dst_endpoint)\n        if endpoint is not None:\n"
        "            peer.learn(self.number, frame.src_dst_peer_index)\n        if endpoint is None:\n",
    ),
    Mutant("all of the magic counts", "R-PUL-05", _CARD, "((magic ^ PULL_MAGIC) & 0xFF)", "(magic ^ PULL_MAGIC)"),
    Mutant(
        "a nack with a bad index is taken",
        "R-NAK-04",
        _CARD,
        "        peer = self.peers.at(frame.dst_src_peer_index)\n        if peer is not None and",
        "        peer = self.peers.by_address(frame.src_mac)\n        if peer is not None and",
    ),
    Mutant(
        "RAW frames are queued without end",
        "R-DISC-06",
        "discovery.py",
        "        if self.full:\n",
        "        if False:\n",
    ),
    # The window (section 8).
    Mutant(
        "the piggyback of a duplicate is ignored",
        "R-ORD-02",
        _WINDOW,
        "        partner.acknowledge(arrival.piggyback)\n",
        "        if self.place(arrival.sequence) is WindowPlace.NEXT:\n"
        "            partner.acknowledge(arrival.piggyback)\n",
    ),
    Mutant(
        "the piggyback's session number is ignored",
        "R-SEQ-07",
        _WINDOW,
        " | (arrival.piggyback ^ partner.tx_next)",
        "",
    ),
    Mutant("the early window has no edge", "R-ORD-03", _WINDOW, "partner.endpoint.profile.early_window:", "8000:"),
    Mutant("nothing early is kept", "R-ORD-03", _WINDOW, "            self._keep(arrival)\n", "            pass\n"),
    Mutant(
        "every duplicate is acked",
        "0.4.0, R-ORD-03",
        _WINDOW,
        "if place is WindowPlace.JUST_BEFORE:",
        "if place in (WindowPlace.JUST_BEFORE, WindowPlace.OBSOLETE, WindowPlace.BEHIND):",
    ),
    # Acknowledgements (section 11).
    Mutant(
        "no immediate ack from four on",
        "0.4.0, R-ACK-02",
        _ACKS,
        "many = distance(partner.rx_done, partner.rx_acked) >= partner.endpoint.profile.ack_threshold",
        "many = False",
    ),
    Mutant(
        "no immediate ack of a NOTIFY",
        "0.4.0, R-ACK-08",
        _WINDOW,
        "        partner.acks.fire(AckEvent.AT_ONCE)\n",
        "        pass\n",
    ),
    Mutant("acks of more than was sent are taken", "R-ACK-05", _PARTNER, " or count > distance(self.tx_next, una)", ""),
    Mutant("the acknum need not grow", "R-ACK-06", _PARTNER, " or count <= self.liback_in:", ":"),
    # Connects (section 5).
    Mutant("a reply of any session is taken", "R-CON-03", _CONNECT, " or frame.src_session_id != endpoint.session", ""),
    Mutant("any status ends a connect", "R-CON-04", _CONNECT, " or not known:", ":"),
    Mutant(
        "a repeated request sets the numbers anew",
        "R-CON-10",
        _CONNECT,
        "    if partner.fwd != frame.src_session_id:\n        partner.adopt_start(frame.target_recv_seqnum_start)\n"
        "    partner.fwd",
        "    partner.adopt_start(frame.target_recv_seqnum_start)\n    partner.fwd",
    ),
    # Large messages (sections 13 to 15).
    Mutant(
        "PULLs with nothing to request",
        "0.1.0, R-PUL-02",
        "card/pull.py",
        "and self.requested < self.total:",
        "and self._requested <= self.total:",
    ),
    Mutant(
        "blocks are asked for again without need",
        "1.0.4, R-PUL-07",
        "card/pull.py",
        "if older.missing and not older.rerequested:",
        "if older.missing:",
    ),
    Mutant(
        "a dropped reply arms the timer",
        "R-PUL-06",
        _CARD,
        "            self.counters[dropped] += 1\n",
        "            self.counters[dropped] += 1\n            pull.deadline = now + self.profile.pull_timer\n",
    ),
    # The rest of what a receiver does.
    Mutant(
        "an application that sleeps goes on",
        "R-GEN-01",
        "library/endpoint.py",
        "self._progressing or self.profile.progress_in_background",
        "True",
    ),
    Mutant(
        "a second reply sets the numbers anew",
        "R-CON-05",
        _CONNECT,
        "if partner.fwd != frame.target_session_id or unused:",
        "if True:",
    ),
    Mutant(
        "a session of nobody will do",
        "R-CON-12",
        _CARD,
        "        if frame.session != endpoint.session:\n            self.counters[Counter.DROP_BAD_SESSION] += 1\n"
        "            refuse",
        "        if frame.session not in (endpoint.session, 0xFFFFFFFF):\n            refuse",
    ),
    Mutant(
        "odd fragments are thrown away",
        "R-SND-04",
        _WINDOW,
        "        if self._seen & bit:\n",
        "        if self._seen & bit or (len(data) % 64 and self._received + len(data) < self.length):\n",
    ),
    Mutant(
        "whoever sends becomes a partner",
        "R-ORD-01",
        "library/endpoint.py",
        "            if partner is None:\n                continue\n",
        "            if partner is None:\n"
        "                partner = self.partner(event.peer, frame.src_endpoint)\n"
        "                partner.tx_next = partner.tx_una = 1\n",
    ),
    Mutant("what was early stays so", "R-ORD-04", _WINDOW, "                self._drain()\n", "                pass\n"),
    Mutant(
        "fragments must begin with the first",
        "R-MED-01",
        _WINDOW,
        "    if arrival.length > endpoint.card.dialect",
        "    if arrival.number or arrival.length > endpoint.card.dialect",
    ),
    Mutant("the threshold is always four", "R-ACK-07", _ACKS, ">= partner.endpoint.profile.ack_threshold", ">= 4"),
    Mutant(
        "a RNDV that nobody waits for has no number",
        "R-RDV-03",
        _WINDOW,
        "frame.msg_length, rendezvous=frame))",
        "frame.msg_length, rendezvous=frame)) and False",
    ),
    Mutant(
        "a block is served once",
        "R-PUL-12",
        _CARD,
        "        region.requested = max(region.requested, end)\n        if self",
        "        if region.requested >= end:\n            return\n        region.requested = end\n        if self",
    ),
    Mutant(
        "the length of the whole is compared",
        "R-PUL-15",
        _CARD,
        "        if region is None or (self.strict_regions and region.partner != peer.address):\n            # To",
        "        if region is None or frame.total_length > region.length:\n            # To",
    ),
    Mutant(
        "an early NOTIFY is forgotten",
        "R-NOT-03",
        "library/outbound.py",
        "            self.fire(LargeSendEvent.NOTIFY)",
        "            if self.state is not LargeSendState.ANNOUNCED: self.fire(LargeSendEvent.NOTIFY)",
    ),
    Mutant(
        "a bad index is nacked",
        "R-NAK-01",
        _CARD,
        "            self.counters[Counter.DROP_BAD_PEER_INDEX] += 1\n",
        "            self.counters[Counter.DROP_BAD_PEER_INDEX] += 1\n"
        "            if (known := self.peers.by_address(frame.src_mac)) is not None:\n"
        "                refuse(known, NackType.BAD_ENDPT, frame)\n",
    ),
    Mutant(
        "a nack ends the oldest message",
        "R-NAK-05",
        _PARTNER,
        "            place = distance(sequence, self.tx_una)\n",
        "            place = 0\n",
    ),
    Mutant(
        "a nack of an unknown type is a refusal",
        "R-NAK-07",
        "library/endpoint.py",
        "status = NACKS.get(frame.nack_type)",
        "status = NACKS.get(frame.nack_type, Status.BAD_ERROR)",
    ),
    Mutant(
        "a NOTIFY is sent again after its nack",
        "R-NAK-08",
        _PARTNER,
        "                self.deliveries[place].fire(DeliveryEvent.NACK, status)\n",
        "                if not self.deliveries[place].uses_reverse_session:\n"
        "                    self.deliveries[place].fire(DeliveryEvent.NACK, status)\n",
    ),
    Mutant(
        "a pull goes on after its nack",
        "R-NAK-09",
        _CARD,
        "            pull.fire(PullEvent.NACKED, status)\n",
        "            pass\n",
    ),
    Mutant(
        "sends to a process that was killed never end",
        "R-LOC-02",
        "neighbours.py",
        "for send in list(self.sends.values()):",
        "for send in []:",
    ),
    Mutant(
        "any key opens the endpoint of another process",
        "R-EP-04",
        "neighbours.py",
        "elif endpoint.key != key:",
        "elif False:",
    ),
    Mutant(
        "a process takes messages for an earlier session",
        "R-EP-02",
        "neighbours.py",
        "or peer is None or endpoint.session != session:",
        "or peer is None:",
    ),
)

"""Defects of a receiver that only scenarios can detect: the simulator's hosts never trigger them in each other.

Each is one place of the engine, broken; some are what Open-MX once had, and the simulator cannot distinguish from right
behaviour.
"""

from __future__ import annotations

from tests.mutants import Mutant

RECEIVER_MUTANTS = (
    # The checks of the card, and their order (sections 16 and 21).
    Mutant(
        "an index of somebody else is taken",
        "R-NAK-02",
        "HostInterface._target",
        "peer is None or (self.strict_address and peer.address != frame.src_mac)",
        "peer is None",
    ),
    Mutant(
        "endpoints beyond the limit are only closed",
        "R-EP-01",
        "HostInterface._missing",
        "number < self.profile.endpoint_maximum",
        "0 <= number or number < self.profile.endpoint_maximum",
    ),
    Mutant("a TRUC is nacked", "R-ACK-10", "HostInterface._take_truc", "_keep_silent", "self._nack_lib"),
    Mutant(
        "the sub-type of a TRUC is ignored",
        "R-ACK-10",
        "HostInterface._take_truc",
        "target is None or frame.liback_type != TrucType.ACK",
        "target is None",
    ),
    Mutant(
        "the length of a TRUC is ignored",
        "R-ACK-10",
        "HostInterface._take_truc",
        "frame.length < LIBACK_LENGTH",
        "False",
    ),
    Mutant(
        "the inner session of a TRUC is ignored",
        "R-ACK-10",
        "HostInterface._take_truc",
        "frame.liback_session_id != endpoint.session",
        "False",
    ),
    Mutant(
        "too many frames are sent", "R-PUL-14", "HostInterface._take_pull", "self.dialect.frames_per_block", "1 << 20"
    ),
    Mutant(
        "an unknown region is not nacked",
        "R-PUL-14",
        "HostInterface._take_pull",
        "self._nack_mcp(peer, NackType.BAD_RDMAWIN, frame)",
        "pass",
    ),
    Mutant(
        "a range is not tested",
        "R-PUL-14",
        "HostInterface._take_pull",
        "end > region.length or (beyond and (strict or frame.block_length > _FRAME_LENGTH_MAXIMUM))",
        "beyond and (strict or frame.block_length > _FRAME_LENGTH_MAXIMUM)",
    ),
    Mutant(
        "a query to everybody is answered",
        "R-HOST-04",
        "HostInterface._take_query",
        "frame.dst_mac != self.address",
        "False",
    ),
    Mutant("any magic will do", "R-HOST-07", "HostInterface._take_reply", "frame.magic != self.names.magic", "False"),
    Mutant(
        "a query teaches no index",
        "R-HOST-05",
        "HostInterface._take_query",
        "peer.learn(self.number, frame.src_dst_peer_index)",
        "pass",
    ),
    Mutant(
        "a refused request teaches no index",
        "R-CON-15",
        "HostInterface._take_connect",
        ("peer.learn(self.number, frame.src_dst_peer_index)\nendpoint = self.endpoints.get(frame.dst_endpoint)"),
        (
            "endpoint = self.endpoints.get(frame.dst_endpoint)\n"
            "if endpoint is not None:\n"
            "    peer.learn(self.number, frame.src_dst_peer_index)"
        ),
    ),
    Mutant(
        "all of the magic counts",
        "R-PUL-05",
        "HostInterface.endpoint_of_magic",
        "(magic ^ PULL_MAGIC) & 0xFF",
        "magic ^ PULL_MAGIC",
    ),
    Mutant(
        "a nack with a bad index is taken",
        "R-NAK-04",
        "HostInterface._peer_of_nack",
        "self.peers.at(frame.dst_src_peer_index)",
        "self.peers.by_address(frame.src_mac)",
    ),
    Mutant("RAW frames are queued without end", "R-DISC-06", "RawQueue.put", "self.full", "False"),
    # The window (section 8).
    Mutant(
        "the piggyback of a duplicate is ignored",
        "R-ORD-02",
        "Window.arrive",
        "partner.acknowledge(arrival.piggyback)",
        ("if self.place(arrival.sequence) is WindowPlace.NEXT:\n    partner.acknowledge(arrival.piggyback)"),
    ),
    Mutant(
        "the piggyback's session number is ignored",
        "R-SEQ-07",
        "Window.arrive",
        "arrival.sequence ^ partner.rx_done | arrival.piggyback ^ partner.tx_next",
        "arrival.sequence ^ partner.rx_done",
    ),
    Mutant("the early window has no edge", "R-ORD-03", "Window.place", "partner.endpoint.profile.early_window", "8000"),
    Mutant("nothing early is kept", "R-ORD-03", "Window.arrive", "self._keep(arrival)", "pass"),
    Mutant(
        "every duplicate is acked",
        "0.4.0, R-ORD-03",
        "Window.arrive",
        "place is WindowPlace.JUST_BEFORE",
        "place in (WindowPlace.JUST_BEFORE, WindowPlace.OBSOLETE, WindowPlace.BEHIND)",
    ),
    # Acknowledgements (section 11).
    Mutant(
        "no immediate ack from four on",
        "0.4.0, R-ACK-02",
        "OwedAck.advanced",
        "distance(partner.rx_done, partner.rx_acked) >= partner.endpoint.profile.ack_threshold",
        "False",
    ),
    Mutant(
        "no immediate ack of a NOTIFY",
        "0.4.0, R-ACK-08",
        "_hurry_ack_of_notify",
        "partner.acks.fire(AckEvent.AT_ONCE)",
        "pass",
    ),
    Mutant(
        "acks of more than was sent are taken",
        "R-ACK-05",
        "Partner.acknowledge",
        "count == 0 or count > distance(self.tx_next, una)",
        "count == 0",
    ),
    Mutant(
        "the acknum need not grow",
        "R-ACK-06",
        "Partner.liback",
        "not same_session(value, self.tx_next) or count <= self.liback_in",
        "not same_session(value, self.tx_next)",
    ),
    # Connects (section 5).
    Mutant(
        "a reply of any session is taken",
        "R-CON-03",
        "take_reply",
        "not isinstance(connecting, ConnectCall) or frame.src_session_id != endpoint.session or (not known)",
        "not isinstance(connecting, ConnectCall) or not known",
    ),
    Mutant(
        "any status ends a connect",
        "R-CON-04",
        "take_reply",
        "not isinstance(connecting, ConnectCall) or frame.src_session_id != endpoint.session or (not known)",
        "not isinstance(connecting, ConnectCall) or frame.src_session_id != endpoint.session",
    ),
    Mutant(
        "a repeated request sets the numbers anew",
        "R-CON-10",
        "_adopt",
        ("if partner.fwd != frame.src_session_id:\n    partner.adopt_start(frame.target_recv_seqnum_start)"),
        "partner.adopt_start(frame.target_recv_seqnum_start)",
    ),
    # Large messages (sections 13 to 15).
    Mutant(
        "PULLs with nothing to request",
        "0.1.0, R-PUL-02",
        "PullTransfer.advance",
        "len(self.blocks) < self.endpoint.profile.blocks_in_flight and self.requested < self.total",
        "len(self.blocks) < self.endpoint.profile.blocks_in_flight and self.requested <= self.total",
    ),
    Mutant(
        "blocks are asked for again without need",
        "1.0.4, R-PUL-07",
        "PullTransfer._completed",
        "older.missing and (not older.rerequested)",
        "older.missing",
    ),
    Mutant(
        "a dropped reply arms the timer",
        "R-PUL-06",
        "HostInterface._fill",
        "self.counters[dropped] += 1",
        ("self.counters[dropped] += 1\npull.deadline = now + self.profile.pull_timer"),
    ),
    # The rest of what a receiver does.
    Mutant(
        "an application that sleeps goes on",
        "R-GEN-01",
        "EngineEndpoint._decide_work",
        "self._progressing or self.profile.progress_in_background",
        "True",
    ),
    Mutant(
        "a second reply sets the numbers anew",
        "R-CON-05",
        "_accepted",
        "partner.fwd != frame.target_session_id or unused",
        "True",
    ),
    Mutant(
        "a session of nobody will do",
        "R-CON-12",
        "HostInterface._target",
        (
            "if frame.session != endpoint.session:\n"
            "    self.counters[Counter.DROP_BAD_SESSION] += 1\n"
            "    refuse(peer, NackType.BAD_SESSION, frame)\n"
            "    return None"
        ),
        (
            "if frame.session not in (endpoint.session, 0xFFFFFFFF):\n"
            "    refuse(peer, NackType.BAD_SESSION, frame)\n"
            "    return None"
        ),
    ),
    Mutant(
        "odd fragments are thrown away",
        "R-SND-04",
        "Reassembly.add",
        "self._seen & bit",
        "self._seen & bit or (len(data) % 64 and self._received + len(data) < self.length)",
    ),
    Mutant(
        "whoever sends becomes a partner",
        "R-ORD-01",
        "ProgressEndpoint.progress",
        ("if partner is None:\n    continue"),
        (
            "if partner is None:\n"
            "    partner = self.partner(event.peer, event.endpoint)\n"
            "    partner.tx_next = partner.tx_una = 1"
        ),
    ),
    Mutant("what was early stays so", "R-ORD-04", "Window.arrive", "self._drain()", "pass"),
    Mutant(
        "fragments must begin with the first",
        "R-MED-01",
        "_handle_medium",
        "arrival.length > endpoint.card.dialect.fragment_payload * FRAGMENTS_MAXIMUM",
        "arrival.number or arrival.length > endpoint.card.dialect.fragment_payload * FRAGMENTS_MAXIMUM",
    ),
    Mutant(
        "the threshold is always four", "R-ACK-07", "OwedAck.advanced", "partner.endpoint.profile.ack_threshold", "4"
    ),
    Mutant(
        "a RNDV that nobody waits for has no number",
        "R-RDV-03",
        "_handle_rendezvous",
        "take_unmatched(Unexpected(partner, info, arrival.length, rendezvous=arrival))",
        "take_unmatched(Unexpected(partner, info, arrival.length, rendezvous=arrival)) and False",
    ),
    Mutant(
        "a block is served once",
        "R-PUL-12",
        "HostInterface._take_pull",
        "region.requested = max(region.requested, end)",
        ("if region.requested >= end:\n    return\nregion.requested = end"),
    ),
    Mutant(
        "the length of the whole is compared",
        "R-PUL-15",
        "HostInterface._take_pull",
        "self.strict_regions and region.partner != peer.address",
        "frame.total_length > region.length",
    ),
    Mutant(
        "an early NOTIFY is forgotten",
        "R-NOT-03",
        "LargeSend.notified",
        "self.fire(LargeSendEvent.NOTIFY)",
        ("if self.state is not LargeSendState.ANNOUNCED:\n    self.fire(LargeSendEvent.NOTIFY)"),
    ),
    Mutant(
        "a bad index is nacked",
        "R-NAK-01",
        "HostInterface._target",
        "self.counters[Counter.DROP_BAD_PEER_INDEX] += 1",
        (
            "self.counters[Counter.DROP_BAD_PEER_INDEX] += 1\n"
            "if (known := self.peers.by_address(frame.src_mac)) is not None:\n"
            "    refuse(known, NackType.BAD_ENDPT, frame)"
        ),
    ),
    Mutant("a nack ends the oldest message", "R-NAK-05", "Partner.refused", "distance(sequence, self.tx_una)", "0"),
    Mutant(
        "a nack of an unknown type is a refusal",
        "R-NAK-07",
        "_take_nack",
        "NACKS.get(frame.nack_type)",
        "NACKS.get(frame.nack_type, Status.BAD_ERROR)",
    ),
    Mutant(
        "a NOTIFY is sent again after its nack",
        "R-NAK-08",
        "Partner.refused",
        "self.deliveries[place].fire(DeliveryEvent.NACK, status)",
        (
            "if not self.deliveries[place].uses_reverse_session:\n"
            "    self.deliveries[place].fire(DeliveryEvent.NACK, status)"
        ),
    ),
    Mutant(
        "a pull goes on after its nack",
        "R-NAK-09",
        "HostInterface._take_nack_mcp",
        "pull.fire(PullEvent.NACKED, status)",
        "pass",
    ),
    Mutant(
        "sends to a process that was killed never end", "R-LOC-02", "Neighbour.gone", "list(self.sends.values())", "[]"
    ),
    Mutant(
        "any key opens the endpoint of another process",
        "R-EP-04",
        "Neighbour._take_connect",
        "endpoint.key != key",
        "False",
    ),
    Mutant(
        "a process takes messages for an earlier session",
        "R-EP-02",
        "Neighbour._take_message",
        "endpoint is None or peer is None or endpoint.session != session",
        "endpoint is None or peer is None",
    ),
)

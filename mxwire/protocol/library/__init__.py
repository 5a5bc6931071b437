"""The library's side of an endpoint: connects endpoints, numbers and matches messages, and acks and retransmits
packets.

``endpoint.py`` has the calls of an application, and describes the life of a message; ``progress.py`` has the pass, and
``local_path.py`` and ``local_send.py`` the messages within a host. ``inbound.py`` receives: a packet in order is
handled, an early one is stored, a duplicate is dropped. ``matching.py`` finds the receive for a message; ``receive.py``
has the states of a receive, from posting to completion or cancellation. ``outbound.py`` transmits, ``reliability.py``
retransmits, acknowledges and compares sequence numbers, and ``connect.py`` connects. ``layered_table.py`` holds
requests and posted receives.
"""

"""The library's side of an endpoint: connects, numbers, matches, acks and retransmits."""

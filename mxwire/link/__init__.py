"""Links: AF_PACKET, memory and faults behind one face."""

from mxwire.link.link import Link, LinkStatistics

__all__ = ["Link", "LinkStatistics"]

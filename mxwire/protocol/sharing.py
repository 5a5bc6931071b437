"""Sharing: what several nodes on the same interfaces, in several processes, must agree in to be one host to others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Sharing(Protocol):
    """What a node asks the others on its interfaces; interfaces are counted from 0 in each node.

    Others know a host by its Ethernet address alone: they have one index for it, and learn one index from it. So all
    its nodes must number their peers alike, only one may answer for all, and none may refuse what another expects.
    """

    def place_of(self, address: bytes) -> int:
        """The index of a peer in the peer tables of all nodes; the next that is free, if it has none."""

    def places(self) -> Sequence[bytes]:
        """The addresses of all peers, by index."""

    def elsewhere(self, interface: int, endpoint: int) -> bool:
        """Whether another node has an endpoint of that number open."""

    def speaks(self, interface: int) -> bool:
        """Whether it is this node that answers and announces for the interface."""


class Alone:
    """Nobody shares the interfaces; the node numbers its peers itself."""

    def elsewhere(self, interface: int, endpoint: int) -> bool:
        """There is nobody else."""
        return False

    def speaks(self, interface: int) -> bool:
        """Nobody else would."""
        return True

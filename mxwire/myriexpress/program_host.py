"""The host of a program in C."""

from __future__ import annotations

from typing import Any

from mxwire.host.attachment import Attachment
from mxwire.host.base_endpoint import BaseEndpoint
from mxwire.host.base_host import BaseHost, open_links
from mxwire.link import Link, memory_pair
from mxwire.myriexpress.program_options import ProgramOptions
from mxwire.protocol.library.endpoint import EndpointOptions


class ProgramHost(BaseHost):
    """A host that a program in C runs: it has no driver, and no background thread."""

    def __init__(
        self, options: ProgramOptions, links: list[Link], sharing: Any, attachment: Attachment | None = None
    ) -> None:
        super().__init__(
            links,
            name=options.name,
            dialect=options.dialect,
            profile=options.profile,
            peers=options.peers,
            announce=options.announce,
            sharing=sharing,
            attachment=attachment,
        )
        self._acked_sends = options.acked_sends

    @classmethod
    def open(cls, options: ProgramOptions) -> ProgramHost:
        """Open the interfaces; without any, open a host that is alone on its network."""
        if not options.interfaces:
            return cls(options, [memory_pair()[0]], None)
        with open_links(options.interfaces, "packet", agent=options.agent or False) as (links, sharing, attachment):
            return cls(options, links, sharing, attachment)

    def open_endpoint(self, number: int | None, key: int, board: int, bits: int, shift: int) -> BaseEndpoint:
        """Open an endpoint on a board."""
        options = EndpointOptions(context_bits=bits, context_shift=shift, acked_sends=self._acked_sends)
        opened: BaseEndpoint = self._open_endpoint(BaseEndpoint, number, key, board, **options)
        return opened

    def close(self) -> None:
        """Close all endpoints and links."""
        self._end()
        self._close_links()

"""What live commands say where the host they are told of does not appear."""

from __future__ import annotations

import pytest

from mxwire.cli.live import Destination, find
from mxwire.host import Host, HostTimeoutError
from mxwire.link import memory_pair
from mxwire.protocol import Counter


@pytest.mark.parametrize(
    ("announcements", "queries", "sent"),
    [
        (0, 0, "0 announcements and 0 host queries"),
        (9, 1, "9 announcements and 1 host query"),
        (1, 2, "1 announcement and 2 host queries"),
    ],
)
def test_what_was_tried_is_told_in_words(announcements: int, queries: int, sent: str) -> None:
    link, _ = memory_pair()
    with Host(link, name="alpha:0", announce=False) as host:
        # It keeps silent: nothing but this is counted.
        host.core.node.counters.update({Counter.SEND_RAW: announcements, Counter.SEND_HOST_QUERY: queries})
        with pytest.raises(HostTimeoutError) as raised:
            find(host, Destination("beta:0"), 0.001)
    assert str(raised.value).endswith(f"; we sent {sent}")

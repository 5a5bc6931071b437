"""Watching: whether a transfer goes on, and if it does not, why, as far as that can be told from here."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from mxwire.host.endpoint import Endpoint
from mxwire.host.errors import HostError, HostTimeoutError
from mxwire.host.hearing import Hearing
from mxwire.host.opening import longest_frame
from mxwire.host.pending import Pending
from mxwire.host.request import place_of
from mxwire.link import LinkError
from mxwire.link.interface import read_interface
from mxwire.protocol import Partner, Status

SLICE: Final = 0.25
"""Seconds between looks whether something goes on."""
SUSPICIOUS: Final = 1.5
"""Seconds of standstill after which we begin to listen for the reason."""
_LISTEN: Final = 1.0
"""Seconds that we listen at least before we guess."""
_ASK_EVERY: Final = 0.5

Result = TypeVar("Result")
Silence = float | Callable[[], float | None] | None
"""For how many seconds there may be no progress, or what says so whenever that is asked; None: for ever."""


class Watch:
    """Watches what goes on between one of our endpoints and a partner.

    ``epoch`` is that of the partner in which all of it began, now unless told otherwise.
    """

    def __init__(self, endpoint: Endpoint, partner: Partner, silence: Silence = None, epoch: int | None = None) -> None:
        self._endpoint = endpoint
        self._partner = partner
        self._silence = silence
        self._epoch = partner.epoch if epoch is None else epoch
        self._signs = self._progress()
        self._since = self._asked = time.monotonic()
        self._hearing: Hearing | None = None
        self._listening = 0.0

    def look(self) -> None:
        """Raises :class:`~mxwire.host.errors.HostError` where the partner was lost, where there is no progress for too
        long, and where there cannot be any."""
        if self._partner.epoch != self._epoch:
            self.close()
            raise restarted(self._partner)
        now = time.monotonic()
        signs = self._progress()
        if signs != self._signs:
            self._signs, self._since = signs, now
            self.close()
        elif now - self._since >= SUSPICIOUS:
            self._listen(now)

    def close(self) -> None:
        """Stop listening."""
        if self._hearing is not None:
            self._hearing.close()
            self._hearing = None

    def _progress(self) -> tuple[Any, ...]:
        """What changes when something goes on, and does not when the same is only sent again."""
        partner = self._partner
        with self._endpoint.host.core.section:
            pulls = [
                (each.handle, each.asked, *(block.missing for block in each.blocks))
                for each in self._endpoint.engine.card.pulls.values()
            ]
            sends = [each.packet.region and each.packet.region.asked for each in partner.large_sends.values()]
            return partner.tx_next, partner.tx_una, partner.rx_next, len(partner.incomplete), *pulls, *sends

    # No progress.

    def _listen(self, now: float) -> None:
        core = self._endpoint.host.core
        if self._hearing is None:
            self._hearing = Hearing(core)
            self._listening = now
            self._asked = 0.0
        if now - self._asked >= _ASK_EVERY:
            self._hearing.ask(self._partner.peer)
            self._asked = now
        sure = self._dialect() or self._interface()
        lasting = now - self._since
        if sure is not None:
            self.close()
            raise HostError(Status.REMOTE_ENDPOINT_UNREACHABLE, f"{place_of(self._partner)}: {sure}")
        heard_out = now - self._listening >= _LISTEN
        silence = self._allowed()
        if silence is not None and lasting >= silence and heard_out:
            why = self._guess()
            self.close()
            raise HostTimeoutError(f"no progress with {place_of(self._partner)} for {lasting:.1f} s: {why}")

    def _allowed(self) -> float | None:
        silence = self._silence
        return silence if silence is None or isinstance(silence, (int, float)) else silence()

    def _dialect(self) -> str | None:
        assert self._hearing is not None
        text = self._hearing.disagreement(self._partner.peer)
        return None if text is None else f"it {text}"

    def _interface(self) -> str | None:
        """What the kernel has against our frames."""
        core = self._endpoint.host.core
        needed = longest_frame(core.node.dialect) - 14
        for link in core.links:
            try:
                found = read_interface(link.name)
            except LinkError:
                continue
            if found.mtu < needed:
                return (
                    f"the MTU of {link.name} is {found.mtu} now, and dialect {core.node.dialect} needs {needed}: "
                    f"ip link set {link.name} mtu {needed}"
                )
        return None

    def _guess(self) -> str:
        hearing, partner = self._hearing, self._partner
        assert hearing is not None
        core = self._endpoint.host.core
        down = [each.name for each in core.links if not _is_up(each.name)]
        if down:
            return f"{', '.join(down)} is down"
        if not hearing.heard(partner.peer):
            return "nothing is heard of it: it was ended, or the way to it is broken"
        needed = longest_frame(core.node.dialect)
        if hearing.long_sent(partner.peer) or self._pulling():
            return (
                f"its short frames arrive, but long ones do not pass: an MTU on the way or at its end is smaller than "
                f"{needed - 14}, or it does not speak dialect {core.node.dialect}"
            )
        return "it lives, and has what we sent, but its application does nothing"

    def _pulling(self) -> bool:
        assert self._hearing is not None
        return bool(self._endpoint.engine.card.pulls) and not self._hearing.long_heard(self._partner.peer)


def restarted(partner: Partner) -> HostError:
    """What to say where a partner is in another epoch than before."""
    return HostError(
        Status.REMOTE_ENDPOINT_UNREACHABLE,
        f"{place_of(partner)} has restarted, or did not answer until the protocol's limit",
    )


def _is_up(name: str) -> bool:
    try:
        return read_interface(name).up
    except LinkError:
        return True


def wait_watching(
    endpoint: Endpoint,
    pending: Pending[Result],
    partner: Partner,
    silence: Silence = None,
    tick: Callable[[], object] | None = None,
    epoch: int | None = None,
) -> Result:
    """Wait for something that a partner has a part in, and find out why it does not go on if it does not.

    ``tick`` is called several times a second; ``epoch`` is that of the partner in which all of it began. Raises
    :class:`~mxwire.host.errors.HostError` with the reason, and whatever the wait itself raises.
    """
    driving = endpoint.host.driving
    watch: Watch | None = None
    try:
        while True:
            try:
                return driving.wait(pending, SLICE)
            except HostTimeoutError:
                # Nearly always it is over at once, and a watch was not worth its trouble.
                watch = watch or Watch(endpoint, partner, silence, epoch)
            watch.look()
            if tick is not None:
                tick()
    finally:
        if watch is not None:
            watch.close()

"""An application of the simulation: a state machine whose calls to an endpoint are drawn from the seed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mxwire.protocol import EngineEndpoint, Event, EventKind, LocalProtocolError, Partner, Request, RequestKind, Status
from mxwire.protocol.corridor import SHARED_THRESHOLD
from mxwire.simulation.ledger import NACKED
from mxwire.simulation.randomness import stream
from mxwire.simulation.receiver import SimulatedReceiver, cut_places
from mxwire.simulation.workload import PlannedMessage, message_number
from mxwire.units import MILLISECOND, SECOND
from mxwire.wire.numbers import DEFAULT_KEY

if TYPE_CHECKING:
    from mxwire.simulation.world import SimulatedHost, World

_PATIENCE: Final = 3 * SECOND
"""Time for which an application waits for an answer before it continues without one."""
_UNKNOWN_NUMBER: Final = 200
_UNUSED_NUMBER: Final = 31


@dataclass(slots=True, eq=False)
class ApplicationLink:
    """An application's view of another application."""

    remote: SimulatedApplication
    partner: Partner | None = None
    ready: bool = False
    """True if messages may be sent."""
    request: Request | None = None
    """A connect that is not answered yet."""
    since: int = 0
    """Time at which it was posted."""
    recovering: bool = False
    """True if it will reconnect after a while."""
    dead: int | None = None
    """A session that has refused a packet."""
    queue: deque[PlannedMessage] = field(default_factory=deque)
    requests: int = 0
    """Sends that have not ended."""
    patience: int | None = None
    """Time at which to continue without an answer."""


@dataclass(slots=True, eq=False)
class Experiment:
    """A connect that must fail, and the expected status."""

    remote: SimulatedApplication
    status: Status
    since: int

    @property
    def needs_target(self) -> bool:
        """Return whether the status differs while the remote application is not running."""
        return self.status == Status.REMOTE_ENDPOINT_BAD_CONNECTION_KEY


class SimulatedApplication:
    """A process on a host with one endpoint; it may die and restart."""

    def __init__(self, world: World, host: SimulatedHost, number: int, interface: int, endpoint_number: int) -> None:
        self.world = world
        self.host = host
        self.number = number
        self.interface = interface
        self.endpoint_number = endpoint_number
        self.key = DEFAULT_KEY
        self.endpoint: EngineEndpoint | None = None
        """None while it is dead."""
        self.starts = 0
        self.stalled = False
        self.receiver: SimulatedReceiver | None = None
        self.links: dict[int, ApplicationLink] = {}
        self.plan: list[PlannedMessage] = []
        """Messages to send."""
        self.expected: list[PlannedMessage] = []
        """Messages to receive."""
        self.window = 1
        self._ended = False
        self._late: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._rng = stream(world.scenario.seed, "application", number, 0)

    @property
    def address(self) -> bytes:
        """Return the address of its interface."""
        return self.host.addresses[self.interface]

    @property
    def alive(self) -> bool:
        """Return whether it is running."""
        return self.endpoint is not None

    @property
    def calm(self) -> bool:
        """Return whether it is running and has no pending work of its own."""
        posted = self.receiver is not None and self.receiver.all_posted
        return self.alive and not self.stalled and not self.connecting and posted

    @property
    def connecting(self) -> bool:
        """Return whether a connect is pending or will be posted soon."""
        return any(link.recovering or link.request is not None for link in self.links.values())

    # Life.

    def start(self) -> None:
        """Open the endpoint, post receives, and connect to the applications that it exchanges messages with."""
        if self.alive or self._ended:
            return
        node = self.host.running_node()
        if node is None:
            return
        self._rng = rng = stream(self.world.scenario.seed, "application", self.number, self.starts)
        again, self.starts = self.starts > 0, self.starts + 1
        self.window = rng.choice((1, 2, 8, 64, 1000))
        self.endpoint = node.open_endpoint(self.endpoint_number, self.key, interface=self.interface)
        self.host.owners[self.endpoint] = self
        self.world.ledger.opened(self.number, self.endpoint.session)
        coming = [each for each in self.expected if not each.delivered and not each.failed]
        self.receiver = SimulatedReceiver(self, rng, coming)
        self._make_links()
        self.receiver.start()
        for link in self.links.values():
            if link.queue or again or rng.random() < 0.3:
                self._connect(link)
        if rng.random() < 0.2:
            self._connect_wrongly(rng.choice(self.world.applications))

    def _make_links(self) -> None:
        self.links = {}
        for message in self.expected:
            self._link(message.source)
        for message in self.plan:
            if message.posted_at is None:
                self._link(message.target).queue.append(message)
            else:
                self._link(message.target)

    def _link(self, number: int) -> ApplicationLink:
        link = self.links.get(number)
        if link is None:
            link = self.links[number] = ApplicationLink(self.world.applications[number])
        return link

    def die(self, why: str, *, closing: bool = True) -> None:
        """End without notice; the operating system closes the endpoint."""
        endpoint = self.endpoint
        if endpoint is None:
            return
        self.host.owners.pop(endpoint, None)
        self.endpoint = None
        self.stalled = False
        self._late.clear()
        self.world.ledger.closed(self.number, why, len(self.world.applications))
        if closing:
            self.host.end_application(endpoint)
        if self.receiver is not None:
            self.receiver.died()
        self.links = {}

    def stall(self) -> None:
        """Stop calling the library, as an application that computes."""
        if self.endpoint is not None:
            self.stalled = True
            self.endpoint.progressing = False

    def resume(self) -> None:
        """Call the library again, and take the events that were held back."""
        if self.endpoint is None or not self.stalled:
            return
        self.stalled = False
        self.endpoint.progressing = True
        late, self._late = self._late, []
        for action, details in late:
            action(*details)

    def wind_up(self) -> None:
        """Stop sending; cancel receives without a message; still reconnect to lost partners, which would not detect the
        loss otherwise."""
        self._ended = True
        if self.receiver is not None:
            self.receiver.wind_up()

    # Time.

    def later(self, action: Callable[..., None], *details: Any) -> None:
        """Call ``action`` after a short delay that is drawn from the seed."""
        gap = self._rng.randrange(self.world.scenario.gap + 1) if self._rng.random() < 0.6 else 0
        self.after(gap, action, *details)

    def after(self, delay: int, action: Callable[..., None], *details: Any) -> None:
        """Call ``action`` after a delay in ns, unless the application has died by then."""
        self.world.schedule.after(delay, self._due, self.starts, action, details)

    def _due(self, starts: int, action: Callable[..., None], details: tuple[Any, ...]) -> None:
        if self.starts != starts or not self.alive or (self._ended and action != self._recover_now):
            return
        if self.stalled:
            self._late.append((action, details))
            return
        action(*details)
        self.host.step()

    # Events.

    def hear(self, event: Event) -> None:
        """Take an event of the engine."""
        if self.stalled:
            self._late.append((self._react, (event,)))
        else:
            self._react(event)

    def note(self, kind: EventKind, partner: Partner) -> None:
        """Report to the ledger that a partner was reset or abandoned, at once and even if the application is
        stalled."""
        remote = self.world.application_at(partner)
        if remote is None:
            return
        world, ledger = self.world, self.world.ledger
        cause = ledger.troubled(self.number, remote.number)
        if kind is EventKind.PARTNER_LOST:
            limit = (self.host.profile.resend_maximum + 2) * self.host.profile.resend_delay * self.host.profile.tick
            cause = cause or world.disturbed(world.schedule.now - limit - 2 * SECOND)
        if not cause:
            ledger.breach(
                "partner", f"application {self.number}: event {kind.value!r} for {remote.number} without cause"
            )
        note = ledger.trouble if kind is EventKind.PARTNER_LOST else ledger.restarted
        note(self.number, remote.number, kind.value)

    def _react(self, event: Event) -> None:
        request, partner = event.request, event.partner
        if event.kind is EventKind.COMPLETED and request is not None:
            self._completed(request)
        elif event.kind is EventKind.UNDELIVERED and request is not None:
            # A message that another process has not taken is reported by a request of the engine's own.
            known = request.context
            message: PlannedMessage = known or self.world.ledger.messages[message_number(request.match_info)]
            status = getattr(request, "late_status", None)
            status = Status.BAD_ERROR if status is None else status
            self.world.ledger.undelivered(message, status)
            self._refused(message, status)
        elif partner is not None:
            remote = self.world.application_at(partner)
            if remote is not None:
                self._partner_changed(event.kind, self._link(remote.number), partner)

    def _partner_changed(self, kind: EventKind, link: ApplicationLink, partner: Partner) -> None:
        """React to a change of a partner."""
        if kind is EventKind.PARTNER_CONNECTED:
            link.partner = partner
            link.dead = None
            if self.host.profile.connects_back:
                link.ready = True
                self.pump()
            else:
                # A real host acknowledges messages only after it has received a connect request of this host
                # (R-CON-12).
                link.ready = False
                self._connect(link)
            return
        link.ready = False
        self._recover(link)

    def _completed(self, request: Request) -> None:
        assert request.status is not None
        if request.kind is RequestKind.RECEIVE:
            assert self.receiver is not None
            self.receiver.ended(request)
            self.later(self.pump)
        elif request.kind is RequestKind.CONNECT:
            self._connected(request, request.status)
        else:
            message: PlannedMessage = request.context
            link = self._link(message.target)
            link.requests -= 1
            self.world.ledger.sent(message, request.status, request.transferred)
            if request.status in NACKED or request.status == Status.REMOTE_ENDPOINT_UNREACHABLE:
                self._refused(message, request.status)
            self.pump()

    # Connecting.

    def _connect(self, link: ApplicationLink) -> None:
        if link.request is not None or self.endpoint is None:
            return
        remote = link.remote
        link.recovering = False
        link.since = self.world.schedule.now
        try:
            link.request = self.endpoint.connect(remote.address, remote.endpoint_number, remote.key)
        except LocalProtocolError as error:
            if error.status != Status.NIC_ID_NOT_FOUND:
                raise
            self._recover(link)
            return
        link.request.context = link

    def _connected(self, request: Request, status: Status) -> None:
        context = request.context
        if isinstance(context, Experiment):
            self._experiment_ended(context, status)
            return
        link: ApplicationLink = context
        if link.request is not request:
            return
        link.request = None
        if status == Status.SUCCESS:
            link.partner, link.ready, link.dead = request.partner, True, None
            self.pump()
            return
        world = self.world
        cause = world.ledger.troubled(self.number, link.remote.number) or world.disturbed(link.since - SECOND)
        if not (cause or link.remote.opened_since(link.since - 2 * world.scenario.slowest)):
            world.ledger.breach(
                "status", f"application {self.number} cannot connect to {link.remote.number}: {status.text}"
            )
        self._recover(link)

    def opened_since(self, time: int) -> bool:
        """Return whether the endpoint is closed, or was closed at any moment since ``time``."""
        return not self.alive or self.world.ledger.opened_at(self.number) >= time

    def _connect_wrongly(self, remote: SimulatedApplication) -> None:
        """Post a connect that must fail: with a wrong key, to a closed endpoint, or to an impossible endpoint
        number."""
        assert self.endpoint is not None
        number, key, status = self._rng.choice(
            (
                (remote.endpoint_number, remote.key ^ 1, Status.REMOTE_ENDPOINT_BAD_CONNECTION_KEY),
                (_UNUSED_NUMBER, remote.key, Status.REMOTE_ENDPOINT_CLOSED),
                (_UNKNOWN_NUMBER, remote.key, Status.REMOTE_ENDPOINT_BAD_ID),
            )
        )
        try:
            request = self.endpoint.connect(remote.address, number, key)
        except LocalProtocolError:
            return
        request.context = Experiment(remote, status, self.world.schedule.now)

    def _experiment_ended(self, experiment: Experiment, status: Status) -> None:
        world, remote = self.world, experiment.remote
        excused = (
            (experiment.needs_target and remote.opened_since(experiment.since - 2 * world.scenario.slowest))
            or world.ledger.troubled(self.number, remote.number)
            or world.disturbed(experiment.since - SECOND)
        )
        if status != experiment.status and not excused:
            world.ledger.breach("status", f"a connect that must fail with {experiment.status.text!r}: {status.text!r}")

    def _refused(self, message: PlannedMessage, status: Status) -> None:
        """Plan to reconnect after a refusal: the session seems to be gone (R-CLS-04), or the partner was reset."""
        link = self._link(message.target)
        partner = link.partner
        if partner is None or partner.fwd != message.sessions[1]:
            return
        link.ready = False
        if status in NACKED:
            link.dead = message.sessions[1]
        self._recover(link)

    def _recover(self, link: ApplicationLink) -> None:
        """Reconnect after a while, unless the remote application does so before (R-CLS-07)."""
        if not link.recovering:
            link.recovering = True
            self.after(self._rng.randrange(50 * MILLISECOND, 2 * SECOND), self._recover_now, link)

    def _recover_now(self, link: ApplicationLink) -> None:
        link.recovering = False
        if link.ready or link.request is not None or self.endpoint is None:
            return
        partner = link.partner
        if partner is not None and partner.fwd == link.dead and not partner.local and self._gone(link):
            self.world.ledger.trouble(self.number, link.remote.number, "disconnected")
            self.endpoint.disconnect(partner)
            link.partner = None
        self._connect(link)

    def _gone(self, link: ApplicationLink) -> bool:
        """Return whether the session that refused a packet is gone. A partner that is still there must not be
        forgotten, since it would not be notified and would continue as before (R-CLS-03). The refusal may also be a
        late one (R-NAK-05).
        """
        return link.dead is not None and self.world.ledger.session_of(link.remote.number) != link.dead

    # Sending.

    def pump(self) -> None:
        """Send the messages that may be sent now."""
        for link in list(self.links.values()):
            self._pump(link)

    def _pump(self, link: ApplicationLink) -> None:
        now = self.world.schedule.now
        while link.ready and link.queue and link.requests < self.window:
            message = link.queue[0]
            if message.after is not None and not self.world.ledger.resolved(message.after):
                if link.patience is None:
                    link.patience = now + _PATIENCE
                    self.after(_PATIENCE, self._pump, link)
                if now < link.patience:
                    return
            link.patience = None
            link.queue.popleft()
            self._post(link, message)
            if self._rng.random() < 0.3:
                self.later(self._pump, link)
                return

    def _post(self, link: ApplicationLink, message: PlannedMessage) -> None:
        endpoint, partner = self.endpoint, link.partner
        assert endpoint is not None and partner is not None
        threshold = SHARED_THRESHOLD if partner.local else endpoint.medium_threshold
        message.large = message.synchronous or message.length > threshold
        pieces = self._pieces(message)
        self.world.posted(message, endpoint.session, partner.fwd)
        link.requests += 1
        request = endpoint.send(
            partner, pieces if len(pieces) > 1 else pieces[0], message.match_info, synchronous=message.synchronous
        )
        request.context = message
        if not message.large:
            # The memory of a buffered send may be reused at once; overwriting it exposes an engine that still reads it.
            for piece in pieces:
                piece[:] = bytes(len(piece))

    def _pieces(self, message: PlannedMessage) -> list[bytearray]:
        data = self.world.ledger.data_of(message)
        return [bytearray(data[start:end]) for start, end in cut_places(len(data), message.pieces, self._rng)]

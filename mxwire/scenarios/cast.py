"""Cast: the testers of a run, the endpoint under test, the prelude that connects them, and the scope of a step."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any

from mxwire.ethernet import mac_text
from mxwire.scenarios.conditions import field_values
from mxwire.scenarios.errors import ScriptError
from mxwire.scenarios.expression import Expression, Scope, Value
from mxwire.scenarios.script import Script, TesterDeclaration
from mxwire.scenarios.steps import ScenarioStep
from mxwire.scenarios.tester import Station, TestedEndpoint, Tester
from mxwire.scenarios.vocabulary import attribute_of, has_field
from mxwire.wire.dialect import Dialect
from mxwire.wire.numbers import NO_SESSION
from mxwire.wire.packets import Frame

TESTER_ENDPOINT = 5
HOST = 1
"""Number of the host of the default tester."""

_ONCE = """title: The tester connects
> CONNECT_REQUEST
< CONNECT_REPLY connect_status_code=0 target_session_id!=NONE
"""
_BOTH = (
    _ONCE
    + """! connect
< CONNECT_REQUEST
> CONNECT_REPLY
"""
)


@cache
def prelude_of(connected: str) -> tuple[ScenarioStep, ...]:
    """Return the steps before the first step of a scenario: the connects that its ``connected:`` line requires."""
    from mxwire.scenarios.parser import parse

    texts = {"once": _ONCE, "both": _BOTH}
    return parse(texts[connected], f"<connected: {connected}>").steps if connected in texts else ()


def known_hosts(script: Script) -> dict[int, str | None]:
    """Return the tester's hosts that are in the peer table of the host under test from the start, with their names."""
    known: dict[int, str | None] = {HOST: f"tester{HOST}:0"}
    for each in script.actors:
        if each.known:
            known[each.host] = f"tester{each.host}:0" if each.named else None
        else:
            known.pop(each.host, None)
    # Peers get their indexes in this order, which the order of declarations must not change.
    return dict(sorted(known.items()))


class Cast:
    """The testers of a run by name; ``addresses`` maps the numbers of their hosts to Ethernet addresses."""

    def __init__(
        self,
        script: Script,
        dialect: Dialect,
        target: TestedEndpoint,
        addresses: Mapping[int, bytes],
        rng: Random,
        targets: Mapping[int, TestedEndpoint] | None = None,
        shift: int = 0,
    ) -> None:
        """Create the testers.

        ``shift`` is added to the endpoint numbers of the testers, so that consecutive runs use different endpoints: a
        real host remembers those of an earlier run (R-MEA-21).
        """
        self._shift = shift
        self.dialect = dialect
        self.target = target
        self.targets = {0: target} if targets is None else {0: target, **targets}
        self.stations = {
            number: Station(mac, 0x0100 + number, b"tester%d:0" % number) for number, mac in addresses.items()
        }
        self._testers = {"": self._tester(TesterDeclaration("", TESTER_ENDPOINT, HOST), rng)}
        for each in script.actors:
            self._testers[each.name] = self._tester(each, rng)
        self.prelude = prelude_of(script.connected)

    def _tester(self, actor: TesterDeclaration, rng: Random) -> Tester:
        # The last value is reserved: it means that no session is known (R-CON-12).
        session = rng.randrange(1, NO_SESSION)
        station, target = self.stations[actor.host], self.targets[actor.interface]
        endpoint = (actor.endpoint + self._shift) & 0xFF
        return Tester(actor.name, station, endpoint, session, target, self.dialect)

    def tester(self, name: str) -> Tester:
        """Return a tester by its name; the empty name is the default tester."""
        return self._testers[name]

    @property
    def endpoints(self) -> set[int]:
        """The endpoint numbers of the testers."""
        return {each.endpoint for each in self._testers.values()}

    def addressed(self, frame: Frame) -> Tester | None:
        """Return the tester to which a frame is addressed, if any."""
        return next((each for each in self._testers.values() if each.is_for(frame)), None)

    def named(self, frame: Frame) -> str:
        """Describe the addressee of a frame."""
        found = self.addressed(frame)
        number = getattr(frame, "dst_endpoint", None)
        text = mac_text(frame.dst_mac) + ("" if number is None else f" endpoint {number}")
        return text if found is None else (found.name or "the tester")


class RunScope:
    """The names bound so far, and the state of one tester."""

    def __init__(self, bound: dict[str, Any], tester: Tester) -> None:
        self._bound = bound
        self._tester = tester

    def bound(self, name: str) -> Value | None:
        """Return the value of ``$name`` or ``$frame.field``; None if it is not bound."""
        name, dot, field = name.partition(".")
        value = self._bound.get(name)
        if dot:
            packet = value.layout_name.upper() if isinstance(value, Frame) else ""
            if not isinstance(value, Frame) or not has_field(packet, field):
                return None
            attribute = attribute_of(packet, field)
            return field_values(value, [attribute])[attribute]
        return value if isinstance(value, int | bytes) else None

    def bind(self, name: str, value: Value) -> None:
        """Bind ``$name`` to a value."""
        self._bound[name] = value

    def unbind(self, name: str) -> None:
        """Remove the binding of ``$name``."""
        self._bound.pop(name, None)

    def word(self, name: str) -> Value | None:
        """Return a value of the tester's state."""
        return self._tester.word(name)


def argument_of(expression: Expression, scope: Scope, kind: str) -> Value:
    """Evaluate an argument of a call; raise :class:`~mxwire.scenarios.errors.ScriptError` unless it is of ``kind``."""
    value = expression.value(scope)
    if isinstance(value, int) is not (kind == "n"):
        raise ScriptError(f"{'a number is' if kind == 'n' else 'bytes are'} needed here", expression.place)
    return value

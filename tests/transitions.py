"""A plugin of pytest: every row of every state table of the engine is taken by some test of ``tests/protocol``.

The rows are recorded while the tests of that folder run, in every process of the run. At the end of a run of the whole
folder there is one more result, passed or failed, under the name of the folder. A row that no test takes is not known
to be right, and perhaps not needed.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "protocol"


class _Recording(dict):
    """The rows that leave one state of a table, by event; records those that are taken."""

    def __init__(self, name: str, rows: dict, taken: set[str]) -> None:
        super().__init__(rows)
        self.name = name
        self.taken = taken

    def get(self, key, default=None):
        row = super().get(key, default)
        if row is not None:
            self.taken.add(_line(self.name, row))
        return row


class Transitions:
    """The plugin: in each process that runs tests it records, in the first process it also reports."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.whole = False
        """Return whether all tests of the folder were selected."""
        self._deselected = False
        self._places: list[tuple[Any, str, dict, _Recording]] | None = None

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """A run with ``-k`` or ``--last-failed`` is not expected to take every row."""
        self._deselected |= any(map(_is_ours, items))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Compare the files that were collected with those that there are."""
        files = {item.path for item in session.items}
        self.whole = set(FOLDER.glob("test_*.py")) <= files and not self._deselected

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Record during one test, if it is one of the folder."""
        if not _is_ours(item):
            return (yield)
        with self._recorded():
            return (yield)

    @contextmanager
    def _recorded(self) -> Iterator[None]:
        if self._places is None:
            self._places = list(_places(self.taken))
        for holder, attribute, _, recording in self._places:
            object.__setattr__(holder, attribute, recording)
        try:
            with pytest.MonkeyPatch.context() as patch:
                if not _compiled():
                    _record_known(patch, self.taken)
                yield
        finally:
            for holder, attribute, steps, _ in self._places:
                object.__setattr__(holder, attribute, steps)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """After the last test: hand over what was recorded to the first process, or report it there."""
        result = yield
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["transitions"] = self.whole, sorted(self.taken)
        elif self.whole and not _compiled():
            session.config.hook.pytest_runtest_logreport(report=self._report())
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a process of pytest-xdist has recorded; one that crashed has left nothing."""
        whole, taken = getattr(node, "workeroutput", {}).get("transitions", (False, ()))
        self.whole |= whole
        self.taken |= set(taken)

    def _report(self) -> pytest.TestReport:
        from tests.protocol.tables import tables

        every = {_line(name, row) for name, table in tables().items() for row in table.rows}
        missing = sorted(every - self.taken)
        name = FOLDER.relative_to(Path(__file__).parents[1]).as_posix()
        return pytest.TestReport(
            nodeid=name,
            location=(name, None, "every row of every state table"),
            keywords={},
            outcome="failed" if missing else "passed",
            longrepr="\n".join(["Rows of state tables that no test takes:", *missing]) if missing else None,
            when="call",
        )


def pytest_configure(config: pytest.Config) -> None:
    """Put the plugin to work."""
    config.pluginmanager.register(Transitions(), "transitions")


def _is_ours(item: pytest.Item) -> bool:
    return FOLDER in item.path.parents


def _line(name: str, row: Any) -> str:
    return f"{name}: {row.state} --{row.event}--> {row.next}"


def _places(taken: set[str]) -> Iterator[tuple[Any, str, dict, _Recording]]:
    """Each attribute that holds the rows of a state, and what to put there to record them."""
    from tests.protocol.tables import tables

    for name, table in tables().items():
        yield table, "first", table.first, _Recording(name, table.first, taken)
        for row in table.rows:
            yield row, "after", row.after, _Recording(name, row.after, taken)


def _record_known(patch: pytest.MonkeyPatch, taken: set[str]) -> None:
    """Record the rows that machines take without a look-up."""
    from mxwire.protocol.state_machine import StateMachine

    follow = StateMachine.follow

    def recorded(machine: Any, row: Any) -> None:
        follow(machine, row)
        taken.add(_line(machine.table.name, row))

    patch.setattr(StateMachine, "follow", recorded)


def _compiled() -> bool:
    """Return whether the engine is compiled, and reads its tables without any Python that could record."""
    from mxwire.protocol import state_machine

    return not state_machine.__file__.endswith(".py")

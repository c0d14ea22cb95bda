"""The simulated world: agenda and computed progress, on a continuous clock of integer microseconds."""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.model.decision import Decision, HeldQuote, Quote
from tradewind.model.scenario import Scenario
from tradewind.model.view import Change, Event
from tradewind.worlds.agenda import Agenda
from tradewind.worlds.customers import choose
from tradewind.worlds.progress import Progress
from tradewind.worlds.timeline import Timeline


class SimulatedWorld:
    """Simulates a scenario. `slots`: emit an event per slot (always done if the scenario has stream data).

    unscripted  `cancel`, `change` and `answer` may add events that the scenario does not have, at any later instant
    """

    def __init__(self, scenario: Scenario, *, slots: bool, unscripted: bool = False) -> None:
        failures = unscripted or any(c.kind in ("node_down", "link_down") for c in scenario.changes)
        self._scenario = scenario
        self._agenda = Agenda(scenario, slots=slots, unscripted=unscripted)
        self._timeline = Timeline(scenario, self._agenda, Progress(scenario.setup, failures=failures))

    def wait(self) -> Sequence[Event]:
        """Events of the next instant that has any; empty at the end."""
        timeline = self._timeline
        while (now := timeline.next_us()) is not None:
            if events := timeline.process(now):
                return events
        return timeline.end(self._scenario.setup.horizon_us)

    def ask(self, quote: Quote) -> int:
        """The customer's choice (worlds.customers)."""
        scenario, job = self._scenario, quote.job
        return choose(scenario.setup.slot_us, scenario.jobs[job], scenario.customers[job], quote)

    def apply(self, number: int, decision: Decision) -> Sequence[Event]:
        """Apply a decision. Repeating a number has no effect."""
        return self._timeline.apply(number, decision)

    def change(self, change: Change) -> None:
        """Add a change that the scenario does not have."""
        self._agenda.change(change)

    def cancel(self, at_us: int, job: int) -> None:
        """Cancel a job at a later instant; nothing happens if it is over by then."""
        self._agenda.report(Event(at_us, "cancelled", job))

    def hold(self, held: HeldQuote) -> None:
        """Let a held quote expire when it is due."""
        self._agenda.hold(held)

    def answer(self, at_us: int, held: HeldQuote, taken: int) -> None:
        """The customer answers a held quote at a later instant."""
        self._agenda.report(Event(at_us, "answered", held.quote.job, taken, held.id))

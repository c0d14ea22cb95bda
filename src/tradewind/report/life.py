"""The life of a job in a run, in sentences: when it came, what it was offered, where it ran, what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from tradewind.engine.instants import answered_quotes, instants, read_charges
from tradewind.engine.menu import invoice_of, job_index, menu_of
from tradewind.model.errors import InputError
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.units import clock, dollars
from tradewind.report.placements import Placement, joined, placements
from tradewind.report.quantities import duration

SAID = {
    "arrived": "arrived",
    "finished": "finished",
    "left": "left",
    "released": "its resources were released",
    "voided": "was interrupted by a failure",
    "quoted": "got a quote",
    "expired": "its quote expired",
    "withdrawn": "its quote was withdrawn",
    "declined": "declined",
    "refused": "was refused",
    "cancelled": "was cancelled",
    "ended": "ended unfinished",
}
"""Events of a job that its life mentions."""


class Detail(Protocol):
    """The offers to a job or its invoice (engine.menu)."""

    @property
    def lines(self) -> list[str]: ...

    def as_json(self) -> dict[str, Any]: ...


class Life(NamedTuple):
    """All that happened to a job.

    happened  (time in microseconds, sentence), in order
    usd       its part of the cost; paid_usd: what its customer paid, None: nothing was bought
    market    the offers it got or its invoice; None outside markets
    """

    job: str
    state: str
    happened: tuple[tuple[int, str], ...]
    placed: tuple[Placement, ...]
    usd: float
    paid_usd: float | None
    market: Detail | None

    @property
    def lines(self) -> list[str]:
        """Text for people."""
        found = [f"{self.job}: {self.state}" + (f", {self._money()}" if self._money() else "")]
        found += [f"  {clock(at):>12}  {what}" for at, what in self.happened]
        return found + ([] if self.market is None else self.market.lines)

    def _money(self) -> str:
        parts = [f"{self.usd:.2f} USD of the cost"] if self.usd else []
        parts += [] if self.paid_usd is None else [f"paid {self.paid_usd:.2f} USD"]
        return ", ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            **self._asdict(),
            "happened": [{"at_us": at, "what": what} for at, what in self.happened],
            "placed": [
                {
                    **p._asdict(),
                    "places": [x._asdict() for x in p.places],
                    "moves": [x._asdict() for x in p.moves],
                }
                for p in self.placed
            ],
            "market": None if self.market is None else self.market.as_json(),
        }


def life_of(scenario: Scenario, run: Run, job_id: str) -> Life:
    """The life of a job of a run."""
    job = job_index(scenario, job_id)
    placed = joined(placements(scenario, run, job))
    rows = [(at, 1, text) for at, text in _ran(placed)] + [(at, 0, text) for at, text in _events(run, job)]
    outcomes, payments = run.tables["outcomes"], run.tables["payments"]
    states = dict(zip(outcomes["job"], outcomes["state"], strict=True))
    paid: dict[Any, Any] = dict(zip(payments["job"], payments["usd"], strict=True))
    return Life(
        job=job_id,
        state=str(states.get(job, "never arrived")),
        happened=tuple((at, text) for at, _, text in sorted(rows, key=lambda row: row[:2])),
        placed=tuple(placed),
        usd=sum(row.usd for row in placed),
        paid_usd=paid.get(job),
        market=_market(scenario, run, job_id),
    )


def _market(scenario: Scenario, run: Run, job_id: str) -> Detail | None:
    try:
        if run.tables["answers"]["job"]:
            return menu_of(scenario, run, job_id, answered_quotes(instants(scenario, run.tables)))
        if charges := read_charges(run.tables):
            return invoice_of(scenario, run, job_id, charges)
    except InputError:  # it got no quote or was not charged, which its state says already
        pass
    return None


def _events(run: Run, job: int) -> Iterator[tuple[int, str]]:
    """What happened to a job, with the reasons that the policy gave."""
    events, verdicts, alarms = (_columns(run, name) for name in ("events", "verdicts", "alarms"))
    reasons = dict(zip(verdicts.get("job", ()), verdicts.get("reason", ()), strict=True))
    for at, kind, who in zip(events["at_us"], events["kind"], events["job"], strict=True):
        if who == job and kind in SAID:
            why = str(reasons.get(job, "")) if kind == "refused" else ""
            yield int(at), SAID[str(kind)] + (f": {why}" if why else "")
    for at, who, text in zip(*(alarms.get(name, ()) for name in ("at_us", "job", "text")), strict=True):
        if who == job:
            yield int(at), f"alarm: {text}"


def _columns(run: Run, table: str) -> Mapping[str, Any]:
    return run.tables.get(table, {})


def _ran(placed: list[Placement]) -> Iterator[tuple[int, str]]:
    for row in placed:
        text = f"ran {duration((row.until_us - row.from_us) / 1e6)} at {', '.join(map(str, row.places))}"
        if row.moves:
            text += f"; moved {', '.join(map(str, row.moves))}"
        if row.usd:
            text += f"; {dollars(row.usd)} USD"
        yield row.from_us, text + (f" ({row.why})" if row.why else "")

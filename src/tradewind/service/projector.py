"""Turns the records of the engine into rows for people: jobs with their status, events, quotes.

submitted -> waiting -> scheduled -> running -> finished
             quoted -> (accepted: scheduled) or declined        refused, cancelled, failed, left: over
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from tradewind.model.codec import read
from tradewind.model.decision import Decision, HeldQuote, Quote, Step
from tradewind.model.estimate import Measured
from tradewind.model.job import Job
from tradewind.model.progress import iteration_us
from tradewind.model.result import Outcome
from tradewind.model.setup import Setup
from tradewind.model.view import Change
from tradewind.service.config import price_hash
from tradewind.service.durations import calibration_document
from tradewind.service.plans import in_words, quote_document, step_document
from tradewind.store.board import Row
from tradewind.store.rows import Put

STATUS_OF = {
    "arrived": "waiting",
    "quoted": "quoted",
    "withdrawn": "waiting",
    "accepted": "scheduled",
    "voided": "waiting",
    "declined": "declined",
    "refused": "refused",
    "finished": "finished",
    "left": "left",
    "cancelled": "cancelled",
    "ended": "failed",
}
"""Kind of event -> status of its job from then on."""
OVER = frozenset(("declined", "refused", "finished", "left", "cancelled", "failed"))
CAUSES = {"arrived": "it arrived", "voided": "it lost its place", "data": "its data arrived"}
ENDED = "another job ended"
OTHERS = {
    "finished": ENDED, "left": ENDED, "cancelled": ENDED, "arrived": "another job arrived",
    "changed": "capacity or prices changed", "slot": "a slot began", "timer": "the policy asked to be woken",
}  # fmt: skip
"""Kinds of events of a job itself, and of others, that make a policy decide -> words."""
KEPT = 200
"""Jobs that are over and still known."""
QUIET = frozenset(("slot", "timer", "data", "released", "answered"))
"""Kinds of events that are nobody's news."""


TakenAway = Callable[[int, int, int], str | None]
"""(job, work done, instant) -> what has to be known to resume a job that was suspended; "": it arrives again at once; None:
it was cancelled."""

ReadJob = Callable[[int], Row | None]
"""Index of a job -> its row."""


@dataclass(slots=True, kw_only=True)
class Shown:
    """A job as people see it; what of it may change."""

    number: int
    id: str
    tenant: str
    job: int
    status: str = "submitted"
    started_s: float | None = None
    ended_s: float | None = None
    price_usd: float | None = None
    reason: str = ""
    places: str = "{}"

    def put(self) -> Put:
        """Its row."""
        values = {
            "job": self.job, "status": self.status, "is_over": self.status in OVER, "started_s": self.started_s,
            "ended_s": self.ended_s, "price_usd": self.price_usd, "reason": self.reason, "places": self.places,
        }  # fmt: skip
        return Put("board_jobs", values, {"number": self.number})


SHOWN = tuple(each.name for each in fields(Shown))


class Projector:
    """Follows the records. `pace`: microseconds of the run per second."""

    def __init__(
        self,
        setup: Setup,
        pace: float,
        policy: str,
        taken_away: TakenAway,
        read: ReadJob,
        active: Mapping[int, Job],
    ) -> None:
        self._setup, self._pace, self._taken_away, self._read, self._active = (
            setup,
            pace,
            taken_away,
            read,
            active,
        )
        self._factors: dict[tuple[int, int], float] = {}
        self._terms = {"price_list": price_hash(setup, {}), "policy": policy}
        self.jobs: dict[int, Shown] = {}
        self._unread: set[int] = set()  # jobs from before a start whose rows nobody needed yet
        self._outcomes: list[Outcome] = []
        self._gone: deque[int] = (
            deque()
        )  # jobs that are over and still known, because their ranks may still end
        self._open: dict[int, int] = {}  # job -> number of its open quote
        self._expired: set[int] = set()  # jobs whose quote expires now
        self._now_us, self._now_s = 0, 0.0
        self._touched: dict[int, Shown] = {}
        self._rows: list[Put] = []
        self._plans: dict[int, str] = {}  # job -> the plan that was told last
        self._counted: dict[int, int] = {}  # job -> iterations when its measurements were last told
        self._woke: set[tuple[str, int]] = set()  # (kind, job) of the events of this instant

    def wall(self, at_us: int) -> float:
        """Wall-clock seconds of an instant."""
        return self._now_s + (at_us - self._now_us) / self._pace

    def restore(self, jobs: Iterable[int], quotes: Iterable[HeldQuote], changes: Iterable[Change]) -> None:
        """Know the jobs again that are not over, the open quotes and the prices; rows are read when they are needed."""
        self._unread.update(jobs)
        for change in changes:
            if change.kind == "price":
                self._priced(change)
        self._open = {held.quote.job: held.id for held in quotes}

    def _known(self, job: int) -> Shown | None:
        """A job that is not over, or was until a moment ago."""
        if job in self._unread:
            self._unread.discard(job)
            if (row := self._read(job)) is not None:
                self.jobs[job] = Shown(**{name: row[name] for name in SHOWN})
        return self.jobs.get(job)

    # ------------------------------------------------------------------ records
    def instant(self, record: Mapping[str, Any], fresh: Mapping[int, Row]) -> list[Put]:
        """Rows of an instant; fresh: requests of the jobs that arrived."""
        self._now_us, self._now_s = record["at_us"], record["wall"]
        for index, row in fresh.items():
            self.jobs[index] = Shown(number=row["number"], id=row["job"], tenant=row["tenant"], job=index,
                                     started_s=row.get("started_s"))  # fmt: skip
        self._woke = {
            (event["kind"], event.get("job", -1))
            for kind, what in record["ops"]
            if kind == "events"
            for event in what
        }
        for kind, what in record["ops"]:
            if kind == "events":
                for event in what:
                    self._event(event)
            elif kind == "decision":
                self._decision(what)
            elif kind == "hold":
                self._held(what)
            elif kind in ("quote", "answer"):
                self._answered(*what)
        for outcome in self._outcomes:
            if (shown := self._known(outcome.job)) is not None and outcome.paid_usd is not None:
                shown.price_usd = outcome.paid_usd
                self._touch(shown)
        self._outcomes.clear()
        self._expired.clear()
        return self._drain()

    def came_of(self, outcome: Outcome) -> None:
        """Take what came of a job; it is shown with the instant."""
        self._outcomes.append(outcome)

    def attempt(self, record: Mapping[str, Any]) -> list[Put]:
        """Rows of ranks that start."""
        shown = self._known(record["job"])
        if shown is not None:
            self._now_us, self._now_s = record["at_us"], record["wall"]
            shown.status = "running"
            shown.started_s = shown.started_s or record["wall"]
            self._touch(shown)
            told = {"attempt": record["number"], "ranks": len(record["ranks"])}
            if predicted := iteration_us(self._setup, self._active.get(record["job"]), Step(*record["step"])):
                told["predicted_s"] = predicted / self._pace
            self._tell(shown, "started", told)
        return self._drain()

    def over(self, record: Mapping[str, Any]) -> list[Put]:
        """Rows of ranks that ended."""
        shown = self._known(record["job"])
        if shown is not None:
            self._now_s = record["wall"]
            if shown.status == "running":
                shown.status = "scheduled"
                self._touch(shown)
            self._tell(
                shown, "stopped", {"attempt": record["number"], "why": record["why"], **record["tally"]}
            )
        return self._drain()

    def alarm(self, record: Mapping[str, Any]) -> list[Put]:
        """The row of an alarm: its tenant's where it concerns a job, else the operators'."""
        shown = self._known(record["job"])
        self._tell(shown, "alarm", {"text": record["text"]})
        return self._drain()

    def rejected(self, row: Row, why: str, at_s: float) -> list[Put]:
        """Rows of a request that the engine could not take."""
        self._now_s = at_s
        values = {"status": "refused", "is_over": True, "ended_s": at_s, "reason": why}
        self._rows.append(Put("board_jobs", values, {"number": row["number"]}))
        return self._drain()

    # ------------------------------------------------------------------ parts of an instant
    def _event(self, event: Mapping[str, Any]) -> None:
        kind, shown = event["kind"], self._known(event.get("job", -1))
        if kind == "changed":
            self._tell(None, "changed", self._named(event["fact"]))
            if event["fact"]["kind"] == "price":
                self._priced(read(Change, event["fact"], "event.fact"))
        if shown is None or kind in QUIET:
            return
        if kind == "measured":
            self._measured(shown, event["fact"])
            return
        if kind == "cancelled" and self._is_suspended(shown, event.get("value", 0)):
            return
        if (status := STATUS_OF.get(kind)) is not None and shown.status not in OVER:
            shown.status = status
            self._touch(shown)
            if status in ("waiting", "scheduled") and kind != "accepted":
                shown.places = "{}"
            if status in OVER:
                shown.ended_s = self._now_s
                self._gone.append(shown.job)
        if kind == "expired":
            self._expired.add(shown.job)
        elif kind in ("withdrawn", "cancelled", "ended") and shown.job in self._open:
            self._close_quote(shown, "withdrawn" if kind == "withdrawn" else "cancelled")
        self._tell(
            shown,
            kind,
            {"work_done": event.get("value", 0)}
            if kind in ("voided", "ended", "cancelled")
            else {"reason": shown.reason}
            if kind == "refused"
            else _home(event),
        )

    def _measured(self, shown: Shown, fact: Sequence[Any]) -> None:
        """Tell what ranks measured: at first, whenever there are twice as many iterations, and at the end."""
        whole = read(Measured, fact[0], "measured")
        if whole.iterations >= 2 * self._counted.get(shown.job, 0) or ("finished", shown.job) in self._woke:
            self._counted[shown.job] = whole.iterations
            self._tell(shown, "measured", calibration_document(whole))

    def _named(self, fact: Mapping[str, Any]) -> dict[str, Any]:
        """A change, with the names of the site and resource that it concerns."""
        found, setup = dict(fact), self._setup
        if fact["kind"] in ("price", "capacity", "node_up", "node_down"):
            found["site"] = setup.nodes[fact["a"]].name
        if fact["kind"] in ("price", "capacity"):
            found["resource"] = setup.resources[fact["b"]]
        return found

    def _is_suspended(self, shown: Shown, done: int) -> bool:
        """Whether a job was not cancelled but taken away to be resumed."""
        info = self._taken_away(shown.job, done, self._now_us)
        if info is None:
            return False
        del self.jobs[shown.job]
        if info:
            shown.status, shown.places = "suspended", info
            self._touch(shown)
            self._tell(shown, "suspended", {"work_done": done})
        else:
            self._tell(shown, "altered", {})
        return True

    def _priced(self, change: Change) -> None:
        """Quotes name the price list that they are based on."""
        self._factors[change.a, change.b] = change.factor
        self._terms = {**self._terms, "price_list": price_hash(self._setup, self._factors)}

    def _decision(self, decision: Decision) -> None:
        for plan in decision.plans:
            if (shown := self._known(plan.job)) is not None:
                if not plan.steps:
                    shown.status, shown.places = "waiting", "{}"
                else:
                    self._planned(shown, plan.steps)
                self._touch(shown)
                text = in_words(self._setup, plan.steps)
                if self._plans.get(plan.job) != text:  # many policies renew their plans in every slot
                    self._plans[plan.job] = text
                    because = decision.why or self._because(plan.job)
                    self._tell(shown, "planned", {"plan": text, "because": because})
        for verdict in decision.verdicts:
            if (shown := self._known(verdict.job)) is not None:
                shown.reason = verdict.reason
                self._touch(shown)
                self._tell(shown, "verdict", {"reason": verdict.reason})

    def _because(self, job: int) -> str:
        """What of this instant woke the policy; others' jobs are not named."""
        mine = {kind for kind, of in self._woke if of == job}
        rest = {kind for kind, of in self._woke if of != job}
        found = [text for kind, text in CAUSES.items() if kind in mine]
        found += [OTHERS[kind] for kind in OTHERS if kind in rest]
        return ", ".join(list(dict.fromkeys(found))[:2])

    def _planned(self, shown: Shown, steps: Any) -> None:
        if shown.status != "running":
            shown.status = "scheduled"
        shown.places = json.dumps(step_document(self._setup, steps[0], self.wall))

    def _held(self, held: HeldQuote) -> None:
        shown = self._known(held.quote.job)
        if shown is None:
            return
        self._open[shown.job] = held.id
        self._rows.append(Put("board_quotes", {
            "id": quote_id(held.id, shown.id), "job": shown.id, "tenant": shown.tenant, "status": "open",
            "made_s": self._now_s, "expires_s": self.wall(held.expires_us),
            "body": json.dumps({**quote_document(self._setup, held.quote, self.wall), **self._terms,
                                "held": True, "quote": held.id}),
        }))  # fmt: skip

    def _answered(self, quote: Quote, taken: int) -> None:
        shown = self._known(quote.job)
        if shown is None:
            return
        if taken >= 0:
            offer = quote.offers[taken]
            shown.price_usd = offer.payment_usd
            self._planned(shown, offer.plan.steps)
        elif quote.refused:
            shown.reason = f"{quote.refused}: {quote.why}" if quote.why else quote.refused
        self._touch(shown)
        status = "accepted" if taken >= 0 else "refused" if quote.refused else "declined"
        status = "expired" if shown.job in self._expired and taken < 0 else status
        body = {**quote_document(self._setup, quote, self.wall), **self._terms, "held": False, "taken": taken}
        row = {"status": status, "body": json.dumps(body)}
        if (number := self._open.pop(shown.job, None)) is not None:
            self._rows.append(Put("board_quotes", row, {"id": quote_id(number, shown.id)}))
        else:
            rest = {"job": shown.id, "tenant": shown.tenant, "made_s": self._now_s, "expires_s": self._now_s}
            self._rows.append(Put("board_quotes", {"id": f"q-{shown.id}", **rest, **row}))

    def _close_quote(self, shown: Shown, status: str) -> None:
        number = self._open.pop(shown.job)
        self._rows.append(Put("board_quotes", {"status": status}, {"id": quote_id(number, shown.id)}))

    # ------------------------------------------------------------------ rows
    def _touch(self, shown: Shown) -> None:
        self._touched[shown.job] = shown

    def _tell(self, shown: Shown | None, kind: str, body: Mapping[str, Any]) -> None:
        whose = {"id": "", "tenant": ""} if shown is None else {"id": shown.id, "tenant": shown.tenant}
        values = {**whose, "at_s": self._now_s, "kind": kind, "body": json.dumps(body)}
        self._rows.append(Put("board_events", values))

    def _drain(self) -> list[Put]:
        rows = [*(shown.put() for shown in self._touched.values()), *self._rows]
        self._touched, self._rows = {}, []
        while len(self._gone) > KEPT:
            gone = self._gone.popleft()
            self.jobs.pop(gone, None)
            self._plans.pop(gone, None)
            self._counted.pop(gone, None)
        return rows


def _home(event: Mapping[str, Any]) -> dict[str, int]:
    """The job that an arriving job goes on from."""
    fact = event.get("fact") if event["kind"] == "arrived" else None
    home = fact.get("continues") if isinstance(fact, Mapping) else None
    return {} if home is None else {"home": home}


def quote_id(number: int, job: str) -> str:
    """The id of a held quote."""
    return f"q{number}-{job}"

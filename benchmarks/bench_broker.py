"""Broker: plans against the certified bound by family, tiny cases against the exact program, online, spot, speed.

Quick by default (50 jobs, one seed). TRADEWIND_BENCH=full adds 200 jobs, two more seeds and 1,000 jobs of F.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from time import process_time
from typing import Any, TypeVar

import numpy as np

from benchmarks.broker_plain import plain
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.registry import policies, workloads
from tradewind.systems.broker.bound.certified import Certified, Effort, solved
from tradewind.systems.broker.bound.exact import exact
from tradewind.systems.broker.bound.problem import Whole, whole
from tradewind.systems.broker.kernels.problem import Problem
from tradewind.systems.broker.kernels.search import Books
from tradewind.systems.broker.policy import planned
from tradewind.systems.broker.rivals import skypilot
from tradewind.systems.broker.shared.market import accounts_of
from tradewind.systems.broker.shared.options import Prices, build
from tradewind.systems.broker.shared.plan import central, cost, selfish
from tradewind.systems.broker.shared.ways import Request
from tradewind.worlds.simulate import simulate

FULL = os.environ.get("TRADEWIND_BENCH") == "full"
SEEDS = (1, 2, 3) if FULL else (1,)
TARGETS = {
    "A": (1.003, 1.003), "Bs": (1.02, 1.02), "Bm": (1.003, 1.003), "Bt": (1.003, 1.003), "C": (1.003, 1.003),
    "D": (1.12, 1.08), "E": (1.02, 1.06), "Fo": (1.003, 1.003), "F": (1.003, 1.003),
}  # fmt: skip
"""Family -> target with 50 and with 200 jobs: cost / certified bound."""
ROUNDING = 1e-9
"""Of sums."""
TINY = {"jobs": 4, "regions": 2, "slots": 24}
EXACT = ("A", "Bm", "C", "E")
T = TypeVar("T")
Row = dict[str, Any]


def made(family: str, jobs: int = 50, seed: int = 1, **more: Any) -> Scenario:
    """A market of a family."""
    return workloads.generate("broker", {"family": family, "jobs": jobs, **more}, seed)


def row(name: str, measured: float, target: float | None, unit: str = "", note: str = "") -> Row:
    return {
        "name": name,
        "measured": measured,
        "target": target,
        "better": "lower",
        "unit": unit,
        "note": note,
    }


def timed(call: Callable[[], T]) -> tuple[T, float]:
    """What a call returns, and its CPU seconds."""
    begin = process_time()
    result = call()
    return result, process_time() - begin


def quality(jobs: int) -> list[Row]:
    """Offline plans over the certified bound, by family; the largest cost over a rival's for the jobs that it serves too."""
    found, worst = [], {"selfish": 0.0, "central": 0.0, "skypilot-rule": 0.0}
    for family, targets in TARGETS.items():
        ratios, missed, theirs = list[float](), 0, 0
        for seed in SEEDS:
            problem = whole(made(family, jobs, seed))
            answer = solved(problem)
            ratios.append(answer.usd / answer.bound)
            rivals = _rivals(problem)
            missed += _unserved(answer.books)
            theirs += _unserved(rivals["selfish"])
            for name, books in rivals.items():
                worst[name] = max(worst[name], _beside(problem, answer, books))
        note = f"seeds {', '.join(f'{r:.4f}' for r in ratios)}; {missed} jobs not served, selfish {theirs}"
        found.append(
            row(f"{family}, {jobs} jobs: of bound", float(np.mean(ratios)), targets[jobs > 50], note=note)
        )
        if family == "D":
            extra = max(0, missed - theirs)
            found.append(row(f"D, {jobs} jobs: unserved beyond selfish", float(extra), 0.0, "jobs"))
    return found + [
        row(f"{jobs} jobs: dearest over {name}", most, 1.0 + ROUNDING) for name, most in worst.items()
    ]


def _rivals(found: Whole) -> dict[str, Books]:
    p, before, market = found.problem, found.before, found.market
    return {
        "selfish": selfish(p, before),
        "central": central(p, before, market.site),
        "skypilot-rule": skypilot(market, p, before),
    }


def _unserved(books: Books) -> int:
    return int((books.plan[:, 0] < 0).sum())


def _beside(found: Whole, ours: Certified, theirs: Books) -> float:
    """Our cost over a rival's for the jobs that the rival serves, planned anew for those alone where it serves fewer."""
    p, served = found.problem, theirs.plan[:, 0] >= 0
    lost = float(p.unserved[~served].sum())
    if served.all() or not served.any():
        return ours.usd / cost(p, theirs)
    fewer = p._replace(latest=np.where(np.repeat(served, np.diff(p.first)), p.latest, -1))
    again = planned(found.market, fewer, found.before, 100)
    return (cost(fewer, again) - lost) / (cost(p, theirs) - lost)


def tiny() -> list[Row]:
    """Plans of a few jobs over the proven optimum."""
    ratios, names, below = list[float](), list[str](), 0.0
    for family in EXACT:
        for seed in range(1, 9 if FULL else 4):
            given = workloads.generate("broker", {**TINY, "family": family}, seed)
            best, proven = exact(given, nodes=2_000)
            if best - proven > 1e-6 * best:
                continue
            answer = solved(whole(given), Effort(rounds=100, steps=300))
            ratios.append(answer.usd / best)
            names.append(f"{family} {seed}")
            below = max(below, answer.bound / best)
    note = f"{len(ratios)} cases with a proven optimum; worst {names[int(np.argmax(ratios))]}"
    return [
        row("tiny: mean of optimum", float(np.mean(ratios)), 1.002, note=note),
        row("tiny: max of optimum", max(ratios), 1.01),
        row("tiny: bound / optimum, largest", below, 1.0 + 1e-6),
    ]


def speed() -> list[Row]:
    """CPU seconds of options, of one job's quote and of plans of F, compiled code included."""
    given = made("F")
    planned(*_parts(whole(given)), 10)
    found, build_s = timed(lambda: whole(given))
    _, first_s = timed(lambda: planned(*_parts(found), 0))
    answer, all_s = timed(lambda: solved(found))
    quote_ms = 1000 * _quote_s(given, found)
    many = made("F", 1000)
    large, thousand_s = timed(lambda: whole(many))
    note = f"{len(found.market.nodes)} offers"
    rows = [
        row("F, 50 jobs: options and first plan", build_s + first_s, 2.0, "s cpu", note),
        row(
            "F, 50 jobs: plan and certificate",
            build_s + all_s,
            8.0,
            "s cpu",
            f"{answer.usd / answer.bound:.4f}",
        ),
        row("F: options and price of one job", quote_ms, 10.0, "ms cpu", note),
        row("F: options of 1,000 jobs", thousand_s, 10.0, "s cpu", f"{len(large.problem.offer):,} options"),
    ]
    if FULL:
        big, total_s = timed(lambda: solved(whole(many), Effort(rounds=400, steps=400)))
        rows.append(row("F, 1,000 jobs: of bound", big.usd / big.bound, 1.03, note=f"{total_s:.0f} s cpu"))
        rows.append(row("F, 1,000 jobs: plan and certificate", total_s, 120.0, "s cpu"))
    return rows


def _parts(found: Whole) -> tuple[Any, Problem, Any]:
    return found.market, found.problem, found.before


def _quote_s(given: Scenario, found: Whole) -> float:
    """Median seconds of building the options of a job and pricing it."""
    setup, slots = given.setup, given.setup.slots
    prices = Prices(
        slot=0, factor=np.ones((len(found.market.nodes), slots)), room=found.problem.room,
        accounts=accounts_of(setup, 0, slots, {}),
    )  # fmt: skip

    def quote(number: int) -> None:
        job = given.jobs[number]
        p = build(found.market, [Request(job=job, left=job.work.total or 0)], prices)
        selfish(p, found.before)

    quote(0)
    return float(np.median([timed(partial(quote, j))[1] for j in range(50)]))


def online() -> list[Row]:
    """The policy over the offline bound, which knows all arrivals and prices; F also where spot prices do not move."""
    found = []
    for name, family, target, moves in (
        ("F, constant prices", "F", 1.01, False),
        ("F, spot prices move", "F", 1.01, True),
        ("Bm", "Bm", 1.01, True),
        ("E", "E", 1.25, True),
    ):
        ratios, rivals = list[float](), list[float]()
        for seed in SEEDS:
            given = made(family, 50, seed, arrivals="spread")
            given = given if moves else replace(given, changes=())
            bound = solved(whole(given)).bound
            ratios.append(_run(given, "broker").metrics["total_usd"] / bound)
            rivals.append(_run(given, "broker-selfish").metrics["total_usd"] / bound)
        found.append(
            row(
                f"online, {name}: of offline bound", float(np.mean(ratios)), target,
                note=f"selfish {np.mean(rivals):.4f}",
            )
        )  # fmt: skip
    return found


def _run(given: Scenario, policy: str) -> Run:
    return simulate(given, policies.find(policy))


def interrupted() -> list[Row]:
    """Jobs that end after their deadline where spot machines are taken back at the stated rates."""
    late: dict[str, list[float]] = {"broker": [], "skypilot-rule": []}
    jobs = 0
    for seed in range(1, 11 if FULL else 5):
        given = made("E", 50, seed, interruptions=True)
        jobs += len(given.jobs)
        for policy, shares in late.items():
            worth = _run(given, policy).tables["outcomes"]["value_usd"]
            shares.append(float(np.mean([not usd for usd in worth])))
    note = f"{jobs} jobs; skypilot-rule {np.mean(late['skypilot-rule']):.1%}"
    return [
        row("E, interrupted: jobs late or not served", 100 * float(np.mean(late["broker"])), 1.0, "%", note)
    ]


def beside_highs(families: Sequence[str]) -> list[Row]:
    """A plain time-indexed program in HiGHS beside ours: its plan over ours, its bound over ours."""
    found = []
    for family in families:
        given = made(family, 12, 1, regions=4, slots=36)
        theirs, slow = timed(partial(plain, given, 200))
        ours, quick = timed(partial(solved, whole(given)))
        usd = theirs.usd / ours.usd
        note = (
            theirs.why
            or f"{slow:.2g} s against {quick:.2g} s; its bound {theirs.bound / ours.bound:.3f} of ours"
        )
        measured = ours.usd / theirs.usd if np.isfinite(usd) else 0.0
        found.append(row(f"{family}, 12 jobs: ours / plain HiGHS, 200 nodes", measured, 1.001, note=note))
    return found


def rows() -> list[Row]:
    """All figures; about two minutes, with TRADEWIND_BENCH=full about fifteen."""
    found = [*quality(50), *tiny(), *speed(), *online(), *interrupted(), *beside_highs(("Bm", "Bs"))]
    return [*found, *quality(200), *beside_highs(("E",))] if FULL else found

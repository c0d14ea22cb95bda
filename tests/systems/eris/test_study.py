"""The Eris study: its tables against hand-made values, what its figures compare, and verdicts in both directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from tradewind.lab.study import Effort, Row
from tradewind.registry import studies
from tradewind.systems.eris.study.lies import tiny
from tradewind.systems.eris.study.runs import (
    BOUND,
    ELASTIC,
    FIXED,
    OURS,
    PAPER,
    joined,
    load_by_slot,
    paid_usd,
    played,
)
from tradewind.systems.eris.study.scale import FEW, judge_gamma, judge_jobs, judge_profit, judge_sites
from tradewind.systems.eris.study.slot import judge_slot, judged, state
from tradewind.systems.eris.study.tables import judge_counts, judge_printed
from tradewind.systems.eris.study.testbed import judge_loss, judge_rejected, judge_use, judge_welfare
from tradewind.systems.eris.study.truth import TRUTHFUL, judge_lies, lie_rows

RIVALS = (*FIXED, *ELASTIC)
LEADS = ("lead of eris-paper", "lead of eris")


def leads(value: float) -> dict[str, float]:
    """A lead of both versions with an interval of a hundredth."""
    found: dict[str, float] = {}
    for name in LEADS:
        found |= {name: value, f"{name} low": value - 0.01, f"{name} high": value + 0.01}
    return found


def test_every_comparison_has_the_bound_and_the_elastic_rivals() -> None:
    figures = {f.name: f for f in studies.find("eris").figures}
    assert {f"fig-{n}" for n in (3, 4, 5, 7, 8, 9, 10, 11)} <= set(figures)
    rows = figures["fig-3"].rows(Effort(quick=True, seeds=1))
    assert {PAPER, BOUND, *OURS, *RIVALS} <= {r["policy"] for r in rows}
    assert all(float(r["of bound"]) <= 1 + 1e-9 for r in rows)
    assert figures["fig-3"].judge(rows).paper in ("reproduced", "partly reproduced", "not reproduced")
    assert set(ELASTIC) <= set(FEW)


def test_means_carry_intervals_for_every_column() -> None:
    rows: list[Row] = [{"policy": "a", "x": 1.0, "y": 2.0}, {"policy": "a", "x": 3.0, "y": 2.0}]
    (row,) = joined(rows, ("policy",), "x", "y")
    assert (row["x"], row["n"], row["y"], row["y low"], row["y high"]) == (2.0, 2, 2.0, 2.0, 2.0)
    assert float(row["low"]) < 1.0  # two values say little


def test_use_of_resources_adds_up_to_the_metric() -> None:
    scenario = tiny(2)
    run = played(scenario, "eris")
    load = load_by_slot(scenario, run)
    end = max(int(t) for t in run.tables["events"]["at_us"])
    share = load.sum(axis=0) * scenario.setup.slot_us / end
    for k, name in enumerate(scenario.setup.resources):
        assert share[k] == pytest.approx(run.metrics[f"utilisation_{name}"])


def test_payments_come_from_the_metric_of_a_market_and_the_steps_of_a_scheduler() -> None:
    scenario = tiny(2)
    market = played(scenario, "eris-paper")
    assert paid_usd(market) == market.metrics["payments_usd"]
    rival = played(scenario, "antman-elastic")
    assert paid_usd(rival) == pytest.approx(sum(float(x) for x in rival.tables["steps"]["usd"]))


def test_the_lead_is_judged_by_every_rival() -> None:
    def rows(lead: Mapping[str, float]) -> list[Row]:
        named = (PAPER, *OURS, *RIVALS, BOUND)
        return [{"policy": n, "of bound": 0.5, **leads(lead.get(n, 0.0))} for n in named]

    claimed = dict.fromkeys(RIVALS, 0.6)
    assert judge_welfare(rows(claimed)).word == "reproduced"
    assert judge_welfare(rows(claimed | {"antman": 0.3})).word == "partly reproduced"  # claimed is 0.5
    assert judge_welfare(rows(claimed | {"tiresias-elastic": 0.0})).word == "partly reproduced"
    assert judge_welfare(rows(dict.fromkeys(RIVALS, -0.1))).word == "not reproduced"


def test_fewer_unserved_jobs_and_a_ratio_below_one_and_a_half_are_judged() -> None:
    def rows(column: str, paper: float, rival: float) -> list[Row]:
        named = [(PAPER, paper), *((n, rival) for n in RIVALS)]
        return [{"policy": n, column: v, "high": v + 0.05} for n, v in named]

    assert judge_rejected(rows("unserved", 1.0, 2.0)).word == "reproduced"
    assert judge_rejected(rows("unserved", 2.0, 1.0)).word == "not reproduced"
    assert judge_loss(rows("loss", 1.3, 1.4)).word == "reproduced"
    assert judge_loss(rows("loss", 1.3, 1.2)).word == "partly reproduced"
    assert judge_loss(rows("loss", 1.48, 1.6)).word == "not reproduced"  # the interval reaches beyond


def test_steady_processors_and_full_gpus_are_judged() -> None:
    def rows(peak: float, gpu: float, other: float) -> list[Row]:
        steady = {"cpu": other, "gpu": gpu, "gb": other}
        return [{"use": f"{PAPER} {k}", "most": peak, "steady": s} for k, s in steady.items()]

    assert judge_use(rows(1.0, 0.4, 0.1)).word == "reproduced"
    assert judge_use(rows(0.9, 0.4, 0.1)).word == "partly reproduced"
    assert judge_use(rows(0.9, 0.1, 0.4)).word == "not reproduced"


def course(x: str, values: Sequence[float], lead: float) -> list[Row]:
    """The same welfare for all, over x = 1, 2, …"""
    named = (PAPER, *OURS, *RIVALS, BOUND)
    return [
        {x: float(at), "policy": n, "welfare": v, **leads(lead)} for n in named for at, v in enumerate(values)
    ]


def test_welfare_over_sites_and_jobs_is_judged() -> None:
    assert judge_sites(course("sites", (1, 2, 3), 0.1)).word == "reproduced"
    assert judge_sites(course("sites", (1, 2, 3), 0.0)).word == "partly reproduced"
    assert judge_sites(course("sites", (3, 2, 1), -0.1)).word == "not reproduced"
    falling = judge_jobs(course("jobs", (3, 2, 1), 0.1))
    assert falling.word == "reproduced"
    assert "Ours falls for eris, eris-preemptive" in falling.reason
    rising = judge_jobs(course("jobs", (1, 2, 3), 0.0))
    assert rising.word == "not reproduced"
    assert "Ours never falls" in rising.reason


def test_profit_and_gamma_are_judged() -> None:
    def profit(sites: Sequence[float], jobs: Sequence[float]) -> list[Row]:
        cases = {f"{10 * i + 10} sites": v for i, v in enumerate(sites)}
        cases |= {f"{100 * i + 100} jobs": v for i, v in enumerate(jobs)}
        named = (PAPER, "eris", "tiresias", "tiresias-elastic")
        return [
            {"case": c, "policy": n, "profit": v, "of welfare": 0.1} for c, v in cases.items() for n in named
        ]

    assert judge_profit(profit((3, 2, 1), (1, 2, 3))).word == "reproduced"
    assert judge_profit(profit((3, 2, 1), (3, 2, 1))).word == "partly reproduced"
    assert judge_profit(profit((1, 2, 3), (3, 2, 1))).word == "not reproduced"

    def gamma(values: Sequence[float]) -> list[Row]:
        return [
            {"gamma": 10.0**i, "policy": f"{PAPER}, simulator", "welfare": v} for i, v in enumerate(values)
        ]

    assert judge_gamma(gamma((3, 2, 1))).word == "reproduced"
    assert judge_gamma(gamma((3, 1, 2))).word == "partly reproduced"
    assert judge_gamma(gamma((1, 2, 3))).word == "not reproduced"


def test_worker_counts_and_jobs_that_finish_are_judged() -> None:
    def counts(elastic: float) -> list[Row]:
        sizes = ("testbed", "simulator", "contended")
        given = {"8 workers": 0.4, "elastic": elastic}
        return [
            {"case": f"{s}, {g}", "rival": n, LEADS[0]: v, "low": v - 0.01}
            for s in sizes
            for g, v in given.items()
            for n in FIXED
        ]

    assert judge_counts(counts(0.2)).word == "reproduced"
    assert judge_counts(counts(0.0)).word == "not reproduced"

    def finish(values: Sequence[float]) -> list[Row]:
        return [
            {"size": f"s{i}", "policy": "eris-printed", "finish": v, "of bound": 0.5}
            for i, v in enumerate(values)
        ]

    assert judge_printed(finish((1.0, 1.0))).word == "reproduced"
    assert judge_printed(finish((1.0, 0.2))).word == "partly reproduced"
    assert judge_printed(finish((0.0, 0.2))).word == "not reproduced"


def test_use_by_slot_never_exceeds_capacity() -> None:
    scenario = tiny(4)
    for name in (PAPER, "eris", "tiresias-elastic"):
        assert np.max(load_by_slot(scenario, played(scenario, name))) <= 1 + 1e-9


def test_a_slot_of_the_printed_algorithm_is_judged_by_the_exact_optimum() -> None:
    def rows(equal: float) -> list[Row]:
        share = {"equal": equal, "dearer": 1 - equal, "breaks a rule": 0.0, "finds nothing": 0.0}
        return [{"outcome": k, "share": v, "n": 10, "excess": 0.2} for k, v in share.items()]

    words = [judge_slot(rows(equal)).word for equal in (1.0, 0.7, 0.3)]
    assert words == ["reproduced", "partly reproduced", "not reproduced"]
    found = [result for seed in range(30) if (result := judged(*state(seed))) is not None]
    assert {"equal", "dearer"} <= {kind for kind, _ in found}
    assert all(excess > -1e-6 for kind, excess in found if kind in ("equal", "dearer"))


def test_the_truth_is_judged_by_the_lies_that_pay() -> None:
    def row(who: str, paid: int) -> Row:
        gain = 2.5 * paid
        return {
            "mechanism": who, "lie": "data, more", "lies": 10, "mattered": 9, "paid": paid, "share": paid / 10,
            "largest gain": gain, "least payoff": 1.0,
        }  # fmt: skip

    ours = [row("eris", 0), row(TRUTHFUL, 0)]
    assert judge_lies([row(PAPER, 0), *ours]).word == "reproduced"
    found = judge_lies([row(PAPER, 0), row(PAPER, 2), *ours])
    assert found.word == "partly reproduced"
    assert "data, more 2 of 10, up to 5 USD" in found.reason
    assert "Of 20 lies" in found.reason
    assert judge_lies([row(PAPER, 1), *ours]).word == "not reproduced"


def test_lies_to_our_mechanisms_do_not_pay_and_one_to_the_printed_algorithm_does() -> None:
    rows = lie_rows(Effort(quick=True, seeds=1))
    assert {r["mechanism"] for r in rows} == {PAPER, "eris", TRUTHFUL}
    assert all(r["paid"] == 0 for r in rows if r["mechanism"] != PAPER)
    assert any(r["paid"] for r in rows if r["mechanism"] == PAPER)
    assert all(float(r["least payoff"]) >= 0 for r in rows)

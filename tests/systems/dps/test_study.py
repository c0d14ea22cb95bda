"""What the study of DPS adds to the market: prices after the paper's text, steps per kind, uncertain runtimes, slopes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tradewind as tw
from tradewind.lab.study import Row
from tradewind.model.errors import InputError
from tradewind.systems.dps.kernels.arms import NO_PRICE, grid_step, price_grid, price_grids
from tradewind.systems.dps.kernels.fixed import printed_prices
from tradewind.systems.dps.study.growth import slope
from tradewind.systems.dps.study.runs import Knobs, arrays, drawn, learn, sell, sell_printed, uncertain
from tradewind.systems.dps.workload.draw import KINDS, MarketSize, draw_market
from tradewind.systems.dps.workload.generator import scenario_of

SIZE = MarketSize(slots=300, jobs=300, servers=5, worker_types=3, server_types=2)


def test_bfp_printed_runs_audited_as_in_the_compiled_market() -> None:
    draw = draw_market(KINDS["balanced"], 3, SIZE)
    run = tw.run(scenario_of(draw, "market", {}), policy="bfp-printed")
    assert run.value == pytest.approx(sell_printed(draw).outcome.profit, rel=1e-9)


def test_no_type_alone_gains_by_another_printed_price() -> None:
    draw = draw_market(KINDS["light"], 5, SIZE)
    stream, cluster = arrays(draw)
    found = printed_prices(stream, cluster, draw.budget, draw.slots)
    rest = draw.budget - found.p_m[draw.m] * draw.d_m
    for k in range(SIZE.worker_types):
        mine = draw.k == k
        most = cluster.idle_k[k].sum() * (draw.slots - draw.spread[mine].mean())

        def term(p: float, mine: np.ndarray = mine, most: float = most) -> float:
            return p * min(float(draw.d_k[mine] @ (p * draw.d_k[mine] <= rest[mine])), most)

        assert term(float(found.p_k[k])) == pytest.approx(
            max(term(p / 200) for p in range(1, 201)), rel=1e-12
        )


def test_workers_and_servers_have_price_grids_of_their_own() -> None:
    table = price_grids(np.array([0.5, 0.2]))
    assert table[1].tolist() == price_grid(0.2).tolist()
    assert table[0].tolist() == [
        *price_grid(0.5),
        *[NO_PRICE] * (len(price_grid(0.2)) - len(price_grid(0.5))),
    ]
    steps = grid_step(1e4, np.array([10.0, 1000.0]), np.array([100.0, 100.0]))
    assert steps[0] > steps[1]
    market = draw_market(KINDS["balanced"], 3, SIZE)
    same = sell(market, "dps-paper", 1, Knobs(delta=0.2, delta_m=0.2)).outcome.profit
    assert same == sell(market, "dps-paper", 1).outcome.profit
    assert same != sell(market, "dps-paper", 1, Knobs(delta=0.2, delta_m=0.1)).outcome.profit
    made = scenario_of(market, "market", {})
    runs = {
        d: tw.run(made, policy="dps-paper", params={"delta": d}).value for d in ("0.2", "0.2,0.2", "0.2,0.1")
    }
    assert runs["0.2"] == runs["0.2,0.2"] != runs["0.2,0.1"]
    for wrong in ("0.2,0.1,0.3", "0.2,1.0", "0.2,x"):
        with pytest.raises(InputError, match="delta"):
            tw.run(made, policy="dps-paper", params={"delta": wrong})


def test_an_error_of_zero_changes_nothing_and_another_changes_what_happens_but_not_what_is_asked_first() -> (
    None
):
    known = drawn("balanced", 1)
    same = uncertain("balanced", 1, 0.0)
    assert (same.spread == np.maximum(known.spread, 1)).all()
    wrong = uncertain("balanced", 1, 1.0)
    assert 0.9 < float(np.mean(wrong.spread) / np.mean(known.spread)) < 1.1
    told, blind = learn(wrong, 1, known)[0].outcome, learn(known, 1)[0].outcome
    assert told.payment[0] == blind.payment[0], "the price of the first job depends on what is expected only"
    assert told.profit != blind.profit


@pytest.mark.parametrize(
    ("values", "wanted"),
    [((10.0, 20.0, 40.0), 1.0), ((10.0, 10.0, 10.0), 0.0), ((9.0, 5.0, -1.0), -math.inf)],
)
def test_the_slope_of_the_regret(values: tuple[float, ...], wanted: float) -> None:
    rows: list[Row] = [
        {"policy": "dps", "grows": "jobs", "size": 2.0**i, "share": v} for i, v in enumerate(values, start=3)
    ]
    assert slope(rows, "dps", "jobs") == pytest.approx(wanted, abs=1e-9)

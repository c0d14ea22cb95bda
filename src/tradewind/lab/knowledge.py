"""What knowing the future is worth: the same scenarios decided with more or less of it. Not in the papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from tradewind.engine import bounds
from tradewind.lab.study import Chart, Claim, Effort, Judged, PaperFigure, Part, Pieces, Row, spread
from tradewind.model.scenario import Scenario
from tradewind.registry import policies, workloads
from tradewind.systems.mlbroker.bound.exact import exact, look_ahead
from tradewind.worlds.simulate import simulate

NONE, LEARNED, KNOWN = "none", "learned", "known"
AHEAD, NODES = 2, 1_500
"""Slots of a forecast, and nodes of branch and bound."""
LITTLE = 0.05
"""Share of the profit that not knowing horizon and job counts may cost."""


def _value(scenario: Scenario, policy: str, seed: int, **params: str) -> float:
    return simulate(scenario, policies.find(policy), params, seed=seed).value


def mlbroker_of(effort: Effort, seed: int, **family: str | float | bool) -> dict[str, float]:
    """Optimum / cost of small scenarios, decided slot by slot with an exact program, and by the policy."""
    size = {"sites": 3, "slots": effort.pick(4, 5), "jobs_per_slot": 8.0}
    given = workloads.generate("mlbroker", {**size, **family}, seed)
    costs = {
        NONE: look_ahead(given, 0, NODES),
        LEARNED: look_ahead(given, AHEAD, NODES, known=False),
        KNOWN: look_ahead(given, AHEAD, NODES),
        "policy mlbroker": _value(given, "mlbroker", seed),
    }
    best = exact(given, NODES).bound
    return {knowledge: best / cost if cost else 1.0 for knowledge, cost in costs.items()}


def dps_of(effort: Effort, seed: int, market: str) -> dict[str, float]:
    """Profit of `dps` without knowledge of the horizon and of the jobs to come, over that with it."""
    size = effort.pick({"jobs": 800, "slots": 800}, {"jobs": 10_000, "slots": 10_000})
    given = workloads.generate("dps", {**size, "market": market}, seed)
    setup = replace(given.setup, window_slots=given.setup.slots, forecast={})
    unknown = replace(given, setup=setup)
    return {LEARNED: _value(unknown, "dps", seed) / _value(given, "dps", seed), KNOWN: 1.0}


def eris_of(effort: Effort, seed: int, size: str) -> dict[str, float]:
    """Share of the bound of `eris` with no floor, one learned from the bids so far, and one from other days."""
    del effort
    given = workloads.generate("eris", {"size": size}, seed)
    top = bounds.bound(given)
    assert top is not None
    floors = {NONE: "none", LEARNED: "learned", KNOWN: "auto"}
    return {
        knowledge: _value(given, "eris", seed, floor=floor) / top.value for knowledge, floor in floors.items()
    }


CASES = {
    "mlbroker deploy": partial(mlbroker_of, family="deploy"),
    "mlbroker rotating": partial(mlbroker_of, family="cpu", deploy_scale=5.0, rotating=True),
    "dps balanced": partial(dps_of, market="balanced"),
    "dps saturated": partial(dps_of, market="saturated"),
    "eris contended": partial(eris_of, size="contended"),
}


def case_rows(effort: Effort, case: str) -> list[Row]:
    """A row per seed and kind of knowledge; `of known`: over the share of the same seed with knowledge."""
    rows: list[Row] = []
    for seed in range(1, 1 + min(effort.seeds, effort.pick(3, 10))):
        found = CASES[case](effort, seed)
        rows += [
            {"case": case, "knowledge": k, "share": v, "of known": v / found[KNOWN]} for k, v in found.items()
        ]
    return rows


def join(effort: Effort, parts: Sequence[Sequence[Row]]) -> list[Row]:
    """Means over the seeds."""
    del effort
    rows = [row for part in parts for row in part]
    of_known = spread(rows, ("case", "knowledge"), "of known")
    return [
        {**r, "of known": m["of known"], "of known low": m["low"], "of known high": m["high"]}
        for r, m in zip(spread(rows, ("case", "knowledge"), "share"), of_known, strict=True)
    ]


def parts(effort: Effort) -> list[Part]:
    """One per case."""
    del effort
    return [Part(name=case, rows=partial(case_rows, case=case)) for case in CASES]


def rows(effort: Effort) -> list[Row]:
    """The whole table."""
    return join(effort, [part.rows(effort) for part in parts(effort)])


def _found(table: Sequence[Row], case: str) -> dict[str, Row]:
    return {str(r["knowledge"]): r for r in table if r["case"] == case}


def _text(found: dict[str, Row]) -> str:
    return ", ".join(
        f"{k} {float(r['share']):.3f} ({float(r['low']):.3f} to {float(r['high']):.3f})"
        for k, r in found.items()
    )


def gains(case: str, table: Sequence[Row], policy: str) -> Judged:
    """What was learned beats no knowledge: its interval lies above that without."""
    del policy
    found = _found(table, case)
    return Judged(float(found[LEARNED]["low"]) > float(found[NONE]["high"]), f"{case}: {_text(found)}")


def suffices(case: str, table: Sequence[Row], policy: str) -> Judged:
    """What was learned is within a twentieth of what knowledge earns, at the lower end of the interval over seeds."""
    del policy
    found = _found(table, case)
    ratio = found[LEARNED]
    words = f"{float(ratio['of known']):.3f} ({float(ratio['of known low']):.3f} to {float(ratio['of known high']):.3f})"
    return Judged(
        float(ratio["of known low"]) >= 1 - LITTLE, f"{case}: {words} of what knowledge earns; {_text(found)}"
    )


FIGURE = PaperFigure(
    name="knowledge",
    title="What knowing the future is worth",
    claims=(
        *(
            Claim(
                name=case,
                words=f"Ours: {where}, a forecast that repeats the present for two slots saves cost.",
                holds=partial(gains, case),
                ours="mlbroker",
            )
            for case, where in (
                ("mlbroker deploy", "where deployment is dear"),
                ("mlbroker rotating", "where data also moves from site to site"),
            )
        ),
        *(
            Claim(
                name=case,
                words="Ours: dps without known horizon and job counts earns at least 95% of what it earns with them.",
                holds=partial(suffices, case),
                ours="dps",
            )
            for case in ("dps balanced", "dps saturated")
        ),
        Claim(
            name="eris contended",
            words="Ours: a floor learned from the bids so far earns more than none.",
            holds=partial(gains, "eris contended"),
            ours="eris",
        ),
    ),
    rows=rows,
    pieces=Pieces(parts=parts, join=join),
    chart=Chart(x="case", y="share", series="knowledge", low="low", high="high", kind="bar"),
)

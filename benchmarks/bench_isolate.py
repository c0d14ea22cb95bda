"""What a process of its own costs a policy (`--isolate`): us per decision with and without, and seconds to start."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from tradewind import api
from tradewind.engine.isolation.policy import isolated
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.registry import policies
from tradewind.worlds.simulate import make_policy, simulate

CASES: tuple[tuple[str, str, dict[str, Any], int], ...] = (
    ("fifo", "cluster", {"jobs": 2000}, 400),
    ("las", "cluster", {"jobs": 2000}, 400),
    ("eris", "eris", {}, 3000),
    ("gadget", "gadget", {}, 10_000),
)
"""Policy, workload, its parameters, and the most microseconds that a decision may take longer."""


def decide_us(data: Scenario, spec: Spec) -> float:
    """Median time of a decision or quote as the session sees it."""
    run = simulate(data, spec)
    assert run.timings is not None
    return run.timings.decide_p50 * 1e6


def rows() -> list[dict[str, Any]]:
    """More time per decision, for each case, and the time to start."""
    found: list[dict[str, Any]] = []
    for name, workload, params, target in CASES:
        data, spec = api.generate(workload, **params), policies.find(name)
        simulate(data, spec)  # compiles
        alone, beside = decide_us(data, isolated(name)), decide_us(data, spec)
        note = f"{beside:,.1f} us in process, {alone:,.1f} us isolated: {alone / beside:,.1f} times"
        row = {"name": f"{name}: longer decision", "measured": alone - beside, "unit": "us, median"}
        found.append(row | {"target": target, "better": "lower", "note": note})
    data = api.generate("cluster", jobs=30)
    begin = perf_counter()
    make_policy(data, isolated("fifo"), {}, 0)
    row = {"name": "start of a policy", "measured": perf_counter() - begin, "unit": "s"}
    found.append(row | {"target": 3.0, "better": "lower"})
    return found

"""Open horizon: what a slot costs after 100,000 slots, against the first 1,000, at the same load.

A block of slots is drawn once and repeated, so that every block brings the same jobs; policies plan in a rolling window, and
the session drops what is over. Per policy three ratios, last block over first: CPU time of the policy per slot, bytes of
`save()`, and bytes in memory that the policy reaches.
"""

from __future__ import annotations

import gc
import sys
import time
from dataclasses import dataclass, replace
from types import FunctionType, ModuleType
from typing import Any, cast

from tradewind.engine.session import Session
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.spec import Spec
from tradewind.model.view import Policy
from tradewind.registry import policies, workloads
from tradewind.testing.endless import endless_run

Row = dict[str, Any]
BLOCK = 1000
BLOCKS = 100
MARKETS: dict[str, tuple[str, dict[str, Any], int, tuple[str, ...]]] = {
    "eris": (
        "eris",
        {"sites": 6, "jobs": 1000, "gpu": 2.0, "chunks_per_worker": 12.0, "forecast": False},
        40,
        ("eris", "eris-paper", "eris-preemptive"),
    ),
    "dps": ("dps", {"jobs": 4000, "servers": 10, "worker_types": 3, "server_types": 2}, 100, ("dps",)),
    "gadget": ("gadget", {"servers": 6, "jobs": 150}, 40, ("gadget", "gadget-paper")),
    "mlbroker": ("mlbroker", {"sites": 4, "jobs_per_slot": 3.0}, 10, ("mlbroker", "mlbroker-paper")),
}
"""System -> workload, its parameters for a block of 1,000 slots, window in slots, policies."""
CALLS = ("decide", "quote")
"""Methods of a policy that are timed."""
PER_SLOT = ("jobs",)
"""Parameters that grow with the length of a block."""
TIME, SIZE = 1.3, 1.1
"""Largest ratios of time, and of bytes saved or held."""
SAMPLES = 10
"""Samples of bytes in a block, of which the largest counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one block: CPU seconds of the policy per slot, largest saved state and largest memory in bytes."""

    cpu_s: float
    saved: int
    held: int


def block(system: str, slots: int = BLOCK) -> Scenario:
    """A block of a system's market, with its window."""
    workload, params, window, _ = MARKETS[system]
    scaled = {k: round(v * slots / BLOCK) if k in PER_SLOT else v for k, v in params.items()}
    scenario = workloads.generate(workload, scaled | {"slots": slots}, 1)
    return replace(scenario, setup=replace(scenario.setup, window_slots=window))


class Timed:
    """A policy whose CPU time is counted."""

    def __init__(self, policy: Any) -> None:
        self.policy, self.cpu_s = policy, 0.0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.policy, name)
        if name not in CALLS:
            return method

        def call(*given: Any) -> Any:
            begin = time.thread_time()
            try:
                return method(*given)
            finally:
                self.cpu_s += time.thread_time() - begin

        return call


def held_bytes(policy: Any) -> int:
    """Bytes of all objects that a policy reaches, without the setup and code."""
    seen: dict[int, Any] = {}
    queue = [policy]
    while queue:
        each = queue.pop()
        if id(each) in seen or isinstance(each, type | ModuleType | FunctionType | Setup):
            continue
        seen[id(each)] = each
        queue += gc.get_referents(each)
    return sum(sys.getsizeof(each) for each in seen.values())


def costs(spec: Spec, scenario: Scenario, times: int) -> list[Cost]:
    """What each of so many repetitions costs the policy; every instant is audited, and what is over is dropped."""
    slots, jobs = scenario.setup.slots, len(scenario.jobs) * times
    timed = replace(spec, factory=lambda *given: cast(Policy, Timed(spec.factory(*given))))
    found: list[Cost] = []
    saved, held = list[int](), list[int]()
    for session in endless_run(timed, scenario, jobs, lambda _: None, slots):
        if not isinstance(session, Session):
            break
        policy, past = cast(Timed, session.policy), session.ledger.slot - slots * len(found)
        if past * SAMPLES >= slots * (len(saved) + 1):
            saved.append(len(policy.save()))
            held.append(held_bytes(policy.policy))
        if past >= slots:
            found.append(Cost(cpu_s=policy.cpu_s / slots, saved=max(saved), held=max(held)))
            policy.cpu_s, saved, held = 0.0, [], []
    return found[:times]


def rows() -> list[Row]:
    """One row per policy and kind of cost."""
    found: list[Row] = []
    for system, (_, _, window, names) in MARKETS.items():
        one = block(system)
        for name in names:
            spec = policies.find(name)
            costs(spec, one, 1)  # compiles
            each = costs(spec, one, BLOCKS)
            first, last = each[0], each[-1]
            about = f"{name}, window {window}: {{}} of block {BLOCKS} / block 1"
            ms = f"{1000 * first.cpu_s:.3g} and {1000 * last.cpu_s:.3g} ms"
            for what, ratio, target, note in (
                ("time per slot", last.cpu_s / first.cpu_s, TIME, ms),
                ("bytes saved", last.saved / first.saved, SIZE, f"{first.saved} and {last.saved}"),
                ("bytes held", last.held / first.held, SIZE, f"{first.held} and {last.held}"),
            ):
                found.append({
                    "name": about.format(what), "measured": ratio, "target": target, "better": "lower", "note": note,
                })  # fmt: skip
    return found

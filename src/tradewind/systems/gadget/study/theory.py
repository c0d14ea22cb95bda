"""The constants of GADGET's theorems on the slots and runs of the study, beside what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import NamedTuple

from tradewind.engine import bounds
from tradewind.lab.study import Effort, Instance, Theorem
from tradewind.model.scenario import Scenario
from tradewind.systems.gadget.study.ratio import CASES, slots_in
from tradewind.systems.gadget.study.runs import made, played, seeds_of
from tradewind.systems.gadget.study.slots import SlotFound, solved_slots

NOT_CONCAVE = "; the utility is not concave, as the proofs assume"


@cache
def _slots(effort: Effort, case: str, seed: int) -> tuple[SlotFound, ...]:
    return tuple(slots_in(effort, case, seed))


def _per_case(
    of: Callable[[SlotFound], tuple[float, float]], lower: bool, effort: Effort
) -> Iterator[Instance]:
    """The slot of every case and seed with the least slack between measured and constant."""
    for case in CASES:
        for seed in seeds_of(effort, 3):
            if slots := _slots(effort, case, seed):
                pairs = [of(f) for f in slots]
                constant, measured = min(
                    pairs, key=lambda p: (p[1] / p[0]) if lower else (p[0] / max(p[1], 1e-9))
                )
                within = all(m >= c if lower else m <= c for c, m in pairs)
                note = f"the worst of {len(pairs)} slots"
                if "sigmoid" in case:
                    note += NOT_CONCAVE
                yield Instance(f"{case}, seed {seed}", constant, measured, within, note)


class Whole(NamedTuple):
    """A whole run of gadget-paper: its share of the offline bound, and the largest Gamma of its slots."""

    name: str
    scenario: Scenario
    seed: int
    share: float
    widest: int


@cache
def _whole(effort: Effort, case: str, seed: int) -> Whole:
    family, utility = case.split()
    given = made(effort, seed, family=family, utility=utility, **effort.pick({}, {"slots": 60, "jobs": 600}))
    bound = bounds.bound(given)
    assert bound is not None
    run = played(given, "gadget-paper", seed)
    widest = max(c["data"]["widest"] for c in run.certificates)
    return Whole(f"{case}, seed {seed}", given, seed, run.metrics["utility"] / bound.value, widest)


def _runs(effort: Effort) -> Iterator[Whole]:
    """A run of every case and seed."""
    return (_whole(effort, case, seed) for case in CASES for seed in seeds_of(effort, 3))


def _greedy(effort: Effort) -> Iterator[Instance]:
    """Whole runs against alpha / (alpha + 1), with the least alpha among slots whose optimum is known."""
    for one in _runs(effort):
        if slots := solved_slots(one.scenario, one.seed, 6):
            alpha = min(1.0, *(f.printed.value / f.optimum for f in slots))
            note = f"alpha {alpha:.3g}, the least of {len(slots)} slots; of the offline bound"
            if "sigmoid" in one.name:
                note += NOT_CONCAVE
            constant = alpha / (alpha + 1)
            yield Instance(one.name, constant, one.share, one.share >= constant, note)


def _horizon(effort: Effort) -> Iterator[Instance]:
    """Whole runs against the constant of the whole algorithm."""
    for one in _runs(effort):
        note = f"Gamma {one.widest}; of the offline bound, rings cut to fit"
        constant = 1 / (3 * one.widest + 1)
        yield Instance(one.name, constant, one.share, one.share >= constant, note)


THEOREMS = (
    Theorem(
        name="Theorem 6",
        words="Algorithm 1 earns at least alpha / (alpha + 1) of the largest utility, where alpha is the share of a slot's "
        "optimum that is found in it.",
        instances=_greedy,
    ),
    Theorem(
        name="Lemma 7",
        words="Ring selection keeps at least 1 / Gamma of the optimum of a slot, where Gamma is the largest relaxed number "
        "of workers; measured: the LP with the selected sizes over the optimum.",
        instances=partial(_per_case, lambda f: (1 / f.printed.widest, f.printed.lp / f.optimum), True),
    ),
    Theorem(
        name="Theorem 8, worth",
        words="LP-RS-MDE achieves a third of the optimum of (12); measured: the rounding as printed, which uses more than "
        "there is.",
        instances=partial(_per_case, lambda f: (1 / 3, f.printed.raw_value / f.optimum), True),
    ),
    Theorem(
        name="Theorem 8, servers",
        words="Most likely a rounding uses less than beta times the resources of any server; measured: use / capacity.",
        instances=partial(
            _per_case, lambda f: (float(f.printed.allowed.beta.max()), f.printed.raw_room), False
        ),
    ),
    Theorem(
        name="Theorem 8, links",
        words="Most likely a rounding uses less than gamma times the bandwidth of any link; measured: use / capacity.",
        instances=partial(_per_case, lambda f: (f.printed.allowed.gamma, f.printed.raw_links), False),
    ),
    Theorem(
        name="Theorem 10",
        words="GADGET earns at least 1 / (3 Gamma + 1) of the largest utility.",
        instances=_horizon,
    ),
)

"""`make library`: tries policies, parameters, seeds and offline solvers on every instance, and keeps what is better.

An attempt is a line of text that gives the same run wherever it is repeated: `srsf`, `mlbroker rounds=6`, `offline 2`. What
it gave is saved in the work folder, so that a search goes on where it stopped. A row never gets worse.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from tradewind.engine.fit import mismatch
from tradewind.files import atomic
from tradewind.lab.library.table import TABLE, Instance, Library, read, write
from tradewind.lab.library.verdict import judge
from tradewind.model.errors import InputError, TradewindError
from tradewind.model.result import CLOSED, Run
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Param, Spec
from tradewind.registry import policies, systems
from tradewind.report.optimum import certified_bound, plan_of, run_of
from tradewind.tasks.pool import PoolTask, Where, run_tasks
from tradewind.worlds.simulate import simulate

BOUND, OFFLINE = "bound", "offline"
"""Attempts that are no policy: the system's bound, and its offline solver with an effort."""
LARGE = 1000
"""Instances with more jobs are not searched over parameters and seeds below level 3."""


class Attempt(NamedTuple):
    """What an attempt gave: a value, a bound, or the reason why it gave neither."""

    value: float | None = None
    bound: float | None = None
    why: str = ""


# ---------------------------------------------------------------------- one attempt
def solve(scenario: Scenario, text: str) -> tuple[Run | None, float | None]:
    """The run of an attempt, and the bound that it proves; each None where there is none."""
    name, *rest = text.split()
    if name == BOUND:
        return None, certified_bound(scenario)
    if name == OFFLINE:
        plan = plan_of(scenario, effort := int(rest[0]))
        return run_of(scenario, plan, effort), None if plan is None else plan.bound
    given = dict(each.split("=", 1) for each in rest)
    seed = int(given.pop("seed", 0))
    return simulate(scenario, policies.get(name), given, seed=seed), None


def again(instance: Instance) -> Run:
    """The best known run of an instance, made again; an error where a person found it."""
    try:
        run, _ = solve(instance.scenario(), instance.found_by)
    except (InputError, ValueError, IndexError):
        run = None
    if run is None:
        raise InputError(
            f"its best value was found by {instance.found_by or 'nobody yet'}, which cannot be repeated here",
            where=instance.name,
        )
    return run


def remade(instance: Instance, run: Run) -> str:
    """How a run made again differs from the table, as a sentence; empty if it does not."""
    if instance.value is None or run.value == instance.value:
        return ""
    better = instance.beats(run.value, instance.value)
    return (
        f"the table has {instance.value!r}, which is {'worse' if better else 'better'}: the code has changed since; "
        + ("`tradewind library improve` enters it" if better else "that run cannot be made again here")
    )


# ---------------------------------------------------------------------- which attempts
def attempts(instance: Instance, scenario: Scenario, level: int) -> list[str]:
    """Attempts of a level, in the order in which they are tried.

    1  the bound, the offline solver, every policy that fits, as it is
    2  more effort; on instances that are not LARGE our policies with each parameter changed, and two more seeds
    3  more effort still; every policy with each parameter changed, and eight more seeds
    """
    fitting = [spec for spec in policies.all() if not mismatch(spec, scenario)]
    ours = {name for system in systems().values() for name in system.ours}
    found = [BOUND, *(f"{OFFLINE} {n}" for n in range(1, level + 1)), *(spec.name for spec in fitting)]
    for step in range(2, level + 1):
        if step == 2 and instance.jobs > LARGE:
            continue
        for spec in fitting:
            if step > 2 or spec.name in ours:
                found += [f"{spec.name} {change}" for change in _changes(spec)]
                found += [f"{spec.name} seed={n}" for n in range(1, 3 if step == 2 else 9)]
    return list(dict.fromkeys(found))


def _changes(spec: Spec) -> Iterator[str]:
    """`name=value`: every other choice, numbers halved and doubled."""
    for name, param in spec.params.items():
        for value in _others(param):
            yield f"{name}={value}"


def _others(param: Param) -> list[Any]:
    default = param.default
    if param.choices:
        return [choice for choice in param.choices if choice != default]
    if isinstance(default, bool):
        return [not default]
    if not isinstance(default, int | float) or not default:
        return []
    kind = type(default)
    both = [kind(default / 2), kind(default * 2)]
    low, high = param.least, param.most
    return [v for v in both if v != default and (low is None or v >= low) and (high is None or v <= high)]


# ---------------------------------------------------------------------- the search
@lru_cache(maxsize=1)
def _scenario(instance: Instance) -> Scenario:
    return instance.scenario()


def search(instance: Instance, level: int, work: Path) -> Instance:
    """The row after all attempts of a level; those saved in the work folder are not repeated."""
    bare = replace(instance, value=None, found_by="", bound=None, bound_by="")
    saved = work / f"{instance.name}.json"
    tried = _read(saved, instance.hash)
    row = instance
    for text in attempts(instance, _scenario(bare), level):
        if row.closed:
            break
        known = tried.get(text)
        if known is None:
            known, row = _try(row, _scenario(bare), text)
            tried[text] = known
            atomic.write_text(saved, json.dumps({"hash": instance.hash, "tried": tried}, indent=1))
        elif _improves(row, Attempt(*known)):
            _, row = _try(row, _scenario(bare), text)
    return row


def _read(saved: Path, hash_: str) -> dict[str, Attempt]:
    """Saved attempts on a scenario."""
    if not saved.exists():
        return {}
    data = json.loads(saved.read_text())
    return {text: Attempt(*row) for text, row in data["tried"].items()} if data["hash"] == hash_ else {}


def _improves(row: Instance, known: Attempt) -> bool:
    better = known.value is not None and row.beats(known.value, row.value)
    return better or (known.bound is not None and row.tightens(known.bound))


def _try(row: Instance, scenario: Scenario, text: str) -> tuple[Attempt, Instance]:
    """What an attempt gives, and the row with it."""
    try:
        run, bound = solve(scenario, text)
    except TradewindError as error:
        return Attempt(why=str(error)[:300]), row
    if bound is not None and row.tightens(bound):
        row = replace(row, bound=bound, bound_by=text)
        _check(row)
    if run is None:
        return Attempt(bound=bound), row
    verdict = judge(row, scenario, run)
    if verdict.word == "refused":
        if verdict.gap is not None:
            raise TradewindError(f"{row.name}, {text}: {verdict.reasons[0]}")
        return Attempt(bound=bound, why="; ".join(verdict.reasons)[:300]), row
    if verdict.word == "new best":
        row = replace(row, value=verdict.value, found_by=text)
    return Attempt(value=verdict.value, bound=bound), row


def _check(row: Instance) -> None:
    """Raise where value and bound contradict each other."""
    if row.gap is not None and row.gap < -CLOSED:
        raise TradewindError(
            f"{row.name}: the value {row.value} of {row.found_by} is better than the bound {row.bound} of {row.bound_by}; "
            "one of them is wrong"
        )


def improve(
    work: Path,
    *,
    table: Path = TABLE,
    level: int = 1,
    only: str = "",
    jobs: int = 1,
    tell: Callable[[Instance, Instance], None] = lambda before, after: None,
) -> tuple[Library, Sequence[str]]:
    """Search every instance whose name contains `only`; writes the table after each. Returns it, and what failed."""
    library = read(table)
    work.mkdir(parents=True, exist_ok=True)
    rows = [i for i in library.instances if only in i.name and not i.closed]
    tasks = [
        PoolTask(name=i.name, group=i.workload, call=search, args=(i, level, work), expected_s=1.0 + i.jobs)
        for i in rows
    ]
    failed = []
    for done in run_tasks(tasks, Where(jobs=jobs)):
        if done.error:
            failed.append(f"{done.task.name}: {done.error}")
            continue
        before = library.find(done.task.name)
        tell(before, done.value)
        if done.value != before:
            library = library.with_row(done.value)
            write(library, table)
    return library, failed

"""The Python API: `import tradewind as tw`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from tradewind import registry
from tradewind.audit import Audit
from tradewind.engine import bounds
from tradewind.engine.accounts import settle
from tradewind.engine.fit import check_fit, check_tenants
from tradewind.engine.instants import instants
from tradewind.engine.isolation.policy import isolated
from tradewind.engine.journal import Journal
from tradewind.engine.ledger import Ledger
from tradewind.engine.loop import Progress
from tradewind.engine.menu import check_slot
from tradewind.engine.state import RunState
from tradewind.files.run_file import load_run, save, source_of
from tradewind.files.scenario_file import dump, load
from tradewind.model.errors import InputError, LookupFailed, RunFileError
from tradewind.model.hash import scenario_hash
from tradewind.model.params import resolve_params
from tradewind.model.result import Bound, Run, Violation, frame_of
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.model.system import System
from tradewind.model.workload import Workload
from tradewind.registry import policies, systems, workloads
from tradewind.report.audited import Audited, Depth, audit_run, with_bills
from tradewind.report.bounds import Bounds
from tradewind.report.life import life_of
from tradewind.report.optimum import Optimum, search
from tradewind.report.simulations import Simulation, bounded, simulated
from tradewind.report.whatif import Difference, difference
from tradewind.tasks.pool import HERE, Where
from tradewind.worlds.period import Period, cut
from tradewind.worlds.simulate import simulate

__all__ = [
    "Comparison",
    "Optimum",
    "WhatIf",
    "Where",
    "audit",
    "bound",
    "check",
    "compare",
    "dump",
    "generate",
    "load",
    "load_run",
    "optimum",
    "period",
    "replay",
    "run",
    "save",
    "whatif",
    "with_bills",
]


SHOWN = 3
"""Runs of a comparison that its short form shows."""


class Explained(Protocol):
    """An explanation: lines for people, plain data for machines."""

    @property
    def lines(self) -> Sequence[str]: ...

    def as_json(self) -> dict[str, Any]: ...


def generate(workload: str | Workload, *, seed: int = 0, **params: Any) -> Scenario:
    """Makes a scenario: `tw.generate("cluster", jobs=500, seed=1)`. A Workload object or FILE.py:NAME works too."""
    return workloads.generate(workload, params, seed)


def run(
    scenario: Scenario | str | Path,
    policy: str | Spec,
    *,
    seed: int = 0,
    params: Mapping[str, Any] | None = None,
    bound: bool = False,
    isolate: bool = False,
    fast: bool | None = None,
    progress: Progress | None = None,
) -> Run:
    """Runs a policy (name, FILE.py:NAME or Spec) on a scenario or scenario file in the simulated world, audited.

    isolate: run the policy in a confined process of its own, where it can reach nothing but its view (docs/isolation.md).
    fast: by the policy's compiled path, which gives the same run; refused with the reason where it cannot. Without it, large
    scenarios take that path where it can.
    """
    data = _opened(scenario)
    spec = isolated(policy) if isolate else policies.get(policy)
    check_tenants(spec, params or {}, data)
    result = with_bills(data, simulate(data, spec, params, seed=seed, progress=progress, fast=fast), spec)
    return Bounds(data).attach(result) if bound else result


def _system(scenario: Scenario, result: Run) -> System | None:
    """The system of a run's policy; of the scenario's workload where the policy is not registered."""
    if result.policy in policies.entries:
        return systems().get(policies.find(result.policy).system)
    workload = str(scenario.origin.get("workload", ""))
    return next((system for system in systems().values() if workload in system.workloads), None)


def remarks(scenario: Scenario, result: Run) -> list[str]:
    """Sentences that the system adds to a run."""
    system = _system(scenario, result)
    found: list[str] = registry.load(system.remarks)(scenario, result) if system and system.remarks else []
    return found


def explain(scenario: Scenario, result: Run, job: str, slot: int = -1) -> Explained:
    """The life of a job; with a slot, why it was placed as it was there, where its system can say so."""
    if slot < 0:
        return life_of(scenario, result, job)
    check_slot(scenario, slot)
    system = _system(scenario, result)
    if system is None or not system.explain:
        able = ", ".join(name for name, each in systems().items() if each.explain)
        raise InputError(
            f"{result.policy} does not explain single slots; {able} does. Without --slot the whole life of the job is "
            "shown, and `tradewind ranks` shows the rings of a slot"
        )
    explained: Explained = registry.load(system.explain)(scenario, result, job, slot)
    return explained


def bound(scenario: Scenario | str | Path) -> Bound | None:
    """The offline bound of a scenario for its objective; None where none is known."""
    return bounds.bound(_opened(scenario))


def optimum(scenario: Scenario | str | Path, *, effort: int = 1) -> Optimum:
    """What a system's offline solver finds with the future known: `.run`, audited, `.bound`, and whether it is `.proven`.

    Proven means that value and certified bound meet; small instances reach that. More effort searches longer.
    """
    return search(_opened(scenario), effort)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Several policies on the same data: one run per policy and seed, and the scenarios behind them, one per seed.

    bounded  whether the runs were to be held against their bounds
    """

    scenarios: tuple[Scenario, ...]
    runs: tuple[Run, ...]
    bounded: bool = False

    @property
    def pairs(self) -> list[tuple[Scenario, Run]]:
        """Every run with the scenario that was run."""
        return [(self.scenarios[i % len(self.scenarios)], run) for i, run in enumerate(self.runs)]

    def frame(self) -> Any:
        """The table that `tradewind compare -o FILE.csv` writes, one row per run, as a frame of pandas (or polars)."""
        from tradewind.report import comparison_file  # draws: half a second to import

        return frame_of(comparison_file.columns(self.runs))

    def __repr__(self) -> str:
        more = "" if len(self.runs) <= SHOWN else ", …"
        return f"Comparison({len(self.runs)} runs: {', '.join(map(repr, self.runs[:SHOWN]))}{more})"


def compare(
    scenario: Scenario | str | Path | Sequence[Scenario | str | Path],
    policy_names: Sequence[str | Spec],
    *,
    seeds: Sequence[int] = (0,),
    params: Mapping[str, Mapping[str, Any]] | None = None,
    bound: bool = False,
    isolate: bool = False,
    progress: Callable[[str, int], None] | None = None,
    where: Where = HERE,
) -> Comparison:
    """Runs every policy (name, FILE.py:NAME or Spec) on every scenario or file (one, or one per seed) with every seed.

    A name may carry parameters, also several times: `["las", "las:limits=100,1000"]`; params are for all settings of a name.
    Systems that declare rivals `beside` them are always compared with these, and with the bound.
    isolate: run each in a confined process of its own. progress: called with policy and seed of each run that is done.
    where: `tw.Where(jobs=4)` for processes, `tw.Where(on="ray://HOST:PORT")` for a cluster; results are the same.
    """
    if isinstance(seeds, int) or len(seeds) == 0:
        raise InputError(f"seeds: found {seeds!r}; give a list of at least one number, such as range(3)")
    if isinstance(policy_names, str | Spec) or not policy_names:
        raise InputError(f"policies: found {policy_names!r}; give a list of at least one, such as ['las']")
    if isinstance(scenario, Sequence) and not isinstance(scenario, str):
        data = tuple(map(_opened, scenario))
    else:
        data = (_opened(scenario),) * len(seeds)
    if len(data) != len(seeds):
        raise InputError(
            f"scenarios: found {len(data)} with {len(seeds)} seeds; give one scenario, or one for each seed"
        )
    settings = policies.with_rivals(policy_names, isolated if isolate else None)
    _check_params(params or {}, [each.spec.name for each in settings])
    bound = bound or any(s.spec.system in systems() and systems()[s.spec.system].beside for s in settings)
    wanted, whole = [], list[tuple[str, dict[str, Any]]]()
    for spec, own, _ in settings:  # a mismatch is said before the first run
        values = {**(params or {}).get(spec.name, {}), **own}
        setting = (spec.name, resolve_params(spec.name, spec.params, values))
        if setting in whole:  # las and las:tick_s=1: the same twice, which would look like two seeds
            continue
        whole.append(setting)
        for seed, each in zip(seeds, data, strict=True):
            check_fit(spec, each)
            check_tenants(spec, values, each)
            wanted.append(Simulation(scenario=each, spec=spec, params=values, seed=seed))
    runs = simulated(wanted, where, progress)
    if bound:
        runs = bounded([(each.scenario, run) for each, run in zip(wanted, runs, strict=True)], where)
    return Comparison(scenarios=data, runs=tuple(runs), bounded=bound)


def _check_params(params: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse parameters that would not reach any policy."""
    for name, given in params.items():
        if name not in names:
            raise LookupFailed("compared policy, to which params gives parameters,", name, names)
        if not isinstance(given, Mapping):
            raise InputError(
                f"params: found {given!r} for {name}; give its parameters, such as {{'name': value}}"
            )


def _opened(scenario: Scenario | str | Path) -> Scenario:
    if isinstance(scenario, Scenario):
        return scenario
    if not isinstance(scenario, str | Path):
        raise InputError(
            f"scenario: found a {type(scenario).__name__}; give a Scenario or the path of a file"
        )
    return load(Path(scenario))


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """A recorded run, and another policy on the same scenario.

    again  the recorded policy, simulated; only where the recorded run was measured, so that it shows what the model misses
    """

    scenario: Scenario
    recorded: Run
    again: Run | None
    other: Run
    difference: Difference
    notes: tuple[str, ...]

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs: recorded, simulated again, the other."""
        return (self.recorded, *(() if self.again is None else (self.again,)), self.other)

    @property
    def names(self) -> tuple[str, ...]:
        """What to call the runs."""
        names = [f"{self.recorded.policy} (recorded)"] + (
            [f"{self.again.policy} (simulated)"] if self.again else []
        )
        return (*names, self.other.policy)


def whatif(
    scenario: Scenario,
    recorded: Run,
    policy: str | Spec,
    *,
    params: Mapping[str, Any] | None = None,
    seed: int | None = None,
    most: int = 5,
    where: Where = HERE,
) -> WhatIf:
    """Runs another policy on the scenario of a run; says which `most` jobs differ most, and why."""
    if recorded.scenario_hash != scenario_hash(scenario):
        raise RunFileError(
            f"this run does not belong to the scenario {scenario.name!r}; give the one that was run"
        )
    spec, number = policies.get(policy), recorded.seed if seed is None else seed
    wanted, notes = [Simulation(scenario=scenario, spec=spec, params=params, seed=number, bills=False)], []
    if recorded.world == "processes":
        if recorded.policy in policies.entries:
            old = policies.get(recorded.policy)
            wanted.append(replace(wanted[0], spec=old, params=recorded.params, seed=recorded.seed))
        notes.append(
            f"{recorded.policy} was measured and {spec.name} is simulated: part of the difference is what the model misses"
        )
    cancelled = int(recorded.metrics.get("jobs_cancelled", 0))
    if cancelled:
        notes.append(
            f"{cancelled} jobs were cancelled by their owners; under {spec.name} nobody cancels them"
        )
    events = recorded.tables["events"]
    thought = {job for kind, job in zip(events["kind"], events["job"], strict=True) if kind == "quoted"}
    if thought:
        notes.append(
            f"{len(thought)} customers took their time to answer, and were free to; under {spec.name} they answer at once, "
            "by their limits, and take the cheapest offer where they have none"
        )
    other, again = (*simulated(wanted, where), None)[:2]
    assert other is not None
    found = difference(scenario, recorded, other, most)
    return WhatIf(
        scenario=scenario, recorded=recorded, again=again, other=other, difference=found, notes=tuple(notes)
    )


def period(source: str | Path, from_us: int = 0, to_us: int | None = None) -> Period:
    """A period of a store (a file, its directory or a URL) as a scenario and a run; by default all of it."""
    from tradewind.store.history import history
    from tradewind.store.store import Store

    with Store.open(source) as store:
        found = history(store)
        where = store.name
    whole_us = found.scenario.setup.horizon_us if found.closed else found.end_us + 1  # with the last instant
    end_us = whole_us if to_us is None else to_us
    if not found.closed:
        end_us = min(end_us, whole_us)
    if from_us >= end_us:
        raise InputError(
            f"nothing is recorded from {from_us / 1e6:g} s on; it ends at {end_us / 1e6:g} s", where=where
        )
    if found.closed and from_us == 0 and end_us >= whole_us:
        return Period(found.scenario, settle(found.scenario, found.run), ())
    return cut(found.scenario, found.run, from_us, end_us)


def audit(
    scenario: Scenario,
    result: Run,
    policy: str | Spec = "",
    *,
    rerun: bool = False,
    bound: bool = False,
    bills: bool = False,
) -> Audited:
    """Re-checks a run from scratch: every event, offer, answer, decision, metric and header field.

    policy  the policy that was run, where it is not registered; it says whether accepted plans bind
    rerun   run the policy again and compare everything
    bound   compute the bound again, where the run has one; bills: the tenants' bills likewise
    """
    known = policy or (result.policy if result.policy in policies.entries else "")
    depth = Depth(rerun=rerun, bound=bound, bills=bills)
    return audit_run(scenario, result, policies.get(known) if known else None, depth)


def check(scenario: Scenario, result: Run, policy: str | Spec = "") -> tuple[Violation, ...]:
    """The violations that `audit` finds without running anything again."""
    return audit(scenario, result, policy).violations


def scenario_beside(path: Path, result: Run) -> Scenario:
    """The scenario with the run's hash: what the run was made from, else a file beside it or in the current folder."""
    source, given = source_of(path)
    if source and (made := _made_again(path, source, given, result)) is not None:
        return made
    for folder in dict.fromkeys((path.resolve().parent, Path.cwd())):
        for each in sorted(folder.iterdir()):
            if each.suffix in (".json", ".yaml", ".yml") and each != path.resolve() and each.is_file():
                try:
                    scenario = load(each)
                except InputError:
                    continue  # another kind of file
                if scenario_hash(scenario) == result.scenario_hash:
                    return scenario
    raise RunFileError(
        f"no scenario file with hash {result.scenario_hash[:12]}… beside it or in the current folder; "
        "name it with --scenario",
        where=str(path),
    )


def _made_again(path: Path, source: str, given: Mapping[str, str], result: Run) -> Scenario | None:
    """The scenario of a file or workload that a run names; None where it is gone or has become another."""
    try:
        if source in workloads.entries:
            scenario = workloads.generate(source, given, result.seed)
        else:
            scenario = load(path.resolve().parent / source)
    except (InputError, OSError):
        return None
    return scenario if scenario_hash(scenario) == result.scenario_hash else None


def replay(scenario: Scenario, result: Run) -> tuple[Ledger, Run]:
    """Rebuilds the final state and the books from the journal in a run file."""
    audit = Audit(scenario.setup, measured=True)
    state = RunState(Ledger(scenario.setup), audit, Journal(), tolerant=True)  # `check` finds violations
    for instant in instants(scenario, result.tables):
        state.replay(instant)
    return state.ledger, settle(scenario, result)

"""The audit of a run file: every event, decision, result and header field; what it does not check it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import isclose, isnan
from typing import Any, cast

from tradewind import registry
from tradewind.audit import Audit
from tradewind.audit import compare as compare_metrics
from tradewind.audit.attempts import AttemptLedger
from tradewind.audit.order import SAID, out_of_order
from tradewind.audit.placement import check_certificate, is_placement
from tradewind.engine.accounts import settle
from tradewind.engine.fit import mismatch
from tradewind.engine.instants import instants, read_charges
from tradewind.engine.journal import Journal
from tradewind.engine.ledger import Ledger
from tradewind.engine.state import RunState
from tradewind.files.run_file import header_of
from tradewind.model.errors import InputError, RunFileError, TradewindError
from tradewind.model.hash import scenario_hash
from tradewind.model.params import resolve_params
from tradewind.model.result import Run, Violation
from tradewind.model.scenario import Scenario
from tradewind.model.setup import SENSE
from tradewind.model.spec import Spec
from tradewind.registry import systems
from tradewind.report.bounds import NAME as SERVED
from tradewind.report.bounds import Bounds
from tradewind.version import __version__
from tradewind.worlds.simulate import simulate

DERIVED = ("outcomes", "payments", "costs")
"""Tables that follow from the journal."""
CHOSEN = (
    "decisions",
    "verdicts",
    "plans",
    "steps",
    "places",
    "flows",
    "routes",
    "paths",
    "offers",
    "prices",
    "posted",
    "charges",
)
"""Tables of what the policy decided."""
POSTED = ("posted", "prices")
"""Tables of what customers were shown."""
MEASURED = ("attempts", "measurements", "estimates", "alarms", "changes", "shards")
"""Tables of a live run."""
PROSE = ("why", "reason", "refused")
"""Columns for people."""
EXPORTED = ("period_of", "store")
"""Entries of a scenario's origin that say that it was cut out of a longer run, whose attempts are not in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """Result of an audit.

    unchecked  what was not checked: `table.column` or field of the header -> why
    """

    violations: tuple[Violation, ...]
    unchecked: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """What an audit computes again beside the journal.

    rerun    the policy is run again and everything compared
    bound    the offline bound
    bills    the tenants' bills
    binding  accepted plans bind, whatever the policy declares
    """

    rerun: bool = False
    bound: bool = False
    bills: bool = False
    binding: bool = False


def with_bills(scenario: Scenario, result: Run, spec: Spec) -> Run:
    """A run with the `bills` table of its system, where it has one."""
    table = registry.load(systems()[spec.system].bills)(scenario, result) if _has_bills(spec) else None
    return result if table is None else replace(result, tables={**result.tables, "bills": table})


def audit_run(scenario: Scenario, result: Run, spec: Spec | None, depth: Depth) -> Audited:
    """Check a run from scratch. spec: its policy, None where it is unknown."""
    if result.scenario_hash != scenario_hash(scenario):
        raise RunFileError(
            f"this run belongs to the scenario with hash {result.scenario_hash[:12]}…, "
            f"the scenario given has {scenario_hash(scenario)[:12]}…; give the scenario that was run"
        )
    found = _journal(scenario, result, depth.binding or (spec is not None and spec.binding)) or (
        *_header(scenario, result, spec),
        *_compare_tables(settle(scenario, result), result, DERIVED),
        *(_bound(scenario, result) if depth.bound else ()),
        *(_bills(scenario, result, spec) if depth.bills else ()),
        *(_rerun(scenario, result, spec) if depth.rerun else ()),
    )
    if result.violations and not found:
        found = (Violation("header.audit", detail="it lists violations; this audit finds none"),)
    return Audited(violations=tuple(found), unchecked=dict(_unchecked(result, spec, depth)))


# ---------------------------------------------------------------------- the journal
def _journal(scenario: Scenario, result: Run, binding: bool) -> tuple[Violation, ...]:
    """Events, offers, answers, decisions, charges, certificates and metrics."""
    audit = Audit(scenario.setup, scenario, measured=result.world == "processes", binding=binding)
    state = RunState(Ledger(scenario.setup), audit, Journal())
    if result.world == "processes" and not _is_export(scenario, result):
        audit.attempts = AttemptLedger(scenario.setup, result.tables)
        if found := tuple(audit.attempts.form(scenario.jobs)):
            return found
    doubts = [
        *out_of_order(result.tables, scenario.setup.horizon_us),
        *_instants_of_decisions(result),
        *_reasons_of_refusals(result),
    ]
    for instant in instants(scenario, result.tables):
        if found := state.replay(instant):
            return found
        for certificate in result.certificates if instant.decision is not None else ():
            if certificate.get("at_us") == instant.at_us:
                doubts += check_certificate(scenario, certificate, audit.free_bps)
    if found := audit.check_charges(read_charges(result.tables)):
        return found
    report = audit.close()
    found = report.violations + compare_metrics(report.metrics, result.metrics)
    return found or tuple(doubts)


def _instants_of_decisions(result: Run) -> Iterator[Violation]:
    """Decisions are made at the start or when something happened, certificates come with decisions."""
    happened = {0, *result.tables["events"]["at_us"]}
    decided = cast(list[int], result.tables["decisions"]["at_us"])
    for at_us in decided:
        if at_us not in happened:
            yield Violation("time.decision", detail=f"a decision at {at_us} us, when nothing happened")
    for certificate in result.certificates:
        if certificate.get("name") != SERVED and certificate.get("at_us") not in decided:
            detail = f"a certificate at {certificate.get('at_us')} us, where nothing was decided"
            yield Violation("certificate.placement", detail=detail)


def _reasons_of_refusals(result: Run) -> Iterator[Violation]:
    """An answer gives a reason for a refusal exactly if its job is refused."""
    columns = (result.tables["answers"][name] for name in ("at_us", "job", "refused"))
    events = result.tables["events"]
    refused = {
        (at, job)
        for at, kind, job in zip(events["at_us"], events["kind"], events["job"], strict=True)
        if kind == "refused"
    }
    for at_us, job, reason in zip(*columns, strict=True):
        if bool(reason) != ((at_us, job) in refused):
            detail = f"the answer to job {job} at {at_us} us has the reason {reason!r} for a refusal"
            yield Violation("market.refused", detail=f"{detail}; only jobs that are refused have one")


def _compare_tables(ours: Run, theirs: Run, names: tuple[str, ...]) -> Iterator[Violation]:
    """Tables made again and compared: whole numbers exactly, money to nine digits."""
    for name in names:
        mine, other = ours.tables.get(name, {}), theirs.tables.get(name, {})
        for column in {**mine, **other}:
            values, others = mine.get(column, []), other.get(column, [])
            pairs = enumerate(zip(values, others, strict=False))
            row = next((i for i, (a, b) in pairs if not same(a, b)), -1)
            if row >= 0 or len(values) != len(others):
                detail = (
                    f"tables.{name}.{column} differs from what is computed again, first in row {max(row, 0)}"
                )
                yield Violation("ledger.table", detail=detail)


def same(a: Any, b: Any) -> bool:
    """Equal, numbers with a fraction to nine digits."""
    if isinstance(a, float) and isinstance(b, float):
        return isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) or (isnan(a) and isnan(b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


# ---------------------------------------------------------------------- the header
def _header(scenario: Scenario, result: Run, spec: Spec | None) -> Iterator[Violation]:
    """What the header says against the scenario, the declaration of the policy, and the tables."""
    if result.scenario_name != scenario.name:
        yield _wrong("scenario_name", result.scenario_name, scenario.name)
    if result.objective != scenario.setup.objective:
        yield _wrong("objective", result.objective, scenario.setup.objective)
    for name in sorted(set(result.metrics) - set(settle(scenario, result).metrics)):
        yield Violation("header.metrics", detail=f"{name} is not a metric of this run")
    if spec is not None:
        if why := mismatch(spec, scenario):
            yield Violation("header.policy", detail=why)
        try:
            resolve_params(spec.name, spec.params, result.params)
        except InputError as error:
            yield Violation("header.params", detail=str(error))
        if not spec.pricer and result.tables["answers"]["job"]:
            yield Violation("header.policy", detail=f"the run has quotes; {spec.name} makes none")
    if (bound := result.bound) is not None:
        sense, ratio = SENSE[result.objective], result.value / bound.value if bound.value else bound.ratio
        if bound.sense != sense or not same(bound.ratio, ratio):
            detail = f"sense {bound.sense} and ratio {bound.ratio}; they must be {sense} and {ratio}"
            yield Violation("header.bound", detail=detail)
    yield from _world(result)


def _wrong(field: str, found: str, expected: str) -> Violation:
    return Violation(f"header.{field}", detail=f"it is {found!r}; the scenario has {expected!r}")


def _world(result: Run) -> Iterator[Violation]:
    """A simulated run has no attempts; those of a measured run are checked with its journal."""
    if result.world == "simulated" and result.tables.get("attempts", {}).get("job"):
        yield Violation("header.world", detail="it is simulated, but the run has attempts")
    if result.world == "simulated" and result.fleet:
        yield Violation(
            "header.fleet", detail=f"it is simulated, but the run names the cluster {result.fleet!r}"
        )


def _is_export(scenario: Scenario, result: Run) -> bool:
    """Whether a run was cut out of a longer one, whose attempts are not in the file."""
    exported = any(name in scenario.origin for name in EXPORTED)
    return exported and not result.tables.get("attempts", {}).get("job")


# ---------------------------------------------------------------------- computed again
def _bound(scenario: Scenario, result: Run) -> Iterator[Violation]:
    """The bound and that of the served jobs, where the run has one."""
    bare = replace(result, bound=None, certificates=_without_served(result))
    again = Bounds(scenario).attach(bare)
    if result.bound is not None and not same(_plain(again, "bound"), _plain(result, "bound")):
        detail = f"it is {_plain(result, 'bound')}; computed again it is {_plain(again, 'bound')}"
        yield Violation("header.bound", detail=detail)
    if len(bare.certificates) < len(result.certificates) and not same(
        _plain(again, "certificates"), _plain(result, "certificates")
    ):
        yield Violation(
            "header.certificates", detail="the bound of the served jobs differs from that computed again"
        )


def _without_served(result: Run) -> tuple[Mapping[str, Any], ...]:
    return tuple(each for each in result.certificates if each.get("name") != SERVED)


def _plain(result: Run, field: str) -> Any:
    return header_of(result)[field]


def _bills(scenario: Scenario, result: Run, spec: Spec | None) -> Iterator[Violation]:
    """The table of bills, where the run has one or should have."""
    if spec is None:
        if not _has(result, "bills"):
            return
        raise InputError(f"the bills cannot be computed again: {_unknown(result)}")
    bare = replace(result, tables={**result.tables, "bills": {}})
    yield from _compare_tables(with_bills(scenario, bare, spec), result, ("bills",))


def _has(result: Run, table: str) -> bool:
    """Whether a table of a run has rows."""
    return any(result.tables.get(table, {}).values())


def _columns(result: Run, table: str) -> tuple[str, ...]:
    """What of a table is named: its columns, or that it may have lost its rows."""
    return tuple(result.tables.get(table, ())) if _has(result, table) else ("rows",)


def _has_bills(spec: Spec | None) -> bool:
    system = systems().get(spec.system) if spec is not None else None
    return system is not None and bool(system.bills)


def _unknown(result: Run) -> str:
    return f"the policy {result.policy!r} is not registered; name it with --policy FILE.py:NAME"


def _happened_once(result: Run) -> str:
    """Why a run cannot be repeated: what happened in it follows from no scenario."""
    kinds: Any = result.tables["events"]["kind"]
    if result.world != "simulated":
        return "it was measured"
    if "quoted" in kinds:
        return "its customers thought about their quotes"
    if "cancelled" in kinds:
        return "customers withdrew their jobs"
    return "nodes or links failed without a script" if result.tables.get("changes", {}).get("kind") else ""


def _rerun(scenario: Scenario, result: Run, spec: Spec | None) -> Iterator[Violation]:
    """The same policy, parameters and seed on the same scenario give the same run."""
    if why := _happened_once(result):
        raise InputError(f"the run cannot be repeated: {why}; audit it without --rerun")
    if spec is None:
        raise InputError(f"the run cannot be repeated: {_unknown(result)}")
    if result.seed < 0:
        yield Violation("header.seed", detail=f"it is {result.seed}; it must be 0 or more")
        return
    try:
        again = with_bills(scenario, simulate(scenario, spec, result.params, seed=result.seed), spec)
    except TradewindError as error:
        yield Violation("rerun.policy", detail=f"{spec.name} does not run again: {error}")
        return
    written = (
        ""
        if result.version == __version__
        else f"; the file was written by version {result.version}, this is {__version__}"
    )
    bare = replace(result, certificates=_without_served(result))
    for field in ("policy", "params", "seed", "metrics", "certificates"):
        if not same(_plain(again, field), _plain(bare, field)):
            yield Violation(f"rerun.{field}", detail=f"{field} of a new run differs{written}")
    for each in _compare_tables(again, result, tuple({**again.tables, **result.tables})):
        yield each._replace(rule="rerun.table", detail=each.detail + written)


# ---------------------------------------------------------------------- what is left
def _unchecked(result: Run, spec: Spec | None, depth: Depth) -> Iterator[tuple[str, str]]:
    """What this audit does not check, and why."""
    if depth.rerun:
        for field in ("policy", "params", "seed"):
            yield field, "another policy, parameter or seed that gives the very same run passes"
        yield "version", "which version wrote the file cannot be told from its contents"
    else:
        yield from _only_by_rerun(result, spec)
    if result.bound is not None and not depth.bound:
        yield "bound", "value and kind are not computed again; --bound does"
    if any(each.get("name") == SERVED for each in result.certificates) and not depth.bound:
        yield "certificates", "the bound of the served jobs is not computed again; --bound does"
    if not (depth.bills or depth.rerun) and (_has(result, "bills") or _has_bills(spec)):
        for column in _columns(result, "bills"):
            yield f"bills.{column}", "not computed again; --bills does"
    said = {str(kind) for kind in result.tables["events"]["kind"]} & set(SAID)
    for table in ("events", "answers") if said - {"expired"} else ():
        if _has(result, table):
            yield (
                f"{table}.at_us",
                "when customers answered or withdrew: any time at which that was possible passes",
            )
    if said:
        yield "events.order", "in which order customers said something within a microsecond"
    if said - {"cancelled"}:
        yield "events.rows", "an answer to a quote that is closed, or its expiry, changes nothing"
    simulated = result.tables.get("estimates", {}) if result.world != "processes" else {}
    for column in simulated:
        yield f"estimates.{column}", "only the ratio of seconds to declared_s is known in a simulated world"
    if result.world == "processes":
        yield (
            "world",
            "completions and progress of fixed jobs and rounds are measured: only their limits are checked",
        )
        if result.fleet:
            yield "fleet", "on which cluster ranks ran is what the loop was told"
        yield "events.at_us", "when ranks ended is measured: after their start, and before the next event"
        yield "events.value", "progress of fixed jobs and rounds is measured: between nothing and all"
        for table in MEASURED:
            for column in _columns(result, table):
                yield (
                    f"{table}.{column}",
                    "measured by the run itself, as far as it does not follow from plans",
                )


def _only_by_rerun(result: Run, spec: Spec | None) -> Iterator[tuple[str, str]]:
    """What only a second run of the policy can show."""
    can = "" if _happened_once(result) else "; --rerun compares it with a new run"
    unknown = "" if spec is not None else ", which is not registered: it may have sold plans that bind"
    yield "policy", f"not that this policy decided so{unknown}{can}"
    yield "params", f"names and ranges only{can}"
    yield "seed", f"not used by the audit{can}"
    yield "version", "which version wrote the file cannot be told from its contents"
    if result.certificates:
        kinds = (
            "a weaker bound passes" if all(map(is_placement, result.certificates)) else "no proof is given"
        )
        yield "certificates", f"{kinds}{can}"
    for table in (*CHOSEN, "answers"):
        for column, values in result.tables.get(table, {}).items():
            if not values:
                continue
            if column in PROSE:
                yield f"{table}.{column}", f"words for people{can}"
            elif (table, column) == ("steps", "usd"):
                yield "steps.usd", f"the policy's own estimate; no result depends on it{can}"
            elif table in CHOSEN:
                yield (
                    f"{table}.{column}",
                    f"a choice that keeps all rules passes, with the results that follow from it{can}",
                )
    for table in POSTED if _has(result, "answers") else ():
        if not _has(result, table):
            yield f"{table}.rows", f"no result depends on them, so all may be missing{can}"

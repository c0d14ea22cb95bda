"""What the commands print about policies, workloads and checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from tradewind.cli.show import print_json
from tradewind.cli.terminal import open_console
from tradewind.model.spec import Param, Spec
from tradewind.registry import broken, systems

if TYPE_CHECKING:
    from tradewind.model.workload import Workload
    from tradewind.testing.contract import CheckResult


def _params(params: Mapping[str, Param]) -> dict[str, Any]:
    return {
        name: {
            "default": param.default,
            "doc": param.doc,
            **({"choices": list(param.choices)} if param.choices else {}),
            **({"allowed": param.range} if param.range else {}),
        }
        for name, param in params.items()
    }


def policy_as_json(spec: Spec) -> dict[str, Any]:
    """A policy as plain data."""
    return {
        "name": spec.name,
        "summary": spec.summary,
        "system": spec.system,
        "works": sorted(spec.works),
        "architectures": sorted(spec.architectures),
        "objectives": sorted(spec.objectives),
        "needs": sorted(spec.needs),
        "pricer": spec.pricer,
        "online": spec.online,
        "params": _params(spec.params),
    }


def policies(specs: Sequence[Spec], *, as_json: bool) -> None:
    """All policies in one table."""
    if as_json:
        print_json([policy_as_json(spec) for spec in specs])
        return
    table = Table("policy", "what it does", "works on", "needs", "parameters")
    for spec in specs:
        names = "\n".join(f"{name}={param.default}" for name, param in spec.params.items())
        table.add_row(
            spec.name, _first_line(spec.summary), ", ".join(sorted(spec.works)), _needs(spec), names
        )
    open_console().print(table)
    open_console().print(
        "`tradewind policies NAME` shows one with its parameters and an example.", markup=False
    )
    _broken()


def _first_line(text: str) -> str:
    return (text.splitlines() or [""])[0]


def _needs(spec: Spec) -> str:
    extra = [*([] if spec.online else ["hindsight"]), *(["market"] if spec.pricer else [])]
    return ", ".join([*sorted(spec.needs), *extra])


def _broken() -> None:
    """Plug-ins that could not be used."""
    for plugin, why in broken().items():
        open_console().print(f"plug-in {plugin} is not used: {why}", markup=False, highlight=False)


def policy(spec: Spec, ref: str, *, as_json: bool) -> None:
    """One policy with its parameters and an example; ref: how the user named it."""
    if as_json:
        print_json(policy_as_json(spec))
        return
    out = open_console()
    out.print(f"{spec.name}: {_first_line(spec.summary)}", markup=False, style="bold")
    system = systems().get(spec.system)
    if system is not None:
        out.print(f"system: {system.name} ({system.summary})", markup=False, highlight=False)
    out.print(
        f"works on: {', '.join(sorted(spec.works))} jobs ({', '.join(sorted(spec.architectures))})",
        markup=False,
    )
    out.print(f"objectives: {', '.join(sorted(spec.objectives))}", markup=False)
    if needs := _needs(spec):
        out.print(f"needs: {needs}", markup=False)
    _parameters(spec.params)
    workload = next((name for name in (system.workloads if system else ())), "SCENARIO.yaml")
    chosen = next((f" --set {name}={param.default}" for name, param in spec.params.items()), "")
    out.print(
        f"example: tradewind run {workload} --policy {ref}{chosen} --bound",
        markup=False,
        highlight=False,
    )


def _parameters(params: Mapping[str, Param]) -> None:
    if not params:
        open_console().print("no parameters")
        return
    table = Table("parameter (--set)", "default", "allowed", "what it does")
    for name, param in params.items():
        allowed = ", ".join(param.choices) or param.range or type(param.default).__name__
        table.add_row(name, str(param.default), allowed, param.doc)
    open_console().print(table)


def workloads(found: Sequence[Workload], *, as_json: bool) -> None:
    """All workloads in one table."""
    if as_json:
        print_json([{"name": w.name, "summary": w.summary, "params": _params(w.params)} for w in found])
        return
    table = Table("workload", "what it makes", "parameters (--set)")
    for each in found:
        names = "\n".join(f"{name}={param.default}  {param.doc}" for name, param in each.params.items())
        table.add_row(each.name, each.summary, names)
    open_console().print(table)
    _broken()


def workload(found: Workload, ref: str, *, as_json: bool) -> None:
    """One workload with its parameters and an example; ref: how the user named it."""
    if as_json:
        print_json({"name": found.name, "summary": found.summary, "params": _params(found.params)})
        return
    open_console().print(f"{found.name}: {found.summary}", markup=False, style="bold")
    _parameters(found.params)
    given = " --set file=FILE" if "file" in found.params else ""
    line = f"example: tradewind generate {ref}{given} --seed 1 -o scenario.json"
    open_console().print(line, markup=False, highlight=False)


def checks(policy: str, results: Sequence[CheckResult], *, as_json: bool) -> None:
    """The checks of a policy."""
    failed = [result for result in results if not result.ok]
    if as_json:
        print_json(
            {"policy": policy, "ok": not failed, "checks": [r._asdict() | {"ok": r.ok} for r in results]}
        )
        return
    table = Table("check", "scenario", "result")
    for result in results:
        table.add_row(result.check, result.scenario, "ok" if result.ok else Text("failed", style="bold"))
    open_console().print(table)
    for result in failed:
        open_console().print(
            f"{result.check} on {result.scenario}: {result.detail}", markup=False, highlight=False
        )
    verdict = (
        f"{len(failed)} of {len(results)} checks failed" if failed else f"all {len(results)} checks passed"
    )
    open_console().print(f"{policy}: {verdict}", markup=False, highlight=False)

"""What the commands print about policies, workloads and checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from tradewind.cli.listing import Row, broken_plug_ins
from tradewind.cli.terminal import open_console, print_json

if TYPE_CHECKING:
    from tradewind.testing.contract import CheckResult


def policies(rows: Sequence[Row], *, as_json: bool) -> None:
    """All policies in one table."""
    if as_json:
        print_json(rows)
        return
    table = Table("policy", "what it does", "works on", "needs", "parameters")
    for row in rows:
        names = "\n".join(f"{name}={param['default']}" for name, param in row["params"].items())
        table.add_row(row["name"], _first_line(row["summary"]), ", ".join(row["works"]), _needs(row), names)
    open_console().print(table)
    open_console().print(
        "`tradewind policies NAME` shows one with its parameters and an example.", markup=False
    )
    _broken()


def _first_line(text: str) -> str:
    return (text.splitlines() or [""])[0]


def _needs(row: Row) -> str:
    extra = [*([] if row["online"] else ["hindsight"]), *(["market"] if row["pricer"] else [])]
    return ", ".join([*row["needs"], *extra])


def _broken() -> None:
    """Plug-ins that could not be used."""
    for plugin, why in broken_plug_ins().items():
        open_console().print(f"plug-in {plugin} is not used: {why}", markup=False, highlight=False)


def policy(row: Row, ref: str, *, as_json: bool) -> None:
    """One policy with its parameters and an example; ref: how the user named it."""
    from tradewind.registry import systems

    if as_json:
        print_json(row)
        return
    out = open_console()
    out.print(f"{row['name']}: {_first_line(row['summary'])}", markup=False, style="bold")
    system = systems().get(row["system"])
    if system is not None:
        out.print(f"system: {system.name} ({system.summary})", markup=False, highlight=False)
    out.print(f"works on: {', '.join(row['works'])} jobs ({', '.join(row['architectures'])})", markup=False)
    out.print(f"objectives: {', '.join(row['objectives'])}", markup=False)
    if needs := _needs(row):
        out.print(f"needs: {needs}", markup=False)
    _parameters(row["params"])
    workload = next((name for name in (system.workloads if system else ())), "SCENARIO.yaml")
    chosen = next((f" --set {name}={param['default']}" for name, param in row["params"].items()), "")
    out.print(
        f"example: tradewind run {workload} --policy {ref}{chosen} --bound",
        markup=False,
        highlight=False,
    )


GIVEN = "--set in generate, --given in run and compare"
_WORDS = {bool: "true or false", int: "whole number", float: "number", str: "text"}


def _parameters(params: Row, head: str = "parameter (--set)") -> None:
    if not params:
        open_console().print("no parameters")
        return
    table = Table(head, "default", "allowed", "what it does")
    for name, param in params.items():
        allowed = ", ".join(param.get("choices", ())) or param.get(
            "allowed", _WORDS.get(type(param["default"]), "text")
        )
        table.add_row(name, str(param["default"]), allowed, param["doc"])
    open_console().print(table)


def workloads(rows: Sequence[Row], *, as_json: bool) -> None:
    """All workloads in one table."""
    if as_json:
        print_json(rows)
        return
    table = Table("workload", "what it makes", "parameters")
    for row in rows:
        names = "\n".join(
            f"{name}={param['default']}  {param['doc']}" for name, param in row["params"].items()
        )
        table.add_row(row["name"], row["summary"], names)
    open_console().print(table)
    _broken()


def workload(row: Row, ref: str, *, as_json: bool) -> None:
    """One workload with its parameters and an example; ref: how the user named it."""
    if as_json:
        print_json(row)
        return
    open_console().print(f"{row['name']}: {row['summary']}", markup=False, style="bold")
    _parameters(row["params"], "parameter")
    open_console().print(f"parameters are given so: {GIVEN}", highlight=False)
    given = " --set file=FILE" if "file" in row["params"] else ""
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

"""Options that several commands share, and how scenarios, runs and parameters are read from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from functools import wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast, get_type_hints

import typer

from tradewind.model.errors import InputError, LookupFailed

if TYPE_CHECKING:
    from tradewind.model.result import Run
    from tradewind.model.scenario import Scenario
    from tradewind.registry import Setting

Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set a parameter (of the policy, or of the workload to generate); may be repeated.",
    ),
]
Given = Annotated[
    list[str] | None,
    typer.Option(
        "--given",
        metavar="NAME=VALUE",
        help="Set a parameter of the workload, where SCENARIO names one; may be repeated.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**53, help="Seed of all random numbers.")]
Seeds = Annotated[int, typer.Option("--seeds", min=1, max=10_000, help="Number of seeds.")]
Bounded = Annotated[bool, typer.Option("--bound", help="Also compute the offline bound of the scenario.")]
Isolate = Annotated[
    bool,
    typer.Option(
        "--isolate", help="Run each policy in a confined process of its own (Linux; docs/isolation.md)."
    ),
]
ScenarioArg = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A scenario file, a workload, or FILE.py:NAME.")
]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs",
        min=0,
        max=1024,
        help="Processes; with --on: workers at most.",
        show_default="1, or all CPUs",
    ),
]
On = Annotated[
    str, typer.Option("--on", metavar="ray://HOST:PORT", help="Run on a Ray cluster, with the same results.")
]
RunFile = Annotated[Path, typer.Argument(metavar="RUN", help="A run file.")]
ItsScenario = Annotated[
    str,
    typer.Option(
        "--scenario", help="Its scenario file or workload; default: the file next to RUN with the same hash."
    ),
]
Out = Annotated[Path | None, typer.Option("-o", "--output", writable=True, help="Where to write the result.")]


From = Annotated[
    str,
    typer.Option(
        "--from", metavar="TIME", help="Start of the period: seconds, or 2h, 3 days; a slot's start."
    ),
]
To = Annotated[
    str, typer.Option("--to", metavar="TIME", help="End of the period; default: the end of the record.")
]
PAGES = (".html", ".htm")
Options = TypeVar("Options")


def options_of(kind: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Turn the fields of a dataclass into the options of a command, which then takes one argument.

    Fields are annotated as typer's parameters are.
    """

    def wrap(function: Callable[[Options], None]) -> Callable[..., None]:
        @wraps(function)
        def command(**given: Any) -> None:
            function(kind(**given))

        hints = get_type_hints(kind, include_extras=True)
        parameters = [
            Parameter(
                field.name,
                Parameter.POSITIONAL_OR_KEYWORD,
                default=Parameter.empty if field.default is MISSING else field.default,
                annotation=hints[field.name],
            )
            for field in fields(cast(Any, kind))
        ]
        command.__dict__.pop("__wrapped__", None)
        command.__dict__["__signature__"] = Signature(parameters)  # read by typer
        command.__annotations__ = hints
        return command

    return wrap


def must_be_page(output: Path, option: str = "-o") -> None:
    """Refuse a report whose name does not end in .html."""
    if output.suffix not in PAGES:
        raise InputError(f"{option} {output}: the report is an HTML file; end its name in .html")


def pairs(items: list[str] | None) -> dict[str, str]:
    """`["a=1", "b=x"]` -> {"a": "1", "b": "x"}."""
    found: dict[str, str] = {}
    for item in items or ():
        key, sign, value = item.partition("=")
        if not sign or not key:
            raise InputError(f"--set {item!r}: write NAME=VALUE, for example --set jobs=500")
        if key in found:
            raise InputError(f"--set {key} is given twice; keep one")
        found[key] = value
    return found


def for_all(given: dict[str, str], chosen: Sequence[Setting]) -> dict[str, dict[str, str]]:
    """Policy -> those of these parameters that it has; a parameter that none has is an error."""
    known = {name for each in chosen for name in each.spec.params}
    for key in given:
        if key not in known:
            raise LookupFailed(
                "parameter of a compared policy (one of the workload is set with --given)", key, known
            )
    return {
        each.spec.name: {key: value for key, value in given.items() if key in each.spec.params}
        for each in chosen
    }


def is_workload(name: str) -> bool:
    """Whether a scenario argument names a workload (or FILE.py:NAME) rather than a scenario file."""
    from tradewind.registry import is_file_ref, workloads

    return is_file_ref(name) or name in workloads.entries


def scenario_from(name: str, seed: int, given: dict[str, str] | None = None) -> Scenario:
    """A scenario from a file, or from a workload of that name."""
    from tradewind.files.scenario_file import load
    from tradewind.registry import workloads

    if is_workload(name):
        return workloads.generate(name, given or {}, seed)
    if given:
        raise InputError(
            "--given sets parameters of a workload; a scenario file is used as it is", where=name
        )
    path = Path(name)
    if not path.exists() and path.suffix not in (".json", ".yaml", ".yml"):
        raise LookupFailed("scenario file or workload", name, workloads.names())
    return load(path)


def time_us(text: str, option: str) -> int:
    """`90`, `90 s`, `1.5 h` -> microseconds."""
    from tradewind.model.units import parse_time_us

    try:
        return parse_time_us(f"{text} s" if text.replace(".", "", 1).isdecimal() else text)
    except ValueError:
        raise InputError(
            f"found {text!r}; write seconds, or a number with a unit: 90, 2 h, 3 d", where=option
        ) from None


def is_store(source: str) -> bool:
    """Whether an argument names a store rather than a run file."""
    path = Path(source)
    return "://" in source or path.is_dir() or path.suffix == ".db"


def run_with_scenario(run_file: Path, scenario: str, seed: int) -> tuple[Scenario, Run]:
    """A run and its scenario: the one named, else the file beside the run with its hash."""
    from tradewind import api

    run = api.load_run(run_file)
    return scenario_from(scenario, seed) if scenario else api.scenario_beside(run_file, run), run

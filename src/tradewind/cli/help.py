"""Help in words: what an option takes, and an example for every command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

WORDS = {int: "NUMBER", float: "NUMBER", str: "TEXT", Path: "FILE"}
ANY = 2**53
"""A limit that no user meets."""
EXAMPLES = {
    "audit": "scenario.json run.json",
    "check-policy": "./my_idea.py:MY_IDEA",
    "compare": "cluster --policies fifo,las --seeds 5 -o report.html",
    "explain": "run.json --job job-7",
    "gallery": "-o docs",
    "generate": "cluster --set jobs=500 --seed 1 -o scenario.json",
    "inventory": "--fleet slurm -o cluster.yaml",
    "live": "examples/live.yaml --policy las --speed 10",
    "manifests": "run.json --slot 3",
    "new policy": "my-idea",
    "new workload": "my-load",
    "profile": "-- python train.py",
    "plan": "jobs.yaml --by 2d -o run.json",
    "plan-wan": "b4 --model resnet50",
    "policies": "las",
    "ranks": "run.json --slot 12",
    "replay": "run.json",
    "report": "a.run.json b.run.json -o report.html",
    "reproduce": "all --quick --jobs 2 -o out/reproduce",
    "accept": "q0-count-1f0c9a2e --option 0",
    "bills": "--period 2026-11",
    "cancel": "count-1f0c9a2e",
    "change": "count-1f0c9a2e fields.yaml",
    "dryrun": "examples/job.yaml --tenant research",
    "eta": "count-1f0c9a2e",
    "policy": "srtf --apply",
    "prices service": "prices.yaml",
    "export": "--period 2026-11 -o november",
    "reload": "--json",
    "resume": "count-1f0c9a2e",
    "sites": "oregon --state drain",
    "store backup": "out/serve -o backup.tar",
    "store restore": "backup.tar out/restored",
    "suspend": "count-1f0c9a2e",
    "job": "count-1f0c9a2e --wait",
    "jobs": "--status running",
    "logs": "count-1f0c9a2e -f",
    "quote": "examples/job.yaml --tenant research",
    "serve": "examples/serve.yaml --data out/serve",
    "tenants": "--json",
    "submit": "examples/job.yaml --tenant research --wait",
    "tokens make": "--tenant research --name ada",
    "tokens revoke": "t-0a1b2c3d4e5f",
    "why": "count-1f0c9a2e",
    "run": "scenario.json --policy las --bound -o run.json",
    "scheduler": "--policy fifo-backfill --context kind-tw",
    "schema": "scenario",
    "show": "run.json -o plan.csv",
    "sign": "run.json --key key.bin",
    "tour": "-o out",
    "verify": "run.json --key key.bin",
    "wan": "aws:us-east-1 gcp:europe-west4",
    "whatif": "run.json --policy srtf",
    "workloads": "cluster",
}


def with_help(app: typer.Typer) -> Any:
    """The commands of an app with types in words and examples."""
    command = get_command(app)
    _describe(command, "tradewind")
    return command


def _describe(command: Any, path: str) -> None:
    for param in command.params:
        if param.metavar is None and not getattr(param, "is_flag", False):
            param.metavar = _word(param)
        param._get_number_range_help_str = lambda given=param: _range(given)
        if param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: ""
    name = path.removeprefix("tradewind ")
    if name in EXAMPLES:
        command.epilog = f"Example: {path} {EXAMPLES[name]}"
    for name, child in getattr(command, "commands", {}).items():
        _describe(child, f"{path} {name}")


def _range(param: Any) -> str:
    """`0 or more` or `1 to 10000`; empty where any number is allowed."""
    low, high = getattr(param, "min", None), getattr(param, "max", None)
    if low is None and high is None:
        return ""
    return f"{low:g} or more" if high is None or high >= ANY else f"{low:g} to {high:g}"


def _word(param: Any) -> str | None:
    """FILE, NUMBER or TEXT; arguments are called by their name."""
    if param.param_type_name == "argument":
        return str(param.name).upper()
    kind = getattr(param.type_descriptor, "annotation", None)
    return next((word for of, word in WORDS.items() if isinstance(kind, type) and issubclass(kind, of)), None)

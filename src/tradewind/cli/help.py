"""Help in words: what an option takes, and an example for every command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

WORDS = {int: "NUMBER", float: "NUMBER", str: "TEXT", Path: "FILE"}
FOLDERS = re.compile(r"\b([Ff]older|[Dd]irectory)\b")
ANY = 2**53
"""A limit that no user meets."""
EXAMPLES = {
    "accept": "q0-count-1f0c9a2e --option 0",
    "decline": "q0-count-1f0c9a2e",
    "audit": "scenario.json run.json",
    "bills": "--period 2026-11",
    "cancel": "count-1f0c9a2e",
    "change": "count-1f0c9a2e fields.yaml",
    "check-policy": "./my_idea.py:MY_IDEA",
    "compare": "cluster --policies fifo,las --seeds 5 -o report.html",
    "dryrun": "examples/job.yaml --tenant research",
    "eta": "count-1f0c9a2e",
    "explain": "run.json --job job-7",
    "export": "--period 2026-11 -o november",
    "gallery": "-o docs",
    "generate": "cluster --set jobs=500 --seed 1 -o scenario.json",
    "inventory": "--fleet slurm -o cluster.yaml",
    "job": "count-1f0c9a2e --wait",
    "jobs": "--status running",
    "library": "--only cluster",
    "library check": "cluster-calm-40-1 run.json",
    "library generate": "cluster-calm-40-1 -o scenario.json",
    "library improve": "--only cluster --level 2",
    "library page": "-o docs",
    "library show": "cluster-calm-40-1",
    "library solve": "cluster-calm-40-1 -o best.json",
    "live": "examples/live.yaml --policy las --speed 10",
    "logs": "count-1f0c9a2e -f",
    "manifests": "run.json --slot 3",
    "optimum": "scenario.json -o best.json",
    "new policy": "my-idea",
    "new workload": "my-load",
    "plan": "jobs.yaml --by 2d -o run.json",
    "plan-wan": "b4 --model resnet50",
    "policies": "las",
    "policy": "srtf --apply",
    "prices": "--gpu H100,A100 --region eu --spot --cheapest",
    "prices diff": "old.csv catalogue",
    "prices import": "vms.csv --from skypilot --cloud aws --date 2026-09-25 -o aws.csv",
    "prices service": "prices.yaml",
    "prices show": "us-east-1",
    "profile": "-- python train.py",
    "quote": "examples/job.yaml --tenant research",
    "quotes": "--status open",
    "ranks": "run.json --slot 12",
    "reload": "--json",
    "replay": "run.json",
    "report": "a.run.json b.run.json -o report.html",
    "reproduce": "all --quick --jobs 2 -o out/reproduce",
    "resume": "count-1f0c9a2e",
    "run": "scenario.json --policy las --bound -o run.json",
    "scheduler": "--policy fifo-backfill --context kind-tw",
    "schema": "scenario",
    "serve": "examples/serve.yaml --data out/serve",
    "show": "run.json -o plan.csv",
    "sign": "run.json --key key.bin",
    "sites": "oregon --state drain",
    "store backup": "out/serve -o backup.tar",
    "store export": "out/serve -o period --from 2h --to 6h",
    "store restore": "backup.tar out/restored",
    "store verify": "out/serve",
    "submit": "examples/job.yaml --tenant research --wait",
    "suspend": "count-1f0c9a2e",
    "tenants": "--json",
    "testbed down": "--name main",
    "testbed status": "--name main",
    "testbed up": "b4",
    "testbed verify": "b4 --sites 6",
    "tokens list": "--json",
    "tokens make": "--tenant research --name ada",
    "tokens revoke": "t-0a1b2c3d4e5f",
    "tour": "-o out",
    "verify": "run.json --key key.bin",
    "version": "",
    "wan": "aws:us-east-1 gcp:europe-west4",
    "whatif": "run.json --policy srtf",
    "why": "count-1f0c9a2e",
    "workloads": "cluster",
}
"""Command -> what follows it in an example."""
LINES = {
    "audit": "Check a run file from scratch; exit code 1 on a violation.",
    "bills": "Print the bills of a running service.",
    "change": "Change a job that waits or is suspended.",
    "check-policy": "Check a policy as the built-in ones are checked.",
    "compare": "Compare policies on the same scenarios.",
    "dryrun": "Say where, when and at what price a job would run.",
    "eta": "Say when a job will start and finish.",
    "explain": "Show the life of a job, or explain its placement in a slot.",
    "export": "Write a period of a running service as files.",
    "gallery": "Write the gallery of the docs.",
    "library": "Named instances with best known values and bounds.",
    "library check": "Check a run of an instance: new best, equal or worse.",
    "library improve": "Search for better values and bounds.",
    "library show": "Show an instance: generator, hash, best value, bound.",
    "live": "Run the commands of a scenario's jobs, in real time.",
    "logs": "Print what a rank of a job wrote.",
    "manifests": "Print the pods of a run's slot for Kubernetes, as YAML.",
    "new": "Write a working file with its test, to start from.",
    "new policy": "Write NAME.py with a policy, and its contract test.",
    "new workload": "Write NAME.py with a workload, and its test.",
    "optimum": "Plan a small scenario with the future known.",
    "plan": "Plan jobs at the lowest bill: regions, machines, times.",
    "plan-wan": "Choose a parameter server's site and a route per site.",
    "policies": "List the policies, or show one with its parameters.",
    "policy": "Compare, then change, the policy of a running service.",
    "prices import": "Read a catalogue of SkyPilot, gpuhunt or CSV.",
    "prices service": "Show or change the price list of a running service.",
    "prices show": "Show a region, or a machine type.",
    "profile": "Measure a training command on this machine.",
    "quote": "Ask a running service for a price.",
    "quotes": "List the quotes of a running service, or look at one.",
    "ranks": "List the rings of a slot in rank order.",
    "replay": "Rebuild a run's final state from its journal.",
    "report": "Write the report of existing run files.",
    "reproduce": "Compute the papers' figures and judge their claims.",
    "run": "Simulate a policy on a scenario; -o writes run or report.",
    "scheduler": "Bind gangs of Kubernetes pods as a policy decides.",
    "serve": "Serve: take jobs over HTTP, decide, run, explain.",
    "show": "Show what ran where and when, what moved and what it cost.",
    "sign": "Sign a run file with a shared key.",
    "sites": "List or change the sites of a running service.",
    "store": "Check, export and back up stores.",
    "store export": "Write a period of a store as a scenario and a run.",
    "store verify": "Check every record of a store.",
    "suspend": "Suspend a job until it is resumed.",
    "testbed": "A wide area network on this machine (root).",
    "testbed down": "Remove the network and end what runs in it.",
    "testbed status": "List all testbeds of this machine, or show one.",
    "testbed up": "Build the network.",
    "testbed verify": "Compare real traffic with the model.",
    "tour": "Run one small scenario per system.",
    "verify": "Check that a run file is as it was signed.",
    "wan": "Measured bandwidth and round-trip time between regions.",
    "whatif": "Run another policy on what happened; both side by side.",
    "workloads": "List the workloads, or show one with its parameters.",
}
"""Command -> its line in a list of commands, which has 60 characters on a terminal of 80."""

SECTIONS = {
    "Simulate and compare": "generate run compare optimum show explain report whatif policies workloads tour",
    "Plan and prices": "plan prices wan plan-wan profile",
    "Run live, on machines and clusters": "live inventory ranks manifests scheduler testbed",
    "Use a running service": (
        "submit quote quotes accept decline dryrun jobs job logs why eta cancel suspend resume change bills"
    ),
    "Operate a service": "serve sites policy tenants tokens export reload store",
    "Write your own": "new check-policy",
    "Papers and the library": "reproduce gallery library",
    "Files": "audit replay sign verify schema version",
}
"""What a user wants to do -> the commands for it, as `tradewind --help` lists them."""


def with_help(app: typer.Typer) -> Any:
    """The commands of an app in sections, with types in words and examples."""
    command: Any = get_command(app)
    _describe(command, "tradewind")
    command.format_commands = lambda ctx, formatter: _sections(command, formatter)
    return command


def _sections(command: Any, formatter: Any) -> None:
    """Write the commands by what a user wants to do, all summaries in one column."""
    width = max(len(name) for name in command.commands)
    room = formatter.width - width - 6
    for title, names in SECTIONS.items():
        with formatter.section(title):
            formatter.write_dl(
                [
                    (name.ljust(width), command.commands[name].get_short_help_str(room))
                    for name in names.split()
                ]
            )


def _describe(command: Any, path: str) -> None:
    for param in command.params:
        if param.metavar is None and not getattr(param, "is_flag", False):
            param.metavar = _word(param)
        param._get_number_range_help_str = lambda given=param: _range(given)
        if _range(param):
            param.process_value = _says_range(param)
        if param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: ""
            param.get_usage_pieces = lambda ctx, given=param: [_placeholder(given)]
    name = path.removeprefix("tradewind ")
    if name in EXAMPLES:
        command.epilog = f"Example: {path} {EXAMPLES[name]}".rstrip()
    if name in LINES:
        command.short_help = LINES[name]
    for name, child in getattr(command, "commands", {}).items():
        _describe(child, f"{path} {name}")


def _placeholder(param: Any) -> str:
    """How an argument is written: NAME, or [NAME] where it may be left out."""
    word = str(param.metavar)
    return word if param.required or word.startswith("[") else f"[{word}]"


def _range(param: Any) -> str:
    """`0 or more` or `1 to 10000`; empty where any number is allowed."""
    low, high = getattr(param, "min", None), getattr(param, "max", None)
    if low is None and high is None:
        return ""
    return f"{low:g} or more" if high is None or high >= ANY else f"{low:g} to {high:g}"


def _says_range(param: Any) -> Any:
    """Reads a number; an error says what was found and what is allowed, as the help does."""
    read = param.process_value

    def process(ctx: Any, value: Any) -> Any:
        try:
            return read(ctx, value)
        except typer.BadParameter as error:
            number = "a whole number, " if "integer" in error.message else ""
            error.message = f"found {value!r}; it must be {number}{_range(param)}"
            raise

    return process


def _word(param: Any) -> str | None:
    """FILE, FOLDER, NUMBER or TEXT; arguments are called by their name."""
    if param.param_type_name == "argument":
        return str(param.name).upper()
    kind = getattr(param.type_descriptor, "annotation", None)
    if isinstance(kind, type) and issubclass(kind, Path) and FOLDERS.search(param.help or ""):
        return "FOLDER"
    return next((word for of, word in WORDS.items() if isinstance(kind, type) and issubclass(kind, of)), None)

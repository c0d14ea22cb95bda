"""Commands for authors: `new` writes a working file with its test, `check-policy` runs the contract checks."""

from __future__ import annotations

import keyword
import re
from importlib import resources
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from tradewind.cli.options import Json, Seeds
from tradewind.cli.terminal import say
from tradewind.model.errors import InputError

commands = typer.Typer()
new = typer.Typer(no_args_is_help=True, help="Write a commented, working file with its test, to start from.")
commands.add_typer(new, name="new")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name, for example my-idea.")]
Folder = Annotated[Path, typer.Option("-o", "--output", help="Folder to write into.")]


@new.command(name="policy")
def new_policy(name: Name, output: Folder = Path()) -> None:
    """Write NAME.py with a policy, and test_NAME.py with its contract test."""
    file, constant = _write("policy", name, output)
    say(f"try: tradewind compare cluster --policies fifo,{_shown(file)}:{constant}")
    say(f"     tradewind check-policy {_shown(file)}:{constant}")


@new.command(name="workload")
def new_workload(name: Name, output: Folder = Path()) -> None:
    """Write NAME.py with a workload, and test_NAME.py with its test."""
    file, constant = _write("workload", name, output)
    say(f"try: tradewind compare {_shown(file)}:{constant} --policies fifo,las --seeds 3")


def _shown(file: Path) -> str:
    return str(file) if file.is_absolute() else f"./{file}"


def _write(kind: str, name: str, folder: Path) -> tuple[Path, str]:
    """Writes the file and its test; returns the file and the name of the object in it."""
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,39}", name) or name.endswith("-") or "--" in name:
        raise InputError(
            f"found {name!r}; use small letters, digits and single hyphens, for example my-{kind}",
            where="NAME",
        )
    module = name.replace("-", "_")
    if keyword.iskeyword(module):
        raise InputError(f"{name!r} is a keyword of Python; choose another name", where="NAME")
    values = {
        "name": name,
        "module": module,
        "file": f"{module}.py",
        "constant": module.upper(),
        "class_name": "".join(part.capitalize() for part in name.split("-")),
        "title": name.replace("-", " ").capitalize(),
    }
    file, test = folder / f"{module}.py", folder / f"test_{module}.py"
    for path in (file, test):
        if path.exists():
            raise InputError(
                "it exists already; choose another name, or another folder with -o", where=str(path)
            )
    folder.mkdir(parents=True, exist_ok=True)
    for path, template in ((file, kind), (test, f"{kind}_test")):
        text = resources.files("tradewind.cli").joinpath("templates", f"{template}.txt").read_text("utf-8")
        path.write_text(Template(text).substitute(values), encoding="utf-8")
        say(path)
    return file, values["constant"]


@commands.command(name="check-policy")
def check_policy(
    policy: Annotated[
        str, typer.Argument(metavar="POLICY", help="FILE.py:NAME, or the name of a registered policy.")
    ],
    scenario: Annotated[
        list[str] | None,
        typer.Option(
            "--scenario", help="Check on this scenario file or workload; may be repeated. Default: generated."
        ),
    ] = None,
    seeds: Seeds = 2,
    as_json: Json = False,
) -> None:
    """Check a policy as the built-in ones are checked: audit, same run twice, save and restore, no look ahead."""
    from tradewind.cli import show_catalogue
    from tradewind.cli.options import is_workload, scenario_from
    from tradewind.registry import policies
    from tradewind.testing import run_checks

    spec = policies.get(policy)
    numbers = range(1, seeds + 1)
    given = [
        scenario_from(name, seed)
        for name in scenario or ()
        for seed in (numbers if is_workload(name) else numbers[:1])
    ]
    results = run_checks(spec, given or None, numbers)
    show_catalogue.checks(spec.name, results, as_json=as_json)
    if not all(result.ok for result in results):
        raise typer.Exit(1)

"""Help is in words, and every command shows an example that its own parser accepts."""

from __future__ import annotations

import os
import shlex
from typing import Any

import pytest

from tests.command import tradewind
from tradewind.cli.help import EXAMPLES, SECTIONS, with_help
from tradewind.cli.main import app


def leaves(command: Any, path: str = "") -> dict[str, Any]:
    children = getattr(command, "commands", None)
    if children is None:
        return {path: command}
    found: dict[str, Any] = {}
    for name, child in children.items():
        found |= leaves(child, f"{path} {name}".strip())
    return found


TREE = with_help(app)
COMMANDS = leaves(TREE)
GROUPS = {"library", "prices"}
"""Groups that do something themselves."""


def test_every_command_and_sub_command_has_an_example() -> None:
    assert sorted(set(EXAMPLES) ^ (set(COMMANDS) | GROUPS)) == []


def test_no_line_of_a_list_of_commands_is_cut_on_a_terminal_of_80_columns() -> None:
    for words in ([], ["library"], ["prices"], ["store"], ["testbed"], ["tokens"], ["new"]):
        said = tradewind(*words, "--help", env={**os.environ, "COLUMNS": "80"}).stdout
        listed = said.partition("  -h, --help")[2]
        assert len(listed.splitlines()) > 2, words
        assert "..." not in listed, words


def test_the_list_of_commands_has_each_of_them_in_one_section_with_all_summaries_in_one_column() -> None:
    assert sorted(" ".join(SECTIONS.values()).split()) == sorted(TREE.commands)
    listed = tradewind("--help").stdout.partition("  -h, --help")[2].splitlines()[2:]
    assert [line.rstrip(":") for line in listed if line and not line.startswith(" ")] == list(SECTIONS)
    rows = [line for line in listed if line.startswith("  ")]
    assert [row.split()[0] for row in rows] == " ".join(SECTIONS.values()).split()
    assert {len(row) - len(row[2:].lstrip().partition(" ")[2].lstrip()) for row in rows} == {16}


def test_arguments_are_written_without_braces_and_folders_are_called_folders() -> None:
    assert "library check [OPTIONS] NAME RUN\n" in tradewind("library", "check", "--help").stdout
    assert "policies [OPTIONS] [NAME]\n" in tradewind("policies", "--help").stdout
    assert "--output FOLDER" in tradewind("reproduce", "--help").stdout
    words = {str(param.metavar) for command in COMMANDS.values() for param in command.params}
    assert "KEY=VALUE" not in words


@pytest.mark.parametrize("path", sorted(EXAMPLES))
def test_an_example_names_options_that_exist(path: str) -> None:
    command = COMMANDS.get(path) or TREE.commands[path]
    known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    words = shlex.split(EXAMPLES[path])
    used = [word for word in words[: words.index("--") if "--" in words else None] if word.startswith("-")]
    assert [word for word in used if word not in known] == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--seeds 0", "found '0'; it must be 1 to 10000"),
        ("--seeds 2.5", "found '2.5'; it must be a whole number, 1 to 10000"),
        ("--jobs -1", "found '-1'; it must be 0 to"),
    ],
)
def test_a_number_out_of_range_is_refused_with_the_range(given: str, said: str) -> None:
    refused = tradewind("compare", "cluster", "--policies", "fifo", *given.split())
    assert refused.returncode == 2
    assert said in refused.stderr
    assert "Input should" not in refused.stderr


def test_types_and_ranges_are_words() -> None:
    for path, command in COMMANDS.items():
        for param in command.params:
            assert "<" not in str(param.metavar), f"{path} {param.name}"
    said = tradewind("compare", "--help").stdout
    assert "1 to 10000" in said
    assert "--seeds NUMBER" in said
    assert "x<=" not in said
    assert "Example: tradewind compare" in said

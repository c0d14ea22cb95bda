"""Help is in words, and every command shows an example that its own parser accepts."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from tests.cli.test_cli import tradewind
from tradewind.cli.help import EXAMPLES, with_help
from tradewind.cli.main import app


def leaves(command: Any, path: str = "") -> dict[str, Any]:
    children = getattr(command, "commands", None)
    if children is None:
        return {path: command}
    found: dict[str, Any] = {}
    for name, child in children.items():
        found |= leaves(child, f"{path} {name}".strip())
    return found


COMMANDS = leaves(with_help(app))
WITHOUT = {"version"}


def test_every_command_has_an_example() -> None:
    plain = {path for path in COMMANDS if " " not in path}
    assert sorted(plain - WITHOUT - set(EXAMPLES)) == []
    assert sorted(set(EXAMPLES) - set(COMMANDS)) == []


@pytest.mark.parametrize("path", sorted(EXAMPLES))
def test_an_example_names_options_that_exist(path: str) -> None:
    command = COMMANDS[path]
    known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    words = shlex.split(EXAMPLES[path])
    used = [word for word in words[: words.index("--") if "--" in words else None] if word.startswith("-")]
    assert [word for word in used if word not in known] == []


def test_types_and_ranges_are_words() -> None:
    for path, command in COMMANDS.items():
        for param in command.params:
            assert "<" not in str(param.metavar), f"{path} {param.name}"
    said = tradewind("compare", "--help").stdout
    assert "1 to 10000" in said
    assert "--seeds NUMBER" in said
    assert "x<=" not in said
    assert "Example: tradewind compare" in said

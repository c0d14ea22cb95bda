"""Signatures of run files: any change of header or tables breaks them, another form of the same run does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.files.generated import a_run
from tradewind.cli.main import app
from tradewind.files import run_file
from tradewind.files.run_file import save
from tradewind.files.run_tables import checksum, normal
from tradewind.files.signature import is_signed, sign, signature_path
from tradewind.model.errors import InputError


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_bytes(bytes(range(32)))
    path.chmod(0o600)
    return path


@pytest.fixture
def signed(tmp_path: Path, key: Path) -> Path:
    path = tmp_path / "run.json"
    save(a_run(), path)
    assert sign(path, key) == signature_path(path)
    assert is_signed(path, key)
    return path


@pytest.mark.parametrize(
    "change",
    [{"seed": 99}, {"policy": "las"}, {"version": "9"}, {"world": "processes"}, {"bound": None}, {"certificates": []}],
)  # fmt: skip
def test_a_changed_header_does_not_match(signed: Path, key: Path, change: dict[str, Any]) -> None:
    raw = json.loads(signed.read_text())
    assert {name: raw.get(name) for name in change} != change
    signed.write_text(json.dumps(raw | change))
    assert not is_signed(signed, key)


def test_every_changed_table_breaks_the_chain(signed: Path, key: Path) -> None:
    raw = json.loads(signed.read_text())
    changed = 0
    for name, table in raw["tables"].items():
        for column in ("why", "usd", "text", "reason"):
            if column in table["data"] and table["rows"]:
                other = json.loads(signed.read_text())
                data = other["tables"][name]["data"]
                data[column][0] = (
                    f"{data[column][0]}!" if isinstance(data[column][0], str) else data[column][0] + 1
                )
                other["tables"][name]["sha256"] = checksum(name, normal(name, data))
                signed.write_text(json.dumps(other))
                assert not is_signed(signed, key), (name, column)
                changed += 1
                signed.write_text(json.dumps(raw))
    assert changed >= 3
    del raw["tables"]["bills"]
    signed.write_text(json.dumps(raw))
    assert not is_signed(signed, key)


def test_another_key_does_not_match_and_another_form_of_the_same_run_does(
    signed: Path, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.write_bytes(bytes(range(1, 33)))
    other.chmod(0o600)
    assert not is_signed(signed, other)
    monkeypatch.setattr(run_file, "INLINE_ROWS", 0)
    save(a_run(), signed)
    assert (tmp_path / "run.d").is_dir()
    assert is_signed(signed, key)


def test_errors_say_what_is_wrong(signed: Path, key: Path, tmp_path: Path) -> None:
    for text, message in (("{}", "needs the fields"), ("[1]", "needs the fields"), ("x", "JSON")):
        signature_path(signed).write_text(text)
        with pytest.raises(InputError, match=message):
            is_signed(signed, key)
    signature_path(signed).unlink()
    with pytest.raises(InputError, match="no such file"):
        is_signed(signed, key)
    key.chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        sign(signed, key)
    key.chmod(0o600)
    key.write_bytes(b"short")
    with pytest.raises(InputError, match="has 5 bytes"):
        sign(signed, key)
    with pytest.raises(InputError, match="no such file"):
        sign(signed, tmp_path / "missing")


def test_the_commands_sign_verify_and_fail_on_a_change(signed: Path, key: Path) -> None:
    def code(command: str) -> int:
        return CliRunner().invoke(app, [command, str(signed), "--key", str(key)]).exit_code

    assert code("sign") == code("verify") == 0
    signed.write_text(signed.read_text().replace('"fifo"', '"las"'))
    assert code("verify") == 1

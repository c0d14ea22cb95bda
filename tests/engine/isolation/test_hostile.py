"""Claims about policies that mean harm: isolated, each hurts only itself and gives a clear error."""

from __future__ import annotations

import ast
import os
import re
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.engine.isolation import hostile
from tradewind.audit import Audit
from tradewind.engine.isolation.policy import isolated
from tradewind.engine.isolation.process import Limits
from tradewind.engine.ledger import Ledger
from tradewind.engine.live import DiskJournal, LiveSession
from tradewind.engine.state import RunState
from tradewind.model.errors import InputError, PolicyError
from tradewind.model.scenario import Scenario
from tradewind.model.view import Event
from tradewind.registry import policies
from tradewind.store.store import Store
from tradewind.testing.scenarios import contended_cluster
from tradewind.worlds.simulate import make_policy, simulate

FILE = str(Path(hostile.__file__))
QUICK = Limits(answer_s=1.5, memory_bytes=2 << 30)
ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def given() -> Scenario:
    return contended_cluster(2, calm=True)


def report(given: Scenario, deed: str, target: str = "") -> str:
    """What an isolated policy reports about a deed."""
    with pytest.raises(PolicyError) as error:
        simulate(given, isolated(FILE, QUICK), {"deed": deed, "target": target})
    found = re.search(r"Report: (.*) \(hostile.py, line \d+\)$", str(error.value))
    assert found, str(error.value)
    return found[1]


def test_in_process_a_policy_reaches_the_scenario_through_the_stack(given: Scenario) -> None:
    with pytest.raises(PolicyError, match=r"did [1-9]"):
        simulate(given, policies.get(FILE), {"deed": "frames"})


def test_isolated_there_is_no_scenario_in_its_process(given: Scenario) -> None:
    assert report(given, "frames") == "did 0"


def test_it_inherits_nothing(given: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    found = ast.literal_eval(report(given, "surroundings").removeprefix("did "))
    assert "SECRET_TOKEN" not in found["environment"]
    assert found["folder"] == []
    assert found["arguments"][2:] == []
    assert len(found["descriptors"]) == 4  # three that lead nowhere and the channel
    assert str(os.getpid()) not in found["processes"]
    assert found["threads"] == 1
    if ROOT:
        assert found["uid"] not in (0, os.getuid())
        assert found["groups"] == []


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_it_cannot_read_the_scenario_file(given: Scenario, tmp_path: Path, mode: int) -> None:
    secret = tmp_path / "scenario.json"
    secret.write_text("{}")
    secret.chmod(mode)
    assert report(given, "read", str(secret)) in ("PermissionError", "FileNotFoundError")


def test_it_cannot_write_a_file(given: Scenario, tmp_path: Path) -> None:
    assert report(given, "write", str(tmp_path / "new")) in ("PermissionError", "FileNotFoundError")
    assert report(given, "write", "/tmp/tradewind-was-here") == "PermissionError"
    assert not Path("/tmp/tradewind-was-here").exists()


def test_it_has_no_network(given: Scenario, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert report(given, "connect", f"127.0.0.1:{port}") == "PermissionError"
    assert report(given, "connect", "192.0.2.1:80") == "PermissionError"
    with socket.socket(socket.AF_UNIX) as server:
        path = Path("/tmp") / f"tradewind-test-{os.getpid()}"
        try:
            server.bind(str(path))
            path.chmod(0o777)
            server.listen()
            assert report(given, "connect_unix", str(path)) == "PermissionError"
        finally:
            path.unlink()


@pytest.mark.parametrize("deed", ["kill", "kill_by_thread"])
def test_it_cannot_signal_its_parent(given: Scenario, deed: str) -> None:
    assert report(given, deed, str(os.getpid())) in ("PermissionError", "ProcessLookupError")


@pytest.mark.parametrize("deed", ["fork", "program"])
def test_it_cannot_start_processes(given: Scenario, deed: str) -> None:
    assert report(given, deed) == "PermissionError"


def test_it_cannot_ask_to_outlive_its_parent(given: Scenario) -> None:
    assert report(given, "outlive") == "did -1"


def test_memory_and_threads_are_limited(given: Scenario) -> None:
    assert report(given, "memory") == "MemoryError"
    assert int(report(given, "threads").removeprefix("did ")) < 600


ENDS = {
    "sleep": "did not answer decide within 1.5 s",
    "loop": "did not answer decide within 1.5 s",
    "leave": "its process ended with exit code 3",
    "system_exit": "SystemExit: 4",
    "crash": "its process ended by signal 11",
    "garbage": "kind b'\\?'",
    "enormous": "sent 1152921504606846976 bytes",
    "long": "at most 16777216",
    "deep": "its answer cannot be read: it is not JSON",
    "executable": "its answer cannot be read: it is not JSON",
    "state_for_decision": "its answer cannot be read: found the kind b'S'",
    "error_for_error": "its answer cannot be read: text: found 7",
}


@pytest.mark.parametrize("deed", ENDS)
def test_whatever_it_does_gives_a_clear_error(given: Scenario, deed: str) -> None:
    with pytest.raises(PolicyError, match=rf"hostile failed at \d+ us \(slot \d+\): .*{ENDS[deed]}"):
        simulate(given, isolated(FILE, QUICK), {"deed": deed})
    assert not Path("/tmp/tradewind-was-here").exists()


class _Quiet:
    """A live session with an isolated policy, and what it was told."""

    def __init__(self, given: Scenario, folder: Path, params: dict[str, Any]) -> None:
        spec = isolated(FILE, Limits(answer_s=0.5, memory_bytes=2 << 30))
        policy, _ = make_policy(given, spec, params, 0)
        state = RunState(Ledger(given.setup), Audit(given.setup, measured=True), DiskJournal(), tolerant=True)
        self.live = LiveSession(
            state, policy, spec, lambda quote: -1, Store.open(folder / "store.db", write=True)
        )
        self.jobs = given.jobs

    def instant(self, number: int) -> None:
        at = 50 * number
        job = replace(self.jobs[number], arrive_us=at)
        self.live.handle(at, [Event(at, "arrived", job.index, 0, job)])
        self.live.changed_state()


@pytest.mark.parametrize("deed", ["leave", "sleep", "garbage", "crash", "memory", "system_exit", "deep"])
def test_a_live_session_goes_on_with_alarms(given: Scenario, tmp_path: Path, deed: str) -> None:
    quiet = _Quiet(given, tmp_path, {"deed": deed})
    for number in range(3):
        quiet.instant(number)
    assert len(quiet.live.alarms) == 3
    assert all("plans in force continue" in alarm["text"] for alarm in quiet.live.alarms)
    assert set(quiet.live.ledger.active) == {0, 1, 2}


def test_a_live_session_goes_on_where_a_policy_cannot_be_restored(given: Scenario, tmp_path: Path) -> None:
    quiet = _Quiet(given, tmp_path, {"deed": "leave", "moment": "restore"})
    quiet.live._roll_back()
    quiet.instant(0)
    assert any("restore" in alarm["text"] for alarm in quiet.live.alarms)


def test_a_policy_that_exits_while_it_is_made_is_an_error(given: Scenario) -> None:
    with pytest.raises(PolicyError, match="ended with exit code 3 before it answered make"):
        simulate(given, isolated(FILE, QUICK), {"deed": "leave", "moment": "make"})


def test_the_code_of_a_file_is_not_run_by_the_parent(tmp_path: Path) -> None:
    file = tmp_path / "evil.py"
    file.write_text("import os\nos.environ['TRADEWIND_WAS_HERE'] = '1'\nraise RuntimeError('loaded')\n")
    with pytest.raises(InputError, match=r"evil\.py, line 3: cannot be loaded"):
        isolated(str(file))
    assert "TRADEWIND_WAS_HERE" not in os.environ


@pytest.mark.parametrize(
    "text",
    [
        "null",
        '{"colour":1}',
        "[7]",
        "[[],[],null,null,7]",
        '[[[0,[[0,1,["a"],[1],[],[],[],0]]]],[],null,null,""]',
        '[[[0,[[0,99999999999999999999,[0],[1],[],[],[],0]]]],[],null,null,""]',
        '[[],[],null,["x",1,"upward",{}],""]',
        '[[],[],null,null,"\\ud800"]',
        '[[],[],true,null,""]',
        "1e999",
    ],
)
def test_what_is_no_decision_is_refused(given: Scenario, text: str) -> None:
    with pytest.raises(PolicyError, match="its answer cannot be read"):
        simulate(given, isolated(FILE, QUICK), {"deed": "sent", "target": text})

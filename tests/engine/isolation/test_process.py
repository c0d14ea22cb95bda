"""Claims about the process of an isolated policy: it is found, started again, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import tradewind as tw
from tests.engine.isolation import hostile
from tradewind.engine.isolation import filters
from tradewind.engine.isolation.policy import IsolatedPolicy, Unreadable, decode, isolated
from tradewind.engine.isolation.process import Limits, Process, import_path
from tradewind.engine.ledger import Ledger
from tradewind.model.errors import InputError, LookupFailed, PolicyError, Unsupported
from tradewind.model.view import Event
from tradewind.registry import policies
from tradewind.testing.scenarios import contended_cluster
from tradewind.worlds.simulate import make_policy, simulate

FILE = str(Path(hostile.__file__))
PARENT = """
import signal, sys, threading, time
from tradewind.engine.isolation.process import Process
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell takes away from what it runs in the background
process = Process()
print(process._guard.pid, flush=True)
{then}
"""


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def gone(pids: list[int], seconds: float = 120.0) -> bool:
    until = time.monotonic() + seconds
    while any(map(running, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(map(running, pids))


def family(guard: int) -> list[int]:
    """The guard and the process that it guards."""
    children = Path(f"/proc/{guard}/task/{guard}/children").read_text().split()
    return [guard, *map(int, children)]


@pytest.mark.parametrize(
    ("then", "ending"),
    [
        ("time.sleep(600)", signal.SIGKILL),
        ("time.sleep(600)", signal.SIGTERM),
        ("time.sleep(600)", signal.SIGINT),
        ("import os; pid = os.fork(); time.sleep(600)", signal.SIGKILL),  # a fork that keeps the sockets open
    ],
)
def test_nothing_is_left_when_the_parent_is_ended(then: str, ending: int) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [sys.executable, "-c", PARENT.format(then=then)],
        stdout=subprocess.PIPE,
        env=env,
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        pids = family(int(parent.stdout.readline()))
        assert len(pids) == 2
        assert all(map(running, pids))
        time.sleep(0.2)
        parent.send_signal(ending)
        try:
            assert gone(pids)
        finally:
            os.killpg(parent.pid, signal.SIGKILL)


def test_nothing_is_left_at_the_end_of_a_run() -> None:
    made, _ = make_policy(contended_cluster(2), isolated("fifo"), {}, 0)
    assert isinstance(made, IsolatedPolicy)
    pids = family(made._process._guard.pid)
    del made
    assert gone(pids, 0.0)


def test_its_working_directory_is_removed() -> None:
    process = Process()
    folder = Path(os.readlink(f"/proc/{family(process._guard.pid)[1]}/cwd"))
    assert folder.is_dir()
    process.end()
    assert not folder.exists()


def test_a_process_that_was_ended_starts_again_with_the_state_saved_last() -> None:
    given = contended_cluster(2)
    one, _ = make_policy(given, isolated("las"), {}, 0)
    other, _ = make_policy(given, policies.find("las"), {}, 0)
    assert isinstance(one, IsolatedPolicy)
    ledgers = [Ledger(given.setup), Ledger(given.setup)]
    for number, job in enumerate(given.jobs[:6]):
        found = []
        for ledger, policy in zip(ledgers, (one, other), strict=True):
            ledger.take([Event(job.arrive_us, "arrived", job.index, 0, job)])
            found.append(policy.decide(ledger))
            ledger.commit(found[-1])
            ledger.clear_events()
            policy.save()
        assert found[0] == found[1]
        if number == 2:
            os.kill(family(one._process._guard.pid)[1], signal.SIGKILL)
            with pytest.raises(PolicyError, match="by signal 9"):
                one.decide(ledgers[0])


def test_policies_are_found_by_name_file_and_object() -> None:
    assert isolated("fifo").triggers == policies.find("fifo").triggers
    for given in (FILE, hostile.HOSTILE):
        found = isolated(given)
        assert replace(found, factory=hostile.make) == hostile.HOSTILE
    assert isolated(policies.get(FILE)).name == "hostile"
    with pytest.raises(LookupFailed, match="Did you mean 'fifo'"):
        isolated("fifi")


def test_an_isolated_policy_declares_what_the_policy_declares() -> None:
    for spec in policies.all():
        if spec.online:
            expected = replace(spec, compiled="")  # which would not be isolated
            assert replace(isolated(spec.name), factory=spec.factory) == expected


def test_numbers_of_more_than_64_bits_are_refused() -> None:
    assert decode(int, b"-9223372036854775808") == -(1 << 63)
    for text in (b"9223372036854775808", b"-9223372036854775809", b"1" * 5000):
        with pytest.raises(Unreadable, match="64 bits"):
            decode(int, text)


def test_an_object_that_nobody_can_find_is_refused() -> None:
    with pytest.raises(InputError, match="assign it to a name at the top of a module"):
        isolated(replace(hostile.HOSTILE, name="another"))


def test_a_baseline_in_hindsight_is_refused() -> None:
    name = next(spec.name for spec in policies.all() if not spec.online)
    with pytest.raises(InputError, match="computes its parameters from the whole scenario"):
        isolated(name)


def test_a_scenario_that_does_not_fit_is_refused_as_without_isolation() -> None:
    with pytest.raises(Unsupported):
        simulate(tw.generate("eris"), isolated(FILE))


def test_folders_of_scripts_are_not_readable_unless_the_policy_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs.py").touch()
    for here in ("", str(tmp_path)):
        monkeypatch.setattr(sys, "path", [here, "/elsewhere"])
        monkeypatch.chdir(tmp_path)
        assert import_path("")[:-1] == ["/elsewhere"]
        assert import_path("other")[:-1] == ["/elsewhere"]
        assert import_path("theirs")[:-1] == [str(tmp_path), "/elsewhere"]


def test_the_time_to_start_is_limited() -> None:
    with pytest.raises(PolicyError, match=r"did not answer start within 0.01 s"):
        Process(Limits(start_s=0.01))


def test_the_filter_of_each_machine_is_whole_instructions() -> None:
    for machine in filters.ARCHITECTURES:
        assert len(filters.program(machine, 1)) % 8 == 0

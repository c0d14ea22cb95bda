"""Claims about the registry: built-in systems come through entry points, files and objects work, errors say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from textwrap import dedent

import pytest

import tradewind as tw
from tradewind import registry
from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.system import System

POLICY = """
    from tradewind.model.decision import NOTHING
    from tradewind.model.spec import Spec

    class Idle:
        def decide(self, view):
            return NOTHING
        def save(self):
            return b""
        def restore(self, state):
            pass

    IDLE = Spec(name="idle", summary="does nothing", factory=lambda s, p, r: Idle(), works=frozenset({"fixed"}))
"""


@pytest.fixture
def idle(tmp_path: Path) -> Path:
    path = tmp_path / "idle.py"
    path.write_text(dedent(POLICY))
    return path


def test_the_built_in_systems_are_registered_like_any_other_package() -> None:
    found = registry.systems()
    assert set(found) >= {"apsp", "cluster", "dps", "eris", "gadget", "mlbroker"}
    for name, system in found.items():
        assert system.name == name
        for policy in system.policies:
            assert registry.policies.find(policy).name == policy
        for workload in system.workloads:
            assert registry.workloads.find(workload).name == workload
        for ref in (system.bound, system.study, system.explain, system.bills, system.remarks):
            assert not ref or registry.load(ref) is not None
        for rival in system.beside:
            assert registry.policies.find(rival)


def test_a_policy_from_a_file_runs_by_file_and_name_and_by_file_alone(idle: Path) -> None:
    scenario = tw.generate("cluster", jobs=5, seed=1)
    for text in (f"{idle}:IDLE", str(idle)):
        run = tw.run(scenario, text, seed=1)
        assert run.policy == "idle"
        assert run.metrics["jobs_completed"] == 0
        assert not tw.check(scenario, run)


def test_a_policy_object_runs_and_is_compared_without_registration(idle: Path) -> None:
    spec = registry.policies.get(f"{idle}:IDLE")
    scenario = tw.generate("cluster", jobs=5, seed=1)
    assert tw.run(scenario, spec, seed=1).policy == "idle"
    found = tw.compare(scenario, ["fifo", spec], bound=True)
    assert [run.policy for run in found.runs] == ["fifo", "idle"]


def test_the_same_relative_name_in_another_folder_is_another_file(
    idle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert registry.policies.get("./idle.py").name == "idle"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "idle.py").write_text(idle.read_text().replace('name="idle"', 'name="lazy"'))
    monkeypatch.chdir(tmp_path / "other")
    assert registry.policies.get("./idle.py").name == "lazy"


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("x = (", "bad.py:IDLE", "bad.py, line 1: cannot be loaded"),
        ("\nraise ValueError('no luck')", "bad.py:IDLE", "line 2: cannot be loaded .ValueError: no luck"),
        ("import no_such_module", "bad.py:IDLE", "No module named 'no_such_module'"),
        ("A = 1", "bad.py:IDLE", "found IDLE; the file has no Spec at all"),
        ("A = 1", "bad.py", "no Spec at all"),
        ("raise SystemExit(0)", "bad.py", "cannot be loaded .SystemExit"),
    ],
)
def test_a_file_that_cannot_be_used_is_explained(tmp_path: Path, text: str, given: str, message: str) -> None:
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(InputError, match=message):
        registry.policies.get(str(tmp_path / given))


def test_a_missing_file_an_unknown_name_and_a_wrong_object_are_explained(idle: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        registry.policies.get("nowhere.py:X")
    with pytest.raises(InputError, match="found IDEL; the file has IDLE"):
        registry.policies.get(f"{idle}:IDEL")
    with pytest.raises(LookupFailed, match="fifo"):
        registry.policies.get("fifoo")
    with pytest.raises(InputError, match="found a int"):
        registry.policies.get(7)  # type: ignore[arg-type] # a user's mistake


class _Points:
    """Entry points as a test wants them."""

    def __init__(self, *points: EntryPoint) -> None:
        self.points = points

    def __call__(self, *, group: str) -> list[EntryPoint]:
        return [point for point in self.points if point.group == group]


@pytest.fixture
def clean() -> Iterator[None]:
    """Forgets what was found before and after a test."""

    def forget() -> None:
        registry.systems.cache_clear()
        registry.broken.cache_clear()
        for catalogue in (registry.policies, registry.workloads, registry.studies):
            vars(catalogue).pop("entries", None)

    forget()
    yield
    forget()


@pytest.mark.usefixtures("clean")
def test_a_broken_plug_in_hides_nothing_but_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    group = "tradewind.systems"
    points = _Points(
        EntryPoint("cluster", "tradewind.systems.cluster:SYSTEM", group),
        EntryPoint("crash", "no_such_package:SYSTEM", group),
        EntryPoint("wrong", "tradewind.systems.cluster:__doc__", group),
        EntryPoint("cluster", "tradewind.systems.eris:SYSTEM", group),
        EntryPoint("one", "tradewind.systems.eris.policy.posted:ERIS", "tradewind.policies"),
        EntryPoint("two", "no_such_package:POLICY", "tradewind.policies"),
    )
    monkeypatch.setattr(registry, "entry_points", points)
    assert set(registry.systems()) == {"cluster"}
    assert "fifo" in registry.policies.names()
    assert registry.policies.find("one").name == "eris"
    with pytest.raises(InputError, match="two: no_such_package:POLICY cannot be loaded"):
        registry.policies.find("two")
    assert "eris" in [spec.name for spec in registry.policies.all()]
    reasons = " | ".join(registry.broken().values())
    assert "no_such_package" in reasons
    assert "not a tradewind.model.system.System" in reasons
    assert "is taken" in reasons


@pytest.mark.usefixtures("clean")
def test_a_policy_name_that_is_taken_stays_with_its_first_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = System(name="zzz", summary="", policies={"fifo": "tradewind.systems.eris.policy.posted:ERIS"})
    real = registry.systems()
    monkeypatch.setattr(registry, "systems", lambda: {**real, "zzz": mine})
    assert registry.policies.find("fifo").name == "fifo"
    assert any("'fifo' is taken" in why for why in registry.broken().values())


def test_settings_after_a_policy_are_explained_where_they_are_not_taken() -> None:
    with pytest.raises(InputError, match=r"'las:limits=60': only `compare` .* write las and --set limits=60"):
        registry.policies.get("las:limits=60")
    with pytest.raises(InputError, match=r"write las and --set NAME=VALUE"):
        registry.policies.get("las:limits")


def test_an_unknown_name_lists_all_names_if_they_are_few_and_else_the_first() -> None:
    assert str(LookupFailed("job", "z", ["b", "a"])) == "No job is called 'z'. Known: a, b."
    many = str(LookupFailed("job", "z", [f"job-{i:04}" for i in range(2000)]))
    assert many.endswith(
        "Known: job-0000, job-0001, job-0002, job-0003, job-0004, job-0005, job-0006, job-0007, … (2,000 in all)."
    )

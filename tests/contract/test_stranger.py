"""A stranger writes a policy in one small file: the one that the concepts page shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.builders import decision, job, loop_of, plan, play, rows, run_at, scenario, spec_of
from tradewind.model.decision import Decision, Plan, Quote, Verdict
from tradewind.model.errors import PolicyError
from tradewind.model.job import Fixed
from tradewind.model.spec import Spec
from tradewind.testing import contended_cluster, contract
from tradewind.worlds.simulate import simulate

PAGE = Path(__file__).parents[2] / "docs" / "concepts.md"


def lifo() -> Spec:
    """The policy on the page, as it stands there."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    code = next(block for block in blocks if "LIFO = Spec(" in block)
    names: dict[str, Any] = {"__name__": "lifo"}
    exec(compile(code, "lifo.py", "exec"), names)
    found = names["LIFO"]
    assert isinstance(found, Spec)
    return found


def test_the_policy_on_the_concepts_page_runs_the_newest_job_first() -> None:
    jobs = [job(i, arrive_us=i, work=Fixed(runtime_us=100), workers_min=4, workers_max=4) for i in range(5)]
    run = simulate(scenario(jobs), lifo())
    # two places: j0 and j1 start at once; when they end, the newest first
    assert rows(run, "outcomes", "job", "start_us") == [(0, 0), (1, 1), (2, 200), (3, 101), (4, 100)]


def test_the_policy_on_the_concepts_page_keeps_every_contract() -> None:
    given, spec = contended_cluster(4), lifo()
    run = contract.passes_the_audit(spec, given)
    contract.is_the_same_each_time(spec, given, run)
    contract.continues_after_restore(spec, given, run, 0.5)
    contract.does_not_peek_ahead(spec, given, run, 0.5)
    contract.does_not_see_budgets(spec, given, run)


class Broken:
    """Answers whatever it is told to."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def decide(self, view: Any) -> Any:
        return self.answer() if callable(self.answer) else self.answer

    def quote(self, view: Any, job: Any) -> Any:
        return self.answer() if callable(self.answer) else self.answer

    def save(self) -> bytes:
        return b""

    def restore(self, state: bytes) -> None:
        pass


NONSENSE: list[Any] = [
    None,
    "start j0",
    [Plan(0, ())],
    lambda: 1 / 0,
    Decision(plans=(Plan(0, None),)),  # type: ignore[arg-type] # a policy's mistake, on purpose
    Decision(plans=(Plan(0, ("now",)),)),  # type: ignore[arg-type] # a policy's mistake, on purpose
    Decision(plans=None),  # type: ignore[arg-type] # a policy's mistake, on purpose
    Decision(verdicts=("j0",)),  # type: ignore[arg-type] # a policy's mistake, on purpose
]


@pytest.mark.parametrize("answer", NONSENSE, ids=range(len(NONSENSE)))
def test_a_policy_that_answers_nonsense_is_named_and_blamed(answer: Any) -> None:
    with pytest.raises(PolicyError, match="scripted"):
        simulate(scenario([job(0)]), spec_of(Broken(answer)))


@pytest.mark.parametrize("answer", [None, Quote(1), Quote(0, (None,))], ids=repr)  # type: ignore[arg-type]
def test_a_pricer_that_quotes_nonsense_or_another_job_is_blamed(answer: Any) -> None:
    with pytest.raises(PolicyError, match="scripted"):
        simulate(scenario([job(0)]), spec_of(Broken(answer), pricer=True))


def test_a_policy_is_called_once_per_instant_and_only_for_its_triggers() -> None:
    calls: list[int] = []

    class Listener(Broken):
        def decide(self, view: Any) -> Any:
            calls.append(view.now_us)
            return self.answer(view)

    def start(view: Any) -> Decision:
        waiting = [i for i in view.active if view.plan(i) is None]
        return decision(*(plan(i, run_at(view.now_us)) for i in waiting))

    given = scenario([job(0), job(1), job(2, arrive_us=250)])
    spec = spec_of(Listener(start), slots=False)
    loop_of(given, spec, Listener(start)).run()
    assert calls == [0, 250, 500]


def test_a_job_that_is_turned_away_is_gone_for_good() -> None:
    run = play(
        scenario([job(0), job(1)]), {0: Decision(plans=(plan(0, run_at(0)),), verdicts=(Verdict(1, "no"),))}
    )
    assert rows(run, "outcomes", "state") == [("finished",), ("refused",)]
    assert rows(run, "verdicts", "job", "reason") == [(1, "no")]

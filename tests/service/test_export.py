"""What a service did is a store like that of a live run: it verifies, exports and is audited again."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import tradewind as tw
from tests.service.servers import Server, checked, job, over
from tradewind.model.errors import InputError
from tradewind.service import periods_work
from tradewind.service.periods import span_of
from tradewind.store.store import Store


def test_the_store_of_a_running_service_verifies_and_exports_as_a_scenario_that_the_audit_accepts(
    queue: Server,
) -> None:
    with queue.tenant("red") as client:
        ids = [checked(client.post("/v1/jobs", json=job("sleep", "0.2")))["id"] for _ in range(3)]
        for each in ids:
            over(client, each)
    with Store.open(queue.data) as store:
        assert store.verify().number > 3
    found = tw.period(queue.data)
    assert set(ids) <= {each.id for each in found.scenario.jobs}
    assert tw.check(found.scenario, found.run) == ()
    assert found.run.metrics["jobs_completed"] >= 3


def test_bills_and_exports_of_many_jobs_do_not_look_for_garbage_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[bool] = []

    def nothing(*_: Any) -> None:
        seen.append(gc.isenabled())

    monkeypatch.setattr(periods_work, "period_of", nothing)
    given = periods_work.Source(store="", slot_us=1), span_of(None)
    assert periods_work.bills(*given) == {}
    with pytest.raises(InputError, match="nothing was recorded"):
        periods_work.export(*given)
    assert seen == [False, False]
    assert gc.isenabled()


def test_a_month_after_which_there_is_none_is_no_period() -> None:
    with pytest.raises(InputError, match="period is '9999-12'; write"):
        span_of("9999-12")

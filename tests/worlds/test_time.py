"""The simulated world's clock: order at an instant, holds, timers, the horizon, the slot grid."""

from __future__ import annotations

from tests.builders import HORIZON, SLOT, Stage, decision, job, plan, play, rows, run_at, scenario
from tradewind.model.decision import Flow, Offer, Quote, Step, Verdict
from tradewind.model.job import Customer, Dataset, Fixed, Stream
from tradewind.model.utility import Utility
from tradewind.model.view import Change


def test_an_instant_reports_changes_completions_arrivals_slot_data_timer_in_this_order() -> None:
    given = scenario(
        [
            job(0, work=Fixed(runtime_us=200)),
            job(1, arrive_us=200, work=Stream(bytes_per_worker_slot=9)),
            job(2, arrive_us=200),
        ],
        customers=[Customer(), Customer(runtime_us=500), Customer()],
        changes=[Change(200, "price", 0, 0, 500)],
        volumes=[(1, 2, 0, 9)],
    )
    stage = Stage(given, slots=True)
    stage.wait()
    stage.act(plan(0, run_at(0)), wake_us=200)
    stage.until(100)
    assert [kind for kind, _, _ in stage.wait()] == [
        "changed", "finished", "arrived", "arrived", "slot", "data", "timer",
    ]  # fmt: skip


def test_jobs_that_arrive_together_are_reported_in_file_order() -> None:
    stage = Stage(scenario([job(0, arrive_us=7), job(1, arrive_us=7), job(2, arrive_us=7)]))
    assert [index for _, index, _ in stage.wait()] == [0, 1, 2]


def test_hold_until_frees_resources_at_the_instant_of_completion() -> None:
    stage = Stage(scenario([job(0, workers_min=4, workers_max=4), job(1, arrive_us=250)]))
    stage.wait()
    stage.act(plan(0, run_at(0, (0,), (4,))))
    assert stage.wait() == [("finished", 0, 0), ("arrived", 1, 0)]
    assert stage.ledger.free(0, 0) == 4000


def test_hold_through_frees_resources_one_microsecond_later() -> None:
    stage = Stage(scenario([job(0, workers_min=4, workers_max=4, hold="through"), job(1, arrive_us=250)]))
    stage.wait()
    stage.act(plan(0, run_at(0, (0,), (4,))))
    stage.wait()
    assert (stage.now, stage.ledger.free(0, 0)) == (250, 0)
    assert stage.check(plan(1, run_at(250)))[0].rule == "capacity.node"
    assert stage.wait() == [("released", 0, 0)]
    assert (stage.now, stage.ledger.free(0, 0)) == (251, 4000)


def test_a_failure_between_completion_and_release_cancels_nothing() -> None:
    given = scenario([job(0, hold="through"), job(1)], changes=[Change(251, "node_down", 0, 0, 0)])
    stage = Stage(given)
    stage.wait()
    stage.act(plan(0, run_at(0)), plan(1, run_at(0, (1,))))
    assert stage.until(251) == [
        (250, "finished", 0, 0),
        (250, "finished", 1, 0),
        (251, "changed", -1, 0),
        (251, "released", 0, 0),
    ]
    assert stage.wait() == []


def test_a_timer_fires_once_and_a_new_one_replaces_it() -> None:
    stage = Stage(scenario([job(0)]))
    stage.wait()
    stage.act(wake_us=30)
    stage.act(wake_us=40)
    assert stage.wait() == [("timer", -1, 0)]
    assert stage.now == 40
    assert stage.wait() == [("ended", 0, 0)]


def test_a_decision_without_a_timer_leaves_the_one_before() -> None:
    stage = Stage(scenario([job(0)]))
    stage.wait()
    stage.act(wake_us=30)
    stage.act(plan(0, run_at(0)))
    assert stage.wait() == [("timer", -1, 0)]


def test_a_job_that_is_unfinished_at_the_horizon_ends_with_the_work_it_has_done() -> None:
    stage = Stage(scenario([job(0, work=Fixed(runtime_us=HORIZON + 1))]))
    stage.wait()
    stage.act(plan(0, run_at(0)))
    assert stage.wait() == [("ended", 0, HORIZON)]
    assert stage.now == HORIZON
    assert stage.wait() == []


def test_a_job_that_is_done_exactly_at_the_horizon_finishes() -> None:
    stage = Stage(scenario([job(0, work=Fixed(runtime_us=HORIZON))]))
    stage.wait()
    stage.act(plan(0, run_at(0)))
    assert stage.wait() == [("finished", 0, 0)]


def test_work_is_done_only_inside_bounded_steps() -> None:
    stage = Stage(scenario([job(0)]))  # 250 us: 100 + a gap + 100 + 50 of the last slot
    stage.wait()
    stage.act(plan(0, run_at(0, until=100), run_at(200, (1,), until=300), run_at(500, until=600)))
    assert stage.wait() == [("finished", 0, 0)]
    assert stage.now == 550


def test_a_booked_slot_is_taken_before_it_begins_and_free_before_and_after() -> None:
    stage = Stage(scenario([job(0, workers_min=4, workers_max=4)]))
    stage.wait()
    stage.act(plan(0, run_at(200, (0,), (4,), until=300)))
    assert [stage.ledger.free(0, 0, slot) for slot in (0, 1, 2, 3)] == [4000, 4000, 0, 4000]


def chunks(*pairs: tuple[int, int]) -> Dataset:
    return Dataset(chunks=pairs, chunk_bytes=10, epochs=1, chunk_epochs_per_worker_slot_milli=2000)


def data_step(slot: int, *flows: tuple[int, int, int], workers: int = 1, at: int = 0) -> Step:
    moved = tuple(Flow(*flow) for flow in flows)
    return Step(slot * SLOT, (slot + 1) * SLOT, (at,), (workers,), flows=moved)


def test_chunks_count_when_their_step_is_over_and_only_once_across_a_gap() -> None:
    stage = Stage(scenario([job(0, work=chunks((0, 4)))]))
    stage.wait()
    stage.act(plan(0, data_step(0, (0, 0, 20)), data_step(3, (0, 0, 20))))
    assert stage.wait() == [("finished", 0, 0)]
    assert stage.now == 400


def test_replanning_in_a_gap_does_not_count_chunks_again() -> None:
    stage = Stage(scenario([job(0, work=chunks((0, 4))), job(1, arrive_us=150)]))
    stage.wait()
    stage.act(plan(0, data_step(0, (0, 0, 20)), data_step(3, (0, 0, 20))))
    stage.wait()
    assert stage.now == 150
    stage.act(plan(0, data_step(2, (0, 0, 10))), plan(1, run_at(150, (1,))))
    assert stage.until(HORIZON)[-1] == (HORIZON, "ended", 0, 3)


def test_chunks_of_a_step_that_is_cut_short_do_not_count() -> None:
    stage = Stage(scenario([job(0, work=chunks((0, 2))), job(1, arrive_us=50)]))
    stage.wait()
    stage.act(plan(0, data_step(0, (0, 0, 20))))
    stage.wait()
    stage.act(plan(0), plan(1, run_at(50)))
    assert stage.until(HORIZON)[-1] == (HORIZON, "ended", 0, 0)


def test_a_stream_leaves_after_its_runtime() -> None:
    given = scenario(
        [job(0, arrive_us=20, work=Stream(bytes_per_worker_slot=1))], customers=[Customer(runtime_us=333)]
    )
    assert Stage(given).until(HORIZON)[-1] == (353, "left", 0, 0)


def test_restart_costs_time_only_where_something_moved() -> None:
    stage = Stage(scenario([job(0, restart_us=30), job(1, arrive_us=100), job(2, arrive_us=150)]))
    stage.wait()
    stage.act(plan(0, run_at(0)))
    stage.wait()
    stage.act(plan(0, run_at(100)))  # stays: nothing lost
    stage.wait()
    stage.act(plan(0, run_at(150, (1,))))  # moves: 30 us lost
    assert stage.wait() == [("finished", 0, 0)]
    assert stage.now == 280


def test_a_step_that_is_replaced_at_the_instant_it_begins_moves_nothing() -> None:
    stage = Stage(scenario([job(0, restart_us=30)]), slots=True)
    stage.wait()
    stage.act(plan(0, run_at(0, until=100), run_at(100, (1,), until=200)))
    stage.wait()
    stage.act(plan(0, run_at(100)))  # back to node 0 before a moment was spent on node 1
    assert stage.until(250)[-1] == (250, "finished", 0, 0)


def test_apply_ignores_a_repeated_number() -> None:
    given = scenario([job(0), job(1)])
    stage = Stage(given)
    stage.wait()
    stage.world.apply(1, decision(plan(0, run_at(0))))
    assert stage.world.apply(1, decision(plan(1, run_at(0)))) == ()
    assert stage.world.apply(0, decision(plan(1, run_at(0)))) == ()
    finished = [(e.at_us, e.job) for e in stage.world.wait() if e.kind == "finished"]
    assert finished == [(250, 0)]


def test_each_event_is_recorded_once() -> None:
    run = play(scenario([job(0), job(1, arrive_us=40)]), {0: decision(plan(0, run_at(0)))}, slots=False)
    assert rows(run, "events", "at_us", "kind", "job") == [
        (0, "arrived", 0), (40, "arrived", 1), (250, "finished", 0), (HORIZON, "ended", 1),
    ]  # fmt: skip


def test_slot_events_end_with_the_last_job() -> None:
    busy = play(scenario([job(0)]), {0: decision(plan(0, run_at(0)))}, slots=True)
    assert [e for e in rows(busy, "events", "at_us", "kind") if e[1] == "slot"] == [
        (0, "slot"), (100, "slot"), (200, "slot"),
    ]  # fmt: skip


def test_work_of_a_job_that_is_refused_later_is_reported() -> None:
    stage = Stage(scenario([job(0), job(1, arrive_us=150)]))
    stage.wait()
    stage.act(plan(0, run_at(0, until=100)))
    stage.wait()
    stage.act(verdicts=(Verdict(0, "enough"),))
    assert [e.value for e in stage.ledger.events if e.kind == "refused"] == [100]


def offers(*pairs: tuple[float, int]) -> Quote:
    return Quote(0, tuple(Offer(usd, finish, plan(0, run_at(0))) for usd, finish in pairs))


def choice(customer: Customer, quote: Quote) -> int:
    return Stage(scenario([job(0)], customers=[customer])).world.ask(quote)


def test_a_customer_takes_the_cheapest_offer_within_its_budget_and_the_first_of_equals() -> None:
    menu = offers((7.0, 100), (5.0, 200), (5.0, 300), (6.0, 50))
    assert choice(Customer(budget_usd=6.0), menu) == 1
    assert choice(Customer(budget_usd=5.0), menu) == 1
    assert choice(Customer(budget_usd=4.999), menu) == -1


def test_a_customer_with_a_valuation_weighs_delay_against_payment() -> None:
    worth = Utility(of="delay_slots", shape="linear", args=(10.0, -2.0))  # 10 USD at once, 2 less per slot
    menu = offers((8.0, 100), (5.0, 200), (1.0, 300))  # gains 2, 3, 5
    assert choice(Customer(valuation=worth), menu) == 2
    assert choice(Customer(valuation=worth, budget_usd=0.5), menu) == -1
    assert choice(Customer(valuation=worth), offers((10.0, 100))) == -1  # no gain, no trade
    assert choice(Customer(valuation=worth), offers((9.0, 100), (7.0, 200))) == 0  # equal gains


def test_a_customer_without_budget_and_valuation_takes_the_cheapest() -> None:
    assert choice(Customer(), offers((4.0, 100), (3.0, 100))) == 1

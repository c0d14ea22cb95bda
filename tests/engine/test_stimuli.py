"""Claims about events as JSON: every event of every system comes back equal, and what is wrong is named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.builders import job
from tradewind.engine.instants import Facts
from tradewind.engine.stimuli import from_json, to_json
from tradewind.model.errors import InputError
from tradewind.model.view import Change, Event
from tradewind.registry import policies
from tradewind.testing import fitting_scenarios
from tradewind.worlds.simulate import simulate


@pytest.mark.parametrize("name", ["fifo", "mlbroker", "dps", "apsp", "eris", "gadget"])
def test_every_event_of_a_run_comes_back_equal(name: str) -> None:
    spec = policies.find(name)
    given = next(fitting_scenarios(spec, 1))
    run, facts = simulate(given, spec, seed=1), Facts(given)
    columns: Any = [run.tables["events"][column] for column in ("at_us", "kind", "job", "value")]
    events = [facts.restore(Event(*row)) for row in zip(*columns, strict=True)]
    assert {"arrived", "finished", "left"} & {event.kind for event in events}
    for event in events:
        assert from_json(json.loads(json.dumps(to_json(event), allow_nan=False))) == event


def test_unscripted_events_come_back_equal() -> None:
    for event in (
        Event(5, "cancelled", 3, 70),
        Event(6, "changed", -1, 2, Change(6, "node_down", 1, 0, 0)),
        Event(
            7,
            "arrived",
            1,
            0,
            job(1, arrive_us=7, nodes=frozenset({1, 0}), env=(("A", "b"),), command=("x",)),
        ),
    ):
        assert from_json(json.loads(json.dumps(to_json(event)))) == event


ARRIVED = to_json(Event(0, "arrived", 0, 0, job(0)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "an event is an object"),
        ({"at_us": 1, "kind": "sneezed"}, "event.kind: found 'sneezed'; known kinds are accepted"),
        ({"kind": "slot"}, "event.at_us: found None; it must be of type int"),
        ({"at_us": True, "kind": "slot"}, "event.at_us"),
        ({"at_us": 1, "kind": "slot", "colour": 1}, "unknown field 'colour'"),
        ({"at_us": 1, "kind": "arrived", "job": 0}, "event.fact: is missing"),
        ({"at_us": 1, "kind": "slot", "fact": 1}, "slot has none"),
        (
            ARRIVED | {"fact": ARRIVED["fact"] | {"work": {"type": "Naps"}}},
            "event.fact.work.type: found 'Naps'",
        ),
        (ARRIVED | {"fact": ARRIVED["fact"] | {"worker": [[0]]}}, r"event.fact.worker\[0\]: found 1 values"),
        (ARRIVED | {"fact": {"type": "Job", "id": "a"}}, "event.fact: 'index' is missing"),
        (ARRIVED | {"fact": ARRIVED["fact"] | {"hold": "forever"}}, "event.fact.hold: found 'forever'"),
    ],
)
def test_a_wrong_event_is_refused_with_the_place(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_json(data)

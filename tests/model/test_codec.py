"""Claims about values as JSON: both forms are read back equal, and what is wrong is named with its place."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tradewind.model.codec import compact, plain, read
from tradewind.model.decision import Certificate, Decision, Flow, Offer, Plan, Quote, Route, Step, Verdict
from tradewind.model.errors import InputError
from tradewind.model.job import Job

STEP = Step(0, 5, (1, 0), (2, 1), (0, 1), (Flow(0, 1, 7),), (Route(0, 1, 9, (3,), "push-pull"),), 0.1)
VALUES = (
    Decision((Plan(3, (STEP,)),), (Verdict(1, "ä"),), 9, Certificate("c", 1.5, "min", {"x": [1]}), "why"),
    Quote(3, (Offer(1, 8, Plan(3, (STEP, STEP)), ((0, 0.5),)),), "", "because"),
    Decision(),
)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_lists_and_objects_are_read_back_equal(value: Any) -> None:
    for text in (compact(value), json.dumps(plain(value))):
        found = read(type(value), json.loads(text), "")
        assert found == value
        assert compact(found) == compact(value)  # also 1 and 1.0 are kept apart


def test_arrays_and_sets_are_written_as_lists() -> None:
    assert compact((np.arange(2), np.float64(1.5), {2, 1})) == "[[0,1],1.5,[1,2]]"
    with pytest.raises(TypeError, match="object cannot be written"):
        compact(object())


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (Decision, [[[0, [[0, 5, [0], ["1"]]]]]], r"^plans\[0\].steps\[0\].workers\[0\]: found '1'"),
        (Decision, [[], [], None, None, "", 1], "found 6 values; a Decision has 5"),
        (Decision, [None], "^plans: found NoneType; it must be a list"),
        (Decision, [[], [], True], "^wake_us: found True; it must be of type int"),
        (Decision, 7, "found 7; it must be a Decision"),
        (Step, [0, 5], "'nodes' is missing"),
        (Step, {"type": "Plan"}, "it must be a Step"),
        (Route, [0, 1, 9, [], "sideways"], "^duplex: found 'sideways'; allowed are forward, push-pull"),
        (Verdict, [0, "\ud800"], "^reason: .* it must be valid Unicode"),
        (Certificate, ["c", 1, "min", [1]], r"^data\[0\]: found int"),
        (Certificate, ["c", 1, "min", 1], "^data: found 1; it must be a list of pairs or an object"),
        (bool | int | str, None, "found None; it must be of type bool, int, str"),
        (Job, [0, "a"], "it must be a Job"),
    ],
)
def test_what_is_wrong_is_named(kind: Any, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(kind, value, "")

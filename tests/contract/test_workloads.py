"""Every knob of every workload: a number that makes no sense gets an answer in words, never a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from tradewind.model.errors import TradewindError
from tradewind.registry import workloads
from tradewind.testing.scenarios import SMALL

SENSELESS = ("-1", "1e30", "99999999999999999999", "-1e30", "nan", "inf", "1e-300")
KNOBS = [
    (name, knob)
    for name in workloads.names()
    for knob, param in workloads.find(name).params.items()
    if type(param.default) in (int, float)
]


@pytest.mark.parametrize(("name", "knob"), KNOBS, ids=lambda part: str(part))
def test_a_senseless_number_gives_a_scenario_or_an_error_that_names_the_knob(
    name: str, knob: str, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("id,arrive_s,duration_s,gpus\na,0,600,1\nb,30,900,2\n")
    params = workloads.find(name).params
    given = {key: value for key, value in {**SMALL, "file": str(trace)}.items() if key in params}
    said = []
    for value in SENSELESS:
        try:
            workloads.generate(name, {**given, knob: value}, seed=1)
        except TradewindError as error:
            said.append(str(error))
    assert [line for line in said if knob not in line] == []
    assert len(said) >= 2  # nan and inf are never numbers


def test_the_range_of_a_knob_is_named_when_it_is_left() -> None:
    with pytest.raises(TradewindError, match=r"mlbroker.sites: found 0; it must be 1 to 2000"):
        workloads.generate("mlbroker", {"sites": "0"}, seed=1)
    with pytest.raises(TradewindError, match=r"mlbroker.cap_slot_usd: found -1; it must be 0 or more"):
        workloads.generate("mlbroker", {"cap_slot_usd": "-1"}, seed=1)

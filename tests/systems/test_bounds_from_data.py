"""Bounds follow from the data of a scenario: where it came from (`origin`) and what it is called change nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tests.builders import job, link, node, scenario, setup
from tradewind.engine import bounds
from tradewind.model.job import Rounds
from tradewind.model.utility import Utility

TRACE = "id,arrive_s,duration_s,gpus,tenant\n" + "".join(
    f"j{i},{17 * i},{60 + 53 * i},{1 + i % 4},t\n" for i in range(12)
)
SMALL: dict[str, dict[str, Any]] = {
    "apsp": {"topology": "internet2"},
    "cluster": {"jobs": 30, "servers": 3},
    "dps": {"jobs": 30, "slots": 40, "servers": 4},
    "eris": {"jobs": 6, "slots": 8, "sites": 3},
    "gadget": {"jobs": 8, "slots": 6, "servers": 4},
    "gadget-trace": {"servers": 2, "gpus_per_server": 4, "racks": 2, "slot_s": 30.0},
    "mlbroker": {"slots": 3, "jobs_per_slot": 2.0},
    "trace": {"servers": 2, "gpus_per_server": 4},
}


@pytest.mark.parametrize("workload", SMALL)
def test_the_bound_is_the_same_without_origin(workload: str, tmp_path: Path) -> None:
    given = dict(SMALL[workload])
    if workload.endswith("trace"):
        (tmp_path / "trace.csv").write_text(TRACE)
        given |= {"file": str(tmp_path / "trace.csv"), "format": "csv"}
    made = tw.generate(workload, seed=3, **given)
    found = bounds.bound(made)
    assert found is not None
    assert bounds.bound(replace(made, origin={}, name="by hand")) == found
    for other in SMALL:
        assert bounds.bound(replace(made, origin={"workload": other})) == found


def test_a_ring_scenario_by_hand_has_a_bound() -> None:
    nodes = [node("core", 0, kind="switch"), node("a", kind="server"), node("b", kind="server")]
    where = setup(nodes, links=(link(0, 1), link(0, 2)), objective="utility")
    ring = job(
        work=Rounds(count=3, unit="worker-slot", comm="ring"),
        workers_max=3,
        ring_bps=1,
        utility=Utility(of="progress", shape="sqrt", args=(1.0, 1.0)),
    )
    assert bounds.bound(scenario([ring], where=where)) is not None

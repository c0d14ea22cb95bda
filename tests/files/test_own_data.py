"""What people write by hand: units in tables, rates instead of rows, mistaken units."""

from __future__ import annotations

from pathlib import Path

import pytest

import tradewind as tw
from tradewind.model.errors import TradewindError
from tradewind.systems.apsp.workload.topologies import read_topology

HEAD = """
tradewind_scenario: 1
objective: cost_usd
slot_us: {slot}
horizon_us: 6 h
nodes:
- {{name: oregon, rent: {{gpu: {usd}}}}}
- {{name: dublin, rent: {{gpu: 3.1}}}}
jobs:
- {{id: vision, arrive_us: {arrive}, architecture: ps, worker: {{gpu: 1}}, workers_max: 20, server: {{gpu: 1}}, servers: 1,
   work: {{kind: stream, bytes_per_worker_slot: 50 GB{work}}}}}
"""


def load(path: Path, more: str = "", **given: str) -> tw.Scenario:
    values = {"slot": "1 h", "usd": "3.0", "arrive": "0 h", "work": ", stay_us: 3 h"} | given
    path.write_text(HEAD.format(**values) + more)
    return tw.load(path)


def test_a_rate_gives_the_same_volumes_as_rows_for_every_slot_of_the_stay(tmp_path: Path) -> None:
    rows = (
        "volumes: {job: [vision, vision, vision], slot: [1, 2, 3], node: [oregon, oregon, oregon], "
        "bytes: [400 GB, 400 GB, 400 GB]}"
    )
    listed = load(tmp_path / "a.yaml", rows, arrive="1 h")
    by_rate = load(
        tmp_path / "b.yaml", arrive="1 h", work=", stay_us: 3 h, bytes_per_slot: {oregon: 400 GB, dublin: 0}"
    )
    for name in ("job", "slot", "node", "bytes"):
        assert getattr(listed.volumes, name).tolist() == getattr(by_rate.volumes, name).tolist()
    assert tw.run(listed, policy="mlbroker").metrics == tw.run(by_rate, policy="mlbroker").metrics
    late = load(tmp_path / "c.yaml", arrive="90 min", work=", stay_us: 9 h, bytes_per_slot: {dublin: 1 GB}")
    assert late.volumes.slot.tolist() == [2, 3, 4, 5]  # whole slots of the stay, up to the horizon


def test_a_stream_written_to_a_file_says_how_long_it_stays_beside_its_work(tmp_path: Path) -> None:
    scenario = load(tmp_path / "a.yaml", work=", stay_us: 3 h, bytes_per_slot: {oregon: 1 GB}")
    tw.dump(scenario, tmp_path / "b.yaml")
    text = (tmp_path / "b.yaml").read_text()
    assert ("stay_us" in text, "private" in text) == (True, False)
    assert tw.load(tmp_path / "b.yaml").customers == scenario.customers


@pytest.mark.parametrize(
    ("given", "more", "words"),
    [
        ({"slot": "3600"}, "", ("3600 microseconds", "6,000,000 slots", "slot_us: 1 h")),
        ({"usd": "1.0e300"}, "", ("1,000,000,000,000,000",)),
        ({"work": ""}, "", ("stay_us",)),
        ({"work": ", stay_us: 3 h, bytes_per_slot: {paris: 1 GB}"}, "", ("paris", "bytes_per_slot")),
        (
            {},
            "volumes: {job: [vision], slot: [0], node: [oregon], bytes: [400 parsecs]}",
            ("400 parsecs", "400 GB"),
        ),
        (
            {"work": ", stay_us: 3 h, bytes_per_slot: {oregon: 1 GB}"},
            "volumes: {job: [vision], slot: [0], node: [oregon], bytes: [1]}",
            ("vision", "keep one"),
        ),
    ],
)
def test_a_mistake_is_named_with_what_to_write(
    tmp_path: Path, given: dict[str, str], more: str, words: tuple[str, ...]
) -> None:
    with pytest.raises(TradewindError) as caught:
        load(tmp_path / "a.yaml", more, **given)
    assert [word for word in words if word not in str(caught.value)] == []


def test_attributes_that_a_graph_lacks_are_named_with_those_that_it_has(tmp_path: Path) -> None:
    (tmp_path / "n.gml").write_text(
        'graph [ node [ id 0 label "a" x 1 ] node [ id 1 label "b" x 2 ] edge [ source 0 target 1 speed "10G" ] ]'
    )
    topology = read_topology(tmp_path / "n.gml")
    notes = " ".join(topology.notes)
    assert "mean of their neighbours" not in notes
    with pytest.raises(TradewindError, match="no link has LinkSpeedRaw"):
        topology.km()
    assert "no link has LinkSpeedRaw (bit/s); its attributes are speed" in notes
    assert "no node has Latitude" in notes
    assert "x" in notes.rpartition("attributes are")[2]

"""What people write by hand: units in tables, rates instead of rows, mistaken units."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import tradewind as tw
from tradewind.files.jobs_file import load_jobs
from tradewind.model.errors import InputWarning, TradewindError
from tradewind.model.units import parse_time_us, time_text
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
        ({"work": ", stay_us: 3, bytes_per_slot: {oregon: 1 GB}"}, "", ("stay of 3 us", "microseconds")),
        ({}, "volumes: {job: [vision], slot: [9], node: [oregon], bytes: [1]}", ("jobs[vision]", "0 and 5")),
        (
            {},
            "volumes: {job: [vision, vision], slot: [1, 1], node: [oregon, oregon], bytes: [1, 2]}",
            ("job vision", "node oregon", "twice"),
        ),
        ({"arrive": "9 h"}, "", ("arrive_us is 9 h", "6 h")),
        ({}, "spend_caps: [{tenant: vision-team}]", ("tenant -> spending limits in USD",)),
        ({}, "spend_caps: {vision-team: 5}", ("slot_usd, total_usd",)),
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


def test_rows_outside_the_stay_of_their_job_are_warned_of(tmp_path: Path) -> None:
    rows = "volumes: {job: [vision, vision], slot: [0, 4], node: [oregon, oregon], bytes: [1 GB, 1 GB]}"
    with pytest.warns(
        InputWarning, match=r"2 rows .* slot 0 of jobs\[vision\], which is there in slots 1 to 3"
    ):
        load(tmp_path / "a.yaml", rows, arrive="1 h")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the slots in which it comes and goes count
        load(tmp_path / "b.yaml", rows, arrive="30 min", work=", stay_us: 4 h")


def test_a_resource_that_differs_from_one_in_use_by_a_letter_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(HEAD.format(slot="1 h", usd="3.0", arrive="0 h", work=", stay_us: 3 h"))
    path.write_text(path.read_text().replace("{gpu: 3.1}", "{gpu: 3.1}, capacity: {GPUs: 4, gpu_b: 1}"))
    with pytest.warns(
        InputWarning, match=r"nodes\[dublin\] has 'GPUs', which no job uses; did you mean 'gpu'"
    ):
        tw.load(path)


def test_a_file_of_another_kind_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    load(path)
    with pytest.raises(
        TradewindError, match=r"the file is a scenario, .* needed is jobs for `tradewind plan`"
    ):
        load_jobs(path)
    path.write_text("tradewind_jobs: 1\n")
    with pytest.raises(TradewindError, match="the file is jobs for `tradewind plan`; needed is a scenario"):
        tw.load(path)


@pytest.mark.parametrize("us", [0, 1, 1500, 90_000_000, 5_400_000_000, 86_400_000_000])
def test_a_time_is_written_as_it_is_read(us: int) -> None:
    assert parse_time_us(time_text(us)) == us

"""Networks from files: what is read, and clear errors for what cannot be planned on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tradewind.model.errors import InputError, LookupFailed
from tradewind.systems.apsp.workload.bandwidth import drawn_mbps
from tradewind.systems.apsp.workload.draw import draw_mbps, rule_mbps
from tradewind.systems.apsp.workload.topologies import read_topology

GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="label" attr.type="string"/>
  <key id="d1" for="node" attr.name="Latitude" attr.type="double"/>
  <key id="d2" for="node" attr.name="Longitude" attr.type="double"/>
  <key id="d3" for="edge" attr.name="LinkSpeedRaw" attr.type="double"/>
  <graph edgedefault="undirected">
    <node id="0"><data key="d0">Oslo</data><data key="d1">59.9</data><data key="d2">10.7</data></node>
    <node id="1"><data key="d0">Bergen</data><data key="d1">60.4</data><data key="d2">5.3</data></node>
    <node id="2"><data key="d0">Hub</data></node>
    <edge source="0" target="1"><data key="d3">1000000000</data></edge>
    <edge source="1" target="2"><data key="d3">2000000000</data></edge>
    <edge source="2" target="0"><data key="d3">3000000000</data></edge>
  </graph>
</graphml>
"""


def write(folder: Path, links: list[object], nodes: int = 3) -> Path:
    path = folder / "net.json"
    sites = [{"id": i, "name": f"n{i}", "lat": 10.0 * i, "lon": 5.0} for i in range(nodes)]
    path.write_text(json.dumps({"name": "net", "nodes": sites, "links": links}))
    return path


def test_the_shipped_networks_have_the_paper_s_sizes() -> None:
    b4, internet2 = read_topology("b4"), read_topology("Internet2")
    assert (len(b4.nodes), len(b4.links)) == (12, 19)
    assert (len(internet2.nodes), len(internet2.links)) == (9, 13)
    assert b4.km()[0] == pytest.approx(3098.7, abs=1)


def test_graphml_gives_speeds_and_guesses_missing_positions(tmp_path: Path) -> None:
    path = tmp_path / "zoo.graphml"
    path.write_text(GRAPHML)
    found = read_topology(path)
    assert found.nodes == ("Oslo", "Bergen", "Hub")
    assert [link.ab_mbps for link in found.links] == [1000.0, 3000.0, 2000.0]
    assert "1 nodes had no position" in found.notes[0]
    assert found.position[2] == pytest.approx((60.15, 8.0))


def test_gml_is_read(tmp_path: Path) -> None:
    path = tmp_path / "net.gml"
    path.write_text(
        'graph [ node [ id 0 label "A" lat 1.0 lon 2.0 ] node [ id 1 label "B" lat 3.0 lon 4.0 ]\n'
        " edge [ source 0 target 1 ] ]"
    )
    assert read_topology(path).nodes == ("A", "B")


def test_a_table_of_pairs_makes_one_link_of_two_directions(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(
        "src,dst,gbps,rtt_ms,usd_per_gb\na,b,2,80,0.02\nb,a,1,82,0.09\na,c,3,10,\nc,a,3,10,0.01\n"
    )
    found = read_topology(path)
    link = found.links[0]
    assert (link.ab_mbps, link.ba_mbps, link.latency_us) == (2000.0, 1000.0, 41_000)
    assert (link.ab_usd_per_gb, link.ba_usd_per_gb, link.priced) == (0.02, 0.09, True)
    assert not found.links[1].priced
    assert any("no price" in note for note in found.notes)


def test_parallel_links_are_merged_and_noted_or_refused(tmp_path: Path) -> None:
    links: list[object] = [
        {"u": 0, "v": 1, "mbps": 5},
        {"u": 1, "v": 0, "mbps": 7},
        {"u": 1, "v": 2, "mbps": 1},
    ]
    path = write(tmp_path, links)
    found = read_topology(path)
    assert [link.ab_mbps for link in found.links] == [12.0, 1.0]
    assert "merged" in found.notes[0]
    with pytest.raises(InputError, match="two links join"):
        read_topology(path, parallel="refuse")


@pytest.mark.parametrize(
    ("links", "nodes", "message"),
    [
        ([{"u": 0, "v": 1, "mbps": 5}], 3, "falls into 2 parts"),
        ([{"u": 0, "v": 0}], 2, "link to itself"),
        ([{"u": 0, "v": 1, "mbps": 0}], 2, "must be positive"),
        ([{"u": 0, "v": 1, "mbps": -4}], 2, "must be positive"),
        ([{"u": 0, "v": 1, "mbps": float("nan")}], 2, "finite number"),
        ([{"u": 0, "v": 1, "mbps": "fast"}], 2, "allowed is a number"),
        ([{"u": 0, "v": 9}], 2, "not a node"),
        ([], 1, "at least two"),
    ],
)
def test_unusable_networks_are_rejected_with_a_reason(
    tmp_path: Path, links: list[object], nodes: int, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_topology(write(tmp_path, links, nodes))


def test_unknown_names_and_files_are_reported(tmp_path: Path) -> None:
    with pytest.raises(LookupFailed, match="b4"):
        read_topology("b5")
    with pytest.raises(InputError, match="no such file"):
        read_topology("nowhere.graphml")
    other = tmp_path / "net.txt"
    other.write_text("x")
    with pytest.raises(InputError, match=r"allowed are \.graphml"):
        read_topology(other)
    broken = tmp_path / "net.json"
    broken.write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        read_topology(broken)
    with pytest.raises(LookupFailed, match="Seattle"):
        read_topology("internet2").index("Seatle")


def test_rules_give_5000_to_the_shortest_and_500_to_the_longest_link() -> None:
    km = read_topology("b4").km()
    for rule in ("power", "linear"):
        mbps = rule_mbps(km, rule)
        assert mbps[km.argmin()] == pytest.approx(5000)
        assert mbps[km.argmax()] == pytest.approx(500)
    inverse = rule_mbps(km, "inverse")
    assert inverse.min() == 500
    assert inverse.max() <= 5000


def test_draws_are_whole_within_limits_and_fixed_by_the_seed() -> None:
    km = read_topology("b4").km()
    for rule in ("power", "linear", "inverse", "uniform"):
        one = draw_mbps(km, rule, 1000, np.random.default_rng(3))
        two = draw_mbps(km, rule, 1000, np.random.default_rng(3))
        assert (one == two).all()
        assert one.min() >= 1000
        assert one.max() <= 5000
    assert (draw_mbps(km, "power", 5000, np.random.default_rng(0)) == 5000).all()


def test_the_file_s_own_bandwidth_is_asked_for_where_there_is_none() -> None:
    with pytest.raises(InputError, match="no bandwidth in the file"):
        drawn_mbps(read_topology("b4"), "file", 500, 0)

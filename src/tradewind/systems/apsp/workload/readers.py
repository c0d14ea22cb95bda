"""Read topologies from JSON, GraphML, GML and tables of region pairs; the caller checks them."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx

from tradewind.model.errors import InputError
from tradewind.systems.apsp.workload.topology import Topology, TopologyLink


def read_json(path: Path) -> Topology:
    return from_json(json.loads(path.read_text("utf-8")), path.stem)


def from_json(data: Any, name: str) -> Topology:
    """Nodes {name, lat, lon} (id optional), links {u, v, km, mbps} or [name, name]."""
    if not isinstance(data, dict) or not {"nodes", "links"} <= set(data):
        raise InputError("a topology needs the lists 'nodes' and 'links'", where=name)
    nodes = data["nodes"]
    names = _distinct([str(n["name"]) for n in nodes])
    key = {n.get("id", label): i for i, (n, label) in enumerate(zip(nodes, names, strict=True))}
    key |= {label: i for i, label in enumerate(names) if label not in key}
    links = []
    for row, link in enumerate(data["links"]):
        ends = link if isinstance(link, list) else [link["u"], link["v"]]
        facts: Mapping[str, Any] = {} if isinstance(link, list) else link
        for end in ends:
            if end not in key:
                raise InputError(f"links[{row}] ends at {end!r}, which is not a node of the file", where=name)
        links.append(
            TopologyLink(
                a=key[ends[0]],
                b=key[ends[1]],
                ab_mbps=_number(facts.get("mbps"), f"{name}: links[{row}].mbps"),
                ba_mbps=_number(facts.get("mbps"), f"{name}: links[{row}].mbps"),
                km=_number(facts.get("km"), f"{name}: links[{row}].km"),
            )
        )
    place = tuple(_place(n.get("lat"), n.get("lon")) for n in nodes)
    return Topology(name=str(data.get("name", name)), nodes=tuple(names), links=tuple(links), position=place)


def read_graph(path: Path) -> Topology:
    """GraphML (Topology Zoo) or GML (SNDlib exports): positions and link speeds where given."""
    reader = nx.read_graphml if path.suffix.lower() == ".graphml" else _read_gml
    graph: Any = reader(path)
    ids = list(graph.nodes)
    names = _distinct([str(graph.nodes[n].get("label", n)) for n in ids])
    place = []
    for n in ids:
        facts = graph.nodes[n]
        where = (facts.get("Latitude", facts.get("lat")), facts.get("Longitude", facts.get("lon")))
        if where[0] is None and isinstance(facts.get("pos"), list | tuple):
            where = (facts["pos"][1], facts["pos"][0])
        place.append(_place(*where))
    key = {n: i for i, n in enumerate(ids)}
    links = []
    for u, v, facts in graph.edges(data=True):
        speed = _number(facts.get("LinkSpeedRaw"), f"{path.name}: LinkSpeedRaw")
        mbps = None if speed is None else speed / 1e6
        km = _number(facts.get("dist", facts.get("km")), f"{path.name}: dist")
        links.append(TopologyLink(a=key[u], b=key[v], ab_mbps=mbps, ba_mbps=mbps, km=km))
    both = _neighbours_mean(place, links)
    lost = sum(p is None for p in place)
    notes = (
        [f"{lost} nodes had no position; they got the mean of their neighbours'"]
        if 0 < lost < len(ids)
        else []
    )
    if len(links) and all(link.ab_mbps is None for link in links):
        notes.append(
            _not_found("link", "LinkSpeedRaw (bit/s)", (facts for _, _, facts in graph.edges(data=True)))
        )
    if lost == len(ids):
        notes.append(_not_found("node", "Latitude and Longitude, lat and lon, or pos", graph.nodes.values()))
    return Topology(name=path.stem, nodes=tuple(names), links=tuple(links), position=both, notes=tuple(notes))


def _not_found(what: str, wanted: str, facts: Iterable[Mapping[str, Any]]) -> str:
    """A note about attributes that were looked for in vain, with those that are there."""
    there = sorted({str(name) for each in facts for name in each})
    return f"no {what} has {wanted}; its attributes are {', '.join(there) if there else 'none'}"


def _read_gml(path: Path) -> Any:
    try:
        return nx.read_gml(path, label="id")
    except nx.NetworkXError:
        return nx.read_gml(path)


class _Pair(NamedTuple):
    """One direction between two regions: Mbit/s, round-trip time and price where known."""

    mbps: float
    rtt_ms: float | None
    usd_per_gb: float | None


def read_pairs(path: Path) -> Topology:
    """A table of directed pairs: src, dst, gbps (or gbps_median), rtt_ms, usd_per_gb; the two directions make a link."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = set(rows[0]) if rows else set()
    speed = "gbps_median" if "gbps_median" in columns else "gbps"
    if not {"src", "dst", speed} <= columns:
        raise InputError(
            "a table of pairs needs the columns src, dst, gbps (rtt_ms, usd_per_gb)", where=path.name
        )
    names = sorted({row["src"] for row in rows} | {row["dst"] for row in rows})
    pairs = _pairs(path.name, rows, {name: i for i, name in enumerate(names)}, speed)
    links = tuple(
        _pair_link(ends, pair, pairs.get(ends[::-1], pair), priced_table="usd_per_gb" in columns)
        for ends, pair in pairs.items()
        if ends[0] < ends[1] or ends[::-1] not in pairs
    )
    return Topology(
        name=path.stem,
        nodes=tuple(names),
        links=links,
        position=(None,) * len(names),
        notes=_pair_notes(pairs, links, with_rtt="rtt_ms" in columns),
    )


def _pairs(
    name: str, rows: Sequence[Mapping[str, str]], number: Mapping[str, int], speed: str
) -> dict[tuple[int, int], _Pair]:
    """(from, to) -> what the table states, checked."""
    pairs: dict[tuple[int, int], _Pair] = {}
    for line, row in enumerate(rows, start=2):
        where = f"{name}: line {line}"
        ends = (number[row["src"]], number[row["dst"]])
        if ends in pairs:
            raise InputError(f"{row['src']} to {row['dst']} is given twice; keep one", where=where)
        gbps = _number(row[speed], f"{where}, {speed}")
        if gbps is None or gbps <= 0:
            raise InputError(f"{speed} is {row[speed]!r}; it must be positive", where=where)
        rtt = _number(row.get("rtt_ms") or None, f"{where}, rtt_ms")
        usd = _number(row.get("usd_per_gb") or None, f"{where}, usd_per_gb")
        pairs[ends] = _Pair(gbps * 1000, rtt, usd)
    return pairs


def _pair_link(ends: tuple[int, int], there: _Pair, back: _Pair, *, priced_table: bool) -> TopologyLink:
    """The link of two directions; its latency is half of the larger round-trip time."""
    times = [pair.rtt_ms for pair in (there, back) if pair.rtt_ms is not None]
    known = there.usd_per_gb is not None and back.usd_per_gb is not None
    return TopologyLink(
        a=ends[0],
        b=ends[1],
        ab_mbps=there.mbps,
        ba_mbps=back.mbps,
        latency_us=round(500 * max(times, default=0.0)),
        ab_usd_per_gb=there.usd_per_gb or 0.0,
        ba_usd_per_gb=back.usd_per_gb or 0.0,
        priced=known or not priced_table,
    )


def _pair_notes(
    pairs: Mapping[tuple[int, int], _Pair], links: Sequence[TopologyLink], *, with_rtt: bool
) -> tuple[str, ...]:
    """What was assumed where a table of pairs is incomplete."""
    notes = []
    if one_way := sum((b, a) not in pairs for a, b in pairs):
        notes.append(f"{one_way} pairs are given one way only; the way back is taken to be the same")
    timed = {ends for ends, pair in pairs.items() if pair.rtt_ms is not None}
    without_rtt = sum((link.a, link.b) not in timed and (link.b, link.a) not in timed for link in links)
    if without_rtt and with_rtt:
        notes.append(f"{without_rtt} links have no RTT; their latency counts as 0")
    if unknown := sum(not link.priced for link in links):
        notes.append(f"{unknown} links have no price; plans over them have no cost")
    if inner := sum(a == b for a, b in pairs):
        notes.append(f"{inner} rows lie within a region; they are left out")
    return tuple(notes)


def _number(value: Any, where: str) -> float | None:
    if value is None:
        return None
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise InputError(f"found {value!r}; allowed is a number", where=where) from None
    if not math.isfinite(found):
        raise InputError(f"found {value!r}; allowed is a finite number", where=where)
    return found


def _place(lat: Any, lon: Any) -> tuple[float, float] | None:
    if lat is None or lon is None:
        return None
    return float(lat), float(lon)


def _distinct(names: list[str]) -> list[str]:
    """Make names distinct: the second node of a name gets the suffix " 2", and so on."""
    count: dict[str, int] = {}
    found, taken = [], set(names)
    for name in names:
        count[name] = count.get(name, 0) + 1
        label = name
        while count[name] > 1 and (label == name or label in taken):
            label = f"{name} {count[name]}"
            count[name] += label in taken
        taken.add(label)
        found.append(label)
    return found


def _neighbours_mean(
    place: list[tuple[float, float] | None], links: list[TopologyLink]
) -> tuple[tuple[float, float] | None, ...]:
    near: list[set[int]] = [set() for _ in place]
    for link in links:
        near[link.a].add(link.b)
        near[link.b].add(link.a)
    found = list(place)
    for _ in range(len(place)):
        missing = [i for i, p in enumerate(found) if p is None]
        update = {}
        for i in missing:
            known = [p for p in (found[j] for j in sorted(near[i])) if p is not None]
            if known:
                update[i] = (sum(p[0] for p in known) / len(known), sum(p[1] for p in known) / len(known))
        if not update:
            break
        for i, value in update.items():
            found[i] = value
    return tuple(found)

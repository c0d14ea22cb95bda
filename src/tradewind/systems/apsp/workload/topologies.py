"""Read networks from files: the shipped B4 and Internet2, GraphML and GML, JSON, and tables of region pairs.

A topology has names, positions where they are known, and links with what the file states about them. Parallel links are
merged (their bandwidths add up) unless the caller refuses them; a link from a node to itself is an error.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import networkx as nx
import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.errors import InputError, LookupFailed
from tradewind.systems.apsp.workload.draw import great_circle_km

SHIPPED = ("b4", "internet2")
US_PER_KM = 5.0
"""Light in fibre: 5 microseconds per km."""
Parallel = Literal["merge", "refuse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyLink:
    """A link as a file states it: bandwidths in Mbit/s (None: not stated), latency in us one way, price in USD/GB.

    priced: False where a table of prices leaves this pair out; its price is then unknown, not 0.
    """

    a: int
    b: int
    ab_mbps: float | None = None
    ba_mbps: float | None = None
    km: float | None = None
    latency_us: int | None = None
    ab_usd_per_gb: float = 0.0
    ba_usd_per_gb: float = 0.0
    priced: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Nodes and links; notes: what the reader changed or assumed."""

    name: str
    nodes: tuple[str, ...]
    links: tuple[TopologyLink, ...]
    position: tuple[tuple[float, float] | None, ...] = ()
    notes: tuple[str, ...] = ()

    def index(self, name: str) -> int:
        """Number of a node by name; an unknown name raises LookupFailed with a suggestion."""
        if name not in self.nodes:
            raise LookupFailed("site", name, self.nodes)
        return self.nodes.index(name)

    def km(self) -> Floats:
        """Length of each link (L,); from positions where the file does not state it."""
        known = [link.km for link in self.links]
        if all(k is not None for k in known):
            return np.array(known, dtype=np.float64)
        if any(p is None for p in self.position) or not self.position:
            raise InputError(
                "lengths of links are needed for a bandwidth rule, but some nodes have no position; "
                "add lat and lon, or use the file's own bandwidths",
                where=self.name,
            )
        lat = np.array([p[0] for p in self.position if p is not None])
        lon = np.array([p[1] for p in self.position if p is not None])
        a, b = self.ends()
        return great_circle_km(lat, lon, a, b)

    def ends(self) -> tuple[Ints, Ints]:
        """a (L,) and b (L,) of every link."""
        return (
            np.array([link.a for link in self.links], dtype=np.int64),
            np.array([link.b for link in self.links], dtype=np.int64),
        )

    def latency_us(self) -> list[int]:
        """One-way latency of each link, as stated or by length; 0 where neither is known."""
        lengths: Iterable[float]
        try:
            lengths = self.km().tolist()
        except InputError:
            lengths = [0.0] * len(self.links)
        return [
            round(US_PER_KM * km) if link.latency_us is None else link.latency_us
            for link, km in zip(self.links, lengths, strict=True)
        ]


def read_topology(source: str | Path, *, parallel: Parallel = "merge") -> Topology:
    """A shipped network by name, or a .graphml, .gml, .json or .csv file, checked."""
    text = str(source)
    if text.lower() in SHIPPED:
        body = (
            resources.files("tradewind.systems.apsp.workload")
            .joinpath("data", f"{text.lower()}.json")
            .read_text("utf-8")
        )
        return _checked(_from_json(json.loads(body), text), parallel)
    path = Path(source)
    if not path.exists():
        if not path.suffix:
            raise LookupFailed("shipped network or topology file", text, SHIPPED)
        raise InputError(f"no such file; shipped are {', '.join(SHIPPED)}", where=text)
    readers = {".graphml": _read_graph, ".gml": _read_graph, ".json": _read_json, ".csv": _read_pairs}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"found a file of another kind; allowed are {', '.join(readers)}", where=text)
    try:
        found = reader(path)
    except InputError:
        raise
    except Exception as problem:  # a damaged file can fail anywhere in the libraries that read it
        raise InputError(f"the file cannot be read as {path.suffix[1:]}: {problem}", where=text) from None
    return _checked(found, parallel)


def _read_json(path: Path) -> Topology:
    return _from_json(json.loads(path.read_text("utf-8")), path.stem)


def _from_json(data: Any, name: str) -> Topology:
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


def _read_graph(path: Path) -> Topology:
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
    notes = (f"{lost} nodes had no position; they got the mean of their neighbours'",) if lost else ()
    return Topology(name=path.stem, nodes=tuple(names), links=tuple(links), position=both, notes=notes)


def _read_gml(path: Path) -> Any:
    try:
        return nx.read_gml(path, label="id")
    except nx.NetworkXError:
        return nx.read_gml(path)


def _read_pairs(path: Path) -> Topology:
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
    key = {name: i for i, name in enumerate(names)}
    pairs: dict[tuple[int, int], tuple[float, float | None, float | None]] = {}
    for number, row in enumerate(rows, start=2):
        where = f"{path.name}: line {number}"
        ends = (key[row["src"]], key[row["dst"]])
        if ends in pairs:
            raise InputError(f"{row['src']} to {row['dst']} is given twice; keep one", where=where)
        gbps = _number(row[speed], f"{where}, {speed}")
        if gbps is None or gbps <= 0:
            raise InputError(f"{speed} is {row[speed]!r}; it must be positive", where=where)
        rtt = _number(row.get("rtt_ms") or None, f"{where}, rtt_ms")
        usd = _number(row.get("usd_per_gb") or None, f"{where}, usd_per_gb")
        pairs[ends] = (gbps * 1000, rtt, usd)
    links: list[TopologyLink] = []
    one_way = without_rtt = 0
    for (a, b), (mbps, rtt, usd) in pairs.items():
        if a < b or (b, a) not in pairs:
            back = pairs.get((b, a))
            one_way += back is None
            there = back or (mbps, rtt, usd)
            times = [t for t in (rtt, there[1]) if t is not None]
            known = usd is not None and there[2] is not None
            links.append(
                TopologyLink(
                    a=a,
                    b=b,
                    ab_mbps=mbps,
                    ba_mbps=there[0],
                    latency_us=round(500 * max(times, default=0.0)),
                    ab_usd_per_gb=usd or 0.0,
                    ba_usd_per_gb=there[2] or 0.0,
                    priced=known or "usd_per_gb" not in columns,
                )
            )
            without_rtt += not times
    notes = (
        [f"{one_way} pairs are given one way only; the way back is taken to be the same"] if one_way else []
    )
    if without_rtt and "rtt_ms" in columns:
        notes.append(f"{without_rtt} links have no RTT; their latency counts as 0")
    if unknown := sum(not link.priced for link in links):
        notes.append(f"{unknown} links have no price; plans over them have no cost")
    if inner := sum(a == b for a, b in pairs):
        notes.append(f"{inner} rows lie within a region; they are left out")
    return Topology(
        name=path.stem,
        nodes=tuple(names),
        links=tuple(links),
        position=(None,) * len(names),
        notes=tuple(notes),
    )


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


def _checked(found: Topology, parallel: Parallel) -> Topology:
    """Reject networks that cannot be planned on; merge parallel links."""
    name = found.name
    if len(found.nodes) < 2:
        raise InputError(f"the network has {len(found.nodes)} node; at least two are needed", where=name)
    merged: dict[tuple[int, int], TopologyLink] = {}
    for link in found.links:
        ends = f"{found.nodes[link.a]} - {found.nodes[link.b]}"
        if link.a == link.b:
            raise InputError(
                f"{found.nodes[link.a]} has a link to itself; remove it from the file", where=name
            )
        for mbps in (link.ab_mbps, link.ba_mbps):
            if mbps is not None and mbps <= 0:
                raise InputError(f"the link {ends} has {mbps:g} Mbit/s; it must be positive", where=name)
        key = (min(link.a, link.b), max(link.a, link.b))
        if key not in merged:
            merged[key] = link
            continue
        if parallel == "refuse":
            raise InputError(
                f"two links join {ends}; merge them in the file, or read with parallel=merge", where=name
            )
        merged[key] = _both(merged[key], link)
    notes = found.notes
    if extra := len(found.links) - len(merged):
        notes = (*notes, f"{extra} parallel links were merged; where bandwidths are given they add up")
    _connected(found)
    return replace(found, links=tuple(merged.values()), notes=notes)


def _both(one: TopologyLink, two: TopologyLink) -> TopologyLink:
    other = (two.ab_mbps, two.ba_mbps) if two.a == one.a else (two.ba_mbps, two.ab_mbps)
    if one.ab_mbps is None or one.ba_mbps is None or other[0] is None or other[1] is None:
        return one
    return replace(one, ab_mbps=one.ab_mbps + other[0], ba_mbps=one.ba_mbps + other[1])


def _connected(found: Topology) -> None:
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(found.nodes)))
    graph.add_edges_from((link.a, link.b) for link in found.links)
    parts = sorted(nx.connected_components(graph), key=lambda part: (-len(part), min(part)))
    if len(parts) > 1:
        lost = found.nodes[min(parts[1])]
        raise InputError(
            f"the network falls into {len(parts)} parts; {lost!r} cannot be reached from "
            f"{found.nodes[min(parts[0])]!r}. Add a link, or keep one part.",
            where=found.name,
        )

"""Read networks from files: the shipped B4 and Internet2, GraphML and GML, JSON, and tables of region pairs.

A topology has names, positions where they are known, and links with what the file states about them. Parallel links are
merged (their bandwidths add up) unless the caller refuses them; a link from a node to itself is an error.
"""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Literal

import networkx as nx

from tradewind.model.errors import InputError, LookupFailed
from tradewind.systems.apsp.workload.readers import from_json, read_graph, read_json, read_pairs
from tradewind.systems.apsp.workload.topology import Topology, TopologyLink

SHIPPED = ("b4", "internet2")
Parallel = Literal["merge", "refuse"]


def read_topology(source: str | Path, *, parallel: Parallel = "merge") -> Topology:
    """A shipped network by name, or a .graphml, .gml, .json or .csv file, checked."""
    text = str(source)
    if text.lower() in SHIPPED:
        body = (
            resources.files("tradewind.systems.apsp.workload")
            .joinpath("data", f"{text.lower()}.json")
            .read_text("utf-8")
        )
        return _checked(from_json(json.loads(body), text), parallel)
    path = Path(source)
    if not path.exists():
        if not path.suffix:
            raise LookupFailed("shipped network or topology file", text, SHIPPED)
        raise InputError(f"no such file; shipped are {', '.join(SHIPPED)}", where=text)
    readers = {".graphml": read_graph, ".gml": read_graph, ".json": read_json, ".csv": read_pairs}
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

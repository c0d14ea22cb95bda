"""Where jobs ran: a graph of nodes with the flows between them, or a heat map of servers over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from tradewind.model.arrays import Floats, Ints
from tradewind.prices.builtin import positions
from tradewind.report.figures import labels
from tradewind.report.figures.bars import beside
from tradewind.report.figures.curves import time_axis
from tradewind.report.figures.data import RunData, bins, link_bps, moved_bytes
from tradewind.report.figures.theme import Theme, canvas, style_axes

MOST_ARCS = 60
MANY = 300
"""Graphs with at least this many nodes show no names and only the largest flows."""
MOST_NAMES = 40
"""Most nodes that all have their names on a wide page; of more, the busiest have."""
MOST_HEAT_ROWS = 160
HEAT_COLUMNS = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """A graph ready to draw.

    xy      position of each node (N, 2), within [-1, 1];  names  (N,)
    busy    mean units in use at each node (N,);  share  busy / capacity, nan if unlimited
    serves  mean number of parameter servers at each node (N,)
    links   ends of each link (L, 2);  link_bps  mean reserved bit/s (L,)
    arcs    src and dst of bytes moved (F, 2), largest first;  arc_bytes (F,);  arcs_left  number of arcs not drawn
    arc_is_traffic  whether they are parameters of models, not data (F,)
    """

    xy: Floats
    names: tuple[str, ...]
    busy: Floats
    share: Floats
    serves: Floats
    links: Ints
    link_bps: Floats
    arcs: Ints
    arc_bytes: Floats
    arc_is_traffic: NDArray[np.bool_]
    arcs_left: int


def has_graph(data: RunData) -> bool:
    """Whether the run has links, or data that moved between nodes."""
    return bool(data.base.setup.links) or len(moved_bytes(data)[0]) > 0


def graph(data: RunData) -> Graph:
    """Nodes, links and flows; nodes without link, flow or work are left out."""
    setup, kind = data.base.setup, data.main_kind
    whole = np.array([0.0, float(data.end_us)])
    busy = data.used_by_node(kind, whole)[:, 0]
    serves = data.servers_by_node()
    src, dst, size, traffic = moved_bytes(data)
    links = np.array([(link.a, link.b) for link in setup.links], dtype=np.int64).reshape(-1, 2)
    most = MOST_ARCS if len(setup.nodes) < MANY else MOST_ARCS // 3
    arcs = np.stack((src, dst), axis=1)[:most]
    limits = data.base.node_capacity[:, kind]
    into = _drawn_at(data, np.unique(np.concatenate((links.ravel(), src, dst))))
    busy, serves = _summed(into, busy, len(into)), _summed(into, serves, len(into))
    folded = np.flatnonzero((into != np.arange(len(into))) & np.isin(np.arange(len(into)), setup.hosts))
    below = _summed(into[folded], limits[folded], len(into))
    limits = np.where(np.isfinite(limits) | (below == 0), limits, below)
    shown = np.unique(np.concatenate((links.ravel(), arcs.ravel(), np.flatnonzero(busy > 0), _roots(data))))
    place = np.full(len(setup.nodes), -1, dtype=np.int64)
    place[shown] = np.arange(len(shown))
    capacity = limits[shown]
    limited = np.isfinite(capacity) & (capacity > 0)
    share = np.where(limited, busy[shown] / np.where(limited, capacity, 1.0), np.nan)
    names = tuple(setup.nodes[int(n)].name for n in shown)
    known = _known_positions(data, names)
    return Graph(
        xy=layout(len(shown), place[links]) if known is None else known, names=names,
        busy=busy[shown], share=share, serves=serves[shown], links=place[links], link_bps=link_bps(data),
        arcs=place[arcs], arc_bytes=size[:most], arc_is_traffic=traffic[:most], arcs_left=max(0, len(size) - most),
    )  # fmt: skip


def _summed(into: Ints, amount: Floats, count: int) -> Floats:
    """Amounts added up where they are drawn, (N,)."""
    return np.bincount(into, amount, count).astype(np.float64)


def _drawn_at(data: RunData, ends: Ints) -> Ints:
    """The node at which each node is drawn, (N,): the nearest above it that flows or links reach, else itself.

    So machines that a site offers are drawn as that site, to which data is moved.
    """
    reached, nodes = set(ends.tolist()), data.base.setup.nodes
    found = np.arange(len(nodes))
    for start in range(len(nodes)):
        at = start
        while at >= 0 and at not in reached:
            at = nodes[at].parent
        found[start] = at if at >= 0 else start
    return found


def _roots(data: RunData) -> Ints:
    """All sites if there are at most 40, else none."""
    roots = np.flatnonzero([n.parent < 0 and n.kind == "site" for n in data.base.setup.nodes])
    return roots if len(roots) <= 40 else roots[:0]


def layout(count: int, links: Ints) -> Floats:
    """Deterministic positions within [-1, 1].

    A circle if there are no links, rings around the centre of a tree, springs for a connected network of up to 80 nodes,
    pivot scaling for larger ones.
    """
    network: Any = nx.Graph()
    network.add_nodes_from(range(count))
    network.add_edges_from((int(a), int(b)) for a, b in links)
    if not len(links):
        found = nx.circular_layout(network)
    elif nx.is_forest(network) and nx.is_connected(network) and count > 2:
        found = _radial(network)
    elif count <= 80 and nx.is_connected(network):
        found = nx.kamada_kawai_layout(network, pos=nx.circular_layout(network))
    else:
        found = dict(enumerate(_by_distance(count, links)))
    return _spread(np.array([found[n] for n in range(count)], dtype=np.float64).reshape(-1, 2))


def _spread(xy: Floats) -> Floats:
    """Positions (N, 2) stretched to fill [-1, 1] in both directions."""
    low, high = xy.min(axis=0), xy.max(axis=0)
    return np.where(high > low, 2 * (xy - low) / np.where(high > low, high - low, 1.0) - 1, 0.0)


def _known_positions(data: RunData, names: Sequence[str]) -> Floats | None:
    """Positions within [-1, 1] from latitudes and longitudes; None where one is missing.

    They are those in the scenario's origin, or those of the clouds' regions where all nodes are called by them.
    """
    known = data.base.scenario.origin.get("positions")
    if not isinstance(known, Mapping):
        known = positions()
    if any(name not in known for name in names):
        return None
    try:
        degrees = np.array([known[name] for name in names], dtype=np.float64).reshape(len(names), 2)
    except (TypeError, ValueError):
        return None
    if not np.isfinite(degrees).all():
        return None
    return _spread(degrees[:, ::-1])  # east to the right, north up


def _by_distance(count: int, links: Ints, pivots: int = 50) -> Floats:
    """Pivot multidimensional scaling: the plane that best preserves hop distances to some far-apart nodes, (N, 2)."""
    ones = np.ones(2 * len(links))
    ends = (np.concatenate((links[:, 0], links[:, 1])), np.concatenate((links[:, 1], links[:, 0])))
    graph = csr_array((ones, ends), shape=(count, count))
    pivot, nearest, columns = 0, np.full(count, np.inf), []
    for _ in range(min(pivots, count)):
        hops = np.asarray(shortest_path(graph, unweighted=True, indices=pivot), dtype=np.float64)
        hops[np.isinf(hops)] = 1.5 * max(1.0, float(hops[np.isfinite(hops)].max()))  # in another component
        columns.append(hops)
        nearest = np.minimum(nearest, hops)
        pivot = int(nearest.argmax())
    square = np.stack(columns, axis=1) ** 2
    square = square - square.mean(axis=0) - square.mean(axis=1, keepdims=True) + square.mean()
    _, vectors = np.linalg.eigh(square.T @ square)
    xy = np.zeros((count, 2))
    xy[:, : min(2, len(vectors))] = square @ vectors[:, ::-1][:, :2]
    farthest = xy[np.abs(xy).argmax(axis=0), [0, 1]]
    xy *= np.where(farthest < 0, -1.0, 1.0)  # the sign of an eigenvector is arbitrary
    # leaves of the same neighbour have equal distances: separate them by a small fixed offset
    turn = np.arange(count) * 2.399963
    offset = 0.012 * float(np.abs(xy).max()) * np.sqrt(np.arange(count) % 17)
    moved: Floats = xy + offset[:, None] * np.stack((np.cos(turn), np.sin(turn)), axis=1)
    return moved


def _radial(network: Any) -> dict[int, Floats]:
    """Radial layout of a tree: depth is the radius, leaves share the circle evenly."""
    root = min(nx.center(network))
    children: dict[int, list[int]] = {n: [] for n in network}
    depth = {root: 0}
    for a, b in nx.bfs_edges(network, root):
        children[a].append(b)
        depth[b] = depth[a] + 1
    leaves = {n: 1 if not c else 0 for n, c in children.items()}
    for n in sorted(depth, key=lambda m: -depth[m]):
        leaves[n] += sum(leaves[c] for c in children[n])
    found: dict[int, Floats] = {}
    pending = [(root, 0.0, 2 * math.pi)]
    while pending:
        n, begin, end = pending.pop()
        angle = (begin + end) / 2
        found[n] = depth[n] * np.array([math.cos(angle), math.sin(angle)])
        share = (end - begin) / leaves[n]
        for c in children[n]:
            pending.append((c, begin, begin + share * leaves[c]))
            begin += share * leaves[c]
    return found


def draw_graph(g: Graph, theme: Theme, width: float, height: float = 0.0, scale: float = 1.0) -> Any:
    """Draw lines for reserved bandwidth, arrows for data moved, discs for resources in use (darker: higher utilisation)."""
    height = height or (480 if width > 600 else 0.95 * width)
    figure = canvas(width, height)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    pad = (46 if width > 600 else 34) + 6 * (scale - 1)
    unit = np.array([min(width / 2 - pad - 20, 0.78 * height), height / 2 - pad])
    xy = g.xy * unit
    if len(xy) <= 40:
        xy = labels.apart(xy, 44 if width > 600 else 30, unit)
    axes.set_xlim(-width / 2, width / 2)
    axes.set_ylim(-height / 2, height / 2)
    _draw_links(axes, g, xy, theme)
    _draw_arcs(axes, g, xy, theme)
    _draw_nodes(axes, g, xy, theme, np.array([width / 2, height / 2]), scale)
    return figure


def _draw_links(axes: Any, g: Graph, xy: Floats, theme: Theme) -> None:
    from matplotlib.collections import LineCollection

    if not len(g.links):
        return
    most = float(g.link_bps.max(initial=0.0))
    thin = 0.5 if len(g.links) > 300 else 1.0
    axes.add_collection(LineCollection(list(xy[g.links]), colors=theme.grid, linewidths=thin, zorder=1))
    if most > 0:
        used = np.flatnonzero(g.link_bps > 0)
        widths = 0.8 + 6.2 * g.link_bps[used] / most
        axes.add_collection(
            LineCollection(
                list(xy[g.links[used]]),
                colors=theme.heat,
                linewidths=widths,
                alpha=0.55,
                zorder=2,
                capstyle="round",
            )
        )


def _draw_arcs(axes: Any, g: Graph, xy: Floats, theme: Theme) -> None:
    from matplotlib.patches import FancyArrowPatch

    most = float(g.arc_bytes.max(initial=0.0))
    for (a, b), size, traffic in zip(g.arcs, g.arc_bytes, g.arc_is_traffic, strict=True):
        width = 0.7 + 4.3 * math.sqrt(size / most)
        head = f"-|>,head_length={2 + width},head_width={1 + width / 2}"
        axes.add_patch(
            FancyArrowPatch(
                xy[a], xy[b], connectionstyle=f"arc3,rad={_bend(traffic)}", arrowstyle=head,
                linewidth=width, color=theme.series[3 if traffic else 1], alpha=0.6, shrinkA=11, shrinkB=12, zorder=3,
            )
        )  # fmt: skip


def _draw_nodes(axes: Any, g: Graph, xy: Floats, theme: Theme, half: Floats, scale: float) -> None:
    count, width = len(xy), 2 * float(half[0])
    most = float(g.busy.max(initial=0.0))
    room = scale * (18.0 if width > 600 else 13.0) * min(1.0, math.sqrt(40 / max(count, 1)))
    size = room * (0.45 + 0.55 * np.sqrt(g.busy / most)) if most > 0 else np.full(count, room * 0.6)
    share = np.where(np.isfinite(g.share), g.share, g.busy / most if most > 0 else 0.0)
    axes.scatter(
        xy[:, 0], xy[:, 1], s=size**2, color=theme.panel, edgecolors=theme.muted, linewidths=1, zorder=4
    )
    for level in np.unique(np.round(np.clip(share, 0, 1), 1)):
        mine = np.round(np.clip(share, 0, 1), 1) == level
        if level > 0:
            axes.scatter(
                xy[mine, 0], xy[mine, 1], s=size[mine] ** 2, color=theme.heat, alpha=0.15 + 0.85 * level,
                linewidths=0, zorder=5,
            )  # fmt: skip
    hosting = np.flatnonzero(g.serves > 0.005)
    if 0 < len(hosting) < count:
        axes.scatter(
            xy[hosting, 0], xy[hosting, 1], s=(size[hosting] + 9) ** 2, color="none", edgecolors=theme.series[1],
            linewidths=1.2 + 1.8 * np.sqrt(g.serves[hosting] / g.serves.max()), zorder=6,
        )  # fmt: skip
    idle = _idle(g)
    named = np.lexsort((-g.busy, idle))  # those that do something first, the busiest at the head
    if count > (MOST_NAMES if width > 600 else 16):
        named = named[~idle[named]][: 8 if count < MANY else 0]
    texts = {int(n): labels.wrapped(g.names[n], 24 if width > 600 else 14) for n in named}
    gaps = size / 2 + np.where(np.isin(np.arange(count), hosting), 8.0, 4.0)
    clear = labels.Canvas(lines=_lines(g, xy), half=half - 2)
    behind = {"facecolor": theme.panel, "edgecolor": "none", "alpha": 0.75, "pad": 0.5}
    for n, (x, y) in labels.spots(xy, gaps, texts, clear, np.flatnonzero(idle)).items():
        axes.text(x, y, texts[n], ha="center", va="center", color=theme.ink, zorder=7, bbox=behind)


def _idle(g: Graph) -> NDArray[np.bool_]:
    """Nodes that neither work nor send or receive anything, (N,)."""
    used = (g.busy > 0) | (g.serves > 0)
    used[g.arcs.ravel()] = True
    return ~used


def _lines(g: Graph, xy: Floats) -> Floats:
    """Points of everything drawn as a line or an arrow, (P, 2)."""
    bent = [labels.points_of(xy[g.arcs[g.arc_is_traffic == kind]], _bend(kind)) for kind in (False, True)]
    return np.concatenate((labels.points_of(xy[g.links]), *bent))


def _bend(traffic: bool) -> float:
    """How far an arrow bends; parameters bend further than data, so that both are seen."""
    return 0.24 if traffic else 0.16


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """Utilisation of servers over time, ready to draw.

    share  utilisation (S, B); a row is one server, or several if there are many;  edges  of the time bins
    count  number of servers;  per_row  servers in a row;  names  of the first server of each row (S,)
    kind   name of the resource;  hosts  what the servers are called (Servers, Sites, …)
    """

    share: Floats
    count: int
    per_row: int
    names: tuple[str, ...]
    edges: Floats
    kind: str
    hosts: str

    @property
    def full(self) -> float:
        """Share that full colour means: 1, or less if the servers are mostly idle."""
        most = float(self.share.max(initial=0.0))
        return most if 0 < most < 0.5 else 1.0


def heat(data: RunData) -> Heat | None:
    """Utilisation of hosts over time in the main resource kind; None if their capacity is unlimited."""
    kind, setup = data.main_kind, data.base.setup
    hosts = np.asarray(setup.hosts, dtype=np.int64)
    capacity = data.base.node_capacity[hosts, kind]
    hosts, capacity = (
        hosts[np.isfinite(capacity) & (capacity > 0)],
        capacity[np.isfinite(capacity) & (capacity > 0)],
    )
    if not len(hosts):
        return None
    order = np.lexsort((hosts, np.array([setup.nodes[int(h)].parent for h in hosts])))
    hosts, capacity = hosts[order], capacity[order]
    edges = bins(data.shown_us, HEAT_COLUMNS)
    used = data.used_by_node(kind, edges)[hosts]
    per_row = -(-len(hosts) // MOST_HEAT_ROWS)
    first = np.arange(0, len(hosts), per_row)
    share = np.add.reduceat(used, first, axis=0) / np.add.reduceat(capacity, first)[:, None]
    names = tuple(setup.nodes[int(h)].name for h in hosts[first])
    return Heat(
        share=share, count=len(hosts), per_row=per_row, names=names, edges=edges,
        kind=data.base.kinds.names[kind], hosts=_host_name(data),
    )  # fmt: skip


def _host_name(data: RunData) -> str:
    """Plural of the hosts' kind: Servers, Sites, …; Nodes if there are several kinds."""
    found = {data.base.setup.nodes[n].kind for n in data.base.setup.hosts}
    return f"{found.pop().capitalize()}s" if len(found) == 1 else "Nodes"


def draw_heat(h: Heat, theme: Theme, colour: tuple[float, float, float], width: float) -> Any:
    """Draw the heat map as one bitmap; opacity is share / `full`, which suits light and dark pages."""
    rows = len(h.share)
    row = max(2.6, min(26.0, 420 / rows))
    height = rows * row + 48
    labelled = row >= 13
    names = [beside(n, width) for n in h.names]
    left = 14 + 7.0 * max(len(n) for n in names) if labelled else 30.0
    figure = canvas(width, height)
    axes = figure.add_axes((left / width, 40 / height, 1 - (left + 14) / width, 1 - 48 / height))
    end = int(h.edges[-1])
    per_unit = time_axis(axes, end)
    pixels = np.zeros((*h.share.shape, 4), dtype=np.uint8)
    pixels[..., :3] = np.round(255 * np.asarray(colour))
    pixels[..., 3] = np.round(255 * np.clip(h.share / h.full, 0.0, 1.0))
    axes.imshow(pixels, aspect="auto", interpolation="none", extent=(0, end / per_unit, rows, 0))
    style_axes(axes, theme, grid="")
    axes.spines["bottom"].set_visible(False)
    if labelled:
        axes.set_yticks(np.arange(rows) + 0.5, names, fontsize=12)
    else:
        axes.set_yticks([])
        axes.set_ylabel(f"{h.count} {h.hosts.lower()}", fontsize=12)
    return figure

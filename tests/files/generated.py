"""Strategies for scenarios and runs of all kinds of work, with names that are difficult for file formats."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tradewind.model.job import Customer, Dataset, Fixed, Job, Rounds, Stream, Work
from tradewind.model.network import Link
from tradewind.model.node import Node
from tradewind.model.result import Bound, Run, Violation
from tradewind.model.scenario import Scenario, Volumes
from tradewind.model.setup import OBJECTIVES, Setup
from tradewind.model.tables import TABLES
from tradewind.model.tariff import Tariff
from tradewind.model.units import LARGEST, MILLI, UNLIMITED
from tradewind.model.utility import Utility
from tradewind.model.view import Change

SLOT_US = 300_000_000
HORIZON_US = 100 * SLOT_US
HARD = [
    "no",
    "on",
    "1e5",
    "007",
    "0x1f",
    "null",
    "a-b",
    "a->b",
    "é",
    "x.y",
    "a,b",
    'q"q',
    "{z}",
    "[1]",
    "~",
    "1_000",
]
names = st.one_of(
    st.sampled_from(HARD),
    st.text("abcdefg-. 0123456789é#:", min_size=1, max_size=8).filter(lambda s: s.strip() == s),
)
amounts = st.one_of(st.integers(1, 64_000), st.integers(1, 1000).map(lambda n: n * 1000), st.just(10**15))
big = st.one_of(st.integers(1, 1000), st.integers(1, LARGEST))
dollars = st.floats(0, 1e6, allow_nan=False)
finite = st.floats(-1e9, 1e9, allow_nan=False)


@st.composite
def tariffs(draw: st.DrawFn) -> Tariff:
    tiers = draw(st.integers(1, 3))
    starts = sorted(draw(st.sets(st.integers(1, 10_000), min_size=tiers - 1, max_size=tiers - 1)))
    usd = sorted(draw(st.lists(dollars, min_size=tiers, max_size=tiers)), reverse=True)
    rule: Any = draw(st.sampled_from(("graduated", "retroactive")))
    return Tariff(starts=(0.0, *map(float, starts)), usd=tuple(usd), rule=rule)


@st.composite
def utilities(draw: st.DrawFn) -> Utility:
    of: Any = draw(st.sampled_from(("delay_slots", "progress", "payment")))
    if draw(st.booleans()):
        xs = sorted(draw(st.sets(st.integers(-100, 100), min_size=2, max_size=4)))
        args = tuple(float(v) for x in xs for v in (x, draw(finite)))
        return Utility(of=of, shape="piecewise", args=args, from_zero=draw(st.booleans()))
    return Utility(of=of, shape="sigmoid", args=(draw(finite), draw(finite), draw(finite)))


@st.composite
def setups(draw: st.DrawFn) -> Setup:
    resources = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    labels = draw(st.lists(names, min_size=2, max_size=5, unique=True))
    capacity = st.tuples(*(st.one_of(amounts, st.just(0), st.just(UNLIMITED)) for _ in resources))
    nodes = []
    for i, label in enumerate(labels):
        kind: Any = "site" if i < 2 else draw(st.sampled_from(("site", "rack", "server", "switch")))
        parent = draw(st.integers(-1, i - 1)) if i >= 2 else -1
        nodes.append(Node(name=label, kind=kind, parent=parent, capacity_milli=draw(capacity)))
    sites = [i for i, node in enumerate(nodes) if node.parent < 0]
    pairs = [(a, b) for a in sites for b in sites if a != b]
    egress = {
        pair: draw(tariffs()) for pair in draw(st.lists(st.sampled_from(pairs), max_size=3, unique=True))
    }
    if draw(st.booleans()):
        everywhere = draw(tariffs())
        egress = dict.fromkeys(pairs, everywhere) | egress
    keys = st.tuples(st.integers(0, len(nodes) - 1), st.integers(0, len(resources) - 1))
    return Setup(
        resources=tuple(resources),
        nodes=tuple(nodes),
        links=tuple(_link(draw, len(nodes), i) for i in range(draw(st.integers(1, 4)))),
        rent={key: draw(tariffs()) for key in draw(st.lists(keys, max_size=3))},
        egress=egress,
        transfer_bytes_per_slot=draw(st.one_of(st.none(), big)),
        window_slots=draw(st.one_of(st.none(), st.integers(1, 10**6))),
        slot_us=SLOT_US,
        horizon_us=HORIZON_US,
        transport=draw(st.sampled_from(("store-and-forward", "cut-through", "chunks:8"))),
        objective=draw(st.sampled_from(OBJECTIVES)),
        forecast=draw(st.dictionaries(names, finite, max_size=2)),
    )


def _link(draw: st.DrawFn, nodes: int, number: int) -> Link:
    a = 0 if number == 0 else draw(st.integers(0, nodes - 1))
    b = 1 if number == 0 else (a + draw(st.integers(1, nodes - 1))) % nodes
    ab, shared = draw(big), draw(st.booleans())
    ba = ab if shared else draw(big)
    return Link(
        a=a,
        b=b,
        ab_bps=ab,
        ba_bps=ba,
        shared=shared,
        latency_us=draw(st.integers(0, 10**6)),
        usd_per_gb=draw(dollars),
    )


def _work(draw: st.DrawFn, setup: Setup) -> tuple[Work, int | None]:
    match draw(st.sampled_from(("fixed", "stream", "dataset", "rounds", "flows"))):
        case "fixed":
            public = draw(st.one_of(st.none(), big))
            return Fixed(runtime_us=public), draw(big) if public is None else None
        case "stream":
            return Stream(bytes_per_worker_slot=draw(big)), draw(big)
        case "dataset":
            where = draw(st.lists(st.integers(0, len(setup.nodes) - 1), min_size=1, max_size=3, unique=True))
            return Dataset(
                chunks=tuple((node, draw(st.integers(1, 99))) for node in where),
                chunk_bytes=draw(big),
                epochs=draw(st.integers(1, 200)),
                chunk_epochs_per_worker_slot_milli=draw(amounts),
            ), None
        case "rounds":
            unit: Any = draw(st.sampled_from(("round", "worker-slot")))
            comm: Any = draw(st.sampled_from(("none", "colocated", "ring")))
            rate = draw(st.floats(0.001, 1e6))
            return Rounds(
                count=draw(big),
                unit=unit,
                compute_us=draw(big),
                comm=comm,
                rate=rate,
                whole_slots=draw(st.booleans()),
            ), None
    return Rounds(count=3, compute_us=draw(big), comm="flows", pinned=((1, 2), (0, 1))), None


@st.composite
def jobs(draw: st.DrawFn, setup: Setup, index: int, name: str, arrive_us: int) -> tuple[Job, Customer]:
    work, private = _work(draw, setup)
    demand = st.lists(st.integers(0, len(setup.resources) - 1), min_size=1, unique=True).flatmap(
        lambda picked: st.tuples(*(st.tuples(st.just(r), amounts) for r in sorted(picked)))
    )
    nodes = st.one_of(st.none(), st.frozensets(st.integers(0, len(setup.nodes) - 1), min_size=1))
    gathers = isinstance(work, Rounds) and work.comm == "flows"
    low = 3 if gathers else draw(st.integers(1, 4))
    ring = not gathers and draw(st.booleans())
    none_or_big = st.one_of(st.just(0), big)
    job = Job(
        index=index,
        id=name,
        arrive_us=arrive_us,
        work=work,
        worker=draw(demand),
        tenant=draw(st.one_of(st.just(""), names)),
        architecture="ring" if ring else "ps",
        server=() if ring else draw(demand),
        servers=0 if ring else 1 if gathers else draw(st.integers(0, 3)),
        workers_min=low,
        workers_max=low + draw(st.integers(0, 3)),
        utility=draw(st.one_of(st.none(), utilities())),
        nodes=draw(nodes),
        data_nodes=draw(nodes),
        worker_bps=draw(big),
        server_bps=draw(big),
        ring_bps=draw(big),
        deploy_usd=draw(dollars),
        hold="through" if draw(st.booleans()) else "until",
        caps=draw(st.one_of(st.just(()), demand)),
        command=tuple(draw(st.lists(st.sampled_from(("python", "-m", "a b", "1", "\n", "é")), max_size=3))),
        model_bytes=draw(none_or_big),
        traffic_bytes_per_worker_slot=draw(none_or_big),
        reduce_bps=draw(none_or_big),
        restart_us=draw(none_or_big),
    )
    customer = Customer(
        budget_usd=draw(st.one_of(st.none(), dollars)),
        valuation=draw(st.one_of(st.none(), utilities())),
        runtime_us=private,
    )
    return job, customer


def _changes(draw: st.DrawFn, setup: Setup) -> tuple[Change, ...]:
    nodes, links = st.integers(0, len(setup.nodes) - 1), st.integers(0, len(setup.links) - 1)
    resources, milli = st.integers(0, len(setup.resources) - 1), st.integers(0, 5000)
    limited = [
        i for i, node in enumerate(setup.nodes) if i in setup.host_set or min(node.capacity_milli) < UNLIMITED
    ] or [max(setup.host_set, default=0)]
    kinds = st.one_of(
        st.tuples(
            st.just("capacity"), st.sampled_from(limited), resources, st.one_of(amounts, st.just(UNLIMITED))
        ),
        st.tuples(st.just("bandwidth"), links, st.integers(0, 2), big),
        st.tuples(st.just("price"), nodes, resources, milli),
        st.tuples(st.just("egress"), nodes, nodes, milli),
        st.tuples(st.sampled_from(("node_down", "node_up")), nodes, st.just(0), st.just(0)),
        st.tuples(st.sampled_from(("link_down", "link_up")), links, st.just(0), st.just(0)),
    )
    picked = draw(st.lists(kinds, max_size=4))
    parts = draw(st.lists(st.integers(1, 5000), min_size=len(picked), max_size=len(picked)))
    return tuple(
        Change(i * SLOT_US, kind, a, b, value, of if kind in ("price", "egress") else MILLI)
        for i, ((kind, a, b, value), of) in enumerate(zip(picked, parts, strict=True))
    )


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Small scenarios with every feature of the format."""
    setup = draw(setups())
    ids = draw(st.lists(names, max_size=4, unique=True))
    times = sorted(draw(st.lists(st.integers(0, HORIZON_US - 1), min_size=len(ids), max_size=len(ids))))
    pairs = [draw(jobs(setup, i, name, at)) for i, (name, at) in enumerate(zip(ids, times, strict=True))]
    streams = [job.index for job, _ in pairs if job.kind == "stream"]
    keys: list[tuple[int, int, int]] = []
    if streams:
        rows = st.tuples(st.sampled_from(streams), st.integers(0, 99), st.integers(0, len(setup.nodes) - 1))
        keys = draw(st.lists(rows, max_size=5, unique=True))
    columns = np.array(keys, dtype=np.int64).reshape(-1, 3).T
    return Scenario(
        name=draw(names),
        setup=setup,
        jobs=tuple(job for job, _ in pairs),
        customers=tuple(customer for _, customer in pairs),
        changes=_changes(draw, setup),
        volumes=Volumes(job=columns[0], slot=columns[1], node=columns[2], bytes=np.arange(len(keys)) * 10**9),
        origin=draw(
            st.dictionaries(names, st.one_of(names, finite, st.lists(st.integers()), st.none()), max_size=2)
        ),
    )


def a_run(factor: int = 1, **changes: Any) -> Run:
    """A run with one row in most tables; `factor` repeats the rows of events and costs."""
    tables: dict[str, dict[str, Any]] = {
        name: {column: [{"int": 0, "float": 0.5, "str": ""}[kind]] for column, (kind, _) in columns.items()}
        for name, columns in TABLES.items()
    }
    words = {"events": "arrived", "costs": "rent", "bills": "pooled"}
    for table, word in words.items():
        tables[table]["kind"] = [word]
    tables["routes"]["duplex"], tables["outcomes"]["state"] = ["push-pull"], ["finished"]
    tables["decisions"]["why"] = ['é "quoted"\n']
    tables["payments"] = {"job": [], "usd": []}
    for table in ("events", "costs"):
        tables[table] = {name: column * factor for name, column in tables[table].items()}
    values: dict[str, Any] = {
        "scenario_hash": "ab" * 32,
        "scenario_name": "tiny",
        "policy": "fifo",
        "params": {"b": [1, 2.5], "a": "x"},
        "seed": 3,
        "version": "0.1.0",
        "objective": "cost_usd",
        "metrics": {"cost_usd": 1.25, "jobs_completed": 1.0},
        "violations": (Violation("capacity", "job-1", "eu", 4, 2.0, "too much"),),
        "tables": tables,
        "bound": Bound(value=1.0, sense="min", kind="certified", ratio=1.25),
        "certificates": ({"name": "lp", "value": 0.5, "data": {"y": [0.25]}},),
    }
    return Run(**(values | changes))

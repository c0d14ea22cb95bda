"""Invalid scenarios: each mistake is refused with a message that names its place."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.builders import HORIZON, SLOT, job, link, node, scenario, setup
from tradewind.engine.fit import mismatch
from tradewind.model.errors import InputError, LookupFailed, ScenarioError
from tradewind.model.hash import scenario_hash
from tradewind.model.job import Customer, Dataset, Fixed, Rounds, Stream
from tradewind.model.node import Node
from tradewind.model.params import resolve_params
from tradewind.model.setup import transport_fraction
from tradewind.model.spec import Param, Spec
from tradewind.model.tariff import Tariff
from tradewind.model.units import LARGEST, UNLIMITED
from tradewind.model.view import Change

STAYS = [Customer(runtime_us=1)]
UP_AND_DOWN = [Change(9, "node_down", 0, 0, 0), Change(8, "node_up", 0, 0, 0)]
DATA: Any = {"chunk_bytes": 1, "epochs": 1, "chunk_epochs_per_worker_slot_milli": 1}


def rounds(**more: Any) -> Rounds:
    return Rounds(**({"count": 1, "compute_us": 1} | more))


def one(**more: Any) -> Callable[[], Any]:
    return lambda: scenario([job(0, **more)])


def change(kind: str, a: int = 0, b: int = 0, value: int = 0, at: int = 0) -> Callable[[], Any]:
    return lambda: scenario([job(0)], changes=[Change(at, kind, a, b, value)])


def where(**more: Any) -> Callable[[], Any]:
    return lambda: setup(**more)


def apart() -> Any:
    """Two sites without a link, and a job that needs routes."""
    flows = rounds(comm="flows", pinned=((0, 1), (1, 1)))
    return scenario([job(0, work=flows, model_bytes=1)], where=setup(links=()))


MISTAKES: list[tuple[str, Callable[[], Any]]] = [
    (r"nodes has 'a' twice", where(nodes=[node("a"), node("a")])),
    (r"nodes is empty", where(nodes=[])),
    (r"resources has 'gpu' twice", where(resources=("gpu", "gpu"))),
    (r"empty name", lambda: node("")),
    (r"nodes\[a\].kind", lambda: node("a", kind="cloud")),
    (r"nodes\[a\].capacity is -1", lambda: node("a", -1)),
    (r"nodes\[a\].capacity is nan", lambda: Node(name="a", capacity_milli=(math.nan,))),  # type: ignore[arg-type]
    (r"nodes\[a\].capacity has 2 amounts", where(nodes=[Node(name="a", capacity_milli=(1, 1))])),
    (r"nodes\[b\].parent", where(nodes=[node("a"), node("b", parent=7)])),
    (r"nodes\[b\].parent", where(nodes=[node("a"), node("b", parent=1)])),
    (r"nodes\[a\] .* tree", where(nodes=[node("a", parent=1), node("b", parent=0)])),
    (r"links\[0\] ends at node 5", where(links=(link(0, 5),))),
    (r"links\[1-1\] joins a node to itself", lambda: link(1, 1)),
    (r"links\[0-1\].ab_bps is -5", lambda: link(0, 1, -5)),
    (r"links\[0-1\].ab_bps is nan", lambda: link(0, 1, math.nan, 1)),  # type: ignore[arg-type]
    (r"links\[0-1\].latency_us", lambda: link(0, 1, latency_us=-1)),
    (r"links\[0-1\].usd_per_gb is nan", lambda: link(0, 1, usd_per_gb=math.nan)),
    (r"links\[0-1\] is shared", lambda: link(0, 1, 5, 6, shared=True)),
    (r"rent\[0, 3\]", where(rent={(0, 3): Tariff(usd=(1.0,))})),
    (r"egress\[9, 0\]", where(egress={(9, 0): Tariff(usd=(1.0,))})),
    (r"slot_us is 0", where(slot_us=0)),
    (r"slot_us is nan", where(slot_us=math.nan)),
    (r"horizon_us -1", where(horizon_us=-1)),
    (r"horizon_us", where(horizon_us=LARGEST + 1)),
    (r"transfer_bytes_per_slot is -1", where(transfer_bytes_per_slot=-1)),
    (r"window_slots is 0; it must be 1 or more\. Leave it out", where(window_slots=0)),
    (r"objective is 'fame'", where(objective="fame")),
    (r"transport is 'chunks:0'", where(transport="chunks:0")),
    (r"transport is 'pigeon'", where(transport="pigeon")),
    (r"forecast\[n\] is nan", where(forecast={"n": math.nan})),
    (r"the id 'j0' twice", lambda: scenario([job(0), replace(job(1), id="j0")])),
    (r"jobs\[j1\].index is 1", lambda: scenario([job(1)])),
    (r"jobs\[j1\].arrive_us is 4", lambda: scenario([job(0, arrive_us=5), job(1, arrive_us=4)])),
    (r"jobs\[j0\].arrive_us is -1", one(arrive_us=-1)),
    (r"before the horizon", one(arrive_us=HORIZON)),
    (r"jobs\[0\].id is empty", one(id="")),
    (r"2 jobs and 1 customers", lambda: scenario([job(0), job(1)], customers=[Customer()])),
    (r"jobs\[j0\]: workers_min is 3", one(workers_min=3, workers_max=2)),
    (r"jobs\[j0\]: workers_min is 0", one(workers_min=0)),
    (r"workers_max 400000000; .* <= 1000000 is required", one(workers_min=1, workers_max=400_000_000)),
    (r"jobs\[j0\].servers is 400000000; .* 1000000", one(servers=400_000_000, architecture="ps")),
    (r"pinned\[a\].workers is 400000000; .* 1000000", one(work=rounds(pinned=((0, 400_000_000),)))),
    (
        r"jobs\[j0\].gpus are \[400000000\]; .* 1000000",
        one(work=rounds(comm="machines"), gpus=(400_000_000,), gpu_speeds=(("H100", 1000),)),
    ),
    (r"ring has no parameter servers", one(servers=1)),
    (r"jobs\[j0\].worker is empty", one(worker=())),
    (r"jobs\[j0\].worker names resource 4", one(worker=((4, 1),))),
    (r"jobs\[j0\].worker.gpu is 0", one(worker=((0, 0),))),
    (r"jobs\[j0\].worker.gpu is -1", one(worker=((0, -1000),))),
    (r"indices must increase", one(worker=((0, 1), (0, 1)))),
    (r"jobs\[j0\].caps names resource 9", one(caps=((9, 1),))),
    (r"jobs\[j0\].nodes names node 8", one(nodes=frozenset((8,)))),
    (r"jobs\[j0\].nodes is empty", one(nodes=frozenset())),
    (r"jobs\[j0\].data_nodes names node -1", one(data_nodes=frozenset((-1,)))),
    (r"jobs\[j0\].model_bytes is -1", one(model_bytes=-1)),
    (r"jobs\[j0\].restart_us is -1", one(restart_us=-1)),
    (r"jobs\[j0\].deploy_usd is nan", one(deploy_usd=math.nan)),
    (r"budget_usd is nan", lambda: scenario([job(0)], customers=[Customer(budget_usd=math.nan)])),
    (r"budget_usd is -1", lambda: scenario([job(0)], customers=[Customer(budget_usd=-1.0)])),
    (r"has no runtime", one(work=Fixed())),
    (r"runtime_us is 0", one(work=Fixed(runtime_us=0))),
    (r"time until it leaves", one(work=Stream(bytes_per_worker_slot=1))),
    (r"bytes_per_worker_slot is 0", lambda: scenario([job(0, work=Stream(bytes_per_worker_slot=0))], customers=STAYS)),
    (r"chunks names a node twice", one(work=Dataset(chunks=((0, 1), (0, 1)), **DATA))),
    (r"chunks names node 7", one(work=Dataset(chunks=((7, 1),), **DATA))),
    (r"chunks\[a\].chunks is -1", one(work=Dataset(chunks=((0, -1),), **DATA))),
    (r"epochs is -1", one(work=Dataset(chunks=((0, 1),), **(DATA | {"epochs": -1})))),
    (r"count is 0", one(work=rounds(count=0))),
    (r"rate is nan", one(work=rounds(rate=math.nan))),
    (r"takes no time", one(work=rounds(compute_us=0))),
    (r"takes no time", one(work=rounds(compute_us=0, comm="ring"), ring_bps=1)),
    (r"worker_bps and server_bps", one(work=rounds(comm="colocated"), model_bytes=1)),
    (r"ring_bps is 0", one(work=rounds(comm="ring"), workers_max=2)),
    (r"pinned is empty", one(work=rounds(comm="flows"), model_bytes=1)),
    (r"pinned names a node twice", one(work=rounds(pinned=((0, 1), (0, 1))))),
    (r"the network is disconnected. Add a link", apart),
    (r"changes\[0\].kind is 'flood'", change("flood")),
    (r"changes\[0\]: node is 9", change("capacity", 9)),
    (r"changes\[0\]: resource is 3", change("capacity", 0, 3)),
    (r"changes\[0\]: link is 0", change("link_down", 0)),
    (r"changes\[0\].value is -1", change("capacity", value=-1)),
    (r"node_down has no value", change("node_down", value=3)),
    (r"prices change at the start of a slot", change("price", value=5, at=SLOT + 1)),
    (r"changes\[0\].of is 0", lambda: scenario([job(0)], changes=[Change(0, "price", 0, 0, 5, 0)])),
    (r"changes\[0\].of is 3; .* is for prices", lambda: scenario([job(0)], changes=[Change(0, "capacity", 0, 0, 5, 3)])),
    (r"changes are listed by time", lambda: scenario([job(0)], changes=UP_AND_DOWN)),
    (r"changes\[0\].at_us is -1", change("node_down", at=-1)),
    (r"volumes names jobs\[j0\], which is not a stream", lambda: scenario([job(0)], volumes=[(0, 0, 0, 1)])),
]  # fmt: skip


@pytest.mark.parametrize(("message", "make"), MISTAKES, ids=[message for message, _ in MISTAKES])
def test_a_mistake_is_refused_with_its_place(message: str, make: Callable[[], Any]) -> None:
    with pytest.raises(ScenarioError, match=message):
        make()


@pytest.mark.parametrize(
    "row", [(0, 0, 9, 1), (0, 1000, 0, 1), (4, 0, 0, 1), (0, 0, 0, -1), (0, -1, 0, 1)], ids=repr
)
def test_volumes_out_of_range_are_refused(row: tuple[int, int, int, int]) -> None:
    streams = [job(0, work=Stream(bytes_per_worker_slot=1))]
    with pytest.raises(ScenarioError, match="volumes"):
        scenario(streams, customers=[Customer(runtime_us=1)], volumes=[row])


def test_a_volume_that_is_named_twice_is_refused() -> None:
    streams = [job(0, work=Stream(bytes_per_worker_slot=1))]
    with pytest.raises(ScenarioError, match="twice; merge the rows"):
        scenario(streams, customers=[Customer(runtime_us=1)], volumes=[(0, 3, 0, 1), (0, 3, 0, 2)])


def test_valid_scenarios_are_accepted() -> None:
    assert len(scenario([job(0), job(1, arrive_us=HORIZON - 1)]).customers) == 2
    assert setup(transfer_bytes_per_slot=0).transfer_bytes_per_slot == 0
    assert node("a", None).capacity_milli == (UNLIMITED,)


def test_a_window_limits_the_slots_ahead_and_the_horizon_cuts_it() -> None:
    assert setup().slots_ahead(3) == setup().slots - 3
    made = setup(window_slots=5)
    assert [made.slots_ahead(slot) for slot in (0, made.slots - 2, made.slots)] == [5, 2, 0]


def test_hosts_lineage_and_sites_follow_the_tree() -> None:
    nodes = [
        node("site", None),
        node("rack", 6, parent=0, kind="rack"),
        node("s", parent=1),
        node("w", kind="switch"),
    ]
    made = setup(nodes)
    assert made.hosts == (2,)
    assert made.lineage[2] == (2, 1)  # the site has no limit of its own
    assert made.site_of == (0, 0, 0, 3)


def test_an_unknown_name_suggests_the_nearest() -> None:
    made = setup([node("eu-west"), node("us-east")])
    assert made.node("us-east") == 1
    with pytest.raises(LookupFailed, match="Did you mean 'eu-west'"):
        made.node("eu-vest")


@pytest.mark.parametrize(
    ("transport", "weight"), [("store-and-forward", 4), ("cut-through", 1), ("chunks:6", 1.5)]
)
def test_transport_weighs_four_hops(transport: str, weight: float) -> None:
    numerator, denominator = transport_fraction(transport, 4)
    assert numerator / denominator == weight


def test_equal_scenarios_have_equal_hashes_and_every_fact_counts() -> None:
    base = scenario([job(0)])
    assert scenario_hash(base) == scenario_hash(replace(scenario([job(0)]), name="other", origin={"x": 1}))
    others = [
        scenario([job(0, workers_max=2)]),
        scenario([job(0)], customers=[Customer(budget_usd=1.0)]),
        scenario([job(0)], changes=[Change(0, "node_down", 0, 0, 0)]),
        scenario([job(0)], where=setup(horizon_us=HORIZON + 1)),
        scenario([job(0)], where=setup(window_slots=9)),
        scenario([job(0)], where=setup(rent={(0, 0): Tariff(usd=(1.0,))})),
    ]
    assert len({scenario_hash(each) for each in [base, *others]}) == 7


PARAMS = {
    "n": Param(default=3, doc=""),
    "x": Param(default=0.5, doc=""),
    "on": Param(default=False, doc=""),
    "how": Param(default="a", doc="", choices=("a", "b")),
}


def test_parameters_are_read_as_the_type_of_their_default() -> None:
    assert resolve_params("p", PARAMS, {"n": "7", "x": "1e3", "on": "true", "how": "b"}) == {
        "n": 7, "x": 1000.0, "on": True, "how": "b",
    }  # fmt: skip
    assert resolve_params("p", PARAMS, {"n": 4.0})["n"] == 4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", "x"), ("n", 2.5), ("n", True), ("n", math.inf), ("n", math.nan), ("x", "nan"), ("x", math.inf),
        ("on", "maybe"), ("how", "c"),
    ],
)  # fmt: skip
def test_a_bad_parameter_names_itself(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"p.{name}"):
        resolve_params("p", PARAMS, {name: value})


def policy(**more: Any) -> Spec:
    facts: dict[str, Any] = {
        "name": "p", "summary": "", "factory": lambda *_: None, "works": frozenset(("fixed", "rounds/ring")),
    }  # fmt: skip
    return Spec(**(facts | more))


@pytest.mark.parametrize(
    ("spec", "given", "part"),
    [
        (policy(objectives=frozenset(("utility",))), scenario([job(0)]), "objective is cost_usd"),
        (policy(), scenario([job(0, work=rounds())]), "rounds/none"),
        (policy(architectures=frozenset(("ps",))), scenario([job(0)]), "ring job"),
        (policy(needs=frozenset(("runtime",))), scenario([job(0, work=Fixed())], customers=STAYS), "private"),
        (policy(needs=frozenset(("bid",))), scenario([job(0)]), "bid"),
        (policy(needs=frozenset(("links",))), scenario([job(0)]), "no links"),
        (policy(needs=frozenset(("tree",))), scenario([job(0)]), "tree"),
        (
            policy(needs=frozenset(("tree",))),
            scenario([job(0)], where=setup([node(n) for n in "abcd"], links=(link(0, 1), link(1, 2), link(2, 0)))),
            "cycle",
        ),
        (
            policy(needs=frozenset(("concave tariff",))),
            scenario([job(0)], where=setup(rent={(0, 0): Tariff(starts=(0.0, 1.0), usd=(2.0, 1.0), rule="retroactive")})),
            "concave",
        ),
    ],
)  # fmt: skip
def test_a_mismatch_says_what_does_not_fit(spec: Spec, given: Any, part: str) -> None:
    assert part in mismatch(spec, given)


def test_what_fits_has_no_mismatch() -> None:
    needs: Any = frozenset(("runtime", "tree", "links", "concave tariff"))
    tree = setup(links=(link(0, 1),))
    assert mismatch(policy(needs=needs), scenario([job(0)], where=tree)) == ""
    ring = scenario([job(0, work=rounds(comm="ring"), ring_bps=1)], where=tree)
    assert mismatch(policy(), ring) == ""


def test_pinned_workers_and_flows_without_a_server_are_refused() -> None:
    ps: Any = {"work": rounds(comm="flows", pinned=((0, 1), (1, 1))), "model_bytes": 1, "architecture": "ps"}
    joined = setup(links=[link(0, 1)])
    with pytest.raises(ScenarioError, match="places 2 workers"):
        scenario([job(0, servers=1, **ps)], where=joined)
    with pytest.raises(ScenarioError, match="servers is 0"):
        scenario([job(0, workers_max=2, **ps)], where=joined)


def test_egress_inside_a_site_and_changes_of_a_missing_capacity_are_refused() -> None:
    nodes = [Node(name="a", capacity_milli=(UNLIMITED,)), Node(name="b", parent=0, capacity_milli=(1000,))]
    with pytest.raises(ScenarioError, match="inside a site"):
        setup(nodes=nodes, egress={(0, 1): Tariff(usd=(1.0,))})
    with pytest.raises(ScenarioError, match="no capacity of its own"):
        scenario([job(0)], where=setup(nodes=nodes), changes=[Change(0, "capacity", 0, 0, 5)])

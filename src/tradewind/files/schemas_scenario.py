"""The scenario file as pydantic models: shape, units and ranges. Meaning is checked by the model itself."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, FailFast, Field, Tag, WithJsonSchema

from tradewind.files.scalars import (
    Bps,
    Bytes,
    Count,
    Flag,
    InstantUs,
    Milli,
    Name,
    Number,
    PlainObject,
    Some,
    SomeBytes,
    SpanUs,
    Tenant,
    Text,
    TimeUs,
    Usd,
)
from tradewind.model.job import Architecture, Comm, Hold, RoundUnit
from tradewind.model.setup import Objective
from tradewind.model.node import NodeKind
from tradewind.model.tariff import Rule
from tradewind.model.utility import Of, Shape

VERSION = 1
ChangeKind = Literal[
    "capacity", "bandwidth", "price", "egress", "node_down", "node_up", "link_down", "link_up"
]
Direction = Literal["ab", "ba", "both"]
Amounts = dict[Name, Milli]
Names = list[Name]


class Strict(BaseModel):
    """No unknown fields; what was read is not changed afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TariffFile(Strict):
    """Price by volume in tiers; a bare number stands for a single tier."""

    usd: list[Usd] = Field(
        description="price within each tier: USD per unit-hour (rent) or USD per GB (egress); never rising"
    )
    starts: list[Number] = Field(
        default_factory=lambda: [0.0],
        description="where each tier begins: units (rent) or GB of a slot (egress); the first is 0",
    )
    rule: Rule = Field(
        default="graduated",
        description="graduated: each unit at its own tier's price; retroactive: all units at the reached tier's price",
    )


def _tariff_tag(value: Any) -> str:
    return "tiers" if isinstance(value, dict | TariffFile) else "flat"


AnyTariff = Annotated[
    Annotated[Usd, Tag("flat")] | Annotated[TariffFile, Tag("tiers")], Discriminator(_tariff_tag)
]


class NodeFile(Strict):
    """A site, rack, server or switch."""

    name: Name = Field(description="name, unique among the nodes")
    kind: NodeKind = Field(default="site", description="site, rack, server or switch; a switch runs nothing")
    parent: Name | None = Field(
        default=None, description="name of the site or rack that holds it; what it uses counts there too"
    )
    capacity: Amounts = Field(
        default_factory=dict,
        description="resource -> natural units (at most three decimals); unlimited where left out",
    )
    rent: dict[Name, AnyTariff] = Field(
        default_factory=dict,
        description="resource -> tariff in USD per unit-hour, by the mean units of a slot; free where left out",
    )


class LinkFile(Strict):
    """A link between two nodes. Give `bps`, or both `ab_bps` and `ba_bps`."""

    a: Name = Field(description="name of one end")
    b: Name = Field(description="name of the other end")
    bps: Bps | None = Field(
        default=None,
        description="bit/s in each direction (both together where shared); text such as '5 Gbit/s'",
    )
    ab_bps: Bps | None = Field(default=None, description="bit/s from a to b")
    ba_bps: Bps | None = Field(default=None, description="bit/s from b to a")
    shared: Flag = Field(
        default=False, description="true: both directions together have the bandwidth (no unit)"
    )
    latency_us: TimeUs = Field(default=0, description="microseconds one way")
    usd_per_gb: Usd = Field(
        default=0.0, description="USD per GB of traffic over it, on top of egress tariffs"
    )


class EgressFile(Strict):
    """Price of data from one site to another; `*` stands for every site that no other line names."""

    src: Name = Field(description="name of the source, or *")
    dst: Name = Field(description="name of the destination, or *")
    tariff: AnyTariff = Field(description="tariff in USD per GB, by the GB of a slot")


class SpendCapFile(Strict):
    """What a tenant may spend at most, counted at list price; give one or both."""

    slot_usd: Usd | None = Field(default=None, description="USD in any one slot; left out: no limit")
    total_usd: Usd | None = Field(default=None, description="USD in all slots together; left out: no limit")


class UtilityFile(Strict):
    """What a job is worth as a function of one number."""

    of: Of = Field(
        description="the number: delay_slots (slots from arrival to completion), progress (rounds or worker-slots "
        "times rate), payment (USD)"
    )
    shape: Shape = Field(description="shape of the function; see the table of shapes")
    args: list[Number] = Field(
        description="its parameters in the order of the table of shapes; USD or utility units"
    )
    from_zero: Flag = Field(default=False, description="true: subtract the value at 0 (no unit)")


class FixedWork(Strict):
    """Runs for a given time on all its workers."""

    kind: Literal["fixed"] = Field(default="fixed", description="fixed")
    runtime_us: SpanUs | None = Field(
        default=None, description="microseconds of running; left out where only private.runtime_us knows it"
    )


class StreamWork(Strict):
    """New data every slot, processed within the slot."""

    kind: Literal["stream"] = Field(description="stream")
    bytes_per_worker_slot: SomeBytes = Field(description="bytes that one worker processes in a slot")


class DatasetWork(Strict):
    """Chunks at nodes, each trained for all epochs once."""

    kind: Literal["dataset"] = Field(description="dataset")
    chunks: dict[Name, Count] = Field(
        description="node -> number of chunks there; markets refuse a bid that has none at a node it names"
    )
    chunk_bytes: SomeBytes = Field(description="bytes of one chunk")
    epochs: Count = Field(
        description="epochs that each chunk is trained for (a number); markets refuse a bid with 0"
    )
    chunk_epochs_per_worker_slot: Milli = Field(
        description="chunk-epochs that one worker trains in a slot (at most three decimals)"
    )


class RoundsWork(Strict):
    """A number of rounds or worker-slots with compute and communication time."""

    kind: Literal["rounds"] = Field(description="rounds")
    count: Some = Field(description="rounds or worker-slots to do (a number)")
    unit: RoundUnit = Field(default="round", description="round, or worker-slot: n workers do n per slot")
    compute_us: TimeUs = Field(default=0, description="microseconds of computation in a round")
    comm: Comm = Field(
        default="none",
        description="communication time of a round: none, colocated, flows or ring (see Time of a round)",
    )
    rate: Number = Field(default=1.0, description="utility progress per round or worker-slot (a number)")
    whole_slots: Flag = Field(
        default=False, description="true: the runtime is rounded up to whole slots (no unit)"
    )
    pinned: dict[Name, Some] = Field(
        default_factory=dict,
        description="node -> number of workers that must run there; empty: placement is free",
    )


def _work_tag(value: Any) -> Any:
    return value.get("kind", "fixed") if isinstance(value, dict) else getattr(value, "kind", "fixed")


WorkFile = Annotated[
    Annotated[FixedWork, Tag("fixed")]
    | Annotated[StreamWork, Tag("stream")]
    | Annotated[DatasetWork, Tag("dataset")]
    | Annotated[RoundsWork, Tag("rounds")],
    Discriminator(_work_tag),
]


class PrivateFile(Strict):
    """What only the customer knows."""

    budget_usd: Usd | None = Field(default=None, description="USD: accepts any offer that costs at most this")
    valuation: UtilityFile | None = Field(
        default=None,
        description="the true utility in USD: takes the offer with the largest valuation - payment",
    )
    runtime_us: SpanUs | None = Field(
        default=None,
        description="microseconds: true runtime of a fixed job, or how long a stream job stays",
    )


class JobFile(Strict):
    """A job. Only `worker` is always needed."""

    id: Name | None = Field(default=None, description="name, unique among the jobs; default job-0, job-1, …")
    arrive_us: InstantUs = Field(
        default=0,
        description="microseconds from the start; jobs are listed by arrival. A bid (a dataset with a utility of "
        "delay_slots) for an earlier instant than the job above it, or than 0, comes with that one and is refused",
    )
    bid_from_us: InstantUs | None = Field(
        default=None,
        description="microseconds: from when the bid counts its delay, where that is before it arrived; markets "
        "refuse a bid for the past",
    )
    tenant: Tenant = Field(default="", description="name of the tenant; empty: none")
    work: WorkFile = Field(default=FixedWork(), description="what is to be done, in the units of its kind")
    worker: Amounts = Field(description="resource -> natural units that one worker needs")
    workers: Some | None = Field(
        default=None, description="shorthand for workers_min and workers_max (a number)"
    )
    workers_min: Some | None = Field(
        default=None, description="fewest workers in a step with workers (a number); default 1"
    )
    workers_max: Some | None = Field(
        default=None, description="most workers in a step with workers (a number); default workers_min"
    )
    architecture: Architecture = Field(default="ring", description="ps (parameter servers) or ring")
    server: Amounts = Field(
        default_factory=dict, description="resource -> natural units that one parameter server needs"
    )
    servers: Count = Field(default=0, description="parameter servers in a step with workers (a number)")
    utility: UtilityFile | None = Field(default=None, description="the public bid in USD or utility units")
    nodes: Names | None = Field(
        default=None, description="names of the nodes where it may run; left out: anywhere"
    )
    data_nodes: Names | None = Field(
        default=None, description="names of the nodes where its data may be processed; left out: anywhere"
    )
    model_bytes: Bytes = Field(default=0, description="bytes of the parameters")
    site_bytes: dict[Name, Bytes] = Field(
        default_factory=dict,
        description="worker site -> bytes it sends and gets in a round, where not model_bytes (comm flows)",
    )
    traffic_bytes_per_worker_slot: Bytes = Field(
        default=0, description="bytes between a worker and a server elsewhere, per slot"
    )
    worker_bps: Bps = Field(default=0, description="bit/s that a worker brings")
    server_bps: Bps = Field(default=0, description="bit/s that a parameter server brings")
    ring_bps: Bps = Field(default=0, description="bit/s reserved on every hop of the ring")
    reduce_bps: Bps = Field(default=0, description="bit/s of summing gradients; 0 = instant")
    deploy_usd: Usd = Field(
        default=0.0, description="USD due at a node where the job was absent the instant before"
    )
    restart_us: TimeUs = Field(
        default=0, description="microseconds of work lost when workers or servers move"
    )
    hold: Hold = Field(
        default="until",
        description="until: resources are free at the instant of completion; through: one microsecond later",
    )
    caps: Amounts = Field(
        default_factory=dict, description="resource -> unit-slots that the job may use in all"
    )
    command: list[Text] = Field(
        default_factory=list,
        description="program of a live job and its arguments (text), started once per rank (see jobs.md)",
    )
    env: dict[Name, Text] = Field(
        default_factory=dict, description="name -> text, added to the environment of its ranks"
    )
    seed: Count = Field(default=0, description="seed of the program's random streams (a number)")
    private: PrivateFile | None = Field(default=None, description="what no policy sees")


class ChangeFile(Strict):
    """A change of the surroundings at an instant."""

    at_us: TimeUs = Field(description="microseconds from the start; changes are listed by time")
    kind: ChangeKind = Field(description="what changes; see the table of changes")
    node: Name | None = Field(
        default=None, description="name of the node (capacity, price, node_down, node_up)"
    )
    resource: Name | None = Field(default=None, description="name of the resource (capacity, price)")
    link: Annotated[int | str, WithJsonSchema({"type": ["integer", "string"]})] | None = Field(
        default=None,
        description="'a->b' (that direction), 'a-b' (both), or its number from 0 (bandwidth, link_down, link_up)",
    )
    direction: Direction | None = Field(
        default=None, description="ab, ba or both (default); with a link given by number (bandwidth)"
    )
    src: Name | None = Field(default=None, description="name of the source (egress)")
    dst: Name | None = Field(default=None, description="name of the destination (egress)")
    amount: (
        Annotated[
            Annotated[Milli, Tag("number")] | Annotated[Literal["unlimited"], Tag("text")],
            Discriminator(lambda value: "text" if isinstance(value, str) else "number"),
        ]
        | None
    ) = Field(default=None, description="new capacity in natural units, or 'unlimited' (capacity)")
    bps: Bps | None = Field(default=None, description="new bandwidth in bit/s (bandwidth)")
    factor: Milli | None = Field(
        default=None,
        description="new factor on the tariff, a number with at most three decimals (price, egress)",
    )


def _items(*kinds: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "array", "items": {"type": list(kinds)}})


class VolumesFile(Strict):
    """Data of stream jobs, one list per column; row i is the i-th entry of each."""

    job: Annotated[list[Any], _items("string", "integer")] = Field(
        default_factory=list, description="id of the job, or its number from 0"
    )
    slot: Annotated[list[Any], _items("integer")] = Field(
        default_factory=list, description="number of the slot, from 0"
    )
    node: Annotated[list[Any], _items("string", "integer")] = Field(
        default_factory=list, description="name of the node where the data lies, or its number from 0"
    )
    bytes: Annotated[list[Any], _items("integer")] = Field(
        default_factory=list, description="bytes that arrive there"
    )


class ScenarioFile(Strict):
    """A whole scenario."""

    tradewind_scenario: Literal[1] = Field(description="version of the format: 1")
    name: Name | None = Field(default=None, description="a name for people; default the name of the file")
    objective: Objective = Field(description="the metric that decides how good a run is; see Metrics")
    slot_us: SpanUs = Field(description="microseconds of a slot; also the interval of checkpoints")
    horizon_us: SpanUs = Field(description="microseconds at which the run ends; jobs arrive before it")
    resources: Names | None = Field(
        default=None,
        description="names of the resources, in order; default: in the order in which the nodes mention them",
    )
    nodes: Annotated[list[NodeFile], FailFast()] = Field(
        description="the nodes; their order numbers them from 0"
    )
    links: Annotated[list[LinkFile], FailFast()] = Field(
        default_factory=list, description="the links; their order numbers them from 0"
    )
    egress: Annotated[list[EgressFile], FailFast()] = Field(
        default_factory=list, description="price of data between sites; free where left out"
    )
    transfer_bytes_per_slot: Bytes | None = Field(
        default=None, description="bytes that all jobs together may move in a slot; left out: unlimited"
    )
    transport: Text = Field(
        default="store-and-forward",
        description="weight w(h) of a path of h hops: store-and-forward (h), cut-through (1), chunks:K (1 + (h-1)/K)",
    )
    forecast: dict[Name, Number] = Field(
        default_factory=dict,
        description="public expectations that a policy may use; the policy's page gives their units",
    )
    spend_caps: dict[Tenant, SpendCapFile] = Field(
        default_factory=dict,
        description="tenant -> what it may spend at most in USD; `*` stands for every tenant without a line of its own",
    )
    jobs: Annotated[list[JobFile], FailFast()] = Field(
        default_factory=list, description="the jobs in order of arrival; their order numbers them from 0"
    )
    jobs_file: Name | None = Field(
        default=None, description="name of a .csv or .parquet file beside this one with the jobs instead"
    )
    changes: Annotated[list[ChangeFile], FailFast()] = Field(
        default_factory=list, description="changes of the surroundings in order of time"
    )
    changes_file: Name | None = Field(
        default=None, description="name of a .csv or .parquet file beside this one with the changes instead"
    )
    volumes: VolumesFile = Field(
        default=VolumesFile(), description="data of stream jobs in bytes, as columns"
    )
    volumes_file: Name | None = Field(
        default=None, description="name of a .csv or .parquet file beside this one with the volumes instead"
    )
    origin: PlainObject = Field(
        default_factory=dict,
        description="what made the scenario (workload, parameters, seed), for people; not in the hash",
    )

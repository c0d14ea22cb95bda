"""Pydantic models of the scenario file: types, units and ranges. The model package checks the rest."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, FailFast, Field, Tag, WithJsonSchema

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
    Ranks,
    Some,
    SomeBytes,
    SomeRanks,
    SpanUs,
    Tenant,
    Text,
    TimeUs,
    Usd,
)
from tradewind.files.schemas_prices import (
    AnyTariff,
    EgressFile,
    MachineFile,
    Names,
    PoolFile,
    SpendCapFile,
    Strict,
)
from tradewind.model.job import Architecture, Comm, Hold, RoundUnit
from tradewind.model.node import NodeKind
from tradewind.model.setup import Objective
from tradewind.model.utility import Of, Shape

VERSION = 1
ChangeKind = Literal[
    "capacity", "bandwidth", "price", "egress", "node_down", "node_up", "link_down", "link_up"
]
Direction = Literal["ab", "ba", "both"]
Amounts = dict[Name, Milli]


class NodeFile(Strict):
    """A site, rack, server or switch."""

    name: Name = Field(description="name, unique among the nodes")
    kind: NodeKind = Field(
        default="site", description="site, rack, server or switch; a switch runs no workers"
    )
    parent: Name | None = Field(
        default=None, description="name of the site or rack that contains it; usage counts there too"
    )
    capacity: Amounts = Field(
        default_factory=dict,
        description="resource -> natural units (at most three decimals); unlimited if omitted",
    )
    rent: dict[Name, AnyTariff] = Field(
        default_factory=dict,
        description="resource -> tariff in USD per unit-hour of the mean units in a slot; free if omitted",
    )
    machine: MachineFile | None = Field(default=None, description="the machines that it rents out")
    interruptions_per_hour: Number = Field(
        default=0.0,
        description="expected number of times per hour that its machines are taken back (spot); needs a capacity",
    )


class LinkFile(Strict):
    """A link between two nodes. Give either `bps` or both `ab_bps` and `ba_bps`."""

    a: Name = Field(description="name of one end")
    b: Name = Field(description="name of the other end")
    bps: Bps | None = Field(
        default=None,
        description="bit/s in each direction (in total if shared); or text such as '5 Gbit/s'",
    )
    ab_bps: Bps | None = Field(default=None, description="bit/s from a to b")
    ba_bps: Bps | None = Field(default=None, description="bit/s from b to a")
    shared: Flag = Field(default=False, description="true: both directions share the bandwidth (no unit)")
    latency_us: TimeUs = Field(default=0, description="microseconds one way")
    usd_per_gb: Usd = Field(default=0.0, description="USD per GB of traffic, in addition to egress tariffs")


class UtilityFile(Strict):
    """The worth of a job as a function of one number."""

    of: Of = Field(
        description="the argument: delay_slots (slots from arrival to completion), progress (rounds or worker-slots "
        "times rate), payment (USD) or served (GB of a stream's slot, 0 where it is left out; "
        "summed over its slots with data)"
    )
    shape: Shape = Field(description="shape of the function; see the table of shapes")
    args: list[Number] = Field(
        description="parameters in the order of the table of shapes; USD or utility units"
    )
    from_zero: Flag = Field(default=False, description="true: subtract the value at 0 (no unit)")


class FixedWork(Strict):
    """Runs for a given time on all of its workers."""

    kind: Literal["fixed"] = Field(default="fixed", description="fixed")
    runtime_us: SpanUs | None = Field(
        default=None, description="runtime in microseconds; omitted if only private.runtime_us is given"
    )


class StreamWork(Strict):
    """New data every slot, processed within the slot."""

    kind: Literal["stream"] = Field(description="stream")
    bytes_per_worker_slot: SomeBytes = Field(description="bytes that one worker processes in a slot")
    bytes_per_slot: dict[Name, Bytes] = Field(
        default_factory=dict,
        description="node -> bytes that arrive there in every whole slot of the job's stay; instead of rows in volumes",
    )
    stay_us: SpanUs | None = Field(
        default=None,
        description="how long the job stays, in microseconds; policies do not see it. Or give private.runtime_us",
    )


class DatasetWork(Strict):
    """Data chunks stored at nodes; each is trained once for all epochs."""

    kind: Literal["dataset"] = Field(description="dataset")
    chunks: dict[Name, Count] = Field(
        description="node -> number of chunks stored there; markets refuse a bid with 0 chunks at a node"
    )
    chunk_bytes: SomeBytes = Field(description="bytes of one chunk")
    epochs: Count = Field(description="epochs per chunk (a number); markets refuse a bid with 0")
    chunk_epochs_per_worker_slot: Milli = Field(
        description="chunk-epochs that one worker completes in a slot (at most three decimals)"
    )


class RoundsWork(Strict):
    """A number of rounds or worker-slots with compute and communication time."""

    kind: Literal["rounds"] = Field(description="rounds")
    count: Some = Field(description="total rounds or worker-slots (a number)")
    unit: RoundUnit = Field(
        default="round",
        description="round, worker-slot (n workers complete n per slot) or worker-round (n workers complete n in the time "
        "of a round, compute_us and communication)",
    )
    compute_us: TimeUs = Field(default=0, description="microseconds of computation per round")
    comm: Comm = Field(
        default="none",
        description="communication model: none, colocated, flows, ring or machines (see Time of a round)",
    )
    rate: Number = Field(default=1.0, description="utility progress per round or worker-slot (a number)")
    whole_slots: Flag = Field(
        default=False, description="true: round the runtime up to whole slots (no unit)"
    )
    pinned: dict[Name, SomeRanks] = Field(
        default_factory=dict,
        description="node -> number of workers that must run there; empty: any placement",
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


class DataFile(Strict):
    """What the data of a job consists of in a live run: records of one size, in files (see jobs.md)."""

    source: Text = Field(
        description="shapes (generated pictures), noise (random bytes), or the path of a file or directory of records"
    )
    record_bytes: Bytes = Field(default=1, description="bytes of a record; data is cut between records only")
    shard_bytes: Bytes = Field(default=1_000_000, description="bytes of a file at most")


class PrivateFile(Strict):
    """What only the customer knows; policies never see it."""

    budget_usd: Usd | None = Field(
        default=None, description="USD; the customer accepts any offer that costs at most this"
    )
    valuation: UtilityFile | None = Field(
        default=None,
        description="true utility in USD; the customer takes the offer with the largest valuation - payment",
    )
    runtime_us: SpanUs | None = Field(
        default=None,
        description="true runtime of a fixed job in microseconds; also how long a stream job stays (better: work.stay_us)",
    )
    pace: float = Field(
        default=1.0,
        description="time (a number) that its work really takes over what the job declares, 0.01 to 100",
    )


class JobFile(Strict):
    """A job. Only `worker` is always required."""

    id: Name | None = Field(default=None, description="name, unique among the jobs; default job-0, job-1, …")
    arrive_us: InstantUs = Field(
        default=0,
        description="arrival in microseconds from the start; jobs are listed in order of arrival. A bid (a dataset job with "
        "a utility of delay_slots) dated before 0 or before the previous job arrives with that job and is refused",
    )
    bid_from_us: InstantUs | None = Field(
        default=None,
        description="instant from which the bid counts its delay if that is before its arrival, in microseconds; markets "
        "refuse such a bid",
    )
    tenant: Tenant = Field(default="", description="name of the tenant; may be empty")
    work: WorkFile = Field(default=FixedWork(), description="the work to do, in the units of its kind")
    worker: Amounts = Field(description="resource -> natural units per worker")
    workers: SomeRanks | None = Field(
        default=None, description="shorthand for workers_min and workers_max (a number)"
    )
    workers_min: SomeRanks | None = Field(
        default=None, description="fewest workers while running (a number); default 1"
    )
    workers_max: SomeRanks | None = Field(
        default=None, description="most workers while running (a number); default workers_min"
    )
    architecture: Architecture = Field(default="ring", description="ps (parameter servers) or ring")
    server: Amounts = Field(
        default_factory=dict, description="resource -> natural units per parameter server"
    )
    servers: Ranks = Field(default=0, description="parameter servers while running (a number)")
    utility: UtilityFile | None = Field(default=None, description="the public bid in USD or utility units")
    nodes: Names | None = Field(
        default=None, description="names of the nodes where it may run; any node if omitted"
    )
    data_nodes: Names | None = Field(
        default=None, description="names of the nodes where its data may be processed; any node if omitted"
    )
    model_bytes: Bytes = Field(default=0, description="size of the model parameters in bytes")
    site_bytes: dict[Name, Bytes] = Field(
        default_factory=dict,
        description="worker site -> bytes it sends and receives per round, if not model_bytes (comm flows)",
    )
    traffic_bytes_per_worker_slot: Bytes = Field(
        default=0, description="bytes per slot between a worker and a server at another site"
    )
    worker_bps: Bps = Field(default=0, description="bandwidth of a worker in bit/s")
    server_bps: Bps = Field(default=0, description="bandwidth of a parameter server in bit/s")
    ring_bps: Bps = Field(default=0, description="bit/s reserved on every hop of the ring")
    reduce_bps: Bps = Field(default=0, description="speed of summing gradients in bit/s; 0 means instant")
    deploy_usd: Usd = Field(
        default=0.0, description="USD charged when the job starts at a node where it was not running before"
    )
    restart_us: TimeUs = Field(
        default=0, description="microseconds without progress after workers or servers move"
    )
    hold: Hold = Field(
        default="until",
        description="when resources become free: until (at completion) or through (one microsecond later)",
    )
    caps: Amounts = Field(
        default_factory=dict, description="resource -> unit-slots that the job may use in total"
    )
    gpus: list[SomeRanks] = Field(
        default_factory=list,
        description="each number of GPUs it can use, rising; its workers are then machines (comm machines)",
    )
    gpu_speeds: dict[Name, Milli] = Field(
        default_factory=dict,
        description="GPU type -> speed, a number with at most three decimals; it runs on no other type",
    )
    parts: dict[Name, Bytes] = Field(
        default_factory=dict,
        description="site -> bytes of its data, all of which must be at the site where it runs (comm machines)",
    )
    copies: dict[Name, dict[Name, TimeUs]] = Field(
        default_factory=dict,
        description="site of a part -> other site -> microseconds from its arrival until a copy is there, moved before",
    )
    warmup_us: TimeUs = Field(
        default=0, description="microseconds without progress whenever it starts (comm machines)"
    )
    checkpoint_us: TimeUs = Field(
        default=0, description="microseconds of a checkpoint, one per slot on nodes that can be interrupted"
    )
    sync_every: Count = Field(
        default=0,
        description="number of rounds between exchanges of parameters where it trains at two sites with parts; 0: at one",
    )
    spend_cap_usd: Usd | None = Field(
        default=None, description="USD that it may spend at list price, without discounts (comm machines)"
    )
    restarts: Count | None = Field(
        default=None,
        description="how often it may pause and start again at the same nodes (a number), fixed work and comm machines; any "
        "number, anywhere if omitted",
    )
    command: list[Text] = Field(
        default_factory=list,
        description="program and arguments of a live job (text), started once per rank (see jobs.md)",
    )
    env: dict[Name, Text] = Field(
        default_factory=dict, description="name -> text, environment variables of its ranks"
    )
    seed: Count = Field(default=0, description="seed for the program's random generators (a number)")
    data: DataFile | None = Field(
        default=None,
        description="what its data consists of in a live run; its program has its own if omitted",
    )
    private: PrivateFile | None = Field(default=None, description="what policies never see")


class ChangeFile(Strict):
    """A change of capacity, bandwidth, price or availability at an instant."""

    at_us: TimeUs = Field(description="microseconds from the start; changes are listed in order of time")
    kind: ChangeKind = Field(description="what changes; see the table of changes")
    node: Name | None = Field(
        default=None, description="name of the node (capacity, price, node_down, node_up)"
    )
    resource: Name | None = Field(default=None, description="name of the resource (capacity, price)")
    link: Annotated[int | str, WithJsonSchema({"type": ["integer", "string"]})] | None = Field(
        default=None,
        description="'a->b' (one direction), 'a-b' (both), or the link's number from 0 (bandwidth, link_down, link_up)",
    )
    direction: Direction | None = Field(
        default=None, description="ab, ba or both (default); only for a link given by number (bandwidth)"
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
    of: Milli | None = Field(
        default=None,
        description="what the factor is divided by (a number), so that `factor: 4, of: 3` makes 3 USD exactly 4; "
        "1 if omitted (price, egress)",
    )


def _items(*kinds: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "array", "items": {"type": list(kinds)}})


class VolumesFile(Strict):
    """Data of stream jobs as columns; row i is the i-th entry of each."""

    job: Annotated[list[Any], _items("string", "integer")] = Field(
        default_factory=list, description="id of the job, or its number from 0"
    )
    slot: Annotated[list[Any], _items("integer")] = Field(
        default_factory=list, description="number of the slot, from 0"
    )
    node: Annotated[list[Any], _items("string", "integer")] = Field(
        default_factory=list, description="name of the node that stores the data, or its number from 0"
    )
    bytes: Annotated[list[Any], _items("integer", "string")] = Field(
        default_factory=list, description="bytes that arrive there, or text such as '400 GB'"
    )


class ScenarioFile(Strict):
    """A whole scenario."""

    tradewind_scenario: Literal[1] = Field(description="version of the format: 1")
    name: Name | None = Field(default=None, description="display name; default: the file name")
    objective: Objective = Field(description="the metric that runs are compared by; see Metrics")
    slot_us: SpanUs = Field(description="length of a slot in microseconds; also the checkpoint interval")
    horizon_us: SpanUs = Field(description="end of the run in microseconds; jobs must arrive before it")
    window_slots: Some | None = Field(
        default=None,
        description="number of slots that may be planned, from the current one on; up to the horizon if omitted",
    )
    resources: Names | None = Field(
        default=None,
        description="names of the resources, in order; default: as they first appear in nodes",
    )
    nodes: Annotated[list[NodeFile], FailFast()] = Field(description="the nodes, numbered from 0")
    links: Annotated[list[LinkFile], FailFast()] = Field(
        default_factory=list, description="the links, numbered from 0"
    )
    egress: Annotated[list[EgressFile], FailFast()] = Field(
        default_factory=list, description="prices of data between sites; free if omitted"
    )
    transfer_bytes_per_slot: Bytes | None = Field(
        default=None, description="bytes that all jobs together may move per slot; unlimited if omitted"
    )
    transport: Text = Field(
        default="store-and-forward",
        description="weight w(h) of a path of h hops: store-and-forward (h), cut-through (1), chunks:K (1 + (h-1)/K)",
    )
    forecast: dict[Name, Number] = Field(
        default_factory=dict,
        description="public forecasts for policies; the policy's documentation gives their units",
    )
    spend_caps: dict[Tenant, SpendCapFile] = Field(
        default_factory=dict,
        description="tenant -> spending limits in USD; `*` applies to every tenant without an entry of its own",
    )
    pools: Annotated[list[PoolFile], FailFast()] = Field(
        default_factory=list, description="discounts on what several nodes or pairs of sites cost together"
    )
    jobs: Annotated[list[JobFile], FailFast()] = Field(
        default_factory=list, description="the jobs in order of arrival, numbered from 0"
    )
    jobs_file: Name | None = Field(
        default=None,
        description="name of a .csv or .parquet file in the same folder that contains the jobs instead",
    )
    changes: Annotated[list[ChangeFile], FailFast()] = Field(
        default_factory=list,
        description="changes of capacity, bandwidth, price or availability, in order of time",
    )
    changes_file: Name | None = Field(
        default=None,
        description="name of a .csv or .parquet file in the same folder that contains the changes instead",
    )
    volumes: VolumesFile = Field(
        default=VolumesFile(), description="data of stream jobs in bytes, as columns"
    )
    volumes_file: Name | None = Field(
        default=None,
        description="name of a .csv or .parquet file in the same folder that contains the volumes instead",
    )
    origin: PlainObject = Field(
        default_factory=dict,
        description="how the scenario was generated (workload, parameters, seed), for information only; not in the hash",
    )

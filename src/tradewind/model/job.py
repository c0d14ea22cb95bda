"""Jobs: the public part that policies see, and the customer's private part, which only the world knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tradewind.model.errors import ScenarioError
from tradewind.model.units import MICRO, US_PER_S
from tradewind.model.utility import Utility

Demand = tuple[tuple[int, int], ...]
"""(resource index, milli-units) pairs, rising by index, no zeros."""

Architecture = Literal["ps", "ring"]
Hold = Literal["until", "through"]
Comm = Literal["none", "colocated", "flows", "ring", "machines"]
RoundUnit = Literal["round", "worker-slot", "worker-round"]
MOST_RANKS = 1_000_000
"""Most workers or parameter servers of a job: policies and worlds may keep something for each."""
DECLARED = 1000
"""Customer.pace_milli of a job whose declaration is right."""
RESERVED_ENV = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
"""Environment variables that every rank gets, besides those that begin with TRADEWIND_."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """Runs for a given time on all its workers (traces). runtime_us is None if it is private."""

    runtime_us: int | None = None

    @property
    def total(self) -> int | None:
        """Work to do, in microseconds of running."""
        return self.runtime_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """New data arrives every slot at some sites and must be processed within the slot (mlBroker).

    bytes_per_worker_slot  P: what one worker processes in a slot

    Volumes arrive as events. How long the job stays is private (Customer.runtime_us). With a utility of `served` a slot
    may be left out; without one all data must be processed, or the job is refused for good.
    """

    bytes_per_worker_slot: int

    @property
    def total(self) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Chunks of data at sites; each is processed once, for all epochs (Eris).

    chunks       (node, number of chunks) pairs: D
    chunk_bytes  size of a chunk: theta
    epochs       E
    chunk_epochs_per_worker_slot_milli  P in thousandths of a chunk-epoch; a fractional P/E is allowed
    """

    chunks: tuple[tuple[int, int], ...]
    chunk_bytes: int
    epochs: int
    chunk_epochs_per_worker_slot_milli: int

    @property
    def total(self) -> int:
        """Work to do, in chunks."""
        return sum(n for _, n in self.chunks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """A number of rounds (DPS, APSP), worker-slots or rounds of workers (GADGET), each with compute and communication time.

    count        rounds or worker-slots to do; no more worker-slots than that may be planned
    unit         round: a round takes the same time whatever the number of workers;
                 worker-slot: n workers do n per slot;
                 worker-round: n workers do n in the time of a round (GADGET's zeta from equation (1))
    compute_us   computation time of a round
    comm         none       no communication
                 colocated  0 on one node, else 2 * model_bytes / min(worker_bps, server_bps / workers)
                            (DPS, equation (1))
                 flows      2 * (w(hops) * bytes of its site / bps + latency) of the slowest route (APSP)
                 ring       (n-1)/n * model_bytes * (2 / ring_bps + 1 / reduce_bps); on one node without the first
                            term (GADGET, equation (1))
                 machines   by the machines of the node (model.machine); compute_us is then the time of a round on one
                            GPU of speed 1, shared by all GPUs
    rate         utility progress per round or worker-slot (GADGET's zeta)
    whole_slots  the runtime is rounded up to whole slots (DPS)
    pinned       (node, workers) pairs where the workers must run (APSP's worker sites); empty: anywhere
    """

    count: int
    unit: RoundUnit = "round"
    compute_us: int = 0
    comm: Comm = "none"
    rate: float = 1.0
    whole_slots: bool = False
    pinned: tuple[tuple[int, int], ...] = ()

    @property
    def total(self) -> int:
        """Work to do, in millionths of a round or worker-slot."""
        return self.count * MICRO


Work = Fixed | Stream | Dataset | Rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """What the data of a job consists of in a live run: records of one size, in files called shards (docs/jobs.md).

    source        a generator, or the path of a file or of a directory of files with records
    record_bytes  size of a record; data is cut between records only
    shard_bytes   size of a shard at most
    """

    source: str
    record_bytes: int = 1
    shard_bytes: int = 1_000_000

    def __post_init__(self) -> None:
        if not self.source or "\0" in self.source:
            raise ScenarioError("data.source is empty; name a generator or a path")
        if not 1 <= self.record_bytes <= self.shard_bytes:
            raise ScenarioError(
                f"data.record_bytes is {self.record_bytes} and shard_bytes {self.shard_bytes}; "
                "1 <= record_bytes <= shard_bytes is required"
            )


KIND: dict[type, str] = {Fixed: "fixed", Stream: "stream", Dataset: "dataset", Rounds: "rounds"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The public part of a job, known from its arrival on.

    worker, server       demand of one worker and of one parameter server
    workers_min/max      limits on the workers of any step with workers
    servers              parameter servers in any step with workers (0 for a ring)
    utility              the bid: the value of the job as the customer states it (None: no bid)
    bid_from_us          start of the bid's delay if it lies before the arrival, a bid for the past (None: the arrival)
    nodes                where workers and servers may run (None: anywhere with capacity)
    data_nodes           where data may be processed (None: anywhere)
    model_bytes          size of the parameters
    site_bytes           (node, bytes) pairs: worker sites that exchange these bytes in a round instead of model_bytes
    traffic_bytes_per_worker_slot  exchanged between a worker and a server elsewhere, per slot
    worker_bps, server_bps         bandwidth of a worker and of a server (DPS: h_k, H_m)
    ring_bps             reserved on every hop of the ring (GADGET: b_i)
    reduce_bps           speed of summing gradients (GADGET: G); 0: instant
    deploy_usd           cost of starting at a node where the job was not running just before
    restart_us           time without progress after workers or servers move
    hold                 until: resources are released at completion; through: one microsecond later
    caps                 (resource, milli-unit-slots) that the job may use in total (GADGET (3), (11))
    gpus                 numbers of GPUs it can use, rising; a worker is then a machine of its node (comm machines)
    gpu_speeds           (GPU type, thousandths of the reference GPU's speed); it runs on no other type
    parts                (site, bytes) of its data, all of which must be at the site where it runs: a step's flows bring it
    copies               (site of a part, site, left_us): the part has a copy at another site left_us after the job arrives,
                         whose move began before. A step from then on needs no flow for it; one that has it pays for the
                         part and waits no longer than that
    warmup_us            time without progress whenever it starts: at first, after a pause, a move or a failure
    checkpoint_us        time of a checkpoint; one is taken per slot on nodes that can be interrupted
    sync_every           rounds between exchanges of parameters where it trains at two sites that hold parts of its data
                         (model.progress.across_round_us); 0: it trains at one site
    spend_cap_usd        most that it may spend at list price: rent and egress at first-tier prices, without discounts and
                         price changes (None: no limit)
    restarts             how often it may pause and start again, at the same nodes with as many workers; failures do not
                         count, and after one it may start anywhere (None: any number, anywhere). Fixed jobs and jobs with
                         gpus; 0: a job that may not be interrupted
    continues            number of the job that it goes on from, with its directories: that one was suspended (None: none)
    command              program of a live job and its arguments, started once per rank (docs/jobs.md)
    env                  (name, value) pairs added to the environment of its ranks
    seed                 of the program's random streams
    data                 what its data consists of in a live run (None: its program brings its own data)
    """

    index: int
    id: str
    arrive_us: int
    work: Work
    worker: Demand
    tenant: str = ""
    architecture: Architecture = "ring"
    server: Demand = ()
    workers_min: int = 1
    workers_max: int = 1
    servers: int = 0
    utility: Utility | None = None
    bid_from_us: int | None = None
    nodes: frozenset[int] | None = None
    data_nodes: frozenset[int] | None = None
    model_bytes: int = 0
    traffic_bytes_per_worker_slot: int = 0
    worker_bps: int = 0
    server_bps: int = 0
    ring_bps: int = 0
    reduce_bps: int = 0
    deploy_usd: float = 0.0
    restart_us: int = 0
    hold: Hold = "until"
    caps: Demand = ()
    site_bytes: tuple[tuple[int, int], ...] = ()
    gpus: tuple[int, ...] = ()
    gpu_speeds: tuple[tuple[str, int], ...] = ()
    parts: tuple[tuple[int, int], ...] = ()
    copies: tuple[tuple[int, int, int], ...] = ()
    warmup_us: int = 0
    checkpoint_us: int = 0
    sync_every: int = 0
    spend_cap_usd: float | None = None
    restarts: int | None = None
    continues: int | None = None
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    seed: int = 0
    data: Data | None = None

    @property
    def home(self) -> int:
        """Number under which its directories are."""
        return self.index if self.continues is None else self.continues

    def __post_init__(self) -> None:
        if not 1 <= self.workers_min <= self.workers_max <= MOST_RANKS:
            raise ScenarioError(
                f"jobs[{self.id}]: workers_min is {self.workers_min} and workers_max {self.workers_max}; "
                f"1 <= workers_min <= workers_max <= {MOST_RANKS} is required"
            )
        if not 0 <= self.servers <= MOST_RANKS:
            raise ScenarioError(
                f"jobs[{self.id}].servers is {self.servers}; it must lie between 0 and {MOST_RANKS}"
            )
        if self.architecture == "ring" and self.servers:
            raise ScenarioError(
                f"jobs[{self.id}].servers is {self.servers}; a ring has no parameter servers, use 0"
            )
        if self.command or self.env or self.seed or self.data is not None:
            self._check_program()

    def bytes_of(self, node: int) -> int:
        """Bytes that a worker site sends to the server, and receives, in a round."""
        return dict(self.site_bytes).get(node, self.model_bytes) if self.site_bytes else self.model_bytes

    def copied_by(self, at_us: int) -> frozenset[tuple[int, int]]:
        """(Site of a part, site) of the copies that are there by an instant."""
        return frozenset((a, b) for a, b, left_us in self.copies if self.arrive_us + left_us <= at_us)

    def _check_program(self) -> None:
        where = f"jobs[{self.id}]"
        if not self.command or not self.command[0]:
            raise ScenarioError(
                f"{where} has env, seed or data, but no command; add a command or remove them"
            )
        if self.data is not None and not (isinstance(self.work, Stream | Dataset) or self.parts):
            raise ScenarioError(
                f"{where} has data, but no plan moves it: data is for streams, datasets and jobs with parts. Remove it."
            )
        if "\0" in "".join([*self.command, *(word for pair in self.env for word in pair)]):
            raise ScenarioError(f"{where}.command or env contains the character NUL; remove it")
        for name, _ in self.env:
            if (
                not name.isidentifier()
                or not name.isascii()
                or name in RESERVED_ENV
                or name.startswith("TRADEWIND_")
            ):
                raise ScenarioError(
                    f"{where}.env[{name}] is not allowed: a name consists of letters, digits and _, and "
                    f"{', '.join(RESERVED_ENV)} and TRADEWIND_* are set for every rank. Choose another name."
                )

    @property
    def pulls_back(self) -> bool:
        """Whether what its routes push is pulled back over the same links at the same rate (parameter servers)."""
        return isinstance(self.work, Rounds) and self.work.comm == "flows"

    @property
    def may_skip_slots(self) -> bool:
        """Whether slots of this stream may be left out: what it is worth depends on the slots served."""
        return self.utility is not None and self.utility.of == "served"

    @property
    def kind(self) -> str:
        """fixed, stream, dataset or rounds."""
        return KIND[type(self.work)]

    @property
    def unservable_reason(self) -> str:
        """Reason why no resources could serve this bid, or ""."""
        if self.bid_from_us is not None:
            before = (self.arrive_us - self.bid_from_us) / US_PER_S
            return f"bids for the past: its delay counts from {before:g} s before its arrival"
        if isinstance(self.work, Dataset):
            if self.work.epochs == 0:
                return "trains for 0 epochs; at least 1 is required"
            if self.work.total == 0:
                return "has no data"
            if any(chunks == 0 for _, chunks in self.work.chunks):
                return "names a data site where it has none"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Customer:
    """The private part of a job, known to the world only.

    budget_usd  the customer accepts offers that cost at most this (None: no budget)
    valuation   the true utility; the customer takes the offer with the largest valuation(delay) - payment, if positive
    runtime_us  runtime of a fixed job that has no public one; how long a stream stays
    pace_milli  time that its work really takes, in thousandths of what follows from its declaration; not for streams
    """

    budget_usd: float | None = None
    valuation: Utility | None = None
    runtime_us: int | None = None
    pace_milli: int = DECLARED


NO_PRIVATE_DATA = Customer()
"""The customer of a job without private data."""

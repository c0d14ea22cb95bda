"""The environment of a rank, as Tradewind sets it for every program that it starts (docs/jobs.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

COMPLETE = 0
FAILED = 1
MISUSED = 2
PEER_LOST = 69
STOPPED = 75
"""Exit codes: training is complete; this rank failed; wrong options; another rank is gone; stopped, can be resumed."""

SERVER_MODES = ("ps", "ps-async")
"""Modes with parameter servers."""


class ContractError(Exception):
    """The environment or the options are invalid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """This process among the ranks of its job.

    servers  number of parameter servers; they are the first ranks
    sites    site of every rank
    ring     ranks in ring order; empty with a parameter server
    shard    (i, n): worker i of n, from 0
    data     directory of the data at this rank's site; None: the job has no data of this kind
    site_shard  (i, n): worker i of n at this rank's site, from 0
    """

    rank: int
    world: int
    role: str
    servers: int
    sites: tuple[str, ...]
    ring: tuple[int, ...]
    shard: tuple[int, int]
    master: tuple[str, int]
    interface: str
    folder: Path
    report: Path | None
    seed: int
    stop_after: int | None
    data: Path | None = None
    site_shard: tuple[int, int] = (0, 1)

    @property
    def site(self) -> str:
        """Site of this rank."""
        return self.sites[self.rank]

    @property
    def workers(self) -> int:
        """Number of workers."""
        return self.world - self.servers


def read(environment: Mapping[str, str], mode: str) -> Rank:
    """The rank that an environment describes; by default a job with one rank."""
    world = _number(environment, "WORLD_SIZE", 1, 1)
    rank = _number(environment, "RANK", 0, 0)
    if rank >= world:
        raise ContractError(f"RANK is {rank}; it must be below WORLD_SIZE, which is {world}")
    has_servers = mode in SERVER_MODES
    servers = _number(environment, "TRADEWIND_SERVERS", 1, 1) if has_servers else 0
    role = environment.get("TRADEWIND_ROLE", "ps" if rank < servers else "worker")
    if (role == "ps") != (rank < servers):
        raise ContractError(
            f"TRADEWIND_ROLE is {role!r} for rank {rank} in mode {mode}; with parameter servers it must be 'ps' for the "
            f"first ranks (TRADEWIND_SERVERS, which is {servers}) and 'worker' for all others, in a ring 'worker' for all"
        )
    workers = world - servers
    if workers < 1:
        raise ContractError(
            f"parameter servers need at least one worker: WORLD_SIZE must be {servers + 1} or more"
        )
    report = environment.get("TRADEWIND_REPORT", "")
    stop_after = environment.get("TRADEWIND_STOP_AFTER_ITERATIONS", "")
    data = environment.get("TRADEWIND_DATA_DIR", "")
    return Rank(
        rank=rank,
        world=world,
        role=role,
        servers=servers,
        sites=_sites(environment, world),
        ring=() if has_servers else _ring(environment, world),
        shard=_shard(environment, "TRADEWIND_DATA_SHARD", (max(0, rank - servers), workers))
        if role == "worker"
        else (0, 1),
        data=Path(data) if data else None,
        site_shard=_shard(environment, "TRADEWIND_SITE_SHARD", (0, 1)) if role == "worker" else (0, 1),
        master=(environment.get("MASTER_ADDR", "127.0.0.1"), _number(environment, "MASTER_PORT", 29500, 0)),
        interface=environment.get("TRADEWIND_INTERFACE", "") or "lo",
        folder=Path(environment.get("TRADEWIND_CHECKPOINT_DIR", "") or "checkpoints"),
        report=Path(report) if report else None,
        seed=_number(environment, "TRADEWIND_SEED", 0, 0),
        stop_after=_number(environment, "TRADEWIND_STOP_AFTER_ITERATIONS", 0, 1) if stop_after else None,
    )


def _number(environment: Mapping[str, str], name: str, default: int, minimum: int) -> int:
    text = environment.get(name, "")
    if not text:
        return default
    try:
        value = int(text)
    except ValueError:
        raise ContractError(f"{name} is {text!r}; it must be a whole number") from None
    if value < minimum:
        raise ContractError(f"{name} is {value}; the minimum is {minimum}")
    return value


def _sites(environment: Mapping[str, str], world: int) -> tuple[str, ...]:
    """Sites from TRADEWIND_SITES; by default one site for all ranks."""
    text = environment.get("TRADEWIND_SITES", "")
    sites = tuple(part.strip() for part in text.split(",")) if text else ("here",) * world
    if len(sites) != world:
        raise ContractError(
            f"TRADEWIND_SITES names {len(sites)} sites, but WORLD_SIZE is {world}; name one site per rank"
        )
    return sites


def _ring(environment: Mapping[str, str], world: int) -> tuple[int, ...]:
    """Ring order from TRADEWIND_RING, "0@a,1@b,…"; by default the ranks in order."""
    text = environment.get("TRADEWIND_RING", "")
    try:
        ring = tuple(int(part.partition("@")[0]) for part in text.split(",")) if text else tuple(range(world))
    except ValueError:
        ring = ()
    if sorted(ring) != list(range(world)):
        raise ContractError(
            f"TRADEWIND_RING is {text!r}; it must list every rank once, as rank@site,rank@site"
        )
    return ring


def _shard(environment: Mapping[str, str], name: str, default: tuple[int, int]) -> tuple[int, int]:
    text = environment.get(name, "")
    if not text:
        return default
    first, sign, second = text.partition("/")
    if not (sign and first.isdecimal() and second.isdecimal() and int(first) < int(second)):
        raise ContractError(f"{name} is {text!r}; it must be i/n with i from 0 to n - 1")
    return int(first), int(second)

"""A job of a plan in the units of the model, and the assumptions that were made for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tradewind.files.jobs_file import PlanFile, PlanJobFile
from tradewind.files.profile_file import ProfileFile
from tradewind.model.errors import InputError, nearest
from tradewind.model.units import GB, US_PER_S

SPEED: Final[Mapping[str, float]] = {
    "K80": 0.2, "T4": 0.35, "P100": 0.55, "L4": 0.6, "A10": 0.7, "A10G": 0.7, "V100": 1.0, "V100-32GB": 1.0, "L40S": 1.6,
    "A100": 2.2, "A100-80GB": 2.4, "H100": 4.5, "H200": 5.0,
}  # fmt: skip
"""Speed of GPU types in training, V100 = 1; used where a job gives no speeds of its own."""
ROUND_S: Final = 10.0
"""Length of a round on one GPU where only GPU-hours are given; nothing is exchanged then."""
DEADLINE_US: Final = 7 * 24 * 3600 * US_PER_S
RESTART_US: Final = 300 * US_PER_S
CHECKPOINT_US: Final = 60 * US_PER_S
MOST_GPU_HOURS: Final = 1e8


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A job as a planner needs it.

    work                 what there is to do, in words
    rounds, compute_us   iterations, and the time of one on one GPU of the reference type
    speeds               GPU type -> speed beside the reference type
    parts                region -> bytes
    until_us             deadline from now on; after due_us every hour costs late_usd
    sync_every           iterations between exchanges of two regions; 0: it trains in one
    """

    id: str
    tenant: str
    work: str
    rounds: int
    compute_us: int
    of: str
    speeds: Mapping[str, float]
    gpus: tuple[int, ...]
    gpu_gb: float
    model_bytes: int
    parts: Mapping[str, int]
    regions: tuple[str, ...]
    after_us: int
    until_us: int
    due_us: int
    late_usd: float
    budget_usd: float | None
    spot: bool
    pauses: int
    warmup_us: int
    checkpoint_us: int
    sync_every: int
    command: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    assumed: tuple[str, ...]


def wanted(
    file: PlanFile, profiles: Mapping[str, ProfileFile], known: Mapping[str, float | None]
) -> tuple[Wanted, ...]:
    """The jobs of a file; known: GPU type -> memory in GB, of the price list."""
    if not file.spot and (job := next((job for job in file.jobs if job.spot), None)):
        raise InputError(
            f"jobs[{job.id}] may use spot machines, whose number and interruptions no list knows; add at the top for "
            "example `spot: {machines: 4, interruptions_per_hour: 0.05}`"
        )
    if file.spot and not 0 < file.spot.interruptions_per_hour <= 60:
        raise InputError(
            f"spot.interruptions_per_hour is {file.spot.interruptions_per_hour:g}; it must be above 0 and at most 60"
        )
    return tuple(_wanted(job, file, profiles.get(job.id), known) for job in file.jobs)


def _wanted(
    job: PlanJobFile, file: PlanFile, profile: ProfileFile | None, known: Mapping[str, float | None]
) -> Wanted:
    where = f"jobs[{job.id}]"
    for gpu in (*job.gpu, *([job.of] if job.of else [])):
        if gpu not in known:
            raise InputError(
                f"{where}.gpu names {gpu!r}, which the price list does not have.{nearest(gpu, known)}"
            )
    of = job.of or (profile.gpu if profile and profile.gpu else None) or job.gpu[0]
    assumed: list[str] = []
    rounds, compute_us = _work(job, profile, where)
    if job.command and job.iterations is None:
        assumed.append(f"its command is told to stop after {rounds:,} iterations, 10 s each on one {of}")
    until_us = job.deadline or file.deadline
    if until_us is None:
        until_us = DEADLINE_US
        assumed.append("no deadline: 7 days")
    if until_us <= job.after:
        raise InputError(
            f"{where}.deadline is not after its earliest start; deadline and after count from now on"
        )
    if bool(job.late) != (job.due is not None):
        raise InputError(
            f"{where}: due and late go together: when it should be done, and USD per hour after that"
        )
    if job.due is not None and not job.after < job.due <= until_us:
        raise InputError(
            f"{where}.due is not between its earliest start and its deadline; all count from now on"
        )
    if job.sync_every and not job.model:
        raise InputError(
            f"{where}.sync_every says how often two regions exchange the model; give model, its size"
        )
    return Wanted(
        id=job.id,
        tenant=job.tenant,
        work=_said(job, rounds * compute_us / US_PER_S / 3600, of),
        rounds=rounds,
        compute_us=compute_us,
        of=of,
        speeds=_speeds(job, of, where, known, assumed),
        gpus=job.gpus,
        gpu_gb=job.gpu_memory / GB,
        model_bytes=job.model,
        parts=dict(job.data),
        regions=job.regions or (),
        after_us=job.after,
        until_us=until_us,
        due_us=until_us if job.due is None else job.due,
        late_usd=job.late,
        budget_usd=job.budget,
        spot=job.spot,
        pauses=job.pauses,
        warmup_us=_time(
            job.restart, profile.restart_s if profile else None, RESTART_US, "restart 5 min", assumed
        ),
        checkpoint_us=_time(
            job.checkpoint,
            profile.checkpoint_s if profile else None,
            CHECKPOINT_US,
            "checkpoint 1 min",
            assumed,
        ),
        sync_every=job.sync_every,
        command=tuple(job.command),
        env=tuple(sorted(job.env.items())),
        assumed=tuple(assumed),
    )


def _said(job: PlanJobFile, gpu_hours: float, of: str) -> str:
    """The work in words; GPU-hours are those on the reference type, without communication."""
    if job.iterations is None:
        return f"{gpu_hours:,.1f} GPU-hours of {of}"
    return f"{job.iterations:,} iterations, {gpu_hours:,.1f} GPU-hours of {of} without communication"


def _time(given: int | None, measured_s: float | None, default_us: int, text: str, assumed: list[str]) -> int:
    if given is not None:
        return given
    if measured_s is not None:
        return round(measured_s * US_PER_S)
    assumed.append(text)
    return default_us


def _work(job: PlanJobFile, profile: ProfileFile | None, where: str) -> tuple[int, int]:
    """Rounds, and microseconds of one on one GPU of the reference type."""
    if (job.gpu_hours is None) == (job.iterations is None):
        raise InputError(f"{where}: give gpu_hours, or iterations with iteration_s or a profile")
    if job.gpu_hours is not None:
        if not 0 < job.gpu_hours <= MOST_GPU_HOURS:
            raise InputError(
                f"{where}.gpu_hours is {job.gpu_hours:g}; it must be above 0 and at most {MOST_GPU_HOURS:,.0f}"
            )
        if job.model:
            raise InputError(
                f"{where}.model is exchanged in every iteration, of which gpu_hours say nothing; give iterations and "
                "iteration_s, or leave out model"
            )
        return max(1, math.ceil(3600 * job.gpu_hours / ROUND_S)), round(ROUND_S * US_PER_S)
    if (job.iteration_s is None) == (profile is None):
        raise InputError(f"{where}: iterations need iteration_s or a profile, one of them")
    if profile is not None:
        seconds = profile.iteration_s * profile.ranks * (1 - (profile.communication_share or 0.0))
    else:
        seconds = (job.iteration_s or 0.0) * job.measured_gpus
    if not 1e-6 <= seconds <= 1e9:
        raise InputError(
            f"{where}: an iteration on one GPU takes {seconds:g} s; it must take from a microsecond to 30 years"
        )
    return job.iterations or 0, round(seconds * US_PER_S)


def _speeds(
    job: PlanJobFile, of: str, where: str, known: Mapping[str, float | None], assumed: list[str]
) -> dict[str, float]:
    """Speed of each type that has the memory, beside the reference type."""
    for gpu, speed in job.speeds.items():
        if gpu not in job.gpu:
            raise InputError(
                f"{where}.speeds names {gpu!r}, which is not among its gpu.{nearest(gpu, job.gpu)}"
            )
        if not 1e-3 <= speed <= 1e3:
            raise InputError(f"{where}.speeds[{gpu}] is {speed:g}; it must be from 0.001 to 1000")
    found: dict[str, float] = {}
    guessed: list[str] = []
    for gpu in job.gpu:
        memory = known[gpu]
        if job.gpu_memory and (memory is None or memory < job.gpu_memory / GB):
            continue
        if gpu in job.speeds or gpu == of:
            found[gpu] = job.speeds.get(gpu, 1.0)
        else:
            if gpu not in SPEED or of not in SPEED:
                raise InputError(
                    f"{where}: the speed of {gpu} beside {of} is not known; add `speeds: {{{gpu}: …}}`"
                )
            found[gpu] = SPEED[gpu] / SPEED[of]
            guessed.append(f"{gpu} {found[gpu]:.2g} x {of}")
    if not found:
        sizes = [size for gpu in job.gpu if (size := known[gpu]) is not None]
        said = f"the largest has {max(sizes):g} GB" if sizes else "the price list says no memory; add gpu_gb"
        raise InputError(
            f"{where} needs {job.gpu_memory / GB:g} GB on a GPU; of {' and '.join(job.gpu)} {said}"
        )
    if guessed:
        assumed.append(f"speed {', '.join(guessed)}")
    return found

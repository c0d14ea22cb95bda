"""Job oracles, one file per kind of work: what a job of this kind answers to prices."""

from __future__ import annotations

from tradewind.model.job import Dataset, Job, Rounds, Stream
from tradewind.systems.mixed.shared.frame import Frame, Known, Supply
from tradewind.systems.mixed.shared.oracles.ask import Ask
from tradewind.systems.mixed.shared.oracles.dataset import DataSet
from tradewind.systems.mixed.shared.oracles.gang import Gang
from tradewind.systems.mixed.shared.oracles.ring import Ring
from tradewind.systems.mixed.shared.oracles.stream import Streaming

ORACLES: dict[str, type[Ask]] = {"stream": Streaming, "ring": Ring, "dataset": DataSet, "gang": Gang}


def oracle_of(job: Job) -> str:
    """Which oracle answers for a job."""
    if isinstance(job.work, Stream):
        return "stream"
    if isinstance(job.work, Dataset):
        return "dataset"
    return "ring" if isinstance(job.work, Rounds) and job.work.unit == "worker-slot" else "gang"


def unpriceable(job: Job) -> str:
    """Why no oracle can price a job, or ""."""
    if job.unservable_reason:
        return f"it {job.unservable_reason}"
    if isinstance(job.work, Rounds) and (job.work.pinned or job.work.comm in ("flows", "machines")):
        return f"mixed has no oracle for pinned workers and comm {job.work.comm!r}"
    if job.servers > 1:
        return f"mixed plans at most one parameter server; it asks for {job.servers}"
    if job.servers and oracle_of(job) in ("ring", "gang"):
        return f"mixed plans parameter servers for streams and data sets, not for {job.kind}"
    if job.caps:
        return "mixed does not plan with caps on a job's resources"
    return ""


def ask_of(frame: Frame, job: Job, known: Known, supply: Supply, unpriced: float) -> Ask:
    """The oracle of a job."""
    return ORACLES[oracle_of(job)](frame, job, known, supply, unpriced)

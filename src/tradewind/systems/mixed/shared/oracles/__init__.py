"""Job oracles, one file per kind of work: what a job of this kind answers to prices. Every file of this folder is found."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module

from tradewind.model.job import Job, Rounds
from tradewind.systems.mixed.shared.frame import Frame, Known, Supply
from tradewind.systems.mixed.shared.oracles.ask import Ask


def found_oracles() -> dict[str, type[Ask]]:
    """Kind -> oracle, of all files of this folder; the one that takes what no other does is last."""
    classes = [
        each
        for info in pkgutil.iter_modules(__path__, f"{__name__}.")
        for each in vars(import_module(info.name)).values()
        if inspect.isclass(each) and issubclass(each, Ask) and each.__module__ == info.name
    ]
    kinds = sorted((each for each in classes if each.kind), key=lambda each: (each.takes_the_rest, each.kind))
    return {each.kind: each for each in kinds}


ORACLES = found_oracles()


def oracle_of(job: Job) -> str:
    """Which oracle answers for a job."""
    return next(kind for kind, oracle in ORACLES.items() if oracle.takes_the_rest or oracle.answers(job))


def unpriceable(job: Job) -> str:
    """Why no oracle can price a job, or ""."""
    if job.unservable_reason:
        return f"it {job.unservable_reason}"
    if isinstance(job.work, Rounds) and (job.work.pinned or job.work.comm in ("flows", "machines")):
        return f"mixed has no oracle for pinned workers and comm {job.work.comm!r}"
    if job.caps:
        return "mixed does not plan with caps on a job's resources"
    most = ORACLES[oracle_of(job)].most_servers
    if job.servers > most:
        return f"mixed plans at most {most} parameter servers for a job like this; it asks for {job.servers}"
    return ""


def ask_of(frame: Frame, job: Job, known: Known, supply: Supply, unpriced: float) -> Ask:
    """The oracle of a job."""
    return ORACLES[oracle_of(job)](frame, job, known, supply, unpriced)

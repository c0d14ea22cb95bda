"""The same jobs planned under another assumption: another deadline, spot machines or none, other regions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tradewind.files.jobs_file import PlanFile, SpotFile
from tradewind.files.profile_file import ProfileFile
from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.units import parse_time_us
from tradewind.planner.plan import Overrides, Plan, beside, make

KNOWN = ("by", "spot", "regions")


def with_spot(file: PlanFile, text: str, where: str) -> PlanFile:
    """All jobs may use spot machines; text: `4:0.05`, machines of an offer and interruptions per hour."""
    machines, _, rate = text.partition(":")
    try:
        spot = SpotFile(machines=int(machines), interruptions_per_hour=float(rate))
    except ValueError:
        raise InputError(
            f"found {text!r}; write the machines of an offer and the interruptions per hour: 4:0.05",
            where=where,
        ) from None
    jobs = [job.model_copy(update={"spot": True}) for job in file.jobs]
    return file.model_copy(update={"spot": spot, "jobs": jobs})


def changed(file: PlanFile, overrides: Overrides, text: str) -> tuple[PlanFile, Overrides]:
    """What `by=1 d`, `spot=4:0.05`, `spot=none` or `regions=eu` makes of a plan's input."""
    where, (name, _, value) = "--what-if", (part.strip() for part in text.partition("="))
    if name not in KNOWN:
        raise LookupFailed("what-if", name, KNOWN)
    if name == "by":
        try:
            return file, replace(overrides, until_us=parse_time_us(value))
        except ValueError:
            raise InputError(f"by is {value!r}; write a number with a unit: 36 h, 2 d", where=where) from None
    if name == "regions":
        jobs = [job.model_copy(update={"regions": (value,)}) for job in file.jobs]
        return file.model_copy(update={"jobs": jobs}), overrides
    if value == "none":
        return file, replace(overrides, spot=False)
    return with_spot(file, value, where), replace(overrides, spot=True)


def what_if(
    file: PlanFile, profiles: Mapping[str, ProfileFile], plan: Plan, overrides: Overrides, text: str
) -> str:
    """The bill under another assumption beside the plan's, or what stands in its way."""
    other_file, other = changed(file, overrides, text)
    try:
        found = make(other_file, profiles, plan.prices, plan.wan, other)
    except InputError as error:
        return f"what if {text}: not possible: {error}"
    return beside(f"what if {text}", found.usd, plan.usd)

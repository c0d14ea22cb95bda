"""One job, as people hand it in: the job of a scenario file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import ValidationError

from tradewind.engine.fit import job_mismatch
from tradewind.files.messages import find, sentence, shown
from tradewind.files.scenario_build import JobBuilder
from tradewind.files.schemas_scenario import JobFile, StreamWork
from tradewind.model.codec import plain, read
from tradewind.model.errors import InputError
from tradewind.model.job import NO_PRIVATE_DATA, Customer, Dataset, Job
from tradewind.model.scenario import check_job
from tradewind.model.setup import Setup
from tradewind.service.config import Config, TenantFile

SET_BY_SERVICE = ("arrive_us", "bid_from_us", "tenant")
"""Fields of a job in a scenario file that a service decides."""


class Submission(NamedTuple):
    """A checked submission. document: as it was handed in, without its private part."""

    document: dict[str, Any]
    job: Job
    customer: Customer
    volumes: tuple[tuple[int, int], ...]


class Reader:
    """Reads submissions for one setup and policy."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._builder = JobBuilder(config.setup)

    def read(self, raw: Any, tenant: str) -> Submission:
        """Check what a tenant handed in; InputError says what is wrong."""
        if not isinstance(raw, dict):
            raise InputError(f"the request contains {shown(raw)}; a job must be an object")
        for name in SET_BY_SERVICE:
            if name in raw:
                raise InputError(f"{name} is set by the service; remove it")
        if tenant not in self._config.file.tenants:
            raise InputError(f"{tenant} is no tenant of this service any more")
        found = self.build(raw, 0, raw.get("id") or "job", 0)
        check_allowed(found.job, self._config.file.tenants[tenant], tenant)
        _check_room(self._config.setup, found.job)
        if "/" in found.job.id or found.job.id.startswith("."):
            raise InputError(
                f"id is {shown(found.job.id)}; it is part of addresses: no '/', and no '.' at its start"
            )
        job = replace(found.job, tenant=tenant)
        if why := job_mismatch(self._config.spec, job):
            raise InputError(why)
        return found._replace(job=job)

    def build(self, raw: Mapping[str, Any], index: int, name: str, at_us: int) -> Submission:
        """The job of a document, with its number, name and arrival."""
        try:
            file = JobFile.model_validate(raw)
        except ValidationError as error:
            raise InputError(sentence(error, JobFile, raw)) from None
        job = replace(self._builder.job(index, file.model_copy(update={"id": name}), 0), arrive_us=at_us)
        customer = self._builder.customer(file, name)
        if customer.runtime_us is None:  # ranks say when they are done; a stream stays until it is cancelled
            check_job(self._config.setup, job, replace(customer, runtime_us=1))
        else:
            check_job(self._config.setup, job, customer)
        volumes = _volumes(self._config.setup, file)
        document = {key: value for key, value in raw.items() if key != "private"}
        return Submission(document, job, customer, volumes)


def _volumes(setup: Setup, file: JobFile) -> tuple[tuple[int, int], ...]:
    """(node, bytes) that a stream gets in every slot."""
    given = file.work.bytes_per_slot if isinstance(file.work, StreamWork) else {}
    where = "work.bytes_per_slot"
    pairs = ((find(setup.node_index, node, "node", where), size) for node, size in given.items())
    return tuple(sorted(pair for pair in pairs if pair[1]))


def check_allowed(job: Job, tenant: TenantFile, name: str) -> None:
    """Check that a job has a command that its tenant may run."""
    if not job.command:
        raise InputError("command is missing; add the program and its arguments: [program, argument, …]")
    if job.data is not None:  # its path would be read with the rights of the service
        raise InputError("data is for `tradewind live`; the service moves no data. Remove it")
    if isinstance(job.work, Dataset) and job.architecture == "ps" and not job.servers:
        raise InputError("architecture is ps but servers is 0; set servers to 1")
    if tenant.any_command or any(
        list(job.command[: len(words)]) == words for words in tenant.commands if words
    ):
        return
    allowed = "; ".join(" ".join(words) for words in tenant.commands) or "none"
    raise InputError(
        f"command {' '.join(job.command)[:80]!r} is not allowed for {name}; commands must begin with: {allowed}"
    )


def _check_room(setup: Setup, job: Job) -> None:
    """Check that the sites together could hold the job if nothing else ran: no wait helps a job that they cannot."""
    hosts = [node for node in setup.hosts if job.nodes is None or node in job.nodes]
    need = [(resource, milli) for resource, milli in job.worker if milli]
    if not need:
        return
    most = sum(
        min(setup.nodes[n].capacity_milli[resource] // milli for resource, milli in need) for n in hosts
    )
    if most < job.workers_min:
        needed = f"{job.workers_min} worker{'s' if job.workers_min > 1 else ''}"
        raise InputError(
            f"the job needs {needed} at once; where it may run there is room for {most} of them at most. "
            "Ask for fewer or smaller workers"
        )


def sealed_text(customer: Customer) -> str | None:
    """The private part as text to be sealed; None if there is none."""
    return None if customer == NO_PRIVATE_DATA else json.dumps(plain(customer))


def customer_of(text: str) -> Customer:
    """The private part that `sealed_text` wrote."""
    found: Customer = read(Customer, json.loads(text), "private")
    return found

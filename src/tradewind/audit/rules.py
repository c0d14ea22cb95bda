"""Which rules apply to a job."""

from __future__ import annotations

from tradewind.audit import rules_data, rules_form, rules_machines, rules_network, rules_work
from tradewind.audit.record import Rule
from tradewind.model.job import Dataset, Fixed, Job, Rounds, Stream

PLAIN: tuple[Rule, ...] = (
    rules_form.form_is_sound,
    rules_form.time_is_sound,
    rules_form.workers_are_in_range,
    rules_form.nodes_are_up,
)
"""Rules that hold for every job; a plain job has no others."""


def rules_for(job: Job) -> tuple[Rule, ...]:
    """Rules that apply to a job; they are fixed when it arrives."""
    if (
        type(job.work) is Fixed
        and not job.server
        and job.architecture == "ring"
        and job.nodes is None
        and not job.caps
        and job.restarts is None
    ):
        return PLAIN
    rules: list[Rule] = list(PLAIN)
    if job.servers or job.architecture == "ps" or job.server:
        rules.append(rules_form.servers_are_in_number)
    if job.nodes is not None or job.data_nodes is not None:
        rules.append(rules_form.places_are_allowed)
    match job.work:
        case Stream():
            rules += [rules_data.stream_is_processed, rules_data.workers_keep_up_with_the_stream]
        case Dataset():
            rules += [rules_data.chunks_exist, rules_data.workers_keep_up_with_the_chunks]
            if job.unservable_reason:
                rules.append(rules_data.bid_is_servable)
        case Rounds():
            rules.append(rules_form.pinned_workers_stay)
            if job.work.comm == "flows":
                rules.append(rules_network.every_site_reaches_the_server)
            if job.work.comm == "ring":
                rules.append(rules_network.ring_is_closed)
            if job.work.comm == "machines":
                rules += [rules_machines.machines_fit, rules_machines.data_is_there]
            if job.work.unit == "worker-slot":
                rules.append(rules_work.worker_slots_are_left)
    if job.restarts is not None:
        rules.append(rules_machines.restarts_are_few)
    if job.caps:
        rules.append(rules_work.caps_are_kept)
    return tuple(rules)

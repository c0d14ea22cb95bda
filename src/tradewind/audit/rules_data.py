"""Rules on data: what must be processed, where, and with how many workers."""

from __future__ import annotations

from tradewind.audit.record import Case
from tradewind.model.decision import Step
from tradewind.model.job import Dataset, Stream
from tradewind.model.result import Violation


def _sums(step: Step) -> tuple[dict[int, int], dict[int, int]]:
    """Bytes by source and by destination."""
    out: dict[int, int] = {}
    into: dict[int, int] = {}
    for flow in step.flows:
        out[flow.src] = out.get(flow.src, 0) + flow.bytes
        into[flow.dst] = into.get(flow.dst, 0) + flow.bytes
    return out, into


def stream_is_processed(case: Case) -> Violation | None:
    """All data of the slot is processed within it: sum_r' q_rr' = D_r (mlBroker (8b)), in a step of this slot only.

    A job that may skip slots may have no step.
    """
    record, slot_us = case.record, case.setup.slot_us
    slot = case.now_us // slot_us
    wanted = {node: size for node, size in record.volumes if size} if record.data_slot == slot else {}
    if not case.plan.steps and wanted and not record.job.may_skip_slots:
        return case.broken(
            "data.stream",
            "a plan without steps, although the job has data in this slot",
            amount=sum(wanted.values()),
        )
    for step in case.plan.steps:
        if step.from_us != slot * slot_us or step.until_us != (slot + 1) * slot_us:
            return case.broken(
                "data.stream_slot",
                "a stream job needs one step that covers exactly this slot",
                at_us=step.from_us,
            )
        out = {node: size for node, size in _sums(step)[0].items() if size}
        if out != wanted:
            node = next(n for n in out.keys() | wanted.keys() if out.get(n, 0) != wanted.get(n, 0))
            gap = wanted.get(node, 0) - out.get(node, 0)
            return case.broken(
                "data.stream",
                f"the plan leaves {gap} bytes of this slot's data unprocessed",
                node=node,
                amount=gap,
            )
    return None


def workers_keep_up_with_the_stream(case: Case) -> Violation | None:
    """P * y_r >= sum_r' q_r'r (mlBroker (8a))."""
    work = case.record.job.work
    assert isinstance(work, Stream)
    for step in case.plan.steps:
        workers = dict(zip(step.nodes, step.workers, strict=True))
        for node, size in _sums(step)[1].items():
            over = size - work.bytes_per_worker_slot * workers.get(node, 0)
            if over > 0:
                return case.broken(
                    "data.workers", f"{size} bytes for {workers.get(node, 0)} workers", node=node, amount=over
                )
    return None


def chunks_exist(case: Case) -> Violation | None:
    """Each chunk is trained at most once: processed + planned <= D_r for every source r (Eris (2a), per source)."""
    record, work = case.record, case.record.job.work
    assert isinstance(work, Dataset)
    taken = dict(record.chunks_done)
    for step in record.steps:  # already processed by the plan being replaced
        if record.since_us < step.until_us <= case.now_us:
            for flow in step.flows:
                taken[flow.src] = taken.get(flow.src, 0) + flow.bytes // work.chunk_bytes
    for step in case.plan.steps:
        for flow in step.flows:
            if flow.bytes % work.chunk_bytes:
                return case.broken(
                    "data.chunks", f"{flow.bytes} bytes are not a whole number of chunks", node=flow.src
                )
            taken[flow.src] = taken.get(flow.src, 0) + flow.bytes // work.chunk_bytes
        if step.until_us - step.from_us > case.setup.slot_us:
            return case.broken(
                "data.dataset_slot", "a step with data may last one slot at most", at_us=step.from_us
            )
    have = dict(work.chunks)
    for node, count in taken.items():
        if count > have.get(node, 0):
            over = count - have.get(node, 0)
            return case.broken(
                "data.dataset",
                f"{count} chunks are used; the node has {have.get(node, 0)}",
                node=node,
                amount=over,
            )
    return None


def workers_keep_up_with_the_chunks(case: Case) -> Violation | None:
    """P * g_r >= E * sum_r' h_r'r, a ceiling per site (Eris (2b)); P in thousandths, prorated in a partial slot."""
    work, slot_us = case.record.job.work, case.setup.slot_us
    assert isinstance(work, Dataset)
    for step in case.plan.steps:
        workers = dict(zip(step.nodes, step.workers, strict=True))
        for node, size in _sums(step)[1].items():
            need = 1000 * work.epochs * (size // work.chunk_bytes)
            rate = work.chunk_epochs_per_worker_slot_milli * workers.get(node, 0)
            over = need - rate * (step.until_us - step.from_us) / slot_us
            if over > 0:
                return case.broken(
                    "data.workers", f"{size // work.chunk_bytes} chunks for {workers.get(node, 0)} workers", node=node,
                    at_us=step.from_us, amount=over / 1000,
                )  # fmt: skip
    return None


def bid_is_servable(case: Case) -> Violation | None:
    """An unservable bid gets no plan; applies to such bids only."""
    if not case.plan.steps:
        return None
    return case.broken(
        "data.unservable", f"a plan for an unservable bid: it {case.record.job.unservable_reason}"
    )

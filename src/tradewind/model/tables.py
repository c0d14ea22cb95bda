"""The tables of a run: one declaration for the journal, the run file, the audit of a file and the docs.

Rows are linked by number: `steps.plan` is a row of `plans`. Jobs, nodes, links and resources are indices in the
scenario's order. -1 means none.
"""

from __future__ import annotations

from typing import Final, Literal

ColumnType = Literal["int", "float", "str"]

TABLES: Final[dict[str, dict[str, tuple[ColumnType, str]]]] = {
    "events": {
        "at_us": ("int", "when it happened"),
        "kind": (
            "str",
            "arrived, finished, left, released, voided, changed, measured, data, slot, timer, quoted, answered, expired, "
            "withdrawn, accepted, declined, refused, cancelled, ended",
        ),
        "job": ("int", "the job concerned, or -1"),
        "value": (
            "int",
            "voided, measured, refused, cancelled, ended: work done; changed: row of the scenario's changes, and after "
            "the last one rows of changes; data, slot: slot; accepted, answered: offer; quoted: when it expires; "
            "expired, withdrawn: id of the quote",
        ),
    },
    "decisions": {
        "at_us": ("int", "when it was made"),
        "wake_us": ("int", "the timer it set, or -1"),
        "why": ("str", "one line for people"),
    },
    "verdicts": {
        "decision": ("int", "row of decisions"),
        "job": ("int", "the job refused"),
        "reason": ("str", "reason"),
    },
    "plans": {
        "at_us": ("int", "when it was made"),
        "decision": ("int", "row of decisions, or -1 for the plan of an offer"),
        "job": ("int", "the job whose future it replaces"),
    },
    "steps": {
        "plan": ("int", "row of plans; a plan without steps stops its job"),
        "from_us": ("int", "start"),
        "until_us": (
            "int",
            "end (exclusive); -1: until the job ends or a new plan replaces this one",
        ),
        "usd": ("float", "cost as the policy states it; 0: not stated"),
    },
    "places": {
        "step": ("int", "row of steps; the rows of a step are in ring order, which is rank order"),
        "node": ("int", "the node"),
        "workers": ("int", "workers there"),
        "servers": ("int", "parameter servers there"),
    },
    "flows": {
        "step": ("int", "row of steps"),
        "src": ("int", "node where the data is stored"),
        "dst": ("int", "node where it is processed"),
        "bytes": ("int", "amount of data"),
    },
    "routes": {
        "step": ("int", "row of steps"),
        "src": ("int", "node where it begins"),
        "dst": ("int", "node where it ends"),
        "bps": ("int", "reserved bit/s"),
        "path": ("int", "number in paths"),
        "duplex": ("str", "forward or push-pull"),
    },
    "paths": {
        "path": ("int", "number of the path; each distinct path is stored once"),
        "link": ("int", "its links, in order from src to dst"),
    },
    "offers": {
        "at_us": ("int", "when it was made"),
        "job": ("int", "the job that gets the offer"),
        "number": ("int", "position in the quote, from 0"),
        "payment_usd": ("float", "what the customer would pay"),
        "finish_us": ("int", "promised completion"),
        "plan": ("int", "row of plans: the plan that it sells"),
    },
    "prices": {
        "offer": ("int", "row of offers"),
        "resource": ("int", "the resource"),
        "usd": ("float", "USD per unit of it"),
    },
    "answers": {
        "at_us": ("int", "when the quote was answered: at once, or later if it was held"),
        "job": ("int", "the job quoted"),
        "taken": ("int", "number of the offer taken, or -1"),
        "refused": ("str", "why there was no offer; empty if there was one"),
        "why": ("str", "one line for people"),
    },
    "posted": {
        "at_us": ("int", "when it was posted"),
        "job": ("int", "the list holds from the quote to this job until another is posted"),
        "resource": ("int", "the resource; -1: GB moved in a slot"),
        "gamma": ("float", "a unit costs max(floor_usd, gamma^(share in use) - 1) per slot"),
        "floor_usd": ("float", "lowest price in USD per unit and slot"),
        "data_usd": (
            "float",
            "USD per GB of the job's whole data set; -1: only chunks that change site are charged",
        ),
    },
    "charges": {
        "job": ("int", "the job charged after the run"),
        "usd": ("float", "amount in USD"),
        "why": ("str", "one line for people"),
    },
    "costs": {
        "slot": ("int", "the slot billed"),
        "kind": ("str", "rent, transfer, traffic, deploy or discount"),
        "a": ("int", "node (rent, deploy), source (transfer, traffic) or pool (discount)"),
        "b": (
            "int",
            "resource (rent), job (deploy), destination (transfer, traffic) or period of the pool (discount)",
        ),
        "amount": (
            "float",
            "mean units of the slot (rent), GB (transfer, traffic), times (deploy), USD spent in the period (discount)",
        ),
        "usd": ("float", "cost in USD; of a discount what the pool's tariff adds, which is negative"),
    },
    "payments": {
        "job": ("int", "the job that pays"),
        "usd": ("float", "amount in USD"),
    },
    "outcomes": {
        "job": ("int", "every job that arrived"),
        "state": ("str", "finished, left, refused, declined, cancelled or unfinished"),
        "start_us": ("int", "first instant with workers, or -1"),
        "finish_us": ("int", "completion, or -1"),
        "work": (
            "int",
            "done: microseconds (fixed), chunks (dataset), millionths of a round or worker-slot (rounds)",
        ),
        "value_usd": ("float", "value to the customer, before payment"),
    },
    "attempts": {
        "job": ("int", "the job whose ranks were started (live runs only)"),
        "number": ("int", "0 for the first attempt of the job, 1 for the next, …"),
        "slot": ("int", "the slot in which it began"),
        "at_us": ("int", "when it began"),
        "ended_us": ("int", "when the last rank ended; -1: still running"),
        "workers": ("int", "number of workers"),
        "places": ("str", "ranks in order: ps@a 2@b = parameter server at a, two workers at b"),
        "why": (
            "str",
            "how it ended: complete, moved, paused, stopped, the run is over, or failed: and the reason",
        ),
        "iterations": ("int", "highest number that a rank reported"),
        "measured_s": ("float", "median wall-clock seconds of an iteration; 0: none reported"),
        "predicted_s": ("float", "seconds of an iteration by the model, on the same clock; 0: no prediction"),
        "bytes_sent": ("float", "bytes sent, as reported by all ranks"),
        "loss": ("float", "last loss reported; 0: none"),
    },
    "measurements": {
        "job": ("int", "a job whose ranks reported iterations (live runs, jobs of rounds)"),
        "node": ("int", "where; the first worker of each attempt there"),
        "iterations": ("int", "iterations that count: of each attempt without the first tenth"),
        "measured_s": ("float", "mean wall-clock seconds of an iteration"),
        "error_s": ("float", "standard error of this mean, by means of batches; -1: too few iterations"),
        "predicted_s": ("float", "mean seconds by the model for the same iterations, on the same clock"),
        "communication_s": (
            "float",
            "mean seconds of an iteration spent waiting for others; 0: not reported",
        ),
        "accuracy": ("float", "last accuracy reported on all held-out samples; -1: none"),
        "site_accuracy": ("float", "the same on held-out samples like those of the node; -1: none"),
    },
    "estimates": {
        "at_us": ("int", "when a job was measured: the event measured of this instant"),
        "job": ("int", "the job"),
        "node": ("int", "where; -1: the job as a whole, which comes first"),
        "iterations": ("int", "iterations that count; 0: not known"),
        "seconds": ("float", "mean seconds of an iteration, or of the whole job"),
        "error_s": ("float", "standard error of this mean; -1: not known"),
        "declared_s": ("float", "seconds that follow from the declaration for the same iterations"),
        "communication_share": ("float", "part of the time spent waiting for other ranks; -1: not known"),
        "samples_per_s": ("float", "samples per second; -1: not known"),
        "bytes_per_s": ("float", "bytes sent per second; -1: not known"),
    },
    "alarms": {
        "at_us": ("int", "when (live runs only)"),
        "job": ("int", "the job concerned, or -1"),
        "text": ("str", "the message"),
    },
    "shards": {
        "job": ("int", "the job whose data it is (live runs of jobs with data)"),
        "number": ("int", "0 for the first shard of the job, 1 for the next, …"),
        "slot": ("int", "the slot of its step"),
        "from_us": ("int", "start of the step whose flows it belongs to"),
        "src": ("int", "node where it was stored"),
        "dst": ("int", "node where it is processed"),
        "planned_bytes": ("int", "its part of the flow, in bytes of the scenario, which are billed"),
        "bytes": ("int", "size of the file"),
        "sent_bytes": ("int", "bytes carried from src to dst; 0 where they are the same node"),
        "arrived_us": ("int", "when it was at dst; -1: never"),
        "processed_us": ("int", "when a rank there had reported that it was processed; -1: never"),
    },
    "changes": {
        "at_us": (
            "int",
            "when a node or link failed or came back without a script (live runs that have such changes)",
        ),
        "kind": ("str", "node_down, node_up, link_down or link_up"),
        "a": ("int", "the node or link"),
        "b": ("int", "0"),
        "value": ("int", "0"),
    },
    "bills": {
        "tenant": ("str", "the tenant, '' where the scenario has none"),
        "kind": (
            "str",
            "alone: cost if each job had rented by itself at list price; pooled: its share of the cost",
        ),
        "usd": ("float", "amount in USD"),
    },
}
RARE: Final = frozenset({"changes", "estimates", "measurements", "shards"})
"""Tables that a run has only if they have rows."""
COMPLETE: Final = "complete"
"""`attempts.why` of an attempt whose ranks all ended with 0."""
FAILED: Final = "failed:"
"""Prefix of `attempts.why` of an attempt that failed by the job's own fault."""
INTERRUPTED: Final = "the run was interrupted"
"""`alarms.text` at the end of a live run that was stopped before the horizon."""
UNMOVED: Final = "this fleet cannot move data: jobs that have data get none"
"""`alarms.text` of a live run whose fleet has no data."""

"""The tables of a run: one dictionary that the recorder, the run file, the audit of a file and the docs share.

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
            "arrived, finished, left, released, voided, changed, data, slot, timer, accepted, declined, refused, ended",
        ),
        "job": ("int", "the job concerned, or -1"),
        "value": (
            "int",
            "voided, refused, ended: work done; changed: row of the scenario's changes; data, slot: slot; accepted: offer",
        ),
    },
    "decisions": {
        "at_us": ("int", "when it was taken"),
        "wake_us": ("int", "the timer it set, or -1"),
        "why": ("str", "one line for people"),
    },
    "verdicts": {
        "decision": ("int", "row of decisions"),
        "job": ("int", "the job turned away"),
        "reason": ("str", "why"),
    },
    "plans": {
        "at_us": ("int", "when it was made"),
        "decision": ("int", "row of decisions, or -1 for the plan of an offer"),
        "job": ("int", "whose future it replaces"),
    },
    "steps": {
        "plan": ("int", "row of plans; a plan without steps stops its job"),
        "from_us": ("int", "first instant"),
        "until_us": (
            "int",
            "instant after the last; -1 = until the job ends or a new plan replaces this one",
        ),
        "usd": ("float", "what the policy says it costs; 0 = says nothing"),
    },
    "places": {
        "step": ("int", "row of steps; the rows of a step are in ring order, which is rank order"),
        "node": ("int", "where"),
        "workers": ("int", "workers there"),
        "servers": ("int", "parameter servers there"),
    },
    "flows": {
        "step": ("int", "row of steps"),
        "src": ("int", "node where the data lies"),
        "dst": ("int", "node where it is processed"),
        "bytes": ("int", "how much"),
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
        "job": ("int", "to whom"),
        "number": ("int", "place in the quote, from 0"),
        "payment_usd": ("float", "what the customer would pay"),
        "finish_us": ("int", "promised completion"),
        "plan": ("int", "row of plans: what would be carried out"),
    },
    "prices": {
        "offer": ("int", "row of offers"),
        "resource": ("int", "which resource"),
        "usd": ("float", "USD per unit of it"),
    },
    "answers": {
        "at_us": ("int", "when"),
        "job": ("int", "who was quoted"),
        "taken": ("int", "number of the offer taken, or -1"),
        "refused": ("str", "why there was no offer; empty where there was one"),
        "why": ("str", "one line for people"),
    },
    "posted": {
        "at_us": ("int", "when"),
        "job": ("int", "from the quote to this job on, until another price list is posted"),
        "resource": ("int", "which resource; -1: GB moved in a slot"),
        "gamma": ("float", "a unit costs max(floor_usd, gamma^(share in use) - 1) per slot"),
        "floor_usd": ("float", "USD per unit and slot at least"),
        "data_usd": (
            "float",
            "USD per GB of the job's whole data set; -1: chunks that change site pay for themselves",
        ),
    },
    "charges": {
        "job": ("int", "who was charged when the run was over"),
        "usd": ("float", "how much"),
        "why": ("str", "one line for people"),
    },
    "costs": {
        "slot": ("int", "the slot billed"),
        "kind": ("str", "rent, transfer, traffic or deploy"),
        "a": ("int", "node (rent, deploy) or source (transfer, traffic)"),
        "b": ("int", "resource (rent), job (deploy) or destination (transfer, traffic)"),
        "amount": ("float", "mean units of the slot (rent), GB (transfer, traffic), times (deploy)"),
        "usd": ("float", "what the operator pays"),
    },
    "payments": {
        "job": ("int", "who pays"),
        "usd": ("float", "how much"),
    },
    "outcomes": {
        "job": ("int", "every job that arrived"),
        "state": ("str", "finished, left, refused, declined or unfinished"),
        "start_us": ("int", "first instant with workers, or -1"),
        "finish_us": ("int", "completion, or -1"),
        "work": (
            "int",
            "done: microseconds (fixed), chunks (dataset), millionths of a round or worker-slot (rounds)",
        ),
        "value_usd": ("float", "what the customer gained, before payment"),
    },
    "attempts": {
        "job": ("int", "whose ranks were started (live runs only)"),
        "number": ("int", "0 for the first attempt of the job, 1 for the next, …"),
        "slot": ("int", "the slot in which it began"),
        "at_us": ("int", "when it began"),
        "ended_us": ("int", "when the last rank had ended; -1: still running"),
        "workers": ("int", "how many"),
        "places": ("str", "ranks in order: ps@a 2@b = parameter server at a, two workers at b"),
        "why": (
            "str",
            "how it ended: complete, moved, paused, stopped, the run is over, or failed: and the reason",
        ),
        "iterations": ("int", "reported by the rank that reported most"),
        "measured_s": ("float", "median seconds of an iteration by the wall clock; 0: none reported"),
        "predicted_s": ("float", "seconds of an iteration by the model, on the same clock; 0: it has none"),
        "bytes_sent": ("float", "bytes that all ranks reported as sent"),
        "loss": ("float", "the last that was reported"),
    },
    "alarms": {
        "at_us": ("int", "when (live runs only)"),
        "job": ("int", "the job concerned, or -1"),
        "text": ("str", "what a person should know"),
    },
    "bills": {
        "tenant": ("str", "the tenant, '' where the scenario has none"),
        "kind": (
            "str",
            "alone: cost if each job had rented by itself at list price; pooled: its share of the cost",
        ),
        "usd": ("float", "how much"),
    },
}

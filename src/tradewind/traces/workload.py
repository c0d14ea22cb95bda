"""A recorded trace on a cluster of identical servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tradewind.model.columns import taken
from tradewind.model.errors import InputError
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Param
from tradewind.model.workload import Workload
from tradewind.traces.google import read_google
from tradewind.traces.machines import GPUS_PER_SERVER, RACKS, RUNTIME, SLOT_S, Machines, Rows, scenario_of
from tradewind.traces.readers import Trace, read_csv, read_openb, read_philly, read_tiresias

READERS: dict[str, Callable[[Path], Trace]] = {
    "csv": read_csv,
    "google": read_google,
    "openb": read_openb,
    "philly": read_philly,
    "tiresias": read_tiresias,
}


def generate(params: Mapping[str, Any], seed: int) -> Scenario:
    """The scenario of a trace file; nothing is random, so the seed does not matter."""
    if not params["file"]:
        raise InputError(
            "is not given; give the path of a trace, such as --set file=jobs.csv", where="trace.file"
        )
    path = Path(params["file"])
    trace = READERS[params["format"]](path)
    if params["limit"] < 0:
        raise InputError(f"found {params['limit']}; it must be 0 (all jobs) or more", where="trace.limit")
    rows = _first(trace.rows, params["limit"]) if params["limit"] else trace.rows
    extra = {"vcpu": params["vcpus_per_server"], "mem_gb": params["mem_gb_per_server"]}
    machines = Machines(
        servers=params["servers"],
        gpus=params["gpus_per_server"],
        racks=params["racks"],
        extra=extra if params["format"] == "openb" else {},
    )
    return scenario_of(
        path.stem,
        rows,
        machines,
        slot_s=params["slot_s"],
        public=params["runtime"] == "public",
        origin={"workload": "trace", **params, "file": path.name, "rows_left_out": trace.skipped},
    )


def _first(rows: Rows, limit: int) -> Rows:
    """The first jobs by arrival."""
    return replace(
        rows,
        ids=taken(rows.ids, np.arange(min(limit, len(rows.ids)))),
        arrive_us=rows.arrive_us[:limit],
        runtime_us=rows.runtime_us[:limit],
        workers=rows.workers[:limit],
        tenants=taken(rows.tenants, np.arange(min(limit, len(rows.ids)))),
        demand=rows.demand[:limit],
    )


TRACE = Workload(
    name="trace",
    summary="A recorded trace (Philly, Google 2011, Tiresias, Alibaba openb, plain CSV) on identical servers",
    generate=generate,
    params={
        "file": Param(default="", doc="path of the trace; google: also a folder of job_events parts"),
        "format": Param(default="csv", doc="format of the trace", choices=tuple(READERS)),
        "servers": Param(default=52, doc="number of servers"),
        "gpus_per_server": GPUS_PER_SERVER,
        "vcpus_per_server": Param(default=0.0, doc="vCPUs of each server; 0 means unlimited (openb only)"),
        "mem_gb_per_server": Param(
            default=0.0, doc="memory of each server in GB; 0 means unlimited (openb only)"
        ),
        "racks": RACKS,
        "limit": Param(default=0, doc="number of jobs to take, by arrival; 0 means all"),
        "runtime": RUNTIME,
        "slot_s": SLOT_S,
    },
)

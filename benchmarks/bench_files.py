"""Time to read and write files: a large scenario as JSON, CSV and Parquet, and a large run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import process_time
from typing import Any

from tradewind.files.documents import json_text
from tradewind.files.run_file import load_run, save
from tradewind.files.scenario_file import dump, load, scenario_hash
from tradewind.model.result import Run
from tradewind.model.tables import TABLES

SITES, JOBS, EVENTS = 1000, 100_000, 1_000_000


def document(sites: int = SITES, jobs: int = JOBS) -> dict[str, Any]:
    """A scenario with a rent tariff per site, a ring of links, and jobs that use half of the fields."""
    return {
        "tradewind_scenario": 1,
        "objective": "cost_usd",
        "slot_us": "5 min",
        "horizon_us": "30 d",
        "nodes": [
            {
                "name": f"site-{i}",
                "capacity": {"gpu": 8, "vcpu": 64},
                "rent": {"gpu": {"usd": [3.06, 2.5], "starts": [0, 100]}},
            }
            for i in range(sites)
        ],
        "links": [
            {"a": f"site-{i}", "b": f"site-{(i + 1) % sites}", "bps": "5 Gbit/s"} for i in range(sites)
        ],
        "jobs": [_job(i) for i in range(jobs)],
    }


def _job(i: int) -> dict[str, Any]:
    return {
        "id": f"job-{i}",
        "arrive_us": i * 1000,
        "tenant": f"tenant-{i % 50}",
        "work": {"kind": "rounds", "count": 100 + i % 7, "compute_us": 1_000_000, "comm": "colocated"},
        "worker": {"gpu": 1, "vcpu": 4.5},
        "workers": 4,
        "architecture": "ps",
        "server": {"vcpu": 2},
        "servers": 2,
        "model_bytes": 92_000_000,
        "worker_bps": 10**9,
        "server_bps": 10**10,
        "utility": {"of": "delay_slots", "shape": "sigmoid", "args": [100.0 + i, -1, 5]},
        "private": {"budget_usd": 50.5 + i},
    }


def _run(rows: int) -> Run:
    tables: dict[str, Any] = {name: {column: [] for column in columns} for name, columns in TABLES.items()}
    tables["events"] = {
        "at_us": list(range(rows)), "kind": ["arrived", "finished"] * (rows // 2), "job": list(range(rows)),
        "value": [0] * rows,
    }  # fmt: skip
    return Run(
        scenario_hash="0" * 64, scenario_name="large", policy="fifo", params={}, seed=1, version="0", objective="cost_usd",
        metrics={"cost_usd": 0.0}, violations=(), tables=tables,
    )  # fmt: skip


def _row(name: str, seconds: float, target: float) -> dict[str, object]:
    return {"name": name, "measured": seconds, "unit": "s", "target": target, "better": "lower"}


def rows() -> list[dict[str, object]]:
    """CPU seconds; the target for loading is 10 s."""
    result = []
    size = f"{SITES:,} sites, {JOBS:,} jobs"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "json.json").write_text(json_text(document()))
        begin = process_time()
        scenario = load(folder / "json.json")
        result.append(_row(f"load and validate a scenario ({size}, JSON)", process_time() - begin, 10.0))
        forms: tuple[Any, ...] = ("csv", "parquet")
        for form in forms:
            dump(scenario, folder / f"{form}.json", tables=form)
            begin = process_time()
            load(folder / f"{form}.json")
            result.append(
                _row(f"load and validate a scenario ({size}, {form} beside)", process_time() - begin, 10.0)
            )
        begin = process_time()
        dump(scenario, folder / "again.json")
        result.append(_row(f"write a scenario ({size}, JSON)", process_time() - begin, 10.0))
        begin = process_time()
        scenario_hash(scenario)
        result.append(_row(f"hash a scenario ({size})", process_time() - begin, 3.0))
        run = _run(EVENTS)
        begin = process_time()
        save(run, folder / "run.json")
        load_run(folder / "run.json")
        result.append(_row(f"save and load a run ({EVENTS:,} rows)", process_time() - begin, 10.0))
    return result


if __name__ == "__main__":
    for line in rows():
        print(f"{line['name']}: {line['measured']:.2f} {line['unit']} (target {line['target']})")

"""Fingerprints: hashes of a fixed set of results, to show that a change of the code changed no result.

    python tools/fingerprints.py             compute them and compare with fingerprints.json; exit 1 on a difference
    python tools/fingerprints.py --write     record them

Only the public API and the command line are used, so that the set survives any move of the code. Each run has two
hashes: `numbers` leaves out the sentences that explain a decision (columns `why`, `refused` and `reason`),
`file` is the whole run file. A rewording changes `file` alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import tradewind as tw

RECORDED = Path(__file__).with_name("fingerprints.json")
PROSE = ("why", "refused", "reason")
"""Columns that explain a decision to people."""
MEASURED = "attempts"
"""Table of a live run that holds wall-clock times."""
SMALL: dict[str, Any] = {
    "jobs": 40, "slots": 12, "servers": 6, "sites": 6, "jobs_per_slot": 8.0, "worker_types": 3, "server_types": 3,
}  # fmt: skip
"""Parameters that keep a generated scenario small; each workload takes those that it has."""
SEEDS = (1, 2)
FIGURES = {
    "apsp": "fig-5-internet2", "dps": "acceptance", "eris": "table-slot", "gadget": "table-failures",
    "mlbroker": "table-4",
}  # fmt: skip
"""One quick figure per paper."""
TRACES = {
    "csv": "id,arrive_s,duration_s,gpus,tenant\n" + "".join(
        f"j{i},{17 * i % 400},{60 + 53 * i % 900},{1 + i % 4},t{i % 3}\n" for i in range(60)
    ),
    "tiresias": "job_id,num_gpu,submit_time,duration\n" + "".join(
        f"{i},{2 ** (i % 4)},{23 * i},{90 + 71 * i % 700}\n" for i in range(60)
    ),
    "philly": "timestamp,duration,num_gpus,cluster\n" + "".join(
        f"2017-10-03 {i // 6:02d}:{i * 10 % 60:02d}:00,{300 + 97 * i % 5000},{1 + i % 8},c{i % 2}\n" for i in range(60)
    ),
}  # fmt: skip
FAMILIES = {
    "apsp": "apsp apsp-paper load-balancing most-connected random-ps shortest-path",
    "broker": "broker broker-central broker-selfish skypilot-rule",
    "cluster": "drf fifo fifo-backfill las srsf srtf",
    "dps": "bfp bfp-printed bfp-tau dps dps-paper dps-rs dps-simple eris-units random top",
    "eris": "antman antman-elastic eris eris-paper eris-preemptive eris-printed fcfs liquid liquid-elastic tiresias "
    "tiresias-elastic",
    "gadget": "gadget gadget-paper ring-drf ring-fifo ring-las ring-srtf",
    "mixed": "mixed mixed-line mixed-priority mixed-shares",
    "mlbroker": "central local mlbroker mlbroker-paper oasis selfish",
}
"""Workload -> the policies that run it. A policy that is in the catalogue and not here is an error."""
EXTRA: dict[str, list[dict[str, Any]]] = {
    "apsp": [{}, {"transport": "cut-through", "hours": 3.0, "vary": 0.5, "epochs": 2000}],
    "broker": [{"family": "Bm", "jobs": 8}, {"family": "E", "jobs": 8, "interruptions": True}],
    "cluster": [{}],
    "dps": [{}],
    "eris": [{"size": "contended"}],
    "gadget": [{}, {"family": "tight", "failing": 0.1}],
    "mixed": [{"jobs": 12, "slots": 8, "sites": 3}, {"jobs": 12, "slots": 8, "sites": 3, "failures": 1}],
    "mlbroker": [{}, {"tenants": 2, "family": "deploy"}],
}
"""Parameters of the scenarios of a family, beside SMALL."""
STREAM = """
- {id: ID, arrive_us: AT s, architecture: ps, worker: {gpu: 1}, workers_max: 3, server: {gpu: 1}, servers: 1,
   work: {kind: stream, bytes_per_worker_slot: 100 MB}, traffic_bytes_per_worker_slot: 20 MB, deploy_usd: 0.002,
   command: [sleep, '1000'], private: {runtime_us: 5 s}}"""
LIVE = (
    """tradewind_scenario: 1
name: light ranks
objective: cost_usd
slot_us: 1 s
horizon_us: 6 s
nodes:
- {name: a, capacity: {gpu: 4}, rent: {gpu: {starts: [0, 2], usd: [3.0, 2.0]}}}
- {name: b, capacity: {gpu: 4}, rent: {gpu: {starts: [0, 2], usd: [3.4, 1.5]}}}
egress:
- {src: '*', dst: '*', tariff: 0.09}
volumes:
  job: [x, x, y, x, y, x, x, y]
  slot: [0, 1, 1, 2, 2, 3, 4, 4]
  node: [a, a, b, b, a, a, b, b]
  bytes: [100000000, 200000000, 100000000, 200000000, 100000000, 100000000, 100000000, 100000000]
jobs:"""
    + STREAM.replace("ID", "x").replace("AT", "0")
    + STREAM.replace("ID", "y").replace("AT", "1")
    + "\n"
)
"""Two streams whose ranks sleep: every instant of a live run of them is known beforehand."""
Hashes = dict[str, str]


def digest(text: str | bytes) -> str:
    """The first 16 hex digits of a SHA-256."""
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()[:16]


def without_prose(header: dict[str, Any]) -> dict[str, Any]:
    """A run file's header without sentences and wall-clock times."""
    tables = {}
    for name, table in header["tables"].items():
        if name == MEASURED:
            continue
        data = {column: values for column, values in table["data"].items() if column not in PROSE}
        tables[name] = {"rows": table["rows"], "data": data}
    return {**header, "tables": tables}


def of_run(path: Path) -> dict[str, str]:
    """The two hashes of a run file."""
    raw = path.read_bytes()
    numbers = json.dumps(without_prose(json.loads(raw)), sort_keys=True)
    return {"numbers": digest(numbers), "file": digest(raw)}


def of_simulation(policy: str, workload: str, params: dict[str, Any], seed: int) -> Hashes:
    """A policy on a generated scenario, with its bound on the first seed."""
    run = tw.run(tw.generate(workload, seed=seed, **params), policy, seed=seed, bound=seed == SEEDS[0])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        tw.save(run, path)
        return of_run(path)


def of_trace(form: str, policy: str) -> Hashes:
    """A policy on a small trace in one of the published formats."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.csv"
        path.write_text(TRACES[form])
        made = tw.generate("trace", file=str(path), format=form, servers=4, gpus_per_server=4)
        run = tw.run(made, policy, seed=1)
        tw.save(run, Path(folder) / "run.json")
        return of_run(Path(folder) / "run.json")


def of_live_run() -> Hashes:
    """Light ranks as processes: the ledger of such a run is known beforehand."""
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        (where / "live.yaml").write_text(LIVE)
        command(
            ["live", "live.yaml", "--policy", "mlbroker", "--state", "state", "-o", "run.json", "--as-root"],
            where,
        )
        return {"numbers": of_run(where / "run.json")["numbers"]}


def of_figure(system: str, figure: str) -> Hashes:
    """The rows of one figure of a paper."""
    with tempfile.TemporaryDirectory() as folder:
        command(["reproduce", system, "--figure", figure, "--quick", "--seeds", "2", "-o", "."], Path(folder))
        (rows,) = Path(folder).rglob(f"{figure}.csv")
        return {"file": digest(rows.read_bytes())}


def command(arguments: list[str], folder: Path) -> str:
    """Runs `tradewind` in a folder."""
    done = subprocess.run(
        [Path(sys.executable).with_name("tradewind"), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"tradewind {' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout


def tasks() -> Iterator[tuple[str, Callable[..., Hashes], tuple[Any, ...]]]:
    """(name, function, arguments) of every fingerprint."""
    here = Path.cwd()
    knobs = {each["name"]: each["params"] for each in json.loads(command(["workloads", "--json"], here))}
    for workload, policies in FAMILIES.items():
        small = {key: value for key, value in SMALL.items() if key in knobs[workload]}
        for number, extra in enumerate(EXTRA[workload]):
            for policy in policies.split():
                for seed in SEEDS:
                    name = f"run/{workload}-{number}/{policy}/{seed}"
                    yield name, of_simulation, (policy, workload, {**small, **extra}, seed)
    for form in TRACES:
        for policy in ("fifo-backfill", "las"):
            yield f"trace/{form}/{policy}", of_trace, (form, policy)
    yield "live/light-ranks", of_live_run, ()
    for system, figure in FIGURES.items():
        yield f"figure/{system}/{figure}", of_figure, (system, figure)


def compute(only: str, jobs: int) -> dict[str, Hashes]:
    """Every fingerprint whose name contains `only`."""
    wanted = [task for task in tasks() if only in task[0]]
    with ProcessPoolExecutor(jobs) as pool:
        found = [(name, pool.submit(call, *arguments)) for name, call, arguments in wanted]
        return {name: future.result() for name, future in found}


def main() -> int:
    """Compares with what is recorded, or records."""
    parser = argparse.ArgumentParser(description="Hashes of a fixed set of results.")
    parser.add_argument("--write", action="store_true", help="record the hashes")
    parser.add_argument("--only", default="", help="only names that contain this text")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    catalogue = {each["name"] for each in json.loads(command(["policies", "--json"], Path.cwd()))}
    if missing := catalogue - set(" ".join(FAMILIES.values()).split()):
        print(f"policies without a fingerprint: {', '.join(sorted(missing))}; add them to FAMILIES")
        return 1
    found = compute(given.only, given.jobs)
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    if given.write:
        kept = {name: hashes for name, hashes in recorded.items() if given.only and given.only not in name}
        RECORDED.write_text(json.dumps({**kept, **found}, indent=1, sort_keys=True) + "\n")
    other = {
        name: [kind for kind in now if now[kind] != recorded.get(name, {}).get(kind)]
        for name, now in found.items()
    }
    other = {name: kinds for name, kinds in other.items() if kinds}
    for name, kinds in sorted(other.items()):
        print(f"{name}: {' and '.join(kinds)} changed")
    print(f"{len(found)} fingerprints, {len(other)} changed" + (", recorded" if given.write else ""))
    return int(bool(other) and not given.write)


if __name__ == "__main__":
    sys.exit(main())

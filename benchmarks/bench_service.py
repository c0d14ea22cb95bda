"""The service under load: submissions, admissions, lists, streams, recovery, memory. `python -m benchmarks service`.

TRADEWIND_BENCH_SCALE=0.1 takes a tenth of the jobs and of the time; targets are those of the whole.
TRADEWIND_BENCH_STORE=postgresql://… takes a database of PostgreSQL in place of files; its tables are emptied in between.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Row
from benchmarks.service_load import (
    CLIENTS,
    Server,
    admit,
    fill,
    listeners,
    pass_through,
    serving,
    stored,
    submit,
)
from tradewind.store.board import Board
from tradewind.store.database import Address, connect

STORE = os.environ.get("TRADEWIND_BENCH_STORE", "")
SCALE = float(os.environ.get("TRADEWIND_BENCH_SCALE", "1"))
SECONDS, STORED, WAITING, STREAMS, ROUND, ROUNDS = (
    60 * SCALE,
    int(100_000 * SCALE),
    int(50_000 * SCALE),
    1000,
    int(50_000 * SCALE),
    20,
)
POLICIES = ("fifo-backfill", "fifo", "srtf", "srsf", "las", "drf")
LISTS = 200


def rows() -> list[Row]:
    """Figures of one server, with its clients on the same machine; CPU time beside rates."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        grown = memory(folder / "memory")  # first: in a process that was never larger
        return [*served(folder / "served"), *admitted(folder), *grown]


def fresh() -> str:
    """The address of the database, without tables; nothing where stores are files."""
    if STORE:
        with connect(Address(STORE), write=True) as connection, connection.begin():
            connection.exec_driver_sql("drop schema public cascade")
            connection.exec_driver_sql("create schema public")
    return STORE


def figure(name: str, value: float, unit: str, target: float | None, note: str, better: str = "lower") -> Row:
    """One row."""
    found = {"name": name, "measured": value, "unit": unit, "better": better, "note": note}
    return found if target is None else {**found, "target": target}


def served(folder: Path) -> list[Row]:
    """What a server does over HTTP, then how it comes back after kill -9."""
    with serving(folder, fresh()) as server:
        before, begin = server.cpu_s(), time.monotonic()
        count = submit(server, SECONDS)
        passed = time.monotonic() - begin
        api_s, engine_s = (now - then for now, then in zip(server.cpu_s(), before, strict=True))
    fill(folder, max(0, STORED - count), store=STORE)
    server = Server(folder)
    server.start()
    try:
        p99_s, list_cpu_s = listed(server)
        stream_s = listeners(server, STREAMS)
        server.kill()
        server.start()
        again_s, again_cpu_s = server.ready_s, sum(server.cpu_s())
    finally:
        server.stop()
    jobs = f"{max(count, STORED)} jobs wait"
    return [
        figure("submissions", count / passed, "/s", 500, f"{CLIENTS} clients, keys, durable before the answer", "higher"),
        figure("submission, CPU of the API", 1e6 * api_s / count, "us", None, f"{count} in {passed:.0f} s"),
        figure("submission, CPU of the engine", 1e6 * engine_s / count, "us", None, "all wait"),
        figure("list of 100 jobs, p99", 1000 * p99_s, "ms", 50, jobs),
        figure("list of 100 jobs, CPU", 1000 * list_cpu_s, "ms", None, jobs),
        figure("an event to 1,000 streams", 1000 * stream_s, "ms", 1000, "from the submission to the last client"),
        figure("ready after kill -9", again_s, "s", 5, f"{jobs}; start of Python included"),
        figure("ready after kill -9, CPU", again_cpu_s, "s", None, "API and engine"),
    ]  # fmt: skip


def listed(server: Server) -> tuple[float, float]:
    """Seconds within which 99 of 100 lists are answered, and CPU seconds of one, once all requests are taken."""
    connection, times = server.connect(), []
    with Board(stored(server.folder)) as board:
        while board.count("board_jobs", status="submitted"):
            time.sleep(0.5)
    before = server.cpu_s()[0]
    for _ in range(LISTS):
        begin = time.perf_counter()
        assert connection.ask("GET", "/v1/jobs?limit=100") == 200
        times.append(time.perf_counter() - begin)
    return statistics.quantiles(times, n=100)[98], (server.cpu_s()[0] - before) / LISTS


def admitted(folder: Path) -> list[Row]:
    """Admissions per second of the schedulers."""
    found = []
    for policy in POLICIES:
        one = admit(policy, WAITING, 10 * SCALE + 2, folder / policy, fresh())
        note = (
            f"{WAITING} jobs wait; policy, audit and store, ranks only take time; {one['alarms']:.0f} alarms"
        )
        target = 200 if policy == "fifo-backfill" else None
        found += [
            figure(f"admissions, {policy}", one["rate"], "/s", target, note, "higher"),
            figure(f"admission, {policy}, CPU", 1000 * one["cpu_s"], "ms", None, note),
        ]
    return found


def memory(folder: Path) -> list[Row]:
    """Growth of the engine's process over jobs that came and went."""
    sizes = pass_through(ROUND, ROUNDS, folder, fresh())
    first, last = sizes[1], sizes[-1]  # the first round warms up
    note = f"after {2 * ROUND} jobs: {first:.0f} MB, after {len(sizes) * ROUND}: {last:.0f} MB"
    per = (last - first) / ((len(sizes) - 2) * ROUND / 1e6)
    return [figure("memory, growth over 1,000,000 jobs", per, "MB", 200, note)]

"""Measures a training command on this machine: iterations, the stop at SIGTERM with its checkpoint, and a restart.

The command keeps the contract of docs/jobs.md. It is started as the ranks of a ring, runs for a while after its first
report, gets SIGTERM, and is started again from its checkpoint.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tradewind.model.errors import InputError
from tradewind.worlds.fleet import STOPPED, IterationReport
from tradewind.worlds.fleets.processes.launch import free_port
from tradewind.worlds.fleets.processes.reports import ReportReader, file_name

POLL_S = 0.02
SHOWN_LINES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileOptions:
    """How long to measure.

    seconds     after the first report
    ranks       processes that are started, as a ring
    patience_s  time for the first report
    grace_s     time between SIGTERM and SIGKILL
    """

    seconds: float = 60.0
    ranks: int = 1
    patience_s: float = 120.0
    grace_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What was measured; None: not known, and a note says why.

    iteration_s          median of the reported seconds, without the first tenth
    iterations_per_hour  by the clock, everything between iterations included
    communication_share  of the reported seconds, where reports say it
    start_s              from the start to the first report, less an iteration
    checkpoint_s         from SIGTERM to the exit: the rest of an iteration and the checkpoint
    restart_s            as start_s, from the checkpoint
    """

    ranks: int
    iterations: int
    iteration_s: float
    iteration_p90_s: float
    iterations_per_hour: float
    bytes_sent_per_iteration: float
    communication_share: float | None
    start_s: float
    checkpoint_s: float | None
    restart_s: float | None
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Attempt:
    """One start of the command: rank 0's reports with the time at which they were seen."""

    began: float
    reports: list[IterationReport] = field(default_factory=list)
    seen: list[float] = field(default_factory=list)
    exits: tuple[int, ...] = ()
    """Exit codes, if all ranks ended by themselves."""
    stop_s: float | None = None
    """Seconds from SIGTERM to the last exit, if all ranks ended with 75."""
    stop_codes: tuple[int, ...] = ()

    @property
    def first_s(self) -> float:
        """Seconds to the first report."""
        return self.seen[0] - self.began


def measure(command: Sequence[str], folder: Path, options: ProfileOptions) -> Profile:
    """Run the command twice in a directory; raises an error if it fails or reports nothing."""
    first = _attempt(command, folder, options, options.seconds)
    if any(first.exits):
        raise _failed(command, first.exits, folder)
    if not first.reports:
        ran = "ended" if first.exits else f"ran for {options.patience_s:g} s"
        raise InputError(
            f"the command {ran} and reported no iteration; after each one it must append a line of JSON such as "
            '{"iteration": 12, "seconds": 0.21} to the file named by TRADEWIND_REPORT (docs/jobs.md)',
            where=command[0],
        )
    notes: list[str] = []
    restart_s = None
    if first.exits:
        notes.append(
            "training was complete before it could be stopped: no checkpoint or restart was measured"
        )
    elif first.stop_s is None:
        codes = ", ".join(map(str, first.stop_codes))
        notes.append(
            f"it did not stop as asked (exit {codes} after SIGTERM, not {STOPPED}): no restart was measured"
        )
    else:
        restart_s = _restart(command, folder, options, first, notes)
    return _profile(first, options, restart_s, notes)


def _restart(
    command: Sequence[str], folder: Path, options: ProfileOptions, first: _Attempt, notes: list[str]
) -> float | None:
    """Seconds to the first iteration after a restart, less that iteration; None if it did not go on."""
    last = first.reports[-1].iteration
    again = _attempt(command, folder, options, 0.0)
    if not again.reports:
        why = f"exit {', '.join(map(str, again.exits))}" if again.exits else "no report"
        notes.append(f"it did not go on after a restart ({why})")
        return None
    if again.reports[0].iteration != last + 1:
        notes.append(
            f"it stopped after iteration {last} and went on at {again.reports[0].iteration}: "
            "its checkpoint loses work, or is not read"
        )
    return max(0.0, again.first_s - _typical(first.reports))


def _attempt(command: Sequence[str], folder: Path, options: ProfileOptions, seconds: float) -> _Attempt:
    """Start all ranks, wait until `seconds` after the first report, and stop them."""
    for name in ("report", "checkpoint"):
        (folder / name).mkdir(exist_ok=True)
    port, size = free_port(()), _size(folder / "report" / file_name(0))
    reader = ReportReader(folder, 0, size)
    attempt = _Attempt(time.monotonic())
    ranks: list[subprocess.Popen[bytes]] = []
    try:
        with (folder / "log").open("ab") as log:
            for rank in range(options.ranks):
                env = {**os.environ, **_environment(folder, rank, options.ranks, port)}
                ranks.append(_start(command, env, log.fileno()))
        _watch(ranks, reader, attempt, options, seconds)
        if not attempt.exits:
            _stop(ranks, attempt, options.grace_s)
        attempt.reports += reader.drain()
    finally:
        for process in ranks:
            _signal(process, signal.SIGKILL)
            process.wait()
    return attempt


def _start(command: Sequence[str], env: dict[str, str], log: int) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(command), env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    except OSError as error:
        raise InputError(f"cannot be started ({error.strerror})", where=command[0]) from None


def _watch(
    ranks: Sequence[subprocess.Popen[bytes]],
    reader: ReportReader,
    attempt: _Attempt,
    options: ProfileOptions,
    seconds: float,
) -> None:
    """Read reports until the time is over or all ranks have ended; the failure of one ends all."""
    while True:
        now = time.monotonic()
        found = reader.read()
        attempt.reports += found
        attempt.seen += [now] * len(found)
        codes = [process.poll() for process in ranks]
        if all(code is not None for code in codes) or any(codes):
            attempt.exits = tuple(code for code in codes if code is not None)
            return
        limit = attempt.seen[0] + seconds if attempt.seen else attempt.began + options.patience_s
        if now >= limit:
            return
        time.sleep(POLL_S)


def _stop(ranks: Sequence[subprocess.Popen[bytes]], attempt: _Attempt, grace_s: float) -> None:
    began = time.monotonic()
    for process in ranks:
        _signal(process, signal.SIGTERM)
    for process in ranks:
        try:
            process.wait(max(0.0, began + grace_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)
            process.wait()
    attempt.stop_codes = tuple(process.returncode for process in ranks)
    if set(attempt.stop_codes) == {STOPPED}:
        attempt.stop_s = time.monotonic() - began


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Signal a rank and everything in its session that did not leave it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _environment(folder: Path, rank: int, world: int, port: int) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(world),
        "LOCAL_RANK": str(rank),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TRADEWIND_ROLE": "worker",
        "TRADEWIND_SITE": "here",
        "TRADEWIND_SITES": ",".join(["here"] * world),
        "TRADEWIND_RING": ",".join(f"{number}@here" for number in range(world)),
        "TRADEWIND_CHECKPOINT_DIR": str(folder / "checkpoint"),
        "TRADEWIND_DATA_SHARD": f"{rank}/{world}",
        "TRADEWIND_REPORT": str(folder / "report" / file_name(rank)),
        "TRADEWIND_INTERFACE": "lo",
        "TRADEWIND_SEED": "0",
        "TRADEWIND_SLOT": "0",
        "TRADEWIND_JOB": "profile",
    }


def _profile(
    first: _Attempt, options: ProfileOptions, restart_s: float | None, notes: Sequence[str]
) -> Profile:
    kept = _steady(first.reports)
    seconds = sorted(report.seconds for report in kept)
    spent, told = sum(seconds), sum(report.communication_seconds for report in kept)
    iteration_s = _typical(first.reports)
    per_hour = _per_hour(first, iteration_s)
    iteration_s = iteration_s or 3600.0 / per_hour
    return Profile(
        ranks=options.ranks,
        iterations=len(first.reports),
        iteration_s=iteration_s,
        iteration_p90_s=seconds[min(len(seconds) - 1, len(seconds) * 9 // 10)],
        iterations_per_hour=per_hour,
        bytes_sent_per_iteration=statistics.fmean(report.bytes_sent for report in kept),
        communication_share=min(1.0, told / spent) if told and spent else None,
        start_s=max(0.0, first.first_s - iteration_s),
        checkpoint_s=first.stop_s,
        restart_s=restart_s,
        notes=tuple(notes),
    )


def _steady(reports: Sequence[IterationReport]) -> Sequence[IterationReport]:
    """The reports without the first tenth, in which programs warm up."""
    return reports[-(-len(reports) // 10) :] if len(reports) > 1 else reports


def _typical(reports: Sequence[IterationReport]) -> float:
    return statistics.median(report.seconds for report in _steady(reports))


def _per_hour(attempt: _Attempt, iteration_s: float) -> float:
    """Iterations per hour between the first and the last report that were seen while it ran."""
    took = attempt.seen[-1] - attempt.seen[0]
    done = attempt.reports[len(attempt.seen) - 1].iteration - attempt.reports[0].iteration
    if took > 5 * POLL_S and done > 0:
        return 3600.0 * done / took
    if not iteration_s:
        raise InputError(
            f"{len(attempt.reports)} iterations without `seconds` were reported, too few to tell their time; report "
            "`seconds`, or measure longer with --seconds"
        )
    return 3600.0 / iteration_s


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _failed(command: Sequence[str], exits: Sequence[int], folder: Path) -> InputError:
    lines = (folder / "log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    said = "\n  ".join(lines[-SHOWN_LINES:]) or "(it printed nothing)"
    codes = ", ".join(str(code) for code in exits)
    return InputError(f"the command failed (exit {codes}); its last lines:\n  {said}", where=command[0])

"""The process fleet: ranks are processes of this machine, each under a supervisor that outlives the loop."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.worlds.fleet import (
    STOPPED,
    Capability,
    Exit,
    Launch,
    LaunchKey,
    LaunchStatus,
    Observations,
    Wanted,
)
from tradewind.worlds.processes.handles import RankHandle, adopt, unsupervised
from tradewind.worlds.processes.launch import ExecutionOptions, Launcher
from tradewind.worlds.processes.reports import ReportReader


@dataclass(slots=True)
class Running:
    """A launch that the loop has not closed."""

    launch: Launch
    handles: list[RankHandle]
    readers: list[ReportReader]
    is_swept: bool = False


class ProcessFleet:
    """Runs ranks in a state directory. `token` marks all processes of the run."""

    capabilities: frozenset[Capability] = frozenset({"cpu_shares"})

    def __init__(self, state: Path, setup: Setup, options: ExecutionOptions, token: str) -> None:
        self.token, self._options = token, options
        self.launcher = Launcher(state, setup, options, token)
        self.running: dict[LaunchKey, Running] = {}
        self._is_new = True  # ranks of earlier loops have not been looked for

    # ------------------------------------------------------------------ what should run
    def reconcile(self, wanted: Collection[Wanted]) -> None:
        """Start, adopt and stop ranks (worlds.fleet)."""
        named = {launch.key: run for launch, run in wanted}
        if self._is_new:
            self._is_new = False
            self._stop_strangers([launch for launch, _ in wanted])
        for key in [key for key in self.running if key not in named]:
            self._forget(key)
        for launch, run in wanted:
            if launch.key not in self.running:
                self.running[launch.key] = self._take_over(launch, run)
            if not run:
                for handle in self.running[launch.key].handles:
                    handle.stop()

    def _take_over(self, launch: Launch, run: bool) -> Running:
        """Adopt running ranks, read how others ended, and start ranks that never started but should run."""
        launcher = self.launcher
        settings = launcher.prepare(launch)
        handles = []
        for number in range(len(launch.ranks)):
            tries = launcher.tries(launch, number)
            handle = adopt(launcher.control(launch, number, tries), self.token) if tries >= 0 else None
            if handle is None and run:
                control = launcher.control(launch, number, tries + 1)
                process = launcher.start(launch, number, control, settings.port)
                handle = RankHandle(control, process.pid, process)
            elif handle is None:
                handle = RankHandle(launcher.control(launch, number, max(0, tries)), 0)
                handle.exit = Exit(STOPPED, asked=True)
            handles.append(handle)
        readers = [
            ReportReader(launcher.report(launch.job, rank), offset)
            for rank, offset in enumerate(settings.offsets)
        ]
        return Running(launch, handles, readers)

    def _stop_strangers(self, known: list[Launch]) -> None:
        """Stop ranks that an earlier loop started and this one does not name."""
        for control in self.launcher.unfinished(known):
            handle = adopt(control, self.token)
            if handle is not None:
                handle.stop()
                handle.release()

    def _forget(self, key: LaunchKey) -> None:
        for handle in self.running.pop(key).handles:
            handle.stop()
            handle.release()

    # ------------------------------------------------------------------ what runs
    def observe(self, timeout_s: float = 0.0) -> Observations:
        """What is known now; waits until a supervisor ends or time is up."""
        poll = select.poll()
        for running in self.running.values():
            for handle in running.handles:
                if handle.pidfd >= 0:
                    poll.register(handle.pidfd, select.POLLIN)
        if timeout_s > 0:
            poll.poll(timeout_s * 1000)
        return Observations({key: self._status(running) for key, running in self.running.items()})

    def _status(self, running: Running) -> LaunchStatus:
        exits = tuple(self._noted(handle.poll()) for handle in running.handles)
        is_over = None not in exits
        if is_over and not running.is_swept:
            running.is_swept = True
            self._sweep(running)
        reports = [
            (rank, report)
            for rank, reader in enumerate(running.readers)
            for report in (reader.drain() if is_over else reader.read())
        ]
        return LaunchStatus(exits, reports=tuple(reports))

    def _noted(self, found: Exit | None) -> Exit | None:
        """An exit with what the operator should know about it."""
        if found is None or not found.notes:
            return found
        texts = {
            "killed": f"ignored SIGTERM for {self._options.grace_s:g} s and was killed",
            "rotated": f"wrote more than its log limit ({self._options.limits.log_bytes} bytes); the oldest output was "
            "dropped",
        }
        return found._replace(notes=tuple(texts[note] for note in found.notes))

    def _sweep(self, running: Running) -> None:
        """If a supervisor died, its rank's processes may still run: kill all that no other supervisor owns."""
        if any(handle.exit is not None and handle.exit.code is None for handle in running.handles):
            others = [h.pid for other in self.running.values() if other is not running for h in other.handles]
            for pid in unsupervised(self.token, others):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def logs(self, job: Job, rank: int) -> str:
        """What a rank of a job wrote: the log before the last rotation, then the log."""
        path = self.launcher.log(job, rank)
        found = [each for each in (path.with_name(path.name + ".1"), path) if each.exists()]
        return "".join(each.read_text(errors="replace") for each in found)

    def close(self) -> None:
        """Release file descriptors; running processes are not affected."""
        for running in self.running.values():
            for handle in running.handles:
                handle.release()
        self.running = {}

"""The process fleet: ranks are processes of this machine, each under a supervisor that outlives the loop."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
from collections.abc import Collection
from dataclasses import dataclass, replace
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
from tradewind.worlds.fleets.processes.handles import RankHandle, adopt, kill_groups, unsupervised
from tradewind.worlds.fleets.processes.launch import ExecutionOptions, Launcher, LaunchSettings, SiteNetwork
from tradewind.worlds.fleets.processes.reports import ReportReader
from tradewind.worlds.testbed.network import INTERFACE, find
from tradewind.worlds.testbed.routes import JobRoutes, Wish, covers, keeps_latency

EXHAUSTED = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EROFS)
"""Errors of this machine, not of a job that broke its own directories."""
SWEEPS = 20
"""Times that what a lost supervisor left is looked for; each time the found are killed."""


def networks_of_testbed(name: str) -> dict[str, SiteNetwork]:
    """Network of each site of a running testbed (`tradewind testbed up`); none without a name."""
    if not name:
        return {}
    bed = find(name)
    return {
        site: SiteNetwork(namespace=bed.namespace(i), address=bed.address(i), interface=INTERFACE)
        for i, site in enumerate(bed.wan.sites)
    }


@dataclass(slots=True)
class Running:
    """A launch that the loop has not closed."""

    launch: Launch
    handles: list[RankHandle]
    readers: list[ReportReader]
    is_swept: bool = False


class ProcessFleet:
    """Runs ranks in a state directory. `token` marks all processes of the run."""

    def __init__(self, state: Path, setup: Setup, options: ExecutionOptions, token: str) -> None:
        self.token, self._options = token, options
        self.launcher = Launcher(state, setup, options, token)
        self.running: dict[LaunchKey, Running] = {}
        self._is_new = True  # ranks of earlier loops have not been looked for
        bed = find(options.testbed) if options.testbed else None
        self._routes = JobRoutes(bed, setup) if bed is not None and covers(bed, setup) else None
        self.capabilities: frozenset[Capability] = frozenset({"cpu_shares"})
        if self._routes is not None:
            self.launcher.own_network = self._own_network
            self.capabilities |= {"routes"}
        if bed is not None and self._routes is not None and keeps_latency(bed, setup):
            self.capabilities |= {"latency"}

    def _own_network(self, job: Job, base: SiteNetwork) -> SiteNetwork:
        """The network of a job at a site: its own address and interface there."""
        own = None if self._routes is None else self._routes.own(job, base.namespace)
        return base if own is None else replace(base, address=own[0], interface=own[1])

    # ------------------------------------------------------------------ what should run
    def reconcile(self, wanted: Collection[Wanted]) -> None:
        """Start, adopt and stop ranks (worlds.fleet)."""
        named = {each.launch.key for each in wanted}
        if self._is_new:
            self._is_new = False
            self._stop_strangers([each.launch for each in wanted])
        for key in [key for key in self.running if key not in named]:
            self._forget(key)
        if self._routes is not None:
            for each in wanted:
                self._routes.join(each.launch.job, [rank.node for rank in each.launch.ranks])
            self._routes.apply({each.launch.job.index: Wish(each.launch.job, each.routes) for each in wanted})
        for launch, run, _ in wanted:
            if launch.key not in self.running:
                self.running[launch.key] = self._take_over(launch, run)
            if not run:
                for handle in self.running[launch.key].handles:
                    handle.stop()

    def _take_over(self, launch: Launch, run: bool) -> Running:
        """Adopt running ranks, read how others ended, and start ranks that never started but should run."""
        launcher, grace_s = self.launcher, self._options.grace_s
        settings, broken = prepare(launcher, launch)
        handles = []
        for number in range(len(launch.ranks)):
            tries = launcher.tries(launch, number)
            handle = (
                adopt(launcher.control(launch, number, tries), self.token, grace_s) if tries >= 0 else None
            )
            if handle is None and run and not broken:
                control = launcher.control(launch, number, tries + 1)
                process = launcher.start(launch, number, control, settings.port)
                handle = RankHandle(control, process.pid, process, grace_s=grace_s)
            elif handle is None:
                handle = RankHandle(launcher.control(launch, number, max(0, tries)), 0)
                handle.exit = Exit(None, how=broken) if run else Exit(STOPPED, asked=True)
            handles.append(handle)
        home, limit = launcher.job_folder(launch.job), self._options.limits.report_bytes
        readers = [ReportReader(home, rank, offset, limit) for rank, offset in enumerate(settings.offsets)]
        return Running(launch, handles, readers)

    def _stop_strangers(self, known: list[Launch]) -> None:
        """Stop ranks that an earlier loop started and this one does not name."""
        for control in self.launcher.unfinished(known):
            handle = adopt(control, self.token, self._options.grace_s)
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
        found = [handle.poll() for handle in running.handles]
        is_over = None not in found
        if is_over and not running.is_swept:
            running.is_swept = True
            self._sweep(running)
        reports = [
            (rank, report)
            for rank, reader in enumerate(running.readers)
            for report in (reader.drain() if is_over else reader.read())
        ]
        notes = [reader.note for reader in running.readers] or [""] * len(found)
        exits = tuple(noted(each, note, self._options) for each, note in zip(found, notes, strict=True))
        return LaunchStatus(exits, reports=tuple(reports))

    def _sweep(self, running: Running) -> None:
        """If a supervisor died, its rank's processes may still run: kill what is in their groups, what is of the job's own
        user, and what carries the token and no other supervisor owns.
        """
        lost = [each for each in running.handles if each.exit is not None and _left_some(each.exit)]
        for handle in lost:
            kill_groups(handle.control)
        uid = self.launcher.uid(running.launch.job)
        others = [h.pid for other in self.running.values() if other is not running for h in other.handles]
        for _ in range(SWEEPS if lost else 0):
            found = unsupervised(self.token, uid, others)
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not found:
                break

    def logs(self, job: Job, rank: int) -> str:
        """What a rank of a job wrote: the log before the last rotation, then the log."""
        return self.launcher.read_log(job, rank)

    def close(self) -> None:
        """Release file descriptors; running processes are not affected."""
        for running in self.running.values():
            for handle in running.handles:
                handle.release()
        self.running = {}


def prepare(launcher: Launcher, launch: Launch) -> tuple[LaunchSettings, str]:
    """Settings of a launch, and what is broken if its directories cannot be made, which is the job's own failure."""
    try:
        return launcher.prepare(launch), ""
    except OSError as error:
        if error.errno in EXHAUSTED:
            raise
        return LaunchSettings(0, ()), f"could not be started: {error.filename}: {error.strerror}"


def noted(found: Exit | None, note: str, options: ExecutionOptions) -> Exit | None:
    """An exit with what the operator should know about it, and about the rank's reports."""
    if found is None or not (found.notes or note):
        return found
    texts = {
        "killed": f"ignored SIGTERM for {options.grace_s:g} s and was killed",
        "rotated": f"wrote more than its log limit ({options.limits.log_bytes} bytes); the oldest output was dropped",
        "left": "left processes that could not be ended",
    }
    return found._replace(notes=(*(texts.get(each, each) for each in found.notes), *([note] if note else ())))


def _left_some(found: Exit) -> bool:
    """Whether processes of a rank may be left: its supervisor is lost, or could not end them."""
    return found.code is None or "left" in found.notes

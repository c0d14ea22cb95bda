"""The files of jobs' data: makes stores, carries shards to their sites, and lists them there in manifests.

Level-triggered: the loop names everything that should be there, as often as it likes. What is complete on disk is found
again by a new loop, and a shard whose transfer was cut short goes on where it ended. Threads do the work; `news` says
what they did.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO, NamedTuple

from tradewind.model.errors import TradewindError
from tradewind.model.job import Dataset, Job
from tradewind.model.setup import Setup
from tradewind.worlds.data.carriers import Carrier, copy
from tradewind.worlds.data.folders import MANIFEST, DataFolders, own, put
from tradewind.worlds.data.shards import Shard, Store
from tradewind.worlds.data.sources import open_source

RETRY_S, MOST_RETRY_S = 0.2, 5.0
WRITTEN = 4096
"""Records of a store that are written at once."""


class JobFiles(NamedTuple):
    """What should be there of a job: stores, shards, and nodes with ranks, each of which has a manifest.

    processed  numbers of shards that are no longer listed; their files stay until their step is over
    """

    job: Job
    slot: int
    stores: tuple[Store, ...]
    shards: tuple[Shard, ...]
    nodes: tuple[int, ...]
    processed: frozenset[int] = frozenset()


class Arrived(NamedTuple):
    """A shard is at its site; sent_bytes were carried there from another."""

    job: int
    number: int
    bytes: int
    sent_bytes: int


class Trouble(NamedTuple):
    """Why a store or shard is not there."""

    job: int
    text: str


News = Arrived | Trouble
Thing = Store | Shard


class UnwantedError(Exception):
    """Nobody wants the rest of a file."""


@dataclass(slots=True)
class Held:
    """The data of a job: what was named last, and what is known of it."""

    files: JobFiles
    folder: str
    uid: int | None
    stored: set[tuple[int, str]] = field(default_factory=set)  # complete stores, by node and name
    here: set[int] = field(default_factory=set)  # numbers of shards that have arrived
    refused: set[int] = field(default_factory=set)
    under_way: set[Thing] = field(default_factory=set)
    manifests: dict[int, str] = field(default_factory=dict)  # as they were written
    is_unlisted: bool = False  # a manifest could not be written
    nodes: set[int] = field(default_factory=set)  # where it has a directory


class Depot:
    """The data of all jobs of a run.

    user   directory name and user of a job
    scale  bytes of files per byte of the scenario
    """

    def __init__(
        self, folders: DataFolders, setup: Setup, carrier: Carrier, user: Callable[[Job], tuple[str, int | None]],
        scale: float = 1.0,
    ) -> None:  # fmt: skip
        self.scale = scale
        self._folders, self._setup, self._carrier, self._user = folders, setup, carrier, user
        self._held: dict[int, Held] = {}
        self._news: SimpleQueue[tuple[Thing, News | None]] = SimpleQueue()  # of the threads
        self._lanes: dict[tuple[int, int, int], SimpleQueue[Callable[[], None] | None]] = {}
        self._closed = threading.Event()
        self._is_new = True
        self._troubles: list[Trouble] = []

    @property
    def instead(self) -> str:
        """What happens instead of transfers over links; empty where nothing does."""
        return self._carrier.instead

    @property
    def is_busy(self) -> bool:
        """Whether anything is being made or carried."""
        return any(held.under_way for held in self._held.values())

    # ------------------------------------------------------------------ what should be there
    def reconcile(self, wanted: Iterable[JobFiles]) -> None:
        """Make it so, from now on; data of jobs that are not named is removed."""
        named = {each.job.index: each for each in wanted}
        if self._is_new:
            self._is_new = False
            self._folders.keep({self._user(each.job)[0] for each in named.values()})
        for index in [index for index in self._held if index not in named]:
            self._forget(self._held.pop(index))
        for index, files in named.items():
            held = self._held.get(index)
            if held is None:
                held = self._held[index] = Held(files, *self._user(files.job))
            before, held.files = held.files, files
            self._drop(held, before)
            self._advance(held)

    def news(self) -> list[News]:
        """What happened since the last call."""
        found: list[News] = list(self._troubles)
        self._troubles.clear()
        changed: dict[int, Held] = {}
        while True:
            try:
                thing, each = self._news.get_nowait()
            except Empty:
                break
            held = self._held.get(thing.job)
            if held is None:
                continue
            if isinstance(each, Trouble):
                found.append(each)
            elif thing not in held.under_way:  # it was dropped while the last of it was written
                self._delete(held, thing)
            else:
                self._note(held, thing, each, found)
                changed[thing.job] = held
        changed |= {index: held for index, held in self._held.items() if held.is_unlisted}
        for held in changed.values():
            self._advance(held)
        return found

    @staticmethod
    def _note(held: Held, thing: Thing, arrived: Arrived | None, found: list[News]) -> None:
        """Take in that a store or a shard is there."""
        held.under_way.discard(thing)
        if isinstance(thing, Store):
            held.stored.add((thing.node, thing.name))
        elif arrived is not None:
            held.here.add(thing.number)
            found.append(arrived)

    def close(self) -> None:
        """Stop all threads; files stay as they are, for the next loop."""
        self._closed.set()
        for lane in self._lanes.values():
            lane.put(None)

    # ------------------------------------------------------------------ one job
    def _home(self, held: Held, node: int) -> Path:
        return self._folders.site(node) / held.folder

    def _make_home(self, held: Held, node: int) -> Path:
        held.nodes.add(node)
        return self._folders.make(held.folder, held.uid, node)

    def _drop(self, held: Held, before: JobFiles) -> None:
        """Remove files that are no longer wanted."""
        gone: list[Thing] = [*(set(before.stores) - set(held.files.stores))]
        gone += set(before.shards) - set(held.files.shards)
        for thing in gone:
            held.under_way.discard(thing)
            if isinstance(thing, Store):
                held.stored.discard((thing.node, thing.name))
            else:
                held.here.discard(thing.number)
            self._delete(held, thing)

    def _delete(self, held: Held, thing: Thing) -> None:
        if isinstance(thing, Store):
            paths = [self._home(held, thing.node) / "store" / thing.name]
        else:
            paths = [self._home(held, thing.dst) / part / thing.name for part in ("shards", "incoming")]
        for path in paths:
            with suppress(OSError):
                path.unlink()

    def _forget(self, held: Held) -> None:
        """Remove all data of a job that is over."""
        index = held.files.job.index
        for lane in [lane for lane in self._lanes if lane[0] == index]:
            self._lanes.pop(lane).put(None)
        self._carrier.forget(held.files.job)
        for node in held.nodes:
            shutil.rmtree(self._home(held, node), ignore_errors=True)

    def _advance(self, held: Held) -> None:
        """Begin what can be begun, and say in manifests what is there."""
        files = held.files
        for store in files.stores:
            if (store.node, store.name) not in held.stored and store not in held.under_way:
                self._submit(held, store, (store.node, store.node))
        for shard in files.shards:
            if shard.number in held.here or shard.number in held.refused or shard in held.under_way:
                continue
            if files.job.data_nodes is not None and shard.dst not in files.job.data_nodes:
                held.refused.add(shard.number)
                name = self._setup.nodes[shard.dst].name
                what = f"its data may not be at {name}: {shard.name} stays where it is"
                self._troubles.append(Trouble(shard.job, what))
            elif (shard.src, shard.store) in held.stored:
                self._submit(held, shard, (shard.src, shard.dst))
        try:
            self._list(held)
            held.is_unlisted = False
        except OSError as error:  # such as a full disk
            if not held.is_unlisted:
                what = f"what is at its sites cannot be listed: {error.strerror}; it is tried again"
                self._troubles.append(Trouble(files.job.index, what))
            held.is_unlisted = True

    def _list(self, held: Held) -> None:
        """Write the manifests that changed."""
        files, data = held.files, held.files.job.data
        assert data is not None
        wanted = [shard for shard in files.shards if shard.number not in held.refused]
        for node in sorted({*files.nodes, *held.manifests, *(shard.dst for shard in wanted)}):
            mine = [shard for shard in wanted if shard.dst == node]
            there = [
                shard for shard in mine if shard.number in held.here and shard.number not in files.processed
            ]
            coming = sum(shard.number not in held.here for shard in mine)
            text = json.dumps(
                {
                    "job": files.job.id, "site": self._setup.nodes[node].name, "slot": files.slot,
                    "record_bytes": data.record_bytes,
                    "epochs": files.job.work.epochs if isinstance(files.job.work, Dataset) else 1,
                    "coming": coming,
                    "shards": [self._entry(shard, data.record_bytes) for shard in there],
                }
            )  # fmt: skip
            if held.manifests.get(node) != text:
                put(self._make_home(held, node) / MANIFEST, text + "\n", held.uid)
                held.manifests[node] = text

    def _entry(self, shard: Shard, record_bytes: int) -> dict[str, Any]:
        return {
            "name": shard.name, "file": f"shards/{shard.name}", "bytes": shard.records * record_bytes,
            "number": shard.number, "slot": shard.from_us // self._setup.slot_us,
            "from": self._setup.nodes[shard.src].name,
        }  # fmt: skip

    # ------------------------------------------------------------------ threads
    def _submit(self, held: Held, thing: Thing, ends: tuple[int, int]) -> None:
        """Let a thread make a store or carry a shard; there is one for each pair of nodes of a job."""
        held.under_way.add(thing)
        lane = (thing.job, *ends)
        if lane not in self._lanes:
            tasks = self._lanes[lane] = SimpleQueue()
            threading.Thread(target=_work, args=(tasks,), daemon=True).start()
        sent = [0]
        self._lanes[lane].put(lambda: self._try(held, thing, sent))

    def _try(self, held: Held, thing: Thing, sent: list[int]) -> None:
        """Make or carry something until it is done or nobody wants it any more; its first failure is news."""
        pause_s = RETRY_S
        while self._is_wanted(held, thing):
            try:
                if isinstance(thing, Store):
                    self._store(held, thing)
                    self._news.put((thing, None))
                else:
                    self._news.put((thing, self._carry(held, thing, sent)))
                break
            except UnwantedError:
                break
            except (OSError, TradewindError) as error:
                if pause_s == RETRY_S:
                    what = f"{self._named(thing)}: {getattr(error, 'strerror', None) or error}; it is tried again"
                    self._news.put((thing, Trouble(thing.job, what)))
                self._closed.wait(pause_s)
                pause_s = min(MOST_RETRY_S, 2 * pause_s)

    def _named(self, thing: Thing) -> str:
        nodes = self._setup.nodes
        if isinstance(thing, Store):
            return f"data at {nodes[thing.node].name} cannot be stored"
        return f"{thing.name} cannot be carried from {nodes[thing.src].name} to {nodes[thing.dst].name}"

    def _is_wanted(self, held: Held, thing: Thing) -> bool:
        files = held.files
        is_held = self._held.get(files.job.index) is held and not self._closed.is_set()
        return is_held and (thing in files.stores if isinstance(thing, Store) else thing in files.shards)

    def _store(self, held: Held, store: Store) -> None:
        """Write the records of a store."""
        path = self._make_home(held, store.node) / "store" / store.name
        if path.exists():
            return
        source, part = open_source(held.files.job), path.with_name(f".{store.name}.part")
        with part.open("wb") as file:
            for at in range(0, store.records, WRITTEN):
                if not self._is_wanted(held, store):
                    raise UnwantedError
                file.write(source.read(store.first + at, min(WRITTEN, store.records - at)))
            _flush(file)
        part.replace(path)

    def _carry(self, held: Held, shard: Shard, sent: list[int]) -> Arrived:
        """Carry a shard to its site, from where an earlier attempt ended. sent: bytes carried so far."""
        job = held.files.job
        assert job.data is not None
        size, begin = shard.records * job.data.record_bytes, shard.first * job.data.record_bytes
        home = self._make_home(held, shard.dst)
        goal, part = home / "shards" / shard.name, home / "incoming" / shard.name
        is_remote = shard.src != shard.dst
        if goal.exists():  # an earlier loop had it carried, and did not live to write that down
            return Arrived(shard.job, shard.number, size, size if is_remote else 0)
        store = self._home(held, shard.src) / "store" / shard.store
        with store.open("rb") as source, part.open("ab") as file:
            done = file.tell()
            sent[0] = max(sent[0], done)
            source.seek(begin + done)

            def take(data: bytes) -> None:
                if not self._is_wanted(held, shard):
                    raise UnwantedError
                file.write(data)
                file.flush()
                sent[0] += len(data)

            if is_remote and done < size:
                self._carrier.carry(job, (shard.src, shard.dst), source, size - done, take)
            else:
                copy(source.read, size - done, take)
            _flush(file)
            if _digest(source, begin, size) != _digest_of(part):
                part.unlink()
                raise OSError(0, "it arrived with other content")
        own(part, 0o640, held.uid)
        part.replace(goal)
        return Arrived(shard.job, shard.number, size, sent[0] if is_remote else 0)


def _work(tasks: SimpleQueue[Callable[[], None] | None]) -> None:
    while (task := tasks.get()) is not None:
        task()


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _digest(file: BinaryIO, begin: int, size: int) -> bytes:
    """Digest of a part of a file."""
    file.seek(begin)
    found = hashlib.sha256()
    copy(file.read, size, found.update)
    return found.digest()


def _digest_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()

"""One rank of a small stream job: softmax regression on the pictures that its site gets, with a parameter server.

It keeps the contract of docs/jobs.md and starts in a fraction of a second. A worker computes for as long as its model would
take, exchanges as many bytes with the server as the model has, and reports how long it waited for that.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats

CLASSES, RATE, STOPPED = 10, 0.05, 75
CONNECT_S = 20.0
MODEL, BATCH, SECONDS = "INSTANCE_MODEL_BYTES", "INSTANCE_BATCH_BYTES", "INSTANCE_SECONDS_PER_BATCH"


class Rank:
    """What the environment says, and whether the rank was asked to stop."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.address = (environment["MASTER_ADDR"], int(environment["MASTER_PORT"]))
        self.data, self.report = Path(environment["TRADEWIND_DATA_DIR"]), environment["TRADEWIND_REPORT"]
        self.saved = Path(environment["TRADEWIND_CHECKPOINT_DIR"]) / "parameters.npy"
        self.mine, self.workers = map(int, environment["TRADEWIND_SITE_SHARD"].split("/"))
        self.model_bytes, self.batch_bytes = int(environment[MODEL]), int(environment[BATCH])
        self.seconds = float(environment[SECONDS])
        self.stopped = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: self.stopped.set())


def received(peer: socket.socket, size: int) -> bytes:
    """Exactly so many bytes; EOFError if the peer is gone."""
    found = bytearray()
    while len(found) < size:
        part = peer.recv(size - len(found))
        if not part:
            raise EOFError
        found += part
    return bytes(found)


def serve(rank: Rank, pixels: int) -> None:
    """The parameter server: takes a gradient, gives the parameters, one worker after another."""
    values = np.load(rank.saved) if rank.saved.exists() else np.zeros((pixels, CLASSES))
    lock = threading.Lock()

    def attend(peer: socket.socket) -> None:
        try:
            while True:
                pushed = np.frombuffer(received(peer, rank.model_bytes)[: values.nbytes], np.float64)
                with lock:
                    values[:] -= RATE * pushed.reshape(values.shape)
                    peer.sendall(padded(values, rank.model_bytes))
        except (EOFError, OSError):
            peer.close()

    with socket.create_server(rank.address, reuse_port=False) as listener:
        listener.settimeout(0.2)
        while not rank.stopped.is_set():
            try:
                peer, _ = listener.accept()
            except TimeoutError:
                continue
            peer.settimeout(None)
            threading.Thread(target=attend, args=(peer,), daemon=True).start()
    with lock:
        np.save(rank.saved, values)


def padded(values: Floats, size: int) -> bytes:
    """The bytes of an array, filled up to the size of the model."""
    return values.tobytes().ljust(size, b"\0")


def batches(rank: Rank) -> Iterator[tuple[Floats, list[str]]]:
    """(records, names of shards that are finished with them) as data arrives, until the rank is stopped."""
    done = set[str]()
    while not rank.stopped.is_set():
        manifest: dict[str, Any] = json.loads((rank.data / "manifest.json").read_text())
        for shard in manifest["shards"]:
            if shard["number"] % rank.workers != rank.mine or shard["name"] in done:
                continue
            content = np.frombuffer((rank.data / shard["file"]).read_bytes(), np.uint8)
            records = content.reshape(-1, manifest["record_bytes"]).astype(np.float64)
            each = max(1, rank.batch_bytes // manifest["record_bytes"])
            parts = [records[at : at + each] for at in range(0, len(records), each)]
            for number, part in enumerate(parts):
                last = number + 1 == len(parts)
                if last:
                    done.add(shard["name"])
                yield part, [shard["name"]] if last else []
        time.sleep(0.02)


def gradient(values: Floats, records: Floats) -> tuple[float, Floats]:
    """Mean loss of a softmax regression and its gradient; the first byte of a record is its class."""
    pixels, classes = records[:, 1:] / 255.0, records[:, 0].astype(np.int64) % CLASSES
    scores = pixels @ values
    chances = np.exp(scores - scores.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    rows = np.arange(len(classes))
    loss = float(-np.log(chances[rows, classes] + 1e-12).mean())
    chances[rows, classes] -= 1.0
    return loss, pixels.T @ chances / len(classes)


def train(rank: Rank, pixels: int) -> None:
    """A worker: computes on a batch, pushes the gradient, pulls the parameters, reports."""
    server = _connected(rank)
    values, iteration = np.zeros((pixels, CLASSES)), 0
    with open(rank.report, "a", buffering=1, encoding="utf-8") as report:
        for records, processed in batches(rank):
            began = time.perf_counter()
            loss, change = gradient(values, records)
            rest = rank.seconds * records.size / rank.batch_bytes - (time.perf_counter() - began)
            time.sleep(max(0.0, rest))
            computed = time.perf_counter()
            server.sendall(padded(change, rank.model_bytes))
            values = np.frombuffer(received(server, rank.model_bytes)[: values.nbytes]).reshape(values.shape)
            ended, iteration = time.perf_counter(), iteration + 1
            line = {
                "iteration": iteration, "seconds": ended - began, "communication_seconds": ended - computed,
                "bytes_sent": rank.model_bytes, "loss": loss, "samples": len(records), "processed": processed,
                "at": time.time(),
            }  # fmt: skip
            report.write(json.dumps(line) + "\n")


def _connected(rank: Rank) -> socket.socket:
    until = time.monotonic() + CONNECT_S
    while True:
        try:
            return socket.create_connection(rank.address, timeout=CONNECT_S)
        except OSError:
            if time.monotonic() > until or rank.stopped.is_set():
                sys.exit(STOPPED if rank.stopped.is_set() else 69)
            time.sleep(0.05)


def main() -> None:
    """Run the rank that the environment names."""
    rank = Rank(os.environ)
    pixels = 144
    try:
        (serve if os.environ["TRADEWIND_ROLE"] == "ps" else train)(rank, pixels)
    except (EOFError, ConnectionError):
        if not rank.stopped.wait(
            2.0
        ):  # the server ended first: this rank is asked to stop, too, or something is wrong
            sys.exit(69)
    sys.exit(STOPPED)


if __name__ == "__main__":
    main()

"""One site of a path with relays that store and forward: whole blocks, or chunks of them (the APSP paper's transport).

A relay receives a chunk completely before it sends it on, while it receives the next one.
"""

from __future__ import annotations

import json
import queue
import socket
import threading
import time
from pathlib import Path
from typing import Any

from tradewind.worlds.testbed.sockets import MOMENT, dial, read, read_moment


def run(argument: dict[str, Any]) -> int:
    """Entry point of a child process; the source writes the seconds of each block, from the first byte to the last's end."""
    socket.setdefaulttimeout(float(argument["timeout_s"]))
    addresses, me = argument["addresses"], int(argument["number"])
    port, timeout_s = int(argument["port"]), float(argument["timeout_s"])
    chunks = cut(int(argument["model_bytes"]), int(argument["chunks"]))
    rounds = int(argument["rounds"]) + 1
    if me == 0:
        with dial(addresses[1], port, timeout_s) as first:
            seconds = [_send(first, chunks) for _ in range(rounds)]
        Path(argument["result"]).write_text(json.dumps(seconds[1:]), encoding="utf-8")
        return 0
    with socket.create_server((addresses[me], port)) as listener:
        last = me == len(addresses) - 1
        following = None if last else dial(addresses[me + 1], port, timeout_s)
        previous = listener.accept()[0]
        for _ in range(rounds):
            _forward(previous, following, chunks)
        previous.close()
        if following is not None:
            following.close()
    return 0


def cut(size: int, count: int) -> list[int]:
    """Sizes of the chunks of a block; count 0: one."""
    count = max(1, count)
    return [(number + 1) * size // count - number * size // count for number in range(count)]


def _send(following: socket.socket, chunks: list[int]) -> float:
    """Send a block; return the seconds until the last site had it."""
    began = time.monotonic()
    for size in chunks:
        following.sendall(bytes(size))
    return read_moment(following) - began


def _forward(previous: socket.socket, following: socket.socket | None, chunks: list[int]) -> None:
    """Receive a block chunk by chunk, send it on, and pass back when the last site had it."""
    arrived: queue.Queue[int] = queue.Queue()

    def receive() -> None:
        for size in chunks:
            read(previous, size)
            arrived.put(size)

    receiving = threading.Thread(target=receive, daemon=True)
    receiving.start()
    for _ in chunks:
        size = arrived.get(timeout=socket.getdefaulttimeout())
        if following is not None:
            following.sendall(bytes(size))
    receiving.join()
    previous.sendall(MOMENT.pack(time.monotonic() if following is None else read_moment(following)))

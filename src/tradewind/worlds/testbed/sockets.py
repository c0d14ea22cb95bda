"""One site of an exchange over plain sockets, for machines without PyTorch; same traffic as train/traffic.py.

All sites are on one machine and read the same clock: they begin a round at an agreed moment, and say when they ended it.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from pathlib import Path
from typing import Any

CHUNK_BYTES = 1 << 16
MOMENT = struct.Struct("!d")


def run(argument: dict[str, Any]) -> int:
    """Entry point of a child process; the first site writes the times of the rounds."""
    socket.setdefaulttimeout(float(argument["timeout_s"]))
    rounds = int(argument["rounds"]) + 1
    seconds = _ring(argument, rounds) if argument["kind"] == "ring" else _server(argument, rounds)
    if argument["number"] == 0:
        Path(argument["result"]).write_text(json.dumps(seconds[1:]), encoding="utf-8")
    return 0


def dial(address: str, port: int, timeout_s: float) -> socket.socket:
    """Connect to a peer, waiting until it listens; what is sent does not wait to fill packets."""
    limit = time.monotonic() + timeout_s
    while True:
        try:
            made = socket.create_connection((address, port))
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return made
        except ConnectionRefusedError:
            if time.monotonic() > limit:
                raise
            time.sleep(0.01)


def read(peer: socket.socket, size: int) -> None:
    """Receive so many bytes."""
    while size > 0:
        got = len(peer.recv(min(CHUNK_BYTES, size)))
        if not got:
            raise ConnectionError("a peer closed its connection")
        size -= got


def _wait_until(moment: float) -> None:
    """Sleep until a moment of the machine's clock."""
    time.sleep(max(0.0, moment - time.monotonic()))


def read_moment(peer: socket.socket) -> float:
    """Receive a moment of the machine's clock."""
    found = bytearray()
    while len(found) < MOMENT.size:
        part = peer.recv(MOMENT.size - len(found))
        if not part:
            raise ConnectionError("a peer closed its connection")
        found += part
    return float(MOMENT.unpack(found)[0])


def _run_all(calls: list[threading.Thread]) -> None:
    for call in calls:
        call.start()
    for call in calls:
        call.join()


def _server(argument: dict[str, Any], rounds: int) -> list[float]:
    """Each round: agree when to begin, receive from all, send to all, and take the latest end."""
    address, port, size = argument["addresses"][0], int(argument["port"]), int(argument["model_bytes"])
    if argument["number"]:
        with dial(address, port, argument["timeout_s"]) as server:
            for _ in range(rounds):
                _wait_until(read_moment(server))
                server.sendall(bytes(size))
                read(server, size)
                server.sendall(MOMENT.pack(time.monotonic()))
        return []
    data, seconds = bytes(size), []
    with socket.create_server((address, port)) as listener:
        peers = [listener.accept()[0] for _ in argument["addresses"][1:]]
        for _ in range(rounds):
            begin = time.monotonic() + float(argument["ahead_s"])
            for peer in peers:
                peer.sendall(MOMENT.pack(begin))
            _run_all([threading.Thread(target=read, args=(peer, size)) for peer in peers])
            _run_all([threading.Thread(target=peer.sendall, args=(data,)) for peer in peers])
            seconds.append(max(map(read_moment, peers)) - begin)
        for peer in peers:
            peer.close()
    return seconds


def _ring(argument: dict[str, Any], rounds: int) -> list[float]:
    """Each round: 2 (n - 1) steps that send a block to the next site and receive one from the previous."""
    addresses, me, port = argument["addresses"], int(argument["number"]), int(argument["port"])
    n = len(addresses)
    block = bytes(-(-int(argument["model_bytes"]) // n))
    seconds = []
    with socket.create_server((addresses[me], port)) as listener:
        following = dial(addresses[(me + 1) % n], port, argument["timeout_s"])
        previous = listener.accept()[0]
        for _ in range(rounds):
            begin = _latest(following, previous, me, time.monotonic() + float(argument["ahead_s"]))
            _wait_until(begin)
            for _ in range(2 * (n - 1)):
                pushing = threading.Thread(target=following.sendall, args=(block,))
                pushing.start()
                read(previous, len(block))
                pushing.join()
            seconds.append(_latest(following, previous, me, time.monotonic()) - begin)
        following.close()
        previous.close()
    return seconds


def _latest(following: socket.socket, previous: socket.socket, me: int, mine: float) -> float:
    """The latest moment of all sites, passed round the ring twice."""
    if me == 0:
        following.sendall(MOMENT.pack(mine))
        latest = read_moment(previous)
        following.sendall(MOMENT.pack(latest))
        return read_moment(previous)
    following.sendall(MOMENT.pack(max(mine, read_moment(previous))))
    latest = read_moment(previous)
    following.sendall(MOMENT.pack(latest))
    return latest

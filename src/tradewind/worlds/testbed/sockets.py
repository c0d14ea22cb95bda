"""One site of an exchange over plain sockets, for machines without PyTorch; same traffic as train/traffic.py."""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

CHUNK_BYTES = 1 << 16


def run(argument: dict[str, Any]) -> int:
    """Entry point of a child process; the first site writes the times of the rounds."""
    socket.setdefaulttimeout(float(argument["timeout_s"]))
    rounds = int(argument["rounds"]) + 1
    seconds = _ring(argument, rounds) if argument["kind"] == "ring" else _server(argument, rounds)
    if argument["number"] == 0:
        Path(argument["result"]).write_text(json.dumps(seconds[1:]), encoding="utf-8")
    return 0


def dial(address: str, port: int, timeout_s: float) -> socket.socket:
    """Connect to a peer, waiting until it listens."""
    limit = time.monotonic() + timeout_s
    while True:
        try:
            return socket.create_connection((address, port))
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


def _run_all(calls: list[threading.Thread]) -> None:
    for call in calls:
        call.start()
    for call in calls:
        call.join()


def _server(argument: dict[str, Any], rounds: int) -> list[float]:
    """Each round: signal the start, receive from all, send to all, wait for all acknowledgements."""
    address, port, size = argument["addresses"][0], int(argument["port"]), int(argument["model_bytes"])
    if argument["number"]:
        with dial(address, port, argument["timeout_s"]) as server:
            for _ in range(rounds):
                read(server, 1)
                server.sendall(bytes(size))
                read(server, size)
                server.sendall(b"!")
        return []
    data, seconds = bytes(size), []
    with socket.create_server((address, port)) as listener:
        peers = [listener.accept()[0] for _ in argument["addresses"][1:]]
        for _ in range(rounds):
            began = time.perf_counter()
            for peer in peers:
                peer.sendall(b"!")
            _run_all([threading.Thread(target=read, args=(peer, size)) for peer in peers])
            _run_all([threading.Thread(target=_push, args=(peer, data)) for peer in peers])
            seconds.append(time.perf_counter() - began)
        for peer in peers:
            peer.close()
    return seconds


def _push(peer: socket.socket, data: bytes) -> None:
    peer.sendall(data)
    read(peer, 1)


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
            _barrier(following, previous, me)
            began = time.perf_counter()
            for _ in range(2 * (n - 1)):
                pushing = threading.Thread(target=following.sendall, args=(block,))
                pushing.start()
                read(previous, len(block))
                pushing.join()
            _barrier(following, previous, me)
            seconds.append(time.perf_counter() - began)
        following.close()
        previous.close()
    return seconds


def _barrier(following: socket.socket, previous: socket.socket, me: int) -> None:
    """Pass a byte round the ring twice, so that no site continues before all have arrived."""
    for _ in range(2):
        if me == 0:
            following.sendall(b"!")
        read(previous, 1)
        if me != 0:
            following.sendall(b"!")

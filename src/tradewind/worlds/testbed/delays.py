"""Latency of a testbed's links: frames are held back in the hub, by netem where the kernel has it, else by a process.

netem  every port of the bridge has a class and a netem queue per neighbour of its site, selected by the sender's MAC address
relay  without a bridge: a process receives the frames of all ports, and sends each to its site when its time has come

Both come after the sender's link, whose rate and queue are those of a testbed without latency.
"""

from __future__ import annotations

import heapq
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress

from tradewind.worlds.testbed.state import How
from tradewind.worlds.testbed.wan import Wan

MAC_PREFIX = bytes((2, 0x54, 0x57, 0, 0))
"""MAC address of a site: this and the site's number."""
QUEUE_FRAMES = 100_000
"""Frames that netem holds at most: never fewer than are under way."""
CLASS_BPS = 10**11
"""Rate of classes that only select a delay."""
OFFLOAD_BYTES = 10
"""Header with which frames keep checksums and segments that the kernel has still to make."""
FRAME_BYTES = 1 << 17
BUFFER_BYTES = 1 << 23
BATCH = 64
SOL_PACKET, VNET_HDR, IGNORE_OUTGOING, ANY_PROTOCOL = 263, 15, 23, 3


def mac(site: int) -> str:
    """MAC address of a site's interface."""
    return bytes((*MAC_PREFIX, site)).hex(":")


def latencies_us(wan: Wan) -> dict[tuple[int, int], int]:
    """Latency in microseconds by (from, to), of links that have one."""
    ends = ((each.a, each.b, each.latency_us) for each in wan.links if each.latency_us)
    return {pair: us for a, b, us in ends for pair in ((a, b), (b, a))}


def delay_of(wan: Wan, space: str) -> How:
    """How links are delayed, in a namespace that has one with a loopback device."""
    if not latencies_us(wan):
        return ""
    return "relay" if netem_missing(space) else "netem"


def netem_missing(space: str) -> str:
    """Why netem cannot be used in a namespace; empty if it can."""
    netem = ["tc", "-n", space, "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
    done = subprocess.run(netem, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        subprocess.run([*netem[:4], "del", *netem[5:8]], capture_output=True, check=False)
        return ""
    return f"this kernel has no netem ({done.stderr.strip()})"


def delaying_queues(wan: Wan, delay: str = "netem limit {frames} delay {us}us") -> list[str]:
    """tc commands for the hub: a queue per link and direction, at the port of the site that it leads to."""
    lines, there = list[str](), latencies_us(wan)
    for goal in sorted({b for _, b in there}):
        port = f"dev port{goal}"
        lines.append(f"qdisc add {port} root handle 1: htb")
        for source, us in sorted((a, us) for (a, b), us in there.items() if b == goal):
            minor, queue = f"1:{source + 1:x}", delay.format(frames=QUEUE_FRAMES, us=us)
            lines += [
                f"class add {port} parent 1: classid {minor} htb rate {CLASS_BPS}bit quantum {1 << 16}",
                f"qdisc add {port} parent {minor} {queue}",
                f"filter add {port} parent 1: protocol ip prio 1 u32 match u16 0x{source:04x} 0xffff at -4 flowid {minor}",
            ]
    return lines


def start_relay(wan: Wan, hub: str) -> None:
    """Start the process that delays frames, in the namespace of the hub; it goes on until it is killed."""
    words = {f"{a} {b}": us for (a, b), us in latencies_us(wan).items()}
    subprocess.run(
        ["ip", "netns", "exec", hub, sys.executable, "-m", __name__, str(len(wan.sites))],
        input=json.dumps(words), capture_output=True, text=True, check=True,
    )  # fmt: skip


def relay(ports: list[socket.socket], latency_s: Mapping[tuple[int, int], float]) -> None:
    """Hold every frame back for the latency of its link; port k leads to site k."""
    site = {each: number for number, each in enumerate(ports)}
    at = OFFLOAD_BYTES + len(
        MAC_PREFIX
    )  # of the last byte of the receiver's address; the sender's is 6 bytes further
    waiting: list[tuple[float, int, int, bytes]] = []
    number = 0
    while True:
        rest = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ready = select.select(ports, [], [], rest)[0]
        now = time.monotonic()
        for port in ready:
            for _ in range(BATCH):
                try:
                    frame = port.recv(FRAME_BYTES)
                except BlockingIOError:
                    break
                if frame[OFFLOAD_BYTES:at] == MAC_PREFIX and frame[at] < len(ports):
                    number += 1
                    due = now + latency_s.get((site[port], frame[at]), 0.0)
                    heapq.heappush(waiting, (due, number, frame[at], frame))
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, _, goal, frame = heapq.heappop(waiting)
            with suppress(OSError):  # a full queue loses frames, like any
                ports[goal].send(frame)


def _port(number: int) -> socket.socket:
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ANY_PROTOCOL))
    for option in (VNET_HDR, IGNORE_OUTGOING):
        made.setsockopt(SOL_PACKET, option, 1)
    made.setsockopt(socket.SOL_SOCKET, 33, BUFFER_BYTES)  # SO_RCVBUFFORCE
    made.bind((f"port{number}", ANY_PROTOCOL))
    made.setblocking(False)
    return made


def main() -> None:
    """Open all ports, then go on in the background."""
    words: dict[str, int] = json.load(sys.stdin)
    latency_s = {(int(a), int(b)): us / 1e6 for pair, us in words.items() for a, b in [pair.split()]}
    ports = [_port(number) for number in range(int(sys.argv[1]))]
    if os.fork():
        os._exit(0)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    relay(ports, latency_s)


if __name__ == "__main__":
    main()

"""Builds and removes a testbed: a network namespace per site, and links with a rate, isolated from the machine's network.

Each site is a namespace with one interface, `wan0`, attached to a bridge in a separate namespace (the hub). Interfaces
are created inside the namespaces and never appear on the machine. A site sends packets only to its neighbours, which
forward them: a packet crosses the links of its path one after another, and paths over the same link share it. (Shaping
each pair of sites separately would be simpler, but then no link is shared and the best server site may differ.)

Each direction of a link is an htb class at the sender with a short bfifo queue. A u32 filter on the destination MAC
address, which is that of the neighbour, selects the class, so the right link is used whatever path is pinned. Routes
set cubic, because other defaults (BBR) distort short transfers on short queues. Latency comes after that, in the hub
(worlds.testbed.delays).

A state file is written before anything is created, and all names contain the testbed's name: `down` finds everything
even after a crash.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path as File
from types import MappingProxyType
from typing import NamedTuple

from tradewind.model.errors import InputError, TradewindError
from tradewind.worlds.testbed.delays import delay_of, delaying_queues, mac, start_relay
from tradewind.worlds.testbed.state import (
    How,
    State,
    check_name,
    delete,
    is_abandoned,
    load,
    locked,
    save,
    saved_names,
)
from tradewind.worlds.testbed.wan import FRAME_BYTES, MTU_BYTES, Path, Wan, next_hops, shortest

INTERFACE = "wan0"
NETNS = File("/run/netns")
PREFIX = "tradewind"
PIN = 1000
"""Priority of the rules that pin paths; the main table has 32766."""
TABLE = 1000
"""Routing table TABLE + k sends everything to neighbour k."""
BURST_S = 0.001
MIN_BURST_BYTES = 3_200
"""Burst of an idle link: large enough to absorb a late timer, small compared with a model."""
QUANTUM_BYTES = 30_000
"""What a queue that has reserved all of a link sends in a turn, where several want more than there is."""
QUEUE_S = 0.03
"""A queue holds what its link sends in this time and a round trip: TCP needs as much to fill the link."""
MIN_QUEUE_BYTES = 64_000
SETTINGS = {
    "net/ipv4/ip_forward": "1",
    "net/ipv4/conf/all/send_redirects": "0",
    f"net/ipv4/conf/{INTERFACE}/send_redirects": "0",
    "net/ipv4/conf/all/rp_filter": "0",
    f"net/ipv4/conf/{INTERFACE}/rp_filter": "0",
    "net/ipv4/tcp_slow_start_after_idle": "0",
    "net/ipv4/tcp_no_metrics_save": "1",
}
"""Forward packets without redirects; do not reuse TCP metrics of earlier transfers."""
MAX_SITES = 200
DEFAULT, PINNED = 0x1000, 0x2000
"""htb classes of a site: 1 + k: link to site k; DEFAULT + k: its default queue; PINNED + i: queue of pin i."""
MOST_PINS = 0xC000
LAST = 0xFFFF
"""Priority of the filters of default queues; pin i has 1 + i."""


class Pin(NamedTuple):
    """Packets from one address to another take a path; bps: the rate that they get on it (0: an even share)."""

    source: str
    goal: str
    path: Path
    bps: int = 0

    @classmethod
    def of(cls, path: Path) -> Pin:
        """A pin of all packets between two sites."""
        return cls(_address(path[0]), _address(path[-1]), path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Testbed:
    """A running network. delay: how latency is made (worlds.testbed.delays)."""

    name: str
    wan: Wan
    delay: How = ""

    def namespace(self, site: int) -> str:
        """Network namespace of a site."""
        return f"{PREFIX}.{self.name}.{site}"

    @property
    def hub(self) -> str:
        """Network namespace of the bridge that joins all sites."""
        return f"{PREFIX}.{self.name}.hub"

    def address(self, site: int) -> str:
        """IP address of a site."""
        return _address(site)

    def inside(self, site: int, command: Sequence[str]) -> list[str]:
        """The command line that runs a command at a site."""
        return ["ip", "netns", "exec", self.namespace(site), *command]

    def pin(self, paths: Sequence[Path]) -> None:
        """Route packets between the ends of each path along it; replaces all earlier pins.

        On every link each pinned path has its own queue, so paths share the link evenly, as a plan that reserves
        bandwidth per path assumes. (With one queue TCP shares unevenly, and a round takes up to a tenth longer.)
        """
        self.unpin()
        self.change_pins(add={number: Pin.of(path) for number, path in enumerate(paths)})

    def unpin(self) -> None:
        """Remove all pins."""
        with locked():
            for site in range(len(self.wan.sites)):
                _unpin(self.namespace(site))

    def change_pins(
        self, *, add: Mapping[int, Pin], remove: Mapping[int, Pin] = MappingProxyType({})
    ) -> None:
        """Add and remove pins by their numbers (from 0 to MOST_PINS - 1); all others stay as they are."""
        rates = self.wan.rates()
        for pin in add.values():
            for hop in pairwise(pin.path):
                if hop not in rates:
                    names = " > ".join(self.wan.sites[s] for s in pin.path)
                    raise InputError(f"the path {names} uses a link that does not exist", where=self.name)
        commands: dict[tuple[int, str], list[str]] = {}
        for verb, pins in (("del", remove), ("add", add)):
            for number, pin in pins.items():
                trip_s = 2 * self.wan.latency_s(pin.path)
                for here, towards in pairwise(pin.path):
                    rules, queues = _pin(verb, number, pin, towards, rates[here, towards], trip_s)
                    commands.setdefault((here, "ip"), []).extend(rules)
                    commands.setdefault((here, "tc"), []).extend(queues)
        with locked():
            for (site, program), lines in commands.items():
                batch([program], self.namespace(site), lines)

    def sent_bytes(self) -> dict[tuple[int, int], int]:
        """Bytes on the wire by (from, to) since the testbed was created, with frame headers."""
        found = {}
        for link in self.wan.links:
            for a, b in ((link.a, link.b), (link.b, link.a)):
                found[a, b] = 0
        for site in range(len(self.wan.sites)):
            text = _run(["tc", "-n", self.namespace(site), "-s", "class", "show", "dev", INTERFACE])
            for minor, sent in re.findall(r"class htb 1:([0-9a-f]+) .*?Sent (\d+) bytes", text, re.S):
                if int(minor, 16) < DEFAULT:
                    found[site, int(minor, 16) - 1] = int(sent)
        return found


def _address(site: int) -> str:
    return f"10.77.0.{site + 1}"


def unavailable() -> str:
    """Reason why no testbed can be created here; empty if it can."""
    for tool in ("ip", "tc"):
        if shutil.which(tool) is None:
            return f"the command {tool!r} is missing: install iproute2"
    if os.geteuid() != 0:
        return "only root can create network namespaces: run it with sudo"
    try:
        probe = subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return ""
    return (
        ""
        if probe.returncode == 0
        else f"the kernel does not allow network namespaces ({probe.stderr.decode().strip()})"
    )


def up(wan: Wan, name: str) -> Testbed:
    """Create the network, after removing leftovers of a crash and temporary testbeds whose process was killed."""
    check_name(name)
    if reason := unavailable():
        raise TradewindError(f"testbed: {reason}")
    if not 2 <= len(wan.sites) <= MAX_SITES:
        raise InputError(f"found {len(wan.sites)} sites; allowed are 2 to {MAX_SITES}", where=wan.name)
    bed = Testbed(name=name, wan=wan)
    with locked():
        for other in filter(is_abandoned, names()):
            _remove(other)
        if state_of(name) == "up":
            raise InputError(
                f"testbed {name!r} already exists. Remove it first (tradewind testbed down --name {name}), "
                "or choose another --name."
            )
        _remove(name)
        save(name, State(phase="building", wan=wan))
        try:
            bed = replace(bed, delay=_build(bed))
        except BaseException:
            _remove(name)
            raise
        save(name, State(phase="up", wan=wan, delay=bed.delay))
    return bed


def down(name: str) -> list[str]:
    """Remove the testbed and end everything that runs in it; return the names of the removed namespaces."""
    check_name(name)
    if os.geteuid() != 0:
        raise TradewindError("testbed: only root can remove network namespaces: run it with sudo")
    with locked():
        return _remove(name)


def find(name: str) -> Testbed:
    """The running testbed of that name; InputError if there is none."""
    check_name(name)
    state = load(name)
    if state is None or state_of(name) != "up":
        running = ", ".join(other for other in names() if state_of(other) == "up") or "none"
        raise InputError(
            f"no testbed {name!r} is up (up: {running}); create one with `tradewind testbed up b4 --name {name}`"
        )
    return Testbed(name=name, wan=state.wan, delay=state.delay)


def names() -> list[str]:
    """All testbeds with a state file or a namespace, complete or not."""
    found = set(saved_names())
    if NETNS.is_dir():
        found |= {path.name.split(".")[1] for path in NETNS.glob(f"{PREFIX}.*.*")}
    return sorted(found)


def state_of(name: str) -> str:
    """up, absent, or broken (after a crash in `up` or `down`, or a reboot)."""
    state = load(name)
    if state is None:
        return "broken" if _namespaces(name) else "absent"
    whole = state.phase == "up" and len(_namespaces(name)) == len(state.wan.sites) + 1
    if whole and state.delay == "relay":
        whole = bool(_pids([Testbed(name=name, wan=state.wan).hub]))
    return "up" if whole else "broken"


def processes(name: str) -> list[int]:
    """Ids of the processes that run at the sites of the testbed."""
    return _pids([space for space in _namespaces(name) if not space.endswith(".hub")])


def _pids(spaces: Sequence[str]) -> list[int]:
    found: list[int] = []
    for space in spaces:
        text = _run(["ip", "netns", "pids", space], check=False)
        found += [int(word) for word in text.split() if int(word) != os.getpid()]
    return sorted(set(found))


# --- creating and removing ---


def _build(bed: Testbed) -> How:
    """Create everything; return how latency is made."""
    sites = range(len(bed.wan.sites))
    _run(["ip", "-batch", "-"], "".join(f"netns add {s}\n" for s in (bed.hub, *map(bed.namespace, sites))))
    delay = delay_of(bed.wan, bed.hub)
    bridge = "" if delay == "relay" else "master bridge0"
    _run(
        ["ip", "-n", bed.hub, "-batch", "-"],
        "link add bridge0 type bridge\nlink set bridge0 up\n"
        + "".join(
            f"link add port{site} mtu {MTU_BYTES} type veth peer name {INTERFACE} mtu {MTU_BYTES} "
            f"address {mac(site)} netns {bed.namespace(site)}\n"
            f"link set port{site} {bridge} up\n"
            for site in sites
        ),
    )
    if delay == "netem":
        batch(["tc"], bed.hub, delaying_queues(bed.wan))
    elif delay:
        start_relay(bed.wan, bed.hub)
    rates, hops = bed.wan.rates(), next_hops(bed.wan)
    trip_s = 2 * max(map(bed.wan.latency_s, shortest(bed.wan).values())) if delay else 0.0
    for site in sites:
        near = {b: bps for (a, b), bps in rates.items() if a == site}
        space = bed.namespace(site)
        _run(["ip", "-n", space, "-batch", "-"], _addresses(site, near, hops))
        _run(["tc", "-n", space, "-batch", "-"], _classes(near, trip_s))
        settings = "; ".join(f"echo {value} > /proc/sys/{key}" for key, value in SETTINGS.items())
        _run(["ip", "netns", "exec", space, "sh", "-ec", settings])
    return delay


def _addresses(site: int, near: Mapping[int, int], hops: Mapping[tuple[int, int], int]) -> str:
    """ip commands: address, neighbours, a route to every other site, and a table per neighbour for pinned paths."""
    lines = [
        "link set lo up",
        f"addr add {_address(site)}/32 dev {INTERFACE}",
        # else TCP hands over up to 64 kB at once, which a class sends at once, whatever its rate, and waits afterwards
        f"link set {INTERFACE} gso_max_segs 1 up",
    ]
    for other in sorted(near):
        lines += [
            f"neigh add {_address(other)} lladdr {mac(other)} dev {INTERFACE} nud permanent",
            f"route add {_address(other)} dev {INTERFACE} scope link congctl cubic",
            f"route add default via {_address(other)} dev {INTERFACE} onlink congctl cubic table {TABLE + other}",
        ]
    lines += [
        f"route add {_address(goal)} via {_address(hop)} dev {INTERFACE} onlink congctl cubic"
        for (at, goal), hop in sorted(hops.items())
        if at == site and goal not in near
    ]
    return "\n".join(lines) + "\n"


def _classes(near: Mapping[int, int], trip_s: float) -> str:
    """tc commands: per neighbour an htb class with a short queue, selected by the neighbour's MAC address."""
    lines = [f"qdisc add dev {INTERFACE} root handle 1: htb default 0"]
    for other, bps in sorted(near.items()):
        lines += [
            f"class add dev {INTERFACE} parent 1: classid 1:{other + 1:x} htb {_rate(bps, bps)}",
            *_queue(other, DEFAULT + other, bps, trip_s),
            f"filter add dev {INTERFACE} parent 1: protocol ip prio {LAST} u32 match u32 0x{_mac_tail(other)} 0xffffffff "
            f"at -12 flowid 1:{DEFAULT + other:x}",
        ]
    return "\n".join(lines) + "\n"


def _rate(guaranteed_bps: int, max_bps: int, quantum: int = MTU_BYTES + FRAME_BYTES) -> str:
    burst = max(MIN_BURST_BYTES, int(max_bps * BURST_S / 8))
    return f"rate {guaranteed_bps}bit ceil {max_bps}bit burst {burst} cburst {burst} quantum {quantum}"


def _queue(towards: int, minor: int, bps: int, trip_s: float, reserved_bps: int = 0) -> list[str]:
    """A queue of a link, with a largest rate if one is reserved for it.

    Its guaranteed rate is tiny, and it borrows the rest from the link, because guaranteed rates together may exceed that
    of the link. Queues that want more than there is share it evenly, those with reserved rates in proportion.
    """
    most = reserved_bps or bps
    limit = max(MIN_QUEUE_BYTES, int(most * (QUEUE_S + trip_s) / 8))
    quantum = MTU_BYTES + FRAME_BYTES + QUANTUM_BYTES * reserved_bps // bps
    return [
        f"class add dev {INTERFACE} parent 1:{towards + 1:x} classid 1:{minor:x} htb {_rate(bps // 1000, most, quantum)}",
        f"qdisc add dev {INTERFACE} parent 1:{minor:x} bfifo limit {limit}",
    ]


def _pin(
    verb: str, number: int, pin: Pin, towards: int, bps: int, trip_s: float
) -> tuple[list[str], list[str]]:
    """ip and tc commands that add or delete a pin at one site of its path; bps: rate of the link to the next one."""
    ends, minor = f"from {pin.source} to {pin.goal}", PINNED + number
    rules = [f"rule {verb} pref {PIN} {ends} lookup {TABLE + towards}"]
    which = f"dev {INTERFACE} parent 1: protocol ip prio {1 + number} u32"
    match = f"match ip src {pin.source} match ip dst {pin.goal} flowid 1:{minor:x}"
    if verb == "add":
        return rules, [*_queue(towards, minor, bps, trip_s, min(pin.bps, bps)), f"filter add {which} {match}"]
    return rules, [f"filter del {which}", f"class del dev {INTERFACE} classid 1:{minor:x}"]


def _unpin(space: str) -> None:
    """Remove all pinned paths at a site."""
    rules = _run(["ip", "-n", space, "rule", "list", "pref", str(PIN)]).splitlines()
    if rules:
        _run(["ip", "-n", space, "-batch", "-"], f"rule del pref {PIN}\n" * len(rules))
    text = _run(["tc", "-n", space, "class", "show", "dev", INTERFACE])
    minors = [m for m in re.findall(r"class htb 1:([0-9a-f]+) ", text) if int(m, 16) >= PINNED]
    if minors:
        numbers = [int(minor, 16) - PINNED for minor in minors]
        removed = [f"filter del dev {INTERFACE} parent 1: prio {1 + number}" for number in numbers]
        removed += [f"class del dev {INTERFACE} classid 1:{minor}" for minor in minors]
        batch(["tc", "-force"], space, removed, check=False)


def _mac_tail(site: int) -> str:
    """Last four bytes of the MAC address; they are 12 bytes before the IP header."""
    return mac(site).replace(":", "")[4:]


def _remove(name: str) -> list[str]:
    """End processes inside, delete the namespaces (and so all interfaces) and the state file."""
    for how, patience_s in ((signal.SIGTERM, 1.0), (signal.SIGKILL, 5.0)):
        _end(name, how, patience_s)
    removed = _namespaces(name)
    for space in removed:
        _run(["ip", "netns", "del", space], check=False)
    left = _namespaces(name)
    if left:
        raise TradewindError(
            f"testbed {name}: could not delete {', '.join(left)}; run `tradewind testbed down --name {name}` again"
        )
    delete(name)
    return removed


def _end(name: str, how: signal.Signals, patience_s: float) -> None:
    spaces = _namespaces(name)
    for pid in _pids(spaces):
        with suppress(ProcessLookupError):
            os.kill(pid, how)
    limit = time.monotonic() + patience_s
    while _pids(spaces) and time.monotonic() < limit:
        time.sleep(0.02)


def _namespaces(name: str) -> list[str]:
    return sorted(path.name for path in NETNS.glob(f"{PREFIX}.{name}.*")) if NETNS.is_dir() else []


def batch(program: Sequence[str], space: str, lines: Sequence[str], *, check: bool = True) -> None:
    """Run several commands of ip or tc in a namespace."""
    _run([*program, "-n", space, "-batch", "-"], "\n".join(lines) + "\n", check=check)


def _run(command: Sequence[str], text: str = "", *, check: bool = True) -> str:
    """Run a command and return its output."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise TradewindError(
            f"testbed: `{' '.join(command[:5])}` failed: {done.stderr.strip() or done.returncode}"
        )
    return done.stdout

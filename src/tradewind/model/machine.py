"""Machines with GPUs, as clouds sell them, and the time of a round of training on a number of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tradewind.model.errors import ScenarioError
from tradewind.model.units import LARGEST, US_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a node rents out: machines of one kind. A worker of a job with `gpus` is one such machine.

    gpu          name of the GPU type
    gpus         GPUs of a machine
    bus_bps      bandwidth between the GPUs of a machine
    network_bps  bandwidth between machines
    """

    gpu: str
    gpus: int
    bus_bps: int
    network_bps: int

    def __post_init__(self) -> None:
        if not self.gpu:
            raise ScenarioError("machine.gpu is empty; name the GPU type")
        for name in ("gpus", "bus_bps", "network_bps"):
            if not 0 < getattr(self, name) <= LARGEST:
                raise ScenarioError(f"machine.{name} is {getattr(self, name)}; it must be positive")

    def counts(self, machines: int, allowed: Iterable[int]) -> list[int]:
        """The numbers of GPUs among `allowed` that need exactly so many machines."""
        return [n for n in allowed if -(-n // self.gpus) == machines]


def allreduce_us(machine: Machine, machines: int, gpus: int, model_bytes: int) -> int:
    """Microseconds to sum the gradients of n GPUs on m machines.

    One machine: 2 (n-1)/n 8D / bus; several: 2 (m-1)/m 8D / network + 2 8D / bus.
    """
    bits = 16 * model_bytes * US_PER_S
    if machines == 1:
        return -(-bits * (gpus - 1) // (gpus * machine.bus_bps))
    return -(-bits * (machines - 1) // (machines * machine.network_bps)) - (-bits // machine.bus_bps)

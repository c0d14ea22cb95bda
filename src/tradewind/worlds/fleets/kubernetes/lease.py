"""A leader lock: of several loops of the same run, one at a time changes what the cluster runs."""

from __future__ import annotations

import contextlib
import secrets
import socket
import time
from datetime import UTC, datetime

from lightkube import ApiError, Client
from lightkube.models.coordination_v1 import LeaseSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.coordination_v1 import Lease

from tradewind.worlds.fleets.engine import EngineUnreachable
from tradewind.worlds.fleets.kubernetes.pods import ME, OWNER

DURATION_S = 15
RENEW_S = 3.0
CONFLICT, NOT_FOUND = 409, 404


class LeaderLock:
    """A Lease by name. Clocks of machines are not compared: it is over when it did not change for its duration."""

    def __init__(self, client: Client, name: str, namespace: str) -> None:
        self._client, self._name, self._namespace = client, name, namespace
        self._me = f"{socket.gethostname()}-{secrets.token_hex(4)}"
        self._held: Lease | None = None
        self._renewed_s = -float(DURATION_S)
        self._seen, self._since_s = "", 0.0

    def hold(self) -> None:
        """Take or renew it; raises EngineUnreachable while another loop has it."""
        if self._held is not None and time.monotonic() - self._renewed_s < RENEW_S:
            return
        try:
            self._held = self._put(self._held or self._free())
        except ApiError as error:
            self._held = None
            if error.status.code not in (CONFLICT, NOT_FOUND):
                raise
            raise EngineUnreachable(f"another loop of this run took lease {self._name}") from None
        self._renewed_s = time.monotonic()

    def release(self) -> None:
        """Let the next loop have it at once."""
        if self._held is not None and time.monotonic() - self._renewed_s < DURATION_S:
            self._held = None
            with contextlib.suppress(ApiError):
                self._client.delete(Lease, self._name, namespace=self._namespace)

    def _free(self) -> Lease | None:
        """The lease, which nobody holds any more; None: there is none."""
        try:
            found = self._client.get(Lease, self._name, namespace=self._namespace)
        except ApiError as error:
            if error.status.code == NOT_FOUND:
                return None
            raise
        assert found.metadata is not None
        holder = found.spec.holderIdentity if found.spec is not None else None
        if holder and holder != self._me:
            version = found.metadata.resourceVersion or ""
            if version != self._seen:
                self._seen, self._since_s = version, time.monotonic()
            if time.monotonic() - self._since_s < DURATION_S:
                raise EngineUnreachable(f"another loop of this run, {holder}, has lease {self._name}")
        return found

    def _put(self, lease: Lease | None) -> Lease:
        now = datetime.now(UTC)
        spec = LeaseSpec(holderIdentity=self._me, leaseDurationSeconds=DURATION_S, renewTime=now)
        if lease is None:
            labels = {OWNER: ME}
            made = Lease(metadata=ObjectMeta(name=self._name, labels=labels), spec=spec)
            return self._client.create(made, namespace=self._namespace)
        lease.spec = spec
        return self._client.replace(lease)

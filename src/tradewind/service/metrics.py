"""Metrics for Prometheus: requests, jobs by status, the engine."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tradewind.service.service import Service


class Metrics:
    """The metrics of one service."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "tradewind_requests", "Requests", ["method", "route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "tradewind_request_seconds", "Time to answer", ["route"], registry=self.registry
        )
        self._jobs = Gauge("tradewind_jobs", "Jobs by status", ["status"], registry=self.registry)
        self._ready = Gauge("tradewind_engine_ready", "Whether the engine is ready", registry=self.registry)
        self._starts = Gauge(
            "tradewind_engine_starts", "Times the engine was started", registry=self.registry
        )
        self._record = Gauge("tradewind_records", "Records in the store", registry=self.registry)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests.labels(method, route, status).inc()
        self.seconds.labels(route).observe(seconds)

    def text(self, service: Service) -> bytes:
        """The text that Prometheus reads."""
        for status, count in service.board.counts("board_jobs", "status").items():
            self._jobs.labels(status).set(count)
        self._ready.set(service.engine.ready)
        self._starts.set(service.engine.starts)
        self._record.set(service.engine.record)
        return generate_latest(self.registry)

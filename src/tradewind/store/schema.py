"""The tables of a store, and how a store of an earlier version is brought to this one."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sql

from tradewind.model.errors import StoreError

VERSIONS = ("0001", "0002", "0003")
"""Versions of the schema, in order; each is a file in migrations/versions."""

tables = sql.MetaData()
head = sql.Table(
    "head",
    tables,
    sql.Column("id", sql.Integer, primary_key=True),
    sql.Column("number", sql.BigInteger, nullable=False),
    sql.Column("hash", sql.String(64), nullable=False),
)
"""One row: the number of records and the last checksum."""
records = sql.Table(
    "records",
    tables,
    sql.Column("number", sql.BigInteger().with_variant(sql.Integer, "sqlite"), primary_key=True),
    sql.Column("kind", sql.Text, nullable=False),
    sql.Column("at_us", sql.BigInteger, nullable=False),
    sql.Column("body", sql.Text, nullable=False),
    sql.Column("hash", sql.String(64), nullable=False),
)
snapshots = sql.Table(
    "snapshots",
    tables,
    sql.Column("record", sql.BigInteger().with_variant(sql.Integer, "sqlite"), primary_key=True),
    sql.Column("state", sql.LargeBinary, nullable=False),
)
"""The state of a session after a record; that record holds its checksum."""
jobs = sql.Table(
    "jobs",
    tables,
    sql.Column("job", sql.BigInteger().with_variant(sql.Integer, "sqlite"), primary_key=True),
    sql.Column("record", sql.BigInteger, nullable=False, index=True),
    sql.Column("id", sql.Text, nullable=False),
    sql.Column("tenant", sql.Text, nullable=False),
    sql.Column("arrived_us", sql.BigInteger, nullable=False),
    sql.Column("ended_us", sql.BigInteger, nullable=False),
    sql.Column("how", sql.Text, nullable=False),
    sql.Column("body", sql.Text, nullable=False),
)
"""Jobs that are over; the record with which a job ended holds the checksum of its row."""
BIG = sql.BigInteger().with_variant(sql.Integer, "sqlite")
requests = sql.Table(
    "requests",
    tables,
    sql.Column("number", BIG, primary_key=True),
    sql.Column("kind", sql.Text, nullable=False),
    sql.Column("job", sql.Text, nullable=False),
    sql.Column("tenant", sql.Text, nullable=False),
    sql.Column("actor", sql.Text, nullable=False),
    sql.Column("at_s", sql.Float, nullable=False),
    sql.Column("body", sql.Text, nullable=False),
    sql.Column("sealed", sql.LargeBinary),
)
"""What people asked a service for, in order; the engine takes them from here. sealed: what nobody else may read."""
replies = sql.Table(
    "replies",
    tables,
    sql.Column("tenant", sql.Text, primary_key=True),
    sql.Column("key", sql.Text, primary_key=True),
    sql.Column("request", sql.String(64), nullable=False),
    sql.Column("body", sql.Text, nullable=False),
)
"""Answers by idempotency key; request: the checksum of what was asked."""
board_jobs = sql.Table(
    "board_jobs",
    tables,
    sql.Column("number", BIG, primary_key=True),
    sql.Column("id", sql.Text, nullable=False, unique=True),
    sql.Column("job", sql.BigInteger, index=True),
    sql.Column("tenant", sql.Text, nullable=False),
    sql.Column("status", sql.Text, nullable=False),
    sql.Column("is_over", sql.Boolean, nullable=False),
    sql.Column("submitted_s", sql.Float, nullable=False),
    sql.Column("started_s", sql.Float),
    sql.Column("ended_s", sql.Float),
    sql.Column("price_usd", sql.Float),
    sql.Column("reason", sql.Text, nullable=False),
    sql.Column("places", sql.Text, nullable=False),
    sql.Column("body", sql.Text, nullable=False),
    sql.Index("ix_board_jobs_tenant", "tenant", "number"),
    sql.Index("ix_board_jobs_status", "status", "number"),
    sql.Index("ix_board_jobs_over", "is_over", "number"),
)
"""The jobs of a service as people see them; number: of the request; job: index in the run, once it arrived."""
board_events = sql.Table(
    "board_events",
    tables,
    sql.Column("number", BIG, primary_key=True),
    sql.Column("id", sql.Text, nullable=False),
    sql.Column("tenant", sql.Text, nullable=False),
    sql.Column("at_s", sql.Float, nullable=False),
    sql.Column("kind", sql.Text, nullable=False),
    sql.Column("body", sql.Text, nullable=False),
    sql.Index("ix_board_events_id", "id", "number"),
    sql.Index("ix_board_events_tenant", "tenant", "number"),
)
"""What happened to the jobs of a service. id: of the job; empty where it concerns everybody."""
board_quotes = sql.Table(
    "board_quotes",
    tables,
    sql.Column("id", sql.Text, primary_key=True),
    sql.Column("job", sql.Text, nullable=False, index=True),
    sql.Column("tenant", sql.Text, nullable=False),
    sql.Column("status", sql.Text, nullable=False),
    sql.Column("made_s", sql.Float, nullable=False),
    sql.Column("expires_s", sql.Float, nullable=False),
    sql.Column("body", sql.Text, nullable=False),
    sql.Index("ix_board_quotes_tenant", "tenant", "made_s"),
)
"""Quotes of a service. status: open, accepted, declined, expired, withdrawn or refused."""
board_sites = sql.Table(
    "board_sites",
    tables,
    sql.Column("node", sql.Text, primary_key=True),
    sql.Column("resource", sql.Text, primary_key=True),
    sql.Column("capacity_milli", sql.BigInteger, nullable=False),
    sql.Column("used_milli", sql.BigInteger, nullable=False),
    sql.Column("price_factor", sql.Float, nullable=False),
    sql.Column("is_down", sql.Boolean, nullable=False),
)
"""Sites of a service: thousandths of a unit, and the factor on the tariff."""
tokens = sql.Table(
    "tokens",
    tables,
    sql.Column("id", sql.Text, primary_key=True),
    sql.Column("hash", sql.String(64), nullable=False, unique=True),
    sql.Column("role", sql.Text, nullable=False),
    sql.Column("tenant", sql.Text, nullable=False),
    sql.Column("scopes", sql.Text, nullable=False),
    sql.Column("name", sql.Text, nullable=False),
    sql.Column("made_s", sql.Float, nullable=False),
    sql.Column("expires_s", sql.Float),
    sql.Column("used_s", sql.Float),
    sql.Column("revoked_s", sql.Float),
)
"""Who may use a service; only the SHA-256 of a token is kept."""
actions = sql.Table(
    "actions",
    tables,
    sql.Column("number", BIG, primary_key=True),
    sql.Column("at_s", sql.Float, nullable=False),
    sql.Column("actor", sql.Text, nullable=False),
    sql.Column("tenant", sql.Text, nullable=False),
    sql.Column("action", sql.Text, nullable=False),
    sql.Column("subject", sql.Text, nullable=False),
    sql.Column("before", sql.Text, nullable=False),
    sql.Column("after", sql.Text, nullable=False),
)
"""The audit log of a service: who changed what."""
_version = sql.table("alembic_version", sql.column("version_num"))


def version(connection: sql.Connection) -> str:
    """The version of the schema; "" where there is no store."""
    names = sql.inspect(connection).get_table_names()
    if "alembic_version" not in names or "head" not in names:
        return ""
    return str(connection.execute(sql.select(_version.c.version_num)).scalar() or "")


def check(found: str, where: str) -> None:
    """Refuse a store that a later version of the program wrote."""
    if found and found not in VERSIONS:
        raise StoreError(
            f"it was written by a newer version of tradewind (schema {found}; this one reads up to {VERSIONS[-1]}). "
            "Update tradewind.",
            where=where,
        )


def upgrade(connection: sql.Connection, to: str = VERSIONS[-1]) -> None:
    """Create the tables, or bring them to a later version, in the connection's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, to)

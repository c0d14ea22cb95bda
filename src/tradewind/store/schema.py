"""The tables of a store, and how a store of an earlier version is brought to this one."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sql

from tradewind.model.errors import StoreError

VERSIONS = ("0001", "0002")
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

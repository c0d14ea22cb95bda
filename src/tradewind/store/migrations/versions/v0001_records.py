"""The first version: records in a chain, the head of the chain, snapshots."""

import sqlalchemy as sql
from alembic import op

revision = "0001"
down_revision = None
BIG = sql.BigInteger().with_variant(sql.Integer, "sqlite")


def upgrade() -> None:
    """Create the tables, and the head of an empty chain."""
    head = op.create_table(
        "head",
        sql.Column("id", sql.Integer, primary_key=True),
        sql.Column("number", sql.BigInteger, nullable=False),
        sql.Column("hash", sql.String(64), nullable=False),
    )
    op.create_table(
        "records",
        sql.Column("number", BIG, primary_key=True),
        sql.Column("kind", sql.Text, nullable=False),
        sql.Column("at_us", sql.BigInteger, nullable=False),
        sql.Column("body", sql.Text, nullable=False),
        sql.Column("hash", sql.String(64), nullable=False),
    )
    op.create_table(
        "snapshots",
        sql.Column("record", BIG, primary_key=True),
        sql.Column("state", sql.LargeBinary, nullable=False),
    )
    op.bulk_insert(head, [{"id": 1, "number": 0, "hash": "0" * 64}])

"""Rows of jobs that are over."""

import sqlalchemy as sql
from alembic import op

revision = "0002"
down_revision = "0001"
BIG = sql.BigInteger().with_variant(sql.Integer, "sqlite")


def upgrade() -> None:
    """Add the table; jobs that ended before have no row."""
    op.create_table(
        "jobs",
        sql.Column("job", BIG, primary_key=True),
        sql.Column("record", sql.BigInteger, nullable=False),
        sql.Column("id", sql.Text, nullable=False),
        sql.Column("tenant", sql.Text, nullable=False),
        sql.Column("arrived_us", sql.BigInteger, nullable=False),
        sql.Column("ended_us", sql.BigInteger, nullable=False),
        sql.Column("how", sql.Text, nullable=False),
        sql.Column("body", sql.Text, nullable=False),
    )
    op.create_index("ix_jobs_record", "jobs", ["record"])

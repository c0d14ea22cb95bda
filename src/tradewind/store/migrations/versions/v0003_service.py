"""Tables of a service: requests, replies, what people see, tokens, actions."""

import sqlalchemy as sql
from alembic import op

revision = "0003"
down_revision = "0002"
BIG = sql.BigInteger().with_variant(sql.Integer, "sqlite")


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "requests",
        sql.Column("number", BIG, primary_key=True),
        sql.Column("kind", sql.Text, nullable=False),
        sql.Column("job", sql.Text, nullable=False),
        sql.Column("tenant", sql.Text, nullable=False),
        sql.Column("actor", sql.Text, nullable=False),
        sql.Column("at_s", sql.Float, nullable=False),
        sql.Column("body", sql.Text, nullable=False),
        sql.Column("sealed", sql.LargeBinary),
    )
    op.create_table(
        "replies",
        sql.Column("tenant", sql.Text, primary_key=True),
        sql.Column("key", sql.Text, primary_key=True),
        sql.Column("request", sql.String(64), nullable=False),
        sql.Column("body", sql.Text, nullable=False),
    )
    op.create_table(
        "board_jobs",
        sql.Column("number", BIG, primary_key=True),
        sql.Column("id", sql.Text, nullable=False, unique=True),
        sql.Column("job", sql.BigInteger),
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
    )
    op.create_table(
        "board_events",
        sql.Column("number", BIG, primary_key=True),
        sql.Column("id", sql.Text, nullable=False),
        sql.Column("tenant", sql.Text, nullable=False),
        sql.Column("at_s", sql.Float, nullable=False),
        sql.Column("kind", sql.Text, nullable=False),
        sql.Column("body", sql.Text, nullable=False),
    )
    op.create_table(
        "board_quotes",
        sql.Column("id", sql.Text, primary_key=True),
        sql.Column("job", sql.Text, nullable=False),
        sql.Column("tenant", sql.Text, nullable=False),
        sql.Column("status", sql.Text, nullable=False),
        sql.Column("made_s", sql.Float, nullable=False),
        sql.Column("expires_s", sql.Float, nullable=False),
        sql.Column("body", sql.Text, nullable=False),
    )
    op.create_table(
        "board_sites",
        sql.Column("node", sql.Text, primary_key=True),
        sql.Column("resource", sql.Text, primary_key=True),
        sql.Column("capacity_milli", sql.BigInteger, nullable=False),
        sql.Column("used_milli", sql.BigInteger, nullable=False),
        sql.Column("price_factor", sql.Float, nullable=False),
        sql.Column("is_down", sql.Boolean, nullable=False),
    )
    op.create_table(
        "tokens",
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
    op.create_table(
        "actions",
        sql.Column("number", BIG, primary_key=True),
        sql.Column("at_s", sql.Float, nullable=False),
        sql.Column("actor", sql.Text, nullable=False),
        sql.Column("tenant", sql.Text, nullable=False),
        sql.Column("action", sql.Text, nullable=False),
        sql.Column("subject", sql.Text, nullable=False),
        sql.Column("before", sql.Text, nullable=False),
        sql.Column("after", sql.Text, nullable=False),
    )
    op.create_index("ix_board_jobs_job", "board_jobs", ["job"])
    op.create_index("ix_board_jobs_tenant", "board_jobs", ["tenant", "number"])
    op.create_index("ix_board_jobs_status", "board_jobs", ["status", "number"])
    op.create_index("ix_board_jobs_over", "board_jobs", ["is_over", "number"])
    op.create_index("ix_board_events_id", "board_events", ["id", "number"])
    op.create_index("ix_board_events_tenant", "board_events", ["tenant", "number"])
    op.create_index("ix_board_quotes_job", "board_quotes", ["job"])
    op.create_index("ix_board_quotes_tenant", "board_quotes", ["tenant", "made_s"])

"""The data model: frozen types and their validation."""

"""Settings of all tests."""

import pytest
from hypothesis import settings

settings.register_profile("tests", deadline=None)  # a busy machine is not a wrong result
settings.load_profile("tests")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on clusters come first: they mostly wait, and the others use the time."""
    items.sort(key=lambda item: item.path.parent.name != "fleets")

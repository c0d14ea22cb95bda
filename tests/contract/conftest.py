"""The order of the contract tests."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one policy follow each other, so that one worker plays its scenarios, once."""
    places = [
        i
        for i, item in enumerate(items)
        if item.path.name == "test_policies.py" and item.path.parent.name == "contract"
    ]
    mine = sorted((items[i] for i in places), key=_policy)
    for place, item in zip(places, mine, strict=True):
        items[place] = item


def _policy(item: pytest.Item) -> str:
    assert isinstance(item, pytest.Function)
    return str(item.callspec.params["name"]) if hasattr(item, "callspec") else ""

"""Settings of all tests."""

from hypothesis import settings

settings.register_profile("tests", deadline=None)  # a busy machine is not a wrong result
settings.load_profile("tests")

"""What is published together has one version."""

import relayrouter

import gateway


def test_the_sdk_has_the_version_of_the_gateway() -> None:
    """A user who reads one changelog entry looks for one number."""
    assert relayrouter.__version__ == gateway.__version__


def test_everything_public_is_listed_and_there() -> None:
    """`from relayrouter import *` gives what the README names."""
    assert all(hasattr(relayrouter, name) for name in relayrouter.__all__)
    assert sorted(relayrouter.__all__) == relayrouter.__all__

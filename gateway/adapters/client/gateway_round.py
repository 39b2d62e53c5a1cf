"""In what order one reader, publisher or consumer tries its gateways."""

import random
from collections.abc import Sequence


class GatewayRound:
    """The first given, then the others in an order that each instance draws, and round again.

    Those who lose the same gateway in one moment do not all come to the same other one.
    """

    def __init__(self, urls: Sequence[str], rng: random.Random) -> None:
        """`urls`: at least one."""
        first, *others = urls
        rng.shuffle(others)
        self._urls = (first, *others)
        self._turn = 0

    @property
    def url(self) -> str:
        return self._urls[self._turn]

    @property
    def next_url(self) -> str:
        """After this one; the same where there is only one."""
        return self._urls[(self._turn + 1) % len(self._urls)]

    def move(self) -> None:
        self._turn = (self._turn + 1) % len(self._urls)


__all__ = ["GatewayRound"]

"""Which part of a tenant's rate one gateway grants, from what all gateways told of their demand (max-min fair).

With the same figures everywhere the shares add up to the rate: nobody has to ask anybody while messages come in.
"""

from collections.abc import Iterable
from typing import Final

FLOOR: Final = 0.05
"""This part of the rate is split evenly whatever the demand, so that a gateway where traffic begins grants something
before the others have heard of it. A tenant with one gateway of many in use gets at least the rest, 95 %."""


def share_of(rate: float, own: float, others: Iterable[float], silent: int = 0) -> float:
    """Tokens a second. `own` and `others`: demand that was told; `silent`: gateways that told none.

    Small demands are met whole, what they leave is split among the large ones; what nobody asks for is split evenly.
    """
    demands = sorted(others)
    gateways = 1 + len(demands) + silent
    floor = rate * FLOOR / gateways
    rest = rate - floor * gateways
    asked = own + sum(demands)
    if asked <= rest:
        return floor + own + (rest - asked) / gateways
    return floor + min(own, _level(rest, own, demands))


def _level(rest: float, own: float, others: list[float]) -> float:
    """Where everybody gets what they ask for, but never more than this, nothing of `rest` is left."""
    demands = sorted([own, *others])
    for index, demand in enumerate(demands):
        even = rest / (len(demands) - index)
        if demand >= even:
            return even
        rest -= demand
    return demands[-1]


__all__ = ["FLOOR", "share_of"]

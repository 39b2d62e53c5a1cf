"""The dashboards in the order in which one looks: is it well, does text arrive, who may connect, who writes, Redis.

A metric of gateway/adapters/prometheus/table.py that is on none of them is in NOT_SHOWN with the reason (tested).
"""

from tools.dashboards.board_connects import CONNECTS
from tools.dashboards.board_delivery import DELIVERY
from tools.dashboards.board_overview import OVERVIEW
from tools.dashboards.board_producers import PRODUCERS
from tools.dashboards.board_redis import REDIS
from tools.dashboards.panel import Board

BOARDS: tuple[Board, ...] = (OVERVIEW, DELIVERY, CONNECTS, PRODUCERS, REDIS)

NOT_SHOWN: dict[str, str] = {}
"""Metric -> why no panel shows it."""

__all__ = ["BOARDS", "NOT_SHOWN"]

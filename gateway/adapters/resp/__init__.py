"""A lean, pipelined Redis client on hiredis, and the gateway's own subscription.

Owns sockets to the server and what is on its way there. Knows nothing of keys or scripts' meaning.
Used by adapters.redis_store and, for its lifetime, by gateway.app.
"""

from gateway.adapters.resp.address import Address
from gateway.adapters.resp.client import Client
from gateway.adapters.resp.cluster_bus import ClusterSubscription
from gateway.adapters.resp.cluster_client import ClusterClient
from gateway.adapters.resp.cluster_map import ClusterMap
from gateway.adapters.resp.endpoint import Endpoint, Router
from gateway.adapters.resp.media_bus import RedisMediaBus
from gateway.adapters.resp.replies import Reply, ReplyError
from gateway.adapters.resp.scripts import Script
from gateway.adapters.resp.sentinel_watch import SentinelWatch
from gateway.adapters.resp.slots import SLOTS, slot_of
from gateway.adapters.resp.subscription import Subscription, channel_of

__all__ = [
    "SLOTS",
    "Address",
    "Client",
    "ClusterClient",
    "ClusterMap",
    "ClusterSubscription",
    "Endpoint",
    "RedisMediaBus",
    "Reply",
    "ReplyError",
    "Router",
    "Script",
    "SentinelWatch",
    "Subscription",
    "channel_of",
    "slot_of",
]

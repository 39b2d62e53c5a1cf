"""The log, its routes and small records in Redis: Lua scripts and what calls them (LogStore and Directory)."""

from gateway.adapters.redis_store.directory import RedisDirectory
from gateway.adapters.redis_store.run_store import RedisRunStore
from gateway.adapters.redis_store.scripts import StoreScripts
from gateway.adapters.redis_store.store import RedisStore

__all__ = ["RedisDirectory", "RedisRunStore", "RedisStore", "StoreScripts"]

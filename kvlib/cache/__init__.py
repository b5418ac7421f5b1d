"""Caches. All keep the contract of `contract.Cache`, so the decode step does not change with the cache."""

from kvlib.cache.contiguous import ContiguousCache, GrowingCache
from kvlib.cache.contract import Cache, CacheError

__all__ = ["Cache", "CacheError", "ContiguousCache", "GrowingCache"]

"""Misses, waiting and bytes on one real engine: kept by Lorekeeper, and driven by hand with a plain LRU."""

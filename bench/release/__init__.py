"""Releases on a real vLLM with load running: one that is promoted, and some whose candidates do harm."""

"""Requests that wait: for a slot on a node, within one bound for all that wait for anything."""

"""What the gateway knows and decides: the routing snapshot and the pure decisions taken on it."""

"""Which engine serves which kind of adapter, as data, and what an adapter takes of its memory."""

"""HTTP as the gateway speaks it: ASGI types, reading requests, writing answers and errors."""

"""How fast a push is beside a bare upload of the same bytes to the same S3, and what it costs the web process."""

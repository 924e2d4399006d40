"""The request path: an OpenAI-compatible endpoint that turns an alias into one exact version on one warm node."""

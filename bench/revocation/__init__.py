"""How soon a gateway stops answering with a revoked version: real Postgres, real gateway, real notifications."""

"""Settings of tenants and of the platform."""

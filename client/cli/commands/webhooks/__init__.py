"""Commands about webhooks and what was sent."""

"""Commands about what gateways serve."""

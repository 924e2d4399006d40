"""What Lorekeeper adds to a cold load: real gateway, web, Postgres and Valkey, and a node that loads at once."""

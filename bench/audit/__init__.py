"""What a record of the audit log costs, and whether many writers leave one chain: a real, durable Postgres."""

"""What is read from request records, and how long they are kept."""

"""The REST API by subject: each class holds the calls of one part of it."""

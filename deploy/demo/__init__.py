"""The demo: one adapter from a training run to tokens on a real engine, and back by a rollback."""

"""Shadows: a sampled share of an alias's requests is asked again of a candidate, compared, and thrown away."""

"""What validation says of every kind of adapter, against what a real vLLM does with it; and what validation costs.

    python -m bench.validation [--only NAME …] [--skip-engine]

The last line is `bench-validation: ok …` or `bench-validation: short …`, and the exit status says the same.
"""

"""Real inference engines as local processes: their virtual environment, their command line, their start and stop."""

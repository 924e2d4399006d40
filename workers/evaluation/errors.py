class NotPossibleError(Exception):
    """The base can't be run here and now; the message is the end of a sentence in the report."""

"""The steps of a request between its parsing and its answer: what answers it, the call, what is tried again."""

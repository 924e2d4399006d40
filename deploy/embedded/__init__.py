"""The embedded stack: every process of a deployment on one machine, from PyPI packages, without Docker or root.

`python -m deploy.embedded up` runs it; `deploy.embedded.stack.Stack` is the same for tests and the demo.
"""

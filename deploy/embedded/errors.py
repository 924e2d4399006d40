"""Errors of the embedded stack.

EmbeddedError
├── AlreadyRunning      another process holds the lock of this data folder
├── ServerFailed        a process ended, or did not answer, before it was ready
├── ServerStopped       somebody asked for a stop while it was starting
├── StepFailed          a one-shot step (migrate, bootstrap, …) failed
├── PortTaken           something else listens on the port of a process to be started
└── NotProvisioned      the machine lacks what the stack needs (a binary, an account)
"""


class EmbeddedError(Exception):
    """Base of everything that this package raises on purpose."""


class AlreadyRunning(EmbeddedError):
    pass


class ServerFailed(EmbeddedError):
    pass


class ServerStopped(EmbeddedError):
    pass


class StepFailed(EmbeddedError):
    pass


class PortTaken(EmbeddedError):
    pass


class NotProvisioned(EmbeddedError):
    pass

"""Why the agent could not do what it was told, one tree.

NodeError
├── SettingError            a variable of the environment is missing or wrong
├── CommandError            the command is not what the protocol says                        refused
├── NotTrustedError         the grant, the signature or the files on disk don't hold         refused
│   └── GrantNotNowError    the grant came too late or too early: a new command brings another  transient
├── SupersededError         a newer command for the same name came: nothing is reported      transient
├── QueueFullError          too many others wait for the engine already                      capacity
├── DiskFullError           no room under the budget or on the disk                          capacity
├── DiskFaultError          the disk fails in another way                                    transient
├── UnforeseenError         a fault of the agent itself                                      transient
├── FetchError              the store can't be reached, or not any more with this URL        transient
│   └── WrongBytesError     the store gives other bytes than the command says                permanent
├── EngineError             the engine's answer, classed by it
│   ├── EngineRefusedError  it can't serve this adapter, and has taken nothing in            refused
│   ├── EngineFailedError   it failed at it: remains may be in one of its slots              permanent
│   ├── EngineFullError     it has no place left                                             capacity
│   ├── EngineAwayError     it doesn't answer, or it is not well                             transient
│   │   ├── SickEngineError it answers nonsense whatever is asked: only a restart helps      transient
│   │   └── EngineBusyError it has not ended yet what it was doing with the adapter          transient
│   └── RestartError        it could not be restarted: no hook is set, or the hook failed    transient
├── ProbeError              it is loaded, but its answers can't be trusted                   permanent
│   ├── OtherAnswersError   it reads otherwise than where it was validated                   permanent
│   ├── OtherBaseError      the engine's base itself does: not the adapter's fault, nor a slot's  refused
│   ├── NoEffectError       it reads like the base: the adapter is at fault, not the engine  refused
│   └── PoisonError         log-probabilities are no numbers: the engine must be restarted   permanent
└── WebError                web doesn't take a report
    ├── WebAwayError        not now                                                          transient
    │   └── WebFailedError  it failed at this one                                            transient
    └── WebRefusedError     never this one                                                   permanent
"""

from typing import ClassVar, Literal

from registry.errors import LorekeeperError

ErrorClass = Literal["permanent", "capacity", "transient", "refused"]


class NodeError(LorekeeperError):
    """`error_class` says what control may do: retry the transient, make room for capacity, give up the rest."""

    code: ClassVar[str] = "node_error"
    error_class: ClassVar[ErrorClass] = "permanent"


class SettingError(NodeError):
    code = "bad_setting"


class CommandError(NodeError):
    code = "bad_command"
    error_class = "refused"


class NotTrustedError(NodeError):
    code = "not_trusted"
    error_class: ClassVar[ErrorClass] = "refused"


class GrantNotNowError(NotTrustedError):
    code = "grant_not_now"
    error_class = "transient"
    retryable = True


class SupersededError(NodeError):
    code = "superseded"
    error_class = "transient"


class QueueFullError(NodeError):
    code = "queue_full"
    error_class = "capacity"


class DiskFullError(NodeError):
    code = "disk_full"
    error_class = "capacity"


class DiskFaultError(NodeError):
    code = "node_io"
    error_class = "transient"
    retryable = True


class UnforeseenError(NodeError):
    code = "node_fault"
    error_class = "transient"
    retryable = True


class FetchError(NodeError):
    code = "fetch_failed"
    error_class: ClassVar[ErrorClass] = "transient"
    retryable = True


class WrongBytesError(FetchError):
    code = "wrong_bytes"
    error_class = "permanent"
    retryable = False


class EngineError(NodeError):
    code = "engine_error"


class EngineRefusedError(EngineError):
    code = "engine_refused"
    error_class = "refused"


class EngineFailedError(EngineError):
    code = "engine_failed"


class EngineFullError(EngineError):
    code = "engine_full"
    error_class = "capacity"


class EngineAwayError(EngineError):
    code = "engine_away"
    error_class = "transient"
    retryable = True


class SickEngineError(EngineAwayError):
    code = "engine_sick"


class EngineBusyError(EngineAwayError):
    code = "engine_busy"


class RestartError(EngineError):
    code = "restart_failed"
    error_class = "transient"
    retryable = True


class ProbeError(NodeError):
    code = "probe_failed"


class OtherAnswersError(ProbeError):
    code = "other_answers"


class OtherBaseError(ProbeError):
    code = "other_base"
    error_class = "refused"


class NoEffectError(ProbeError):
    code = "no_effect"
    error_class = "refused"


class PoisonError(ProbeError):
    code = "poison"


class WebError(NodeError):
    code = "web_error"


class WebAwayError(WebError):
    code = "web_away"
    error_class = "transient"
    retryable = True


class WebFailedError(WebAwayError):
    code = "web_failed"


class WebRefusedError(WebError):
    code = "web_refused"

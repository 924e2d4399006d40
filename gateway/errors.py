"""Every way in which the gateway refuses or fails a request.

GatewayError
├── BadRequest                  the request can't be understood
│   ├── BadJson                 not a JSON object, too deep, trailing data
│   └── MissingModel            no `model`, or not a string
├── BodyTooLarge
├── BodyTooSlow
├── UnsupportedMedia            not application/json, or compressed
├── NotAuthenticated            no token, or one that is unknown or malformed
│   └── TokenExpired
├── VersionRevoked              the alias points to a version that must not answer any more
├── ModelNotFound               unknown alias, another tenant's alias, or no valid name: one answer for all
├── RouteNotFound               no such path
├── MethodNotAllowed
├── Unavailable                 try again later; carries `retry_after_s`
│   ├── NotReady                no routing snapshot yet
│   ├── VersionUnavailable      the alias points to a version that the snapshot doesn't hold
│   ├── NotWarmInTime           still loading when the wait was over
│   ├── NoCapacity, NoNode, LoadRefused, LoadFailed     what the control plane answered to the demand
│   ├── TooManyWaiting          the bound of waiting requests is reached
│   └── GatewayBusy             no upstream connection free
└── EngineFault                 the engine's doing
    ├── EngineUnreachable       no connection: the request was never sent
    ├── EngineLostVersion       the engine doesn't know the version (it was restarted)
    ├── EngineDropped           the connection broke after sending, before the first byte of the answer
    ├── EngineSilent            no byte within the time limit
    ├── EngineBroken            the answer broke off in the middle
    ├── EngineUnreadable        an answer that can't be checked
    └── VersionMismatch         the answer names another version than the one asked for

ClientGone stands outside: nobody is left to be answered.
"""

from typing import ClassVar


class GatewayError(Exception):
    """A refusal or failure with a message for the client; `param` names the field at fault, if one is."""

    code: ClassVar[str] = "internal_error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, param: str | None = None, retry_after_s: int | None = None) -> None:
        """Keep the message, the field at fault and the seconds after which another try makes sense."""
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after_s = retry_after_s


class BadRequest(GatewayError):
    """The request can't be understood."""

    code = "bad_request"


class BadJson(BadRequest):
    """The body isn't one JSON object within the limits."""

    code = "invalid_json"


class MissingModel(BadRequest):
    """The body names no model."""

    code = "missing_model"


class BodyTooLarge(GatewayError):
    """The body is over the limit."""

    code = "body_too_large"


class BodyTooSlow(GatewayError):
    """The body didn't arrive in time."""

    code = "body_too_slow"


class UnsupportedMedia(GatewayError):
    """The body isn't plain application/json."""

    code = "unsupported_media_type"


class NotAuthenticated(GatewayError):
    """No valid API key came with the request."""

    code = "invalid_api_key"


class TokenExpired(NotAuthenticated):
    """The API key was right once."""

    code = "expired_api_key"


class VersionRevoked(GatewayError):
    """The version behind the alias was revoked."""

    code = "version_revoked"


class ModelNotFound(GatewayError):
    """The tenant has no such alias."""

    code = "model_not_found"


class RouteNotFound(GatewayError):
    """The gateway has no such path."""

    code = "not_found"


class MethodNotAllowed(GatewayError):
    """The path exists, with another method."""

    code = "method_not_allowed"


class Unavailable(GatewayError):
    """Not now; later perhaps."""

    code = "unavailable"
    retryable = True


class NotReady(Unavailable):
    """The gateway has not read its first routing snapshot."""

    code = "not_ready"


class VersionUnavailable(Unavailable):
    """The alias's version isn't among those that may be served."""

    code = "version_unavailable"


class NotWarmInTime(Unavailable):
    """The version was still being loaded when the wait was over."""

    code = "version_loading"


class NoCapacity(Unavailable):
    """Every fitting node is full."""

    code = "no_capacity"


class NoNode(Unavailable):
    """No node serves the version's base model."""

    code = "no_node"


class LoadRefused(Unavailable):
    """The control plane refuses to load the version."""

    code = "load_refused"


class LoadFailed(Unavailable):
    """The last load of the version failed."""

    code = "load_failed"


class TooManyWaiting(Unavailable):
    """Too many requests wait for loads already."""

    code = "too_many_waiting"


class GatewayBusy(Unavailable):
    """All upstream connections are in use."""

    code = "gateway_busy"


class EngineFault(GatewayError):
    """The engine behind the gateway failed."""

    code = "engine_error"


class EngineUnreachable(EngineFault):
    """No connection to the engine: nothing was sent, so another try is safe."""

    code = "engine_unreachable"
    retryable = True


class EngineLostVersion(EngineFault):
    """The engine doesn't know the version, though the snapshot says that it's loaded."""

    code = "engine_lost_version"
    retryable = True


class EngineDropped(EngineFault):
    """The connection broke after the request was sent and before the first byte came back."""

    code = "engine_dropped"
    retryable = True


class EngineSilent(EngineFault):
    """The engine sent nothing for too long."""

    code = "engine_timeout"


class EngineBroken(EngineFault):
    """The engine's answer broke off."""

    code = "engine_broken"


class EngineUnreadable(EngineFault):
    """The engine's answer can't be checked, so it isn't passed on."""

    code = "engine_unreadable"


class VersionMismatch(EngineFault):
    """The engine answered with another version than the one asked for."""

    code = "version_mismatch"


class ClientGone(Exception):
    """The client closed its connection."""

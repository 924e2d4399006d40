"""Every way in which the gateway refuses or fails a request.

GatewayError
├── BadRequest                  the request can't be understood
│   ├── BadJson                 not a JSON object, too deep, trailing data
│   ├── MissingModel            no `model`, or not a string
│   ├── FieldNotAllowed         a field that would choose an adapter, or reach into an engine
│   └── InvalidFeedback         a mark that can't be understood
├── BodyTooLarge
├── BodyTooSlow
├── UnsupportedMedia            not application/json, or compressed
├── NotAuthenticated            no token, or one that is unknown or malformed
│   └── TokenExpired
├── VersionRevoked              the alias points to a version that must not answer any more
├── ModelNotFound               unknown alias, another tenant's alias, or no valid name: one answer for all
├── RouteNotFound               no such path
├── EndpointNotServed           the path exists here, but the engine behind the model doesn't serve it
├── MethodNotAllowed
├── RateLimited                 the tenant has used up one of its limits; carries `retry_after_s`
│   └── TooManyConcurrent, RequestsExceeded, TokensExceeded, GpuTimeExceeded, FeedbackExceeded
├── Unavailable                 try again later; carries `retry_after_s`
│   ├── NotReady                no routing snapshot yet
│   ├── VersionUnavailable      the alias points to a version that the snapshot doesn't hold
│   ├── NotWarmInTime           still loading when the wait was over
│   ├── NoCapacity, NoNode, LoadRefused, LoadFailed, LoadShed     what the control plane answered to the demand
│   │   └── DiskFull, EngineFull (no capacity), OverQuota (shed)      and what it says of why
│   ├── NotLoaded               loaded nowhere, and the tenant's class of service doesn't wait
│   ├── NoSlotInTime            loaded, but other versions kept all slots busy
│   ├── NodesDown               every engine that could answer is down
│   ├── TooManyWaiting          the bound of waiting requests is reached
│   ├── FeedbackNotKept         no more marks can be held while the database is away
│   └── GatewayBusy             no upstream connection free
└── EngineFault                 the engine's doing
    ├── EngineUnreachable       no connection: the request was never sent
    ├── EngineLostVersion       the engine doesn't know the version (it was restarted)
    ├── EngineDropped           the connection broke after sending, before the first byte of the answer
    ├── EngineBusy              the engine takes no more requests now
    ├── EngineFailed            the engine answered with an error of its own
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


class FieldNotAllowed(BadRequest):
    """The body has a field that no client may send to an engine."""

    code = "field_not_allowed"


class InvalidFeedback(BadRequest):
    """The body isn't a mark for a request."""

    code = "invalid_feedback"


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


class EndpointNotServed(GatewayError):
    """The engine behind the model has no such path: it answers chats, say, and makes no embeddings."""

    code = "endpoint_not_served"


class MethodNotAllowed(GatewayError):
    """The path exists, with another method."""

    code = "method_not_allowed"


class RateLimited(GatewayError):
    """One of the tenant's limits is used up for now."""

    code = "rate_limit_exceeded"
    retryable = True


class TooManyConcurrent(RateLimited):
    """As many of the tenant's requests are under way as may be."""

    code = "concurrent_requests_exceeded"


class RequestsExceeded(RateLimited):
    """The tenant's requests per minute are used up."""

    code = "request_limit_exceeded"


class TokensExceeded(RateLimited):
    """The tenant's tokens per minute are used up."""

    code = "token_limit_exceeded"


class GpuTimeExceeded(RateLimited):
    """The tenant's engine time per minute is used up."""

    code = "gpu_time_exceeded"


class FeedbackExceeded(RateLimited):
    """The tenant's marks per minute are used up."""

    code = "feedback_limit_exceeded"


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


class NotLoaded(Unavailable):
    """The version is loaded nowhere, and the tenant's class of service says not to wait for it."""

    code = "version_not_loaded"


class NoSlotInTime(Unavailable):
    """The version is loaded, but other versions in flight kept every slot busy until the wait was over."""

    code = "no_slot"


class NodesDown(Unavailable):
    """Every engine that could answer is down."""

    code = "nodes_down"


class NoCapacity(Unavailable):
    """Every fitting node is full."""

    code = "no_capacity"


class DiskFull(NoCapacity):
    """The disk of the node that would load the version has no room for its files."""

    code = "disk_full"


class EngineFull(NoCapacity):
    """The engine that would load the version takes no more of them."""

    code = "engine_full"


class NoNode(Unavailable):
    """No node serves the version's base model."""

    code = "no_node"


class LoadRefused(Unavailable):
    """The control plane refuses to load the version."""

    code = "load_refused"


class LoadFailed(Unavailable):
    """The last load of the version failed."""

    code = "load_failed"


class LoadShed(Unavailable):
    """The load queue is full, or the tenant's part of it or its quota is used up."""

    code = "load_shed"


class OverQuota(LoadShed):
    """The tenant's quota doesn't allow the version beside what may not leave."""

    code = "over_quota"


class TooManyWaiting(Unavailable):
    """Too many requests wait for loads already."""

    code = "too_many_waiting"


class FeedbackNotKept(Unavailable):
    """As many marks wait for the database as may."""

    code = "feedback_not_kept"


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


class EngineBusy(EngineFault):
    """The engine takes no more requests for now."""

    code = "engine_busy"
    retryable = True


class EngineFailed(EngineFault):
    """The engine answered with an error of its own, before the first byte of an answer."""

    code = "engine_failed"
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

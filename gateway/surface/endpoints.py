"""The paths that go to an engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path of OpenAI's API, the same on the gateway and on engines.

    `name` stands in records. `keeps_answers`: an engine would keep the answer for later requests that name it.
    `generates`: the answer is made token by token, so that two of them can be compared. `bounds` are the fields of the
    body by which engines bound its length; others they don't look at. `fixed` fields of the body are the gateway's,
    whatever the client says.
    """

    path: str
    name: str
    keeps_answers: bool = False
    generates: bool = True
    bounds: tuple[str, ...] = ()
    fixed: Mapping[str, object] = field(default_factory=dict)


CHAT = Endpoint("/v1/chat/completions", "chat", bounds=("max_completion_tokens", "max_tokens"))
COMPLETIONS = Endpoint("/v1/completions", "completions", bounds=("max_tokens",))
EMBEDDINGS = Endpoint("/v1/embeddings", "embeddings", generates=False)
RESPONSES = Endpoint(
    "/v1/responses", "responses", keeps_answers=True, bounds=("max_output_tokens",), fixed={"store": False}
)

ENDPOINTS: Mapping[str, Endpoint] = {endpoint.path: endpoint for endpoint in (CHAT, COMPLETIONS, EMBEDDINGS, RESPONSES)}

"""Lists of models in OpenAI's form, as vLLM and SGLang extend it: an adapter's card names its parent and its path."""

from collections.abc import Mapping
from typing import Any

from workers.node.engines.ports import LoadedAdapter
from workers.node.errors import EngineAwayError


def adapters_in(models: Mapping[str, Any]) -> tuple[LoadedAdapter, ...]:
    """The adapters of an answer to GET /v1/models: what has a parent; its root is the path.

    Raises:
        EngineAwayError: the answer has another form.

    """
    cards = models.get("data")
    if not isinstance(cards, list):
        raise EngineAwayError("the engine's list of models has an unknown form")
    return tuple(
        LoadedAdapter(name=str(card.get("id")), root=str(card.get("root")))
        for card in cards
        if isinstance(card, dict) and card.get("parent") is not None
    )

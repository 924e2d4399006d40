from collections.abc import Mapping
from typing import Any, ClassVar

from django.http import HttpRequest
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.views import APIView

from registry.api.rest.idempotency import answered_once
from registry.permissions import Action


class ApiView(APIView):
    """The base of every view below ``/api/v1``.

    Attributes:
        actions: the permission that each method asks for, by lower-case method; None where the operation is open to
            everybody, or to whoever has a token, on purpose.
        in_steps: the POST works in several transactions (it moves bytes, or waits for others between two short moves)
            and is safe to repeat from any of them; any other POST is one transaction with the answer kept of it.
        came_at: when the request came, before the database was asked anything for it.

    """

    actions: ClassVar[Mapping[str, Action | None]] = {}
    in_steps: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "post" in cls.__dict__:
            cls.post = answered_once(cls.__dict__["post"])  # type: ignore[attr-defined]

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  Django's own signature
        self.came_at = timezone.now()
        super().setup(request, *args, **kwargs)

    def idempotent_content(self, request: Request) -> bytes:
        """What makes a repeated POST the same request, besides its address: its body, byte for byte."""
        return request.body

"""Accounts of people: links by which they set a password for the site."""

from typing import Any

from django.conf import settings
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.authentication import actor_of
from registry.api.rest.views import ApiView
from registry.permissions import Action
from registry.services.people.accounts import make_password_link


class PasswordLinkAnswer(serializers.Serializer[Any]):
    email = serializers.CharField()
    url = serializers.CharField(help_text="Whoever has it can set the password, once.")
    expires_at = serializers.DateTimeField()


class PasswordLinkView(ApiView):
    actions = {"post": Action.MANAGE_PLATFORM}

    @extend_schema(operation_id="make_password_link", request=None, responses={201: PasswordLinkAnswer})
    def post(self, request: Request, email: str) -> Response:
        link = make_password_link(actor=actor_of(request), email=email)
        url = f"{settings.PUBLIC_URL}{reverse('password_by_link', kwargs={'key': link.key})}"
        return Response({"email": link.person.email, "url": url, "expires_at": link.expires_at}, status=201)

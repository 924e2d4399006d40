"""Where allauth and the registry meet: who may sign in, what the audit log is told, what groups give."""

import logging
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from requests import RequestException

from config.sign_in.roles import granted_to, managed_by, read_mapping
from config.sign_in.sealing import opened, sealed
from config.web.refusals import error_page, provider_away
from registry.errors import LorekeeperError, PermissionDenied
from registry.models import Person
from registry.services.people.single_sign_on import Identity, arrive, note_link
from registry.web.denials import tell_failed_sign_in

logger = logging.getLogger(__name__)


class AccountAdapter(DefaultAccountAdapter):
    """Sign-in with a password. Accounts come from admins and from single sign-on; nobody makes their own."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        tell_failed_sign_in(request, email=str(credentials.get("email", "")))

    def reauthenticate(self, user: AbstractBaseUser, password: str) -> bool:
        """With the address that the person has here; allauth keeps addresses of its own, which we don't use."""
        found = self.authenticate(self.request, email=user.get_username(), password=password)
        return found is not None and found.pk == user.pk

    def get_client_ip(self, request: HttpRequest) -> str:
        """As ``config.client_addresses`` found it, which knows our proxies."""
        address: str = request.META.get("REMOTE_ADDR", "")
        return address

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """No mail server is needed, so nothing is sent; what happened is in the audit log."""


class SecondFactorAdapter(DefaultMFAAdapter):
    """Secrets of authenticator apps are kept sealed: the database alone doesn't give them away."""

    def encrypt(self, text: str) -> str:
        return sealed(text)

    def decrypt(self, encrypted_text: str) -> str:
        return opened(encrypted_text)


class SingleSignOnAdapter(DefaultSocialAccountAdapter):
    """Sign-in at the provider of identities: its groups decide at each sign-in which roles a person has."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return False

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Find or make the person, carry out what the groups give, and connect the two; refused: an error page."""
        claims = _claims(sociallogin.account.extra_data)
        mapping = read_mapping(settings.OIDC["roles"])
        identity = Identity(
            email=str(claims.get("email", "")),
            is_verified=claims.get("email_verified") is True or settings.OIDC["trusts_email"],
            name=str(claims.get("name", "")),
            known_as=sociallogin.user.pk if sociallogin.is_existing else None,
            request_id=request.META.get("LOREKEEPER_REQUEST_ID", ""),
            source=request.META.get("REMOTE_ADDR", ""),
        )
        granted = granted_to(mapping, claims.get(settings.OIDC["claim"]))
        managed = managed_by(mapping)
        try:
            with transaction.atomic():
                person = arrive(
                    identity=identity,
                    roles=granted.roles,
                    managed=managed.roles,
                    is_platform_admin=granted.is_platform_admin if managed.is_platform_admin else None,
                )
                if not sociallogin.is_existing:
                    _connect(request, sociallogin, person)
                    note_link(identity=identity, person=person, subject=sociallogin.account.uid)
        except LorekeeperError as error:
            tell_failed_sign_in(request, email=identity.email)
            raise ImmediateHttpResponse(error_page(request, 403, error.message)) from None

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Exception | None = None,
        extra_context: Any = None,
    ) -> None:
        logger.warning("single sign-on failed: %s %s", error, exception)
        tell_failed_sign_in(request, email="")
        if isinstance(exception, RequestException):
            raise ImmediateHttpResponse(provider_away(request, exception))


def _connect(request: HttpRequest, sociallogin: Any, person: Person) -> None:
    """Have the identity stand for the person, who is locked or new. Raises ``PermissionDenied`` if another one does."""
    if SocialAccount.objects.filter(user=person, provider=sociallogin.account.provider).exists():
        raise PermissionDenied(
            _(
                "Somebody else at your provider of identities has the account with your e-mail address. "
                "Ask a platform admin."
            )
        )
    sociallogin.connect(request, person)


def _claims(extra: dict[str, Any]) -> dict[str, Any]:
    """Of the ID token and of the user-info endpoint; what the token says goes first, since it is signed."""
    return {**(extra.get("userinfo") or {}), **(extra.get("id_token") or extra)}

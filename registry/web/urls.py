"""Pages of this app, below ``/ui/``."""

from django.urls import path

from registry.web import tenants, tokens

urlpatterns = [
    path("tenant", tenants.SwitchTenantPage.as_view(), name="tenant_switch"),
    path("tokens", tokens.TokensPage.as_view(), name="tokens"),
    path("tokens/new", tokens.NewTokenPage.as_view(), name="token_new"),
    path("tokens/<str:prefix>/revoke", tokens.RevokeTokenPage.as_view(), name="token_revoke"),
]

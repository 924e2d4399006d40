"""Pages of this app, below ``/ui/``."""

from django.urls import URLPattern, include, path

from registry.web import switching, tokens
from registry.web.audit import chain, export, listing, record
from registry.web.audit.pages import of_platform
from registry.web.settings import base_models, keys, overview, people, policies, tenants, webhooks
from registry.web.settings import tokens as tenant_tokens

_TENANT = "settings/tenants/<str:tenant>"
_WEBHOOK_ADDRESSES = {
    "webhooks": "",
    "webhook_new": "/new",
    "webhook": "/<str:webhook>",
    "webhook_change": "/<str:webhook>/change",
    "webhook_rotate": "/<str:webhook>/rotate-secret",
    "webhook_ping": "/<str:webhook>/ping",
    "webhook_enable": "/<str:webhook>/enable",
    "webhook_disable": "/<str:webhook>/disable",
    "webhook_remove": "/<str:webhook>/remove",
    "webhook_delivery": "/<str:webhook>/deliveries/<int:delivery>",
    "webhook_redeliver": "/<str:webhook>/deliveries/<int:delivery>/redeliver",
}

_AUDIT_PAGES = {
    "audit": ("", listing.AuditPage),
    "audit_record": ("/<int:seq>", record.AuditRecordPage),
    "audit_chain": ("/chain", chain.ChainPage),
    "audit_check": ("/chain/check", chain.CheckPage),
    "audit_export": ("/export", export.ExportPage),
}


def _audit() -> list[URLPattern]:
    pages = _AUDIT_PAGES.items()
    own = [path(f"tenants/<str:tenant>/audit{rest}", page.as_view(), name=name) for name, (rest, page) in pages]
    platform = [
        path(f"audit/platform{rest}", of_platform(page).as_view(), name=f"platform_{name}")
        for name, (rest, page) in pages
    ]
    return [path("audit", listing.AuditGoPage.as_view(), name="audit_go"), *own, *platform]


def _webhooks() -> list[URLPattern]:
    own = [
        path(f"{_TENANT}/webhooks{rest}", webhooks.PAGES[name].as_view(), name=name)
        for name, rest in _WEBHOOK_ADDRESSES.items()
    ]
    platform = [
        path(f"settings/webhooks{rest}", webhooks.of_platform(webhooks.PAGES[name]).as_view(), name=f"platform_{name}")
        for name, rest in _WEBHOOK_ADDRESSES.items()
    ]
    return own + platform


urlpatterns = [
    path("adapters", include("registry.web.adapters.urls")),
    path("approvals", include("registry.web.approvals.urls")),
    path("tenant", switching.SwitchTenantPage.as_view(), name="tenant_switch"),
    path("tokens", tokens.TokensPage.as_view(), name="tokens"),
    path("tokens/new", tokens.NewTokenPage.as_view(), name="token_new"),
    path("tokens/<str:prefix>/revoke", tokens.RevokeTokenPage.as_view(), name="token_revoke"),
    path("settings", overview.SettingsPage.as_view(), name="settings"),
    path("settings/tenants", tenants.TenantsPage.as_view(), name="tenants"),
    path("settings/new-tenant", tenants.NewTenantPage.as_view(), name="tenant_new"),
    path("settings/people", people.PeoplePage.as_view(), name="people"),
    path("settings/people/<str:email>/password-link", people.PasswordLinkForPage.as_view(), name="password_link"),
    path("settings/base-models", base_models.BaseModelsPage.as_view(), name="base_models"),
    path(
        "settings/base-models/<str:base_model>/<str:revision>",
        base_models.BaseRevisionPage.as_view(),
        name="base_revision",
    ),
    path("settings/signing-keys", keys.SigningKeysPage.as_view(), name="signing_keys"),
    path(f"{_TENANT}/members", tenants.MembersPage.as_view(), name="members"),
    path(f"{_TENANT}/members/new", tenants.NewMemberPage.as_view(), name="member_new"),
    path(f"{_TENANT}/members/<str:email>/<str:role>/remove", tenants.RemoveMemberPage.as_view(), name="member_remove"),
    path(f"{_TENANT}/tokens", tenant_tokens.TenantTokensPage.as_view(), name="tenant_tokens"),
    path(f"{_TENANT}/tokens/new", tenant_tokens.NewApplicationTokenPage.as_view(), name="tenant_token_new"),
    path(
        f"{_TENANT}/tokens/<str:prefix>/revoke",
        tenant_tokens.RevokeTenantTokenPage.as_view(),
        name="tenant_token_revoke",
    ),
    path(f"{_TENANT}/approval-policy", policies.ApprovalPolicyPage.as_view(), name="approval_policy"),
    path(f"{_TENANT}/signing-policy", policies.SigningPolicyPage.as_view(), name="signing_policy"),
    path(f"{_TENANT}/pipeline-keys", keys.PipelineKeysPage.as_view(), name="pipeline_keys"),
    path(f"{_TENANT}/pipeline-keys/new", keys.NewPipelineKeyPage.as_view(), name="pipeline_key_new"),
    path(
        f"{_TENANT}/pipeline-keys/<str:key_id>/revoke",
        keys.RevokePipelineKeyPage.as_view(),
        name="pipeline_key_revoke",
    ),
    *_audit(),
    *_webhooks(),
]

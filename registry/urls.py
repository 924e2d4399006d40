from django.urls import include, path

from registry.api import (
    adapters,
    approvals,
    audit,
    base_models,
    evaluations,
    keys,
    people,
    policies,
    retention,
    store,
    tenants,
    uploads,
    versions,
)
from registry.api.hub import files as hub_files
from registry.api.hub import pushes as hub_pushes
from registry.api.hub import repos as hub_repos
from registry.api.rest.openapi import OpenApiView
from registry.api.webhooks import deliveries as webhook_deliveries
from registry.api.webhooks import endpoints as webhooks

_ADAPTER = "tenants/<str:tenant>/adapters/<str:adapter>"

_VERSION = f"{_ADAPTER}/versions/<str:version>"

_api = [
    path("openapi.json", OpenApiView.as_view()),
    path("openapi.yaml", OpenApiView.as_view(kind="yaml")),
    path("inbox", approvals.InboxView.as_view()),
    path("whoami", tenants.WhoAmIView.as_view()),
    path("keys", keys.KeysView.as_view()),
    path("people/<str:email>/password-link", people.PasswordLinkView.as_view()),
    path("base-models", base_models.BaseModelsView.as_view()),
    path("base-models/<str:base_model>/revisions/<str:revision>", base_models.BaseRevisionView.as_view()),
    path("tenants", tenants.TenantsView.as_view()),
    path("tenants/<str:tenant>/members", tenants.MembersView.as_view()),
    path("tenants/<str:tenant>/members/<str:email>/<str:role>", tenants.MemberRoleView.as_view()),
    path("tenants/<str:tenant>/tokens", tenants.TokensView.as_view()),
    path("tenants/<str:tenant>/tokens/<str:prefix>", tenants.TokenView.as_view()),
    path("tenants/<str:tenant>/pipeline-keys", keys.PipelineKeysView.as_view()),
    path("tenants/<str:tenant>/pipeline-keys/<str:key_id>/revoke", keys.PipelineKeyRevocationView.as_view()),
    path("tenants/<str:tenant>/signing-policy", keys.SigningPolicyView.as_view()),
    path("tenants/<str:tenant>/audit", audit.AuditView.as_view()),
    path("tenants/<str:tenant>/audit/export", audit.AuditExportView.as_view()),
    path("tenants/<str:tenant>/audit/checkpoints", audit.CheckpointsView.as_view()),
    path("tenants/<str:tenant>/audit/checkpoints/<str:seq>", audit.CheckpointView.as_view()),
    path("audit", audit.PlatformAuditView.as_view()),
    path("audit/export", audit.PlatformAuditExportView.as_view()),
    path("audit/checkpoints", audit.PlatformCheckpointsView.as_view()),
    path("audit/checkpoints/<str:seq>", audit.PlatformCheckpointView.as_view()),
    path("tenants/<str:tenant>/approval-policy", policies.ApprovalPolicyView.as_view()),
    path("tenants/<str:tenant>/versions", versions.TenantVersionsView.as_view()),
    path("tenants/<str:tenant>/evaluation-sets", evaluations.EvaluationSetsView.as_view()),
    path("tenants/<str:tenant>/evaluation-sets/<str:name>", evaluations.EvaluationSetView.as_view()),
    path("tenants/<str:tenant>/evaluation-gates", evaluations.EvaluationGatesView.as_view()),
    path("tenants/<str:tenant>/adapters", adapters.AdaptersView.as_view()),
    path("tenants/<str:tenant>/adapters/<str:adapter>", adapters.AdapterView.as_view()),
    path(f"{_ADAPTER}/retention", retention.RetentionView.as_view()),
    path(f"{_ADAPTER}/retention/plan", retention.RetentionPlanView.as_view()),
    path(f"{_ADAPTER}/retention/apply", retention.RetentionApplyView.as_view()),
    path("tenants/<str:tenant>/adapters/<str:adapter>/versions", versions.VersionsView.as_view()),
    path("tenants/<str:tenant>/adapters/<str:adapter>/push", uploads.PushView.as_view()),
    path(_VERSION, versions.VersionView.as_view()),
    path(f"{_VERSION}/parts", uploads.PartsView.as_view()),
    path(f"{_VERSION}/parts/complete", uploads.CompletePartsView.as_view()),
    path(f"{_VERSION}/finalize", uploads.FinalizeView.as_view()),
    path(f"{_VERSION}/report", versions.ReportView.as_view()),
    path(f"{_VERSION}/reports", evaluations.ReportsView.as_view()),
    path(f"{_VERSION}/reports/<str:digest>", evaluations.WholeReportView.as_view()),
    path(f"{_VERSION}/revalidate", evaluations.RevalidateView.as_view()),
    path(f"{_VERSION}/revalidations", evaluations.RevalidationsView.as_view()),
    path(f"{_VERSION}/files/<path:path>", versions.FileView.as_view()),
    path(f"{_VERSION}/signature", versions.SignatureView.as_view()),
    path(f"{_VERSION}/pipeline-signatures", keys.PipelineSignaturesView.as_view()),
    path(f"{_VERSION}/review", approvals.ReviewView.as_view()),
    path(f"{_VERSION}/comments", approvals.CommentsView.as_view()),
    path(f"{_VERSION}/approve", approvals.ApproveView.as_view()),
    path(f"{_VERSION}/decline", approvals.DeclineView.as_view()),
    path(f"{_VERSION}/break-glass", approvals.BreakGlassView.as_view()),
    path(f"{_VERSION}/yank", approvals.YankView.as_view()),
    path(f"{_VERSION}/revoke", approvals.RevokeView.as_view()),
    path(f"{_VERSION}/holders", approvals.HoldersView.as_view()),
]

_WEBHOOKS = "tenants/<str:tenant>/webhooks"
_DELIVERY = "<str:webhook>/deliveries/<str:delivery>"

_events = [
    path(_WEBHOOKS, webhooks.WebhooksView.as_view()),
    path(f"{_WEBHOOKS}/<str:webhook>", webhooks.WebhookView.as_view()),
    path(f"{_WEBHOOKS}/<str:webhook>/rotate-secret", webhooks.RotationView.as_view()),
    path(f"{_WEBHOOKS}/<str:webhook>/ping", webhooks.PingView.as_view()),
    path(f"{_WEBHOOKS}/<str:webhook>/enable", webhooks.EnableView.as_view()),
    path(f"{_WEBHOOKS}/<str:webhook>/disable", webhooks.DisableView.as_view()),
    path(f"{_WEBHOOKS}/<str:webhook>/deliveries", webhook_deliveries.DeliveriesView.as_view()),
    path(f"{_WEBHOOKS}/{_DELIVERY}", webhook_deliveries.DeliveryView.as_view()),
    path(f"{_WEBHOOKS}/{_DELIVERY}/redeliver", webhook_deliveries.RedeliveryView.as_view()),
    path("webhooks", webhooks.PlatformWebhooksView.as_view()),
    path("webhooks/<str:webhook>", webhooks.PlatformWebhookView.as_view()),
    path("webhooks/<str:webhook>/rotate-secret", webhooks.PlatformRotationView.as_view()),
    path("webhooks/<str:webhook>/ping", webhooks.PlatformPingView.as_view()),
    path("webhooks/<str:webhook>/enable", webhooks.PlatformEnableView.as_view()),
    path("webhooks/<str:webhook>/disable", webhooks.PlatformDisableView.as_view()),
    path("webhooks/<str:webhook>/deliveries", webhook_deliveries.PlatformDeliveriesView.as_view()),
    path(f"webhooks/{_DELIVERY}", webhook_deliveries.PlatformDeliveryView.as_view()),
    path(f"webhooks/{_DELIVERY}/redeliver", webhook_deliveries.PlatformRedeliveryView.as_view()),
]

_HUB_REPO = "api/models/<str:tenant>/<str:repo>"

# The Hugging Face Hub's addresses: clients take nothing but the root of a host for an endpoint.
_hub = [
    path("api/whoami-v2", hub_repos.WhoAmIView.as_view()),
    path("api/validate-yaml", hub_repos.YamlView.as_view()),
    path("api/repos/create", hub_repos.CreateRepoView.as_view()),
    path("api/repos/delete", hub_repos.DeleteRepoView.as_view()),
    path(_HUB_REPO, hub_repos.InfoView.as_view()),
    path(f"{_HUB_REPO}/revision/<str:revision>", hub_repos.InfoView.as_view()),
    path(f"{_HUB_REPO}/auth-check", hub_repos.AuthCheckView.as_view()),
    path(f"{_HUB_REPO}/refs", hub_repos.RefsView.as_view()),
    path(f"{_HUB_REPO}/commits/<str:revision>", hub_repos.CommitsView.as_view()),
    path(f"{_HUB_REPO}/tree/<str:revision>", hub_files.TreeView.as_view()),
    path(f"{_HUB_REPO}/tree/<str:revision>/<path:path>", hub_files.TreeView.as_view()),
    path(f"{_HUB_REPO}/paths-info/<str:revision>", hub_files.PathsInfoView.as_view()),
    path(f"{_HUB_REPO}/preupload/<str:revision>", hub_pushes.PreuploadView.as_view()),
    path(f"{_HUB_REPO}/commit/<str:revision>", hub_pushes.CommitView.as_view()),
    path(f"{_HUB_REPO}/tag/<str:revision>", hub_pushes.TagView.as_view()),
    path(f"{_HUB_REPO}/branch/<str:revision>", hub_pushes.BranchView.as_view()),
    path("<str:tenant>/<str:repo>/resolve/<str:revision>/<path:path>", hub_files.ResolveView.as_view()),
]

urlpatterns = [
    path("api/v1/", include(_api)),
    path("api/v1/", include(_events)),
    path(".well-known/lorekeeper/keys.json", keys.KeysView.as_view()),
    path("store/<str:ticket>", store.StoreView.as_view()),
    *_hub,
]

from django.urls import include, path

from registry.api import adapters, audit, base_models, store, tenants, versions

_VERSION = "tenants/<str:tenant>/adapters/<str:adapter>/versions/<str:version>"

_api = [
    path("whoami", tenants.WhoAmIView.as_view()),
    path("keys", base_models.KeysView.as_view()),
    path("base-models", base_models.BaseModelsView.as_view()),
    path("base-models/<str:base_model>/revisions/<str:revision>", base_models.BaseRevisionView.as_view()),
    path("tenants", tenants.TenantsView.as_view()),
    path("tenants/<str:tenant>/members", tenants.MembersView.as_view()),
    path("tenants/<str:tenant>/members/<str:email>/<str:role>", tenants.MemberRoleView.as_view()),
    path("tenants/<str:tenant>/tokens", tenants.TokensView.as_view()),
    path("tenants/<str:tenant>/tokens/<str:prefix>", tenants.TokenView.as_view()),
    path("tenants/<str:tenant>/audit", audit.AuditView.as_view()),
    path("tenants/<str:tenant>/audit/export", audit.AuditExportView.as_view()),
    path("tenants/<str:tenant>/adapters", adapters.AdaptersView.as_view()),
    path("tenants/<str:tenant>/adapters/<str:adapter>", adapters.AdapterView.as_view()),
    path("tenants/<str:tenant>/adapters/<str:adapter>/versions", versions.VersionsView.as_view()),
    path("tenants/<str:tenant>/adapters/<str:adapter>/push", versions.PushView.as_view()),
    path(_VERSION, versions.VersionView.as_view()),
    path(f"{_VERSION}/finalize", versions.FinalizeView.as_view()),
    path(f"{_VERSION}/report", versions.ReportView.as_view()),
    path(f"{_VERSION}/files/<path:path>", versions.FileView.as_view()),
    path(f"{_VERSION}/signature", versions.SignatureView.as_view()),
    path(f"{_VERSION}/approve", versions.ApproveView.as_view()),
    path(f"{_VERSION}/decline", versions.DeclineView.as_view()),
    path(f"{_VERSION}/yank", versions.YankView.as_view()),
    path(f"{_VERSION}/revoke", versions.RevokeView.as_view()),
]

urlpatterns = [path("api/v1/", include(_api)), path("store/<str:ticket>", store.StoreView.as_view())]

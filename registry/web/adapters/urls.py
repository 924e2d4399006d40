"""Pages below ``/ui/adapters``."""

from django.urls import path

from registry.web.adapters import adapter, lists, verbs, version

_VERSION = "/<str:tenant>/<str:adapter>/<str:version>"

urlpatterns = [
    path("", lists.AdaptersPage.as_view(), name="adapters"),
    path("/versions", lists.VersionsPage.as_view(), name="versions"),
    # No adapter is named like this.
    path("/<str:tenant>/-/new", adapter.NewAdapterPage.as_view(), name="adapter_new"),
    path("/<str:tenant>/<str:adapter>", adapter.AdapterPage.as_view(), name="adapter"),
    path(_VERSION, version.VersionPage.as_view(), name="version"),
    path(f"{_VERSION}/validation", version.ReportPage.as_view(), name="version_report"),
    path(f"{_VERSION}/use", version.UsePage.as_view(), name="version_use"),
    path(f"{_VERSION}/history", version.HistoryPage.as_view(), name="version_history"),
    path(f"{_VERSION}/yank", verbs.YankPage.as_view(), name="version_yank"),
    path(f"{_VERSION}/revoke", verbs.RevokePage.as_view(), name="version_revoke"),
    path(f"{_VERSION}/validate", verbs.RevalidatePage.as_view(), name="version_validate"),
    path(f"{_VERSION}/comment", verbs.CommentPage.as_view(), name="version_comment"),
]

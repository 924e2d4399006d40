from django.urls import path

from releases.api import aliases, grants, protection, releases, splits, templates, verbs

_RELEASES = "tenants/<str:tenant>/aliases/<str:alias>/releases"

urlpatterns = [
    path("tenants/<str:tenant>/aliases", aliases.AliasesView.as_view()),
    path("tenants/<str:tenant>/aliases/<str:alias>", aliases.AliasView.as_view()),
    path("tenants/<str:tenant>/aliases/<str:alias>/history", aliases.AliasHistoryView.as_view()),
    path("tenants/<str:tenant>/aliases/<str:alias>/split", splits.AliasSplitView.as_view()),
    path("tenants/<str:tenant>/aliases/<str:alias>/protection", protection.AliasProtectionView.as_view()),
    path("tenants/<str:tenant>/aliases/<str:alias>/grants", grants.AliasGrantsView.as_view()),
    path("tenants/<str:tenant>/aliases/<str:alias>/grants/<str:grantee>", grants.AliasGrantView.as_view()),
    path("tenants/<str:tenant>/shared-aliases", grants.SharedAliasesView.as_view()),
    path("tenants/<str:tenant>/aliases/<str:alias>/rollback", aliases.AliasRollbackView.as_view()),
    path("tenants/<str:tenant>/aliases/<str:alias>/rollbacks", releases.AliasRollbacksView.as_view()),
    path("tenants/<str:tenant>/releases", releases.TenantReleasesView.as_view()),
    path("tenants/<str:tenant>/release-templates", templates.ReleaseTemplatesView.as_view()),
    path("tenants/<str:tenant>/release-templates/<str:name>", templates.ReleaseTemplateView.as_view()),
    path(_RELEASES, releases.ReleasesView.as_view()),
    path(f"{_RELEASES}/<int:number>", releases.ReleaseView.as_view()),
    path(f"{_RELEASES}/<int:number>/timeline", releases.ReleaseTimelineView.as_view()),
    path(f"{_RELEASES}/<int:number>/approve", releases.ApproveReleaseView.as_view()),
    path(f"{_RELEASES}/<int:number>/start", verbs.StartReleaseView.as_view()),
    path(f"{_RELEASES}/<int:number>/pause", verbs.PauseReleaseView.as_view()),
    path(f"{_RELEASES}/<int:number>/resume", verbs.ResumeReleaseView.as_view()),
    path(f"{_RELEASES}/<int:number>/retry", verbs.RetryReleaseView.as_view()),
    path(f"{_RELEASES}/<int:number>/promote", verbs.PromoteReleaseView.as_view()),
    path(f"{_RELEASES}/<int:number>/abort", verbs.AbortReleaseView.as_view()),
    path(f"{_RELEASES}/<int:number>/rollback", verbs.RollBackReleaseView.as_view()),
]

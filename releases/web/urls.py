"""Pages of this app, below ``/ui/``. All lie below those of releases, so that the navigation knows where it is."""

from django.urls import path

from releases.web import aliases, making, releases, rollbacks, sharing, templates, verbs

_ALL = "tenants/<str:tenant>/releases"
_TEMPLATE = f"{_ALL}/templates/<str:template>"
_ALIAS = f"{_ALL}/aliases/<str:alias>"
_RELEASE = f"{_ALIAS}/<int:number>"

urlpatterns = [
    path(_ALL, releases.ReleasesPage.as_view(), name="releases"),
    path(f"{_ALL}/new", making.NewReleasePage.as_view(), name="release_new"),
    path(f"{_ALL}/templates", templates.TemplatesPage.as_view(), name="release_templates"),
    path(f"{_ALL}/new-template", templates.NewTemplatePage.as_view(), name="release_template_new"),
    path(_TEMPLATE, templates.TemplatePage.as_view(), name="release_template"),
    path(f"{_TEMPLATE}/edit", templates.EditTemplatePage.as_view(), name="release_template_edit"),
    path(f"{_ALL}/aliases", aliases.AliasesPage.as_view(), name="aliases"),
    path(f"{_ALL}/new-alias", aliases.NewAliasPage.as_view(), name="alias_new"),
    path(_ALIAS, aliases.AliasPage.as_view(), name="alias"),
    path(f"{_ALIAS}/move", aliases.MoveAliasPage.as_view(), name="alias_move"),
    path(f"{_ALIAS}/rollback", rollbacks.RollBackAliasPage.as_view(), name="alias_rollback"),
    path(f"{_ALIAS}/rollbacks", rollbacks.RollbacksPage.as_view(), name="alias_rollbacks"),
    path(f"{_ALIAS}/split/end", aliases.ClearSplitPage.as_view(), name="alias_split_end"),
    path(f"{_ALIAS}/protect", sharing.ProtectAliasPage.as_view(), name="alias_protect"),
    path(f"{_ALIAS}/unprotect", sharing.UnprotectAliasPage.as_view(), name="alias_unprotect"),
    path(f"{_ALIAS}/share", sharing.ShareAliasPage.as_view(), name="alias_share"),
    path(f"{_ALIAS}/share/<str:grantee>/end", sharing.UnshareAliasPage.as_view(), name="alias_unshare"),
    path(_RELEASE, releases.ReleasePage.as_view(), name="release"),
    path(f"{_RELEASE}/approve", verbs.ApproveReleasePage.as_view(), name="release_approve"),
    path(f"{_RELEASE}/start", verbs.StartReleasePage.as_view(), name="release_start"),
    path(f"{_RELEASE}/pause", verbs.PauseReleasePage.as_view(), name="release_pause"),
    path(f"{_RELEASE}/resume", verbs.ResumeReleasePage.as_view(), name="release_resume"),
    path(f"{_RELEASE}/retry", verbs.RetryReleasePage.as_view(), name="release_retry"),
    path(f"{_RELEASE}/promote", verbs.PromoteReleasePage.as_view(), name="release_promote"),
    path(f"{_RELEASE}/abort", verbs.AbortReleasePage.as_view(), name="release_abort"),
    path(f"{_RELEASE}/rollback", rollbacks.RollBackReleasePage.as_view(), name="release_rollback"),
]

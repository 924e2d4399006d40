from django.urls import path

from releases.api import aliases

urlpatterns = [
    path("tenants/<str:tenant>/aliases", aliases.AliasesView.as_view()),
    path("tenants/<str:tenant>/aliases/<str:alias>", aliases.AliasView.as_view()),
    path("tenants/<str:tenant>/aliases/<str:alias>/history", aliases.AliasHistoryView.as_view()),
    path("tenants/<str:tenant>/aliases/<str:alias>/rollback", aliases.AliasRollbackView.as_view()),
]

"""Pages of this app, below ``/ui/``."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []

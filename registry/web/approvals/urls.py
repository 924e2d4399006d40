"""Pages below ``/ui/approvals``."""

from django.urls import path

from registry.web.approvals import pages, verbs

_VERSION = "/<str:tenant>/<str:adapter>/<str:version>"

urlpatterns = [
    path("", pages.InboxPage.as_view(), name="approvals"),
    path(_VERSION, pages.ReviewPage.as_view(), name="review"),
    path(f"{_VERSION}/config", pages.ConfigPage.as_view(), name="review_config"),
    path(f"{_VERSION}/next", pages.NeighbourPage.as_view(), name="review_next"),
    path(f"{_VERSION}/previous", pages.NeighbourPage.as_view(is_backwards=True), name="review_previous"),
    path(f"{_VERSION}/approve", verbs.ApprovePage.as_view(), name="review_approve"),
    path(f"{_VERSION}/decline", verbs.DeclinePage.as_view(), name="review_decline"),
    path(f"{_VERSION}/break-glass", verbs.BreakGlassPage.as_view(), name="review_break_glass"),
]

from django.urls import include, path

from config.health import alive, ready
from config.metrics.page import MetricsView

urlpatterns = [
    path("healthz", alive),
    path("readyz", ready),
    path("metrics", MetricsView.as_view()),
    path("", include("registry.urls")),
    path("api/v1/", include("releases.urls")),
    path("api/v1/", include("cachecontrol.urls")),
]

handler400 = "config.error_pages.bad_request"
handler404 = "config.error_pages.not_found"
handler500 = "config.error_pages.failed"

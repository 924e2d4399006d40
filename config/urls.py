from django.urls import include, path
from django.views.generic import RedirectView

from config.health import alive, ready
from config.metrics.page import MetricsView

urlpatterns = [
    path("healthz", alive),
    path("readyz", ready),
    path("metrics", MetricsView.as_view()),
    path("", include("registry.urls")),
    path("api/v1/", include("releases.urls")),
    path("api/v1/", include("cachecontrol.urls")),
    path("", RedirectView.as_view(pattern_name="home", query_string=False)),
    path("ui/", include("config.web.urls")),
    path("ui/account/", include("config.sign_in.urls")),
    path("ui/", include("registry.web.urls")),
    path("ui/", include("releases.web.urls")),
    path("ui/", include("cachecontrol.web.urls")),
]

handler400 = "config.error_pages.bad_request"
handler404 = "config.error_pages.not_found"
handler500 = "config.error_pages.failed"

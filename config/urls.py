from django.urls import include, path

from config.health import alive, ready

handler400 = "config.problems.bad_request"
handler404 = "config.problems.not_found"
handler500 = "config.problems.server_error"

urlpatterns = [
    path("healthz", alive),
    path("readyz", ready),
    path("", include("registry.urls")),
    path("api/v1/", include("releases.urls")),
    path("api/v1/", include("cachecontrol.urls")),
]

handler404 = "config.error_pages.not_found"
handler500 = "config.error_pages.failed"

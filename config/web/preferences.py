"""How somebody wants pages to be: language, colours, time zone. Kept in cookies, so that the sign-in page has them."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext_lazy as _

from config.web.reader import THEME_COOKIE, THEMES, ZONE_COOKIE, theme_of, zone_of, zones
from registry.web.page import Page

_A_YEAR_S: Final = 365 * 86_400
_COOKIES: Final = {"language": settings.LANGUAGE_COOKIE_NAME, "theme": THEME_COOKIE, "zone": ZONE_COOKIE}
_NAMES_OF_THEMES: Final = {"system": _("As the system"), "light": _("Light"), "dark": _("Dark")}


class PreferencesForm(forms.Form):
    language = forms.ChoiceField(label=_("Language"), choices=settings.LANGUAGES, required=False)
    theme = forms.ChoiceField(
        label=_("Colours"), choices=[(theme, _NAMES_OF_THEMES[theme]) for theme in THEMES], required=False
    )
    zone = forms.ChoiceField(
        label=_("Time zone"), choices=lambda: [(name, name) for name in sorted(zones())], required=False
    )


class PreferencesPage(Page):
    """Open to everybody, also before they sign in."""

    is_public = True
    template_name = "ui/preferences.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        now = {"language": request.LANGUAGE_CODE, "theme": theme_of(request), "zone": zone_of(request).key}
        return self.show({"form": PreferencesForm(initial=now), "next": request.GET.get("next", "")})

    def post(self, request: HttpRequest) -> HttpResponse:
        form = PreferencesForm(request.POST)
        if not form.is_valid():
            return self.show({"form": form, "next": request.POST.get("next", "")}, status=422)
        response = self.leave(_safe(request, request.POST.get("next", "")))
        keep(response, form.cleaned_data)
        return response


def keep(response: HttpResponse, chosen: Mapping[str, Any]) -> None:
    """Set a cookie for each preference that was chosen."""
    for name, cookie in _COOKIES.items():
        if chosen.get(name):
            response.set_cookie(
                cookie,
                chosen[name],
                max_age=_A_YEAR_S,
                samesite="Lax",
                secure=settings.IS_HTTPS,
                httponly=name != "zone",
            )


def _safe(request: HttpRequest, address: str) -> str:
    """Never to another site, whatever was put into the form."""
    is_ours = url_has_allowed_host_and_scheme(address, {request.get_host()}, require_https=request.is_secure())
    return address if address and is_ours else reverse("home")

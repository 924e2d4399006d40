"""The pages of allauth that are used, under the names it knows them by; its others have no address."""

from allauth.account import views as account
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as totp
from allauth.mfa.urls import urlpatterns as mfa
from allauth.mfa.webauthn import views as webauthn
from allauth.socialaccount import views as social
from allauth.socialaccount.providers.openid_connect.urls import urlpatterns as openid_connect
from allauth.usersessions.urls import urlpatterns as usersessions
from django.db.transaction import atomic
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("login", account.login, name="account_login"),
    path("logout", account.logout, name="account_logout"),
    path("inactive", account.account_inactive, name="account_inactive"),
    path("reauthenticate", account.reauthenticate, name="account_reauthenticate"),
    path("password/change", atomic(account.password_change), name="account_change_password"),
    # Who came by single sign-on has none; allauth names the page when it is asked for a change.
    path("password/set", RedirectView.as_view(pattern_name="account"), name="account_set_password"),
    path("signup", RedirectView.as_view(pattern_name="account_login"), name="account_signup"),
    path("reset", RedirectView.as_view(pattern_name="account_login"), name="account_reset_password"),
    path("email", RedirectView.as_view(pattern_name="account"), name="account_email"),
    # Those of the next line that change something, each with what the audit log is told of it.
    path("second-factor/totp/activate/", atomic(totp.activate_totp), name="mfa_activate_totp"),
    path("second-factor/totp/deactivate/", atomic(totp.deactivate_totp), name="mfa_deactivate_totp"),
    path("second-factor/webauthn/add/", atomic(webauthn.add_webauthn), name="mfa_add_webauthn"),
    path("second-factor/webauthn/keys/<int:pk>/remove/", atomic(webauthn.remove_webauthn), name="mfa_remove_webauthn"),
    path(
        "second-factor/recovery-codes/generate/",
        atomic(recovery_codes.generate_recovery_codes),
        name="mfa_generate_recovery_codes",
    ),
    path("second-factor/", include(mfa)),
    path("sessions", include(usersessions)),
    path("sso/login/cancelled", social.login_cancelled, name="socialaccount_login_cancelled"),
    path("sso/login/error", social.login_error, name="socialaccount_login_error"),
    path("sso/signup", RedirectView.as_view(pattern_name="account_login"), name="socialaccount_signup"),
    path("sso/connections", RedirectView.as_view(pattern_name="account"), name="socialaccount_connections"),
    *openid_connect,
]

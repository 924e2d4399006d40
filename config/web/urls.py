"""Pages that join the apps, or belong to none: the start page, the reader's account and preferences."""

from django.urls import path

from config.web import account, home, preferences

urlpatterns = [
    path("", home.HomePage.as_view(), name="home"),
    path("preferences", preferences.PreferencesPage.as_view(), name="preferences"),
    path("account", account.AccountPage.as_view(), name="account"),
    path("password/<str:key>", account.PasswordLinkPage.as_view(), name="password_by_link"),
]

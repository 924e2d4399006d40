from django.apps import AppConfig


class CacheControlConfig(AppConfig):
    name = "cachecontrol"
    default_auto_field = "django.db.models.BigAutoField"

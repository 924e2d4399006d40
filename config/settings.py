"""Django settings. Every value comes from the environment (prefix ``LOREKEEPER_``); see docs/configuration.md."""

import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent


def _env(name: str, default: str = "") -> str:
    return os.environ.get(f"LOREKEEPER_{name}", default)


def _seconds(name: str, default: float) -> float:
    return float(_env(name, str(default)))


DEBUG = _env("DEBUG", "0") == "1"
SECRET_KEY = os.environ["LOREKEEPER_SECRET_KEY"]
ALLOWED_HOSTS = [host for host in _env("ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]").split(",") if host]
PUBLIC_URL = _env("PUBLIC_URL", "http://127.0.0.1:8000").rstrip("/")

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.postgres",
    "rest_framework",
    "registry",
    "releases",
    "cachecontrol",
    "config.wiring.WiringConfig",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "config.request_ids.RequestIdMiddleware",
    "config.guards.NoStoreMiddleware",
    "config.guards.SoundAddressMiddleware",
    "django.middleware.common.CommonMiddleware",
]
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
APPEND_SLASH = False
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": False,
    }
]

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": _env("DB_HOST", "127.0.0.1"),
        "PORT": _env("DB_PORT", "5432"),
        "NAME": _env("DB_NAME", "lorekeeper"),
        "USER": _env("DB_USER", "lorekeeper_app"),
        "PASSWORD": _env("DB_PASSWORD"),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"connect_timeout": 5},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "registry.Person"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"
SECURE_CONTENT_TYPE_NOSNIFF = True
DATA_UPLOAD_MAX_MEMORY_SIZE = 16 * 1024 * 1024
# As many as one version may have (registry.naming.MAX_FILES).
DATA_UPLOAD_MAX_NUMBER_FILES = 256
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.TemporaryFileUploadHandler"]

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["registry.api.authentication.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.AllowAny"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["registry.api.parsers.StrictJSONParser"],
    "EXCEPTION_HANDLER": "config.problems.problem_handler",
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "INFO"},
}

BROKER_URL = _env("BROKER_URL", "redis://127.0.0.1:6379/0")

STORE = {
    "kind": _env("STORE", "folder"),
    "folder": _env("STORE_FOLDER", str(BASE_DIR / ".lorekeeper" / "store")),
    "endpoint": _env("S3_ENDPOINT"),
    "public_endpoint": _env("S3_PUBLIC_ENDPOINT"),
    "bucket": _env("S3_BUCKET", "lorekeeper"),
    "access_key": _env("S3_ACCESS_KEY"),
    "secret_key": _env("S3_SECRET_KEY"),
    "region": _env("S3_REGION", "us-east-1"),
}
SIGNING_KEY_FILE = _env("SIGNING_KEY")

VALIDATE_DEADLINE_S = _seconds("VALIDATE_DEADLINE", 120)
COMMAND_DEADLINE_S = _seconds("COMMAND_DEADLINE", 60)
NODE_TIMEOUT_S = _seconds("NODE_TIMEOUT", 15)
DRAIN_S = _seconds("DRAIN_SECONDS", 5)
EVICT_GRACE_S = _seconds("EVICT_GRACE", 300)
SWEEP_S = _seconds("SWEEP_SECONDS", 2)
UPLOAD_TTL_S = _seconds("UPLOAD_TTL", 86_400)
UPLOAD_URL_TTL_S = 3600
SMALL_PUSH_LIMIT = 64 * 1024 * 1024
MAX_VERSION_BYTES = int(_env("MAX_VERSION_BYTES", str(8 * 1024**3)))

"""Django settings. Every value comes from the environment (prefix ``LOREKEEPER_``); see docs/configuration.md."""

import ipaddress
import os
from pathlib import Path
from typing import Any

from config.web.chart_library import chart_library

BASE_DIR = Path(__file__).resolve().parent.parent


def _env(name: str, default: str = "") -> str:
    return os.environ.get(f"LOREKEEPER_{name}", default)


def _seconds(name: str, default: float) -> float:
    return float(_env(name, str(default)))


DEBUG = _env("DEBUG", "0") == "1"
SECRET_KEY = os.environ["LOREKEEPER_SECRET_KEY"]
# Those before it: what they sealed is still read.
SECRET_KEY_FALLBACKS = [key for key in _env("SECRET_KEY_FALLBACKS").split(",") if key]
ALLOWED_HOSTS = [host for host in _env("ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]").split(",") if host]
PUBLIC_URL = _env("PUBLIC_URL", "http://127.0.0.1:8000").rstrip("/")
IS_HTTPS = PUBLIC_URL.startswith("https://")

TRUSTED_PROXIES = [network for network in _env("TRUSTED_PROXIES").split(",") if network]

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django_htmx",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.usersessions",
    "rest_framework",
    "registry",
    "releases",
    "cachecontrol",
    "config.wiring.WiringConfig",
]
MIDDLEWARE = [
    "config.metrics.http.MetricsMiddleware",
    "config.web.headers.ContentPolicyMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "config.client_addresses.ClientAddressMiddleware",
    "config.request_ids.RequestIdMiddleware",
    "config.guards.NoStoreMiddleware",
    "config.guards.SoundAddressMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "config.web.reader.ReaderMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "allauth.usersessions.middleware.UserSessionsMiddleware",
    "config.web.refusals.RefusalMiddleware",
]
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
APPEND_SLASH = False
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "config.web.reader.reader_facts",
            ],
            "builtins": ["registry.templatetags.ui"],
        },
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
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}", "OPTIONS": options}
    for name, options in (
        ("UserAttributeSimilarityValidator", {"user_attributes": ("email", "name")}),
        ("MinimumLengthValidator", {"min_length": 12}),
        ("CommonPasswordValidator", {}),
        ("NumericPasswordValidator", {}),
    )
]
PASSWORD_RESET_TIMEOUT = int(_seconds("PASSWORD_LINK_SECONDS", 3 * 86_400))

LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "home"
ACCOUNT_ADAPTER = "config.sign_in.adapters.AccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
# Nobody signs up; it is by this that allauth knows people sign in with passwords.
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
# Addresses are given by admins and by the identity provider; no mail is ever sent.
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_NOTIFICATIONS = False
ACCOUNT_LOGOUT_ON_GET = False
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_SESSION_REMEMBER = False
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_RATE_LIMITS = {
    "login": _env("SIGN_IN_LIMIT", "30/m/ip"),
    "login_failed": _env("SIGN_IN_FAILURE_LIMIT", "30/m/ip,5/15m/key"),
    "reauthenticate": "10/m/user",
    "change_password": "5/m/user",
}
MFA_ADAPTER = "config.sign_in.adapters.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not IS_HTTPS
MFA_TOTP_ISSUER = "Lorekeeper"
USERSESSIONS_TRACK_ACTIVITY = False
SOCIALACCOUNT_ADAPTER = "config.sign_in.adapters.SingleSignOnAdapter"
SOCIALACCOUNT_ONLY = False
SOCIALACCOUNT_AUTO_SIGNUP = True
SOCIALACCOUNT_LOGIN_ON_GET = False
# The adapter finds people by their verified address itself; allauth would take their passwords away as it does.
SOCIALACCOUNT_EMAIL_AUTHENTICATION = False
SOCIALACCOUNT_STORE_TOKENS = False
SOCIALACCOUNT_OPENID_CONNECT_URL_PREFIX = "sso"
# One provider of identities, if there is one; its groups give roles (docs/sign-in.md).
OIDC: dict[str, Any] = {
    "issuer": _env("OIDC_ISSUER").rstrip("/"),
    "name": _env("OIDC_NAME", "Single sign-on"),
    "client_id": _env("OIDC_CLIENT_ID"),
    "client_secret": _env("OIDC_CLIENT_SECRET"),
    "scopes": _env("OIDC_SCOPES", "openid profile email").split(),
    "claim": _env("OIDC_GROUPS_CLAIM", "groups"),
    "roles": _env("OIDC_ROLES"),
    "trusts_email": _env("OIDC_TRUSTS_EMAIL", "0") == "1",
    "origins": [each for each in _env("OIDC_ORIGINS").split(",") if each],
}
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": "oidc",
                "name": OIDC["name"],
                "client_id": OIDC["client_id"],
                "secret": OIDC["client_secret"],
                "settings": {"server_url": OIDC["issuer"], "scope": OIDC["scopes"], "uid_field": "sub"},
            }
        ]
        if OIDC["issuer"]
        else [],
    }
}

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static", *chart_library()]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "config.web.statics.VersionedFilesStorage"},
}
# Straight from where the packages and this repository have them: nothing is to be collected first.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False
WHITENOISE_MAX_AGE = 86_400

SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SECURE_HSTS_SECONDS = 31_536_000 if IS_HTTPS else 0
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = IS_HTTPS
SESSION_COOKIE_NAME = "lorekeeper_session"
SESSION_COOKIE_AGE = int(_seconds("SESSION_SECONDS", 12 * 3600))
SESSION_SAVE_EVERY_REQUEST = False
CSRF_COOKIE_NAME = "lorekeeper_csrf"
CSRF_COOKIE_HTTPONLY = True
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
CSRF_FAILURE_VIEW = "config.error_pages.csrf_failed"
LANGUAGE_COOKIE_NAME = "lorekeeper_language"
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
DATA_UPLOAD_MAX_MEMORY_SIZE = 16 * 1024 * 1024

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["registry.api.authentication.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.AllowAny"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["registry.api.parsers.StrictJSONParser"],
    "EXCEPTION_HANDLER": "config.problems.problem_handler",
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
    "DEFAULT_THROTTLE_CLASSES": ["registry.api.rest.limits.RateLimit"],
    "DEFAULT_SCHEMA_CLASS": "registry.api.rest.schema.OperationSchema",
}
SPECTACULAR_SETTINGS = {
    "OAS_VERSION": "3.1.0",
    "TITLE": "Lorekeeper",
    "DESCRIPTION": "Registry and control plane for LoRA adapters.",
    "VERSION": "1",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "PREPROCESSING_HOOKS": ["registry.api.rest.schema.only_rest"],
    "POSTPROCESSING_HOOKS": ["registry.api.rest.schema.add_problems"],
    "SERVE_INCLUDE_SCHEMA": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
}
# Requests a minute of one token, by kind of caller, and of one address without a token; 0: no limit.
RATE_LIMITS = {
    "person": int(_env("RATE_LIMIT", "1200")),
    "application": int(_env("RATE_LIMIT", "1200")),
    "gateway": int(_env("RATE_LIMIT_MACHINES", "60000")),
    "node": int(_env("RATE_LIMIT_MACHINES", "60000")),
    "monitor": int(_env("RATE_LIMIT_MACHINES", "60000")),
    "anonymous": int(_env("RATE_LIMIT_ANONYMOUS", "600")),
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "INFO"},
}

BROKER_URL = _env("BROKER_URL", "redis://127.0.0.1:6379/0")
# Without a Valkey each process counts for itself.
CACHE_URL = _env("CACHE_URL", BROKER_URL if BROKER_URL.startswith(("redis", "unix")) else "")
CACHES: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": CACHE_URL,
        "KEY_PREFIX": "lorekeeper",
        "OPTIONS": {"socket_connect_timeout": 0.25, "socket_timeout": 0.25},
    }
    if CACHE_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}

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
SIGNING_KEYS = [place.strip() for place in _env("SIGNING_KEY").split(",") if place.strip()]

AUDIT_CHECKPOINT_S = _seconds("AUDIT_CHECKPOINT", 3600)
# A bucket with an object lock keeps every version of everything in it, so artifacts may be better off in another.
AUDIT_BUCKET = _env("AUDIT_BUCKET", STORE["bucket"])
AUDIT_LOCK_DAYS = int(_env("AUDIT_LOCK_DAYS", "365"))
# Where webhooks may go beside the public internet.
WEBHOOK_NETWORKS = [ipaddress.ip_network(each.strip()) for each in _env("WEBHOOK_NETWORKS").split(",") if each.strip()]
WEBHOOK_LOG_DAYS = int(_env("WEBHOOK_LOG_DAYS", "30"))
# What the validating worker runs versions on: <root>/<base model>/<revision>; without it they are not run.
BASE_MODEL_FOLDERS = Path(_env("BASE_MODEL_FOLDERS")) if _env("BASE_MODEL_FOLDERS") else None
EVALUATION_S = _seconds("EVALUATION_SECONDS", 600)
EVALUATION_MEMORY_BYTES = int(_env("EVALUATION_MEMORY", str(16 * 1024**3)))

# Where the processes of one service count together; without it each counts for itself.
METRICS_FOLDER = Path(_env("METRICS_FOLDER")) if _env("METRICS_FOLDER") else None
# Where a worker answers /metrics; web does on its own address.
METRICS_ADDRESS = _env("METRICS")
METRICS_WINDOW_S = _seconds("METRICS_WINDOW", 300)
METRICS_LABELS = int(_env("METRICS_LABELS", "50"))

VALIDATE_DEADLINE_S = _seconds("VALIDATE_DEADLINE", 120)
COMMAND_DEADLINE_S = _seconds("COMMAND_DEADLINE", 60)
NODE_TIMEOUT_S = _seconds("NODE_TIMEOUT", 15)
DRAIN_S = _seconds("DRAIN_SECONDS", 5)
RECYCLE_DEADLINE_S = _seconds("RECYCLE_DEADLINE", 600)
EVICT_GRACE_S = _seconds("EVICT_GRACE", 300)
# Whole days beside today that request records are kept for. Predictions look back four weeks.
REQUEST_RECORD_DAYS = int(_env("REQUEST_RECORD_DAYS", "35"))
SWEEP_S = _seconds("SWEEP_SECONDS", 2)
STORE_SWEEP_S = _seconds("STORE_SWEEP_SECONDS", 3600)
UPLOAD_TTL_S = _seconds("UPLOAD_TTL", 86_400)
UPLOAD_URL_TTL_S = 3600
HUB_DRAFT_TTL_S = _seconds("HUB_DRAFT_TTL", 7 * 86_400)
UPLOAD_PARTS_FROM = int(_env("UPLOAD_PARTS_FROM", str(64 * 1024**2)))
UPLOAD_PART_BYTES = int(_env("UPLOAD_PART_BYTES", str(16 * 1024**2)))
MAX_VERSION_BYTES = int(_env("MAX_VERSION_BYTES", str(8 * 1024**3)))

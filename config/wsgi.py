import os

from django.core.management.base import BaseCommand
from django.core.wsgi import get_wsgi_application

from config.sign_in.checks import SIGN_IN

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()
# Commands check all that there is; this process is started by none.
BaseCommand().check(tags=[SIGN_IN])

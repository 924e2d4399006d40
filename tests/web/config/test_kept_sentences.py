import pytest
from django.utils import translation

from releases.services.releases.make import waits_for
from releases.services.releases.verbs import pause_release
from tests.factories.api_world import build_world
from tests.factories.registry import make_actor

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent", "signer", "store")]


def test_what_is_kept_is_kept_in_one_language_whoever_does_it() -> None:
    build_world()
    from releases.models import Release

    release = Release.objects.get()
    with translation.override("zh-hans"):
        pause_release(actor=make_actor(), release=release, reason="")
        waits = waits_for(given=0, required=2)
    release.refresh_from_db()
    assert "paused it" in release.sentence
    assert waits == "It waits for the approvals of 2 people."

from zoneinfo import available_timezones

import pytest
from django.test import RequestFactory

from config.web import reader


def test_the_names_of_zones_are_not_looked_for_by_every_request(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def look() -> set[str]:
        looked.append(1)
        return available_timezones()

    monkeypatch.setattr(reader, "available_timezones", look)
    for zone, found in (("Asia/Tokyo", "Asia/Tokyo"), ("../etc/passwd", "UTC"), ("Asia/Tokyo", "Asia/Tokyo")):
        request = RequestFactory().get("/ui/")
        request.COOKIES[reader.ZONE_COOKIE] = zone
        assert reader.zone_of(request).key == found
    assert len(looked) <= 1

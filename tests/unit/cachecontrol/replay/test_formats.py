import io
import math
from typing import Any

import numpy as np
import pytest

from cachecontrol.replay.formats import TraceUnreadable, read_trace
from cachecontrol.replay.trace import Trace

MINUTES = (
    "HashOwner,HashApp,HashFunction,Trigger,480,481\nacme,app,f,http,5,0\nacme,app,g,timer,0,1\nglobex,app,f,http,1,1\n"
)
RATES = "client,ts_s,rate_rps,cv\n0,0,0.5,1\n1,0,0.1,1\n0,600,0.5,1\n"
REQUESTS = """t_s,tenant,version,size_mib,reload_ms,weight
30,acme,tone@1,40,250,4
10,globex,tone@1,,,
20,acme,tone@1,40,250,4
"""


def read(text: str | bytes) -> Trace:
    return read_trace(io.BytesIO(text if isinstance(text, bytes) else text.encode()), name="made")


def archive(**changes: object) -> bytes:
    arrays: dict[str, object] = {
        "t": [9.0, 3.0],
        "obj": [0, 1],
        "size": [40.0, 80.0],
        "cost": [200.0, 400.0],
        "tenant": [0, 1],
        "tier": [3, 1],
        "retire_obj": [1],
        "retire_t": [5.0],
    }
    target = io.BytesIO()
    kept: dict[str, Any] = {key: np.array(value) for key, value in {**arrays, **changes}.items() if value is not None}
    np.savez(target, **kept)
    return target.getvalue()


def test_arrays_are_taken_as_they_are_in_the_order_of_time() -> None:
    trace = read(archive())
    assert trace.at.tolist() == [3.0, 9.0]
    assert trace.version.tolist() == [1, 0]
    assert trace.weight.tolist() == [4.0, 1.0]
    assert trace.retires_at.tolist() == [math.inf, 5.0]


def test_counts_by_the_minute_become_entries_within_it_that_sum_up() -> None:
    trace = read(MINUTES)
    assert trace.versions == 3
    assert trace.tenants == ("acme", "globex")
    assert trace.total_requests == 8
    assert trace.requests[trace.version == 0].tolist() == [3, 2]
    first = trace.at[trace.version == 0]
    assert 480 * 60 <= first.min() <= first.max() < 481 * 60
    assert (np.diff(trace.at) >= 0).all()


def test_rates_become_requests_of_their_ten_minutes() -> None:
    trace = read(RATES)
    assert trace.versions == 2
    assert 200 < trace.requests[trace.at < 600].sum() < 550
    assert trace.at.max() < 1200


def test_requests_carry_what_is_known_and_the_rest_is_drawn() -> None:
    trace = read(REQUESTS)
    assert trace.at.tolist() == [10, 20, 30]
    assert trace.version.tolist() == [1, 0, 0]
    assert (trace.size_mib[0], trace.remote_ms[0], trace.weight[0]) == (40, 250, 4)
    assert trace.size_mib[1] in {40, 80, 160, 320, 640}
    assert trace.tenants == ("acme", "globex")


def test_the_same_file_is_the_same_trace() -> None:
    first, second = read(RATES), read(RATES)
    assert first.at.tolist() == second.at.tolist()
    assert first.remote_ms.tolist() == second.remote_ms.tolist()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "neither"),
        ("a,b,c\n1,2,3\n", "neither"),
        ("t_s,tenant,version\nsoon,acme,x\n", "line 2"),
        ("t_s,tenant,version\n1,acme\n", "line 2"),
        ("client,ts_s,rate_rps,cv\n0,0,fast,1\n", "line 2"),
        ("HashOwner,HashApp,HashFunction,Trigger,480\na,b,c,http,1,2\n", "line 2"),
        (b"\xff\xfe\x00", "line 0"),
        (b"PK\x03\x04 torn", "archive"),
        (archive(cost=None), "cost"),
    ],
    ids=["empty", "unknown", "no number", "short line", "no rate", "too many", "no text", "torn archive", "no costs"],
)
def test_what_cannot_be_read_is_refused_with_the_place(text: str | bytes, told: str) -> None:
    with pytest.raises(TraceUnreadable, match=told):
        read(text)

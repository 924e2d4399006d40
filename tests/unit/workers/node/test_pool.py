from threading import Event

import pytest

from workers.node.pool import CommandPool


@pytest.mark.parametrize("slow", ["node.fetch", "node.warm"])
def test_commands_of_one_kind_do_not_hold_up_those_of_another(slow: str) -> None:
    pool, go, done = CommandPool(1), Event(), Event()
    pool.start()

    def carry_out(kind: str) -> None:
        if kind == slow:
            go.wait(10)
        else:
            done.set()

    others = [kind for kind in ("node.evict", "node.fetch", "node.warm") if kind != slow]
    for _ in range(3):
        pool.on_apply(carry_out, (slow,), {}, lambda _: None)
    for other in others:
        done.clear()
        pool.on_apply(carry_out, (other,), {}, lambda _: None)
        assert done.wait(5), other
    go.set()
    pool.on_stop()

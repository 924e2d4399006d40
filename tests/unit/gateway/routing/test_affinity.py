from collections import Counter

from gateway.routing.affinity import is_too_busy, session_seed, weight


def test_a_sessions_number_is_the_same_in_every_process() -> None:
    assert session_seed("session-1") == 599834158
    assert session_seed("\ud800") == session_seed("\ud800")


def test_every_node_is_liked_best_by_its_share_of_sessions() -> None:
    nodes = [session_seed(f"node-{number}") for number in range(8)]
    best = Counter(max(nodes, key=lambda node: weight(node, session_seed(f"s{n}"))) for n in range(8000))
    assert all(850 < best[node] < 1150 for node in nodes)


def test_a_session_whose_node_leaves_goes_to_its_second() -> None:
    nodes = [session_seed(f"node-{number}") for number in range(8)]
    for number in range(200):
        seed = session_seed(f"s{number}")
        order = sorted(nodes, key=lambda node: weight(node, seed))
        without = [node for node in nodes if node != order[-1]]
        assert max(without, key=lambda node: weight(node, seed)) == order[-2]


def test_a_liked_node_is_left_only_if_it_is_busier_by_number_and_by_ratio() -> None:
    assert not is_too_busy(8, 0)
    assert is_too_busy(9, 0)
    assert not is_too_busy(109, 100)
    assert is_too_busy(160, 100)

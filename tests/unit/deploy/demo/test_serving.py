from deploy.demo.serving import audit_rows


def record(seq: int, who: str, action: str, reason: str | None = None) -> dict[str, object]:
    actor = {"kind": "person", "id": f"{who.lower()}@acme.example", "name": who}
    thing = {"kind": "alias", "id": "1", "name": "acme/support"}
    return {"seq": seq, "actor": actor, "action": action, "object": thing, "reason": reason}


def test_a_record_becomes_a_row_with_who_did_what_to_what_and_why() -> None:
    assert audit_rows([record(7, "Rui", "tenant:alias:move", "shorter")]) == [
        ("7", "Rui", "tenant:alias:move", "acme/support", "shorter")
    ]


def test_like_records_in_a_row_are_shown_once_with_their_numbers() -> None:
    observed = [record(seq, "cpu-1", "node:residency:observe") for seq in (3, 4, 5)]
    rows = audit_rows([record(2, "Rui", "set"), *observed, record(6, "Rui", "set")])
    assert [row[0] for row in rows] == ["2", "3-5", "6"]


def test_an_actor_without_a_name_is_told_by_its_id() -> None:
    nameless = {**record(1, "x", "set"), "actor": {"kind": "application", "id": "0123456789ab", "name": ""}}
    assert audit_rows([nameless])[0][1] == "0123456789ab"

"""A store of an earlier version: its History stands after the migration."""

from django.core.management import call_command

from chat.models import Turn
from tenants.store import active_store, migrate_store


def migrate_to(number: str) -> None:
    call_command("migrate", "chat", number, database=active_store().alias, verbosity=0)


def test_each_earlier_turn_gets_an_id_of_its_own_and_counts_as_not_rated(acme, support):
    first, second = (Turn.objects.create(model=support, question=question, visitor="v") for question in "ab")
    migrate_to("0001")
    migrate_store(acme)
    earlier = Turn.objects.order_by("pk")
    assert [turn.question for turn in earlier] == ["a", "b"]
    assert len({turn.public_id for turn in earlier} | {first.public_id, second.public_id}) == 4
    assert {(turn.rating, turn.rating_reason, turn.visitor) for turn in earlier} == {(0, "", "")}

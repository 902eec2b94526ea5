"""What follows from an object is worked out once, and forgotten with it."""

from rules.facts.cluster import FactsBuilder
from rules.facts.memo import ObjectMemo
from rules.facts.objects import ObjectMeta, OtherObject
from rules.facts.prices import bundled
from tests.rules.facts.make import NOW

KINDS = ("Node", "Pod", "Job")


def job(name: str) -> OtherObject:
    return OtherObject(metadata=ObjectMeta(name=name), kind="Job")


def test_the_same_object_is_asked_once_and_an_equal_one_again() -> None:
    asked: list[OtherObject] = []

    def name_of(item: OtherObject) -> str:
        asked.append(item)
        return item.metadata.name

    memo, one, equal = ObjectMemo(), job("a"), job("a")
    assert [memo.of(item, "name", name_of) for item in (one, one, equal)] == ["a"] * 3
    assert [item is one for item in asked] == [True, False]


def test_objects_that_are_gone_are_forgotten() -> None:
    memo = ObjectMemo()
    for turn in range(20):
        jobs = [job(f"{turn}-{number}") for number in range(300)]
        for item in jobs:
            memo.of(item, "name", lambda item: item.metadata.name)
        memo.keep(jobs)
    assert len(memo) <= 1.25 * 300 + 1000


def test_later_facts_of_one_builder_still_know_and_others_do_not() -> None:
    builder, jobs = FactsBuilder("c", bundled()), (job("a"),)

    def facts(by: FactsBuilder) -> list[str]:
        asked: list[str] = []
        built = by.build(NOW, nodes=(), pods=(), others={"Job": jobs}, read_kinds=KINDS)
        built.remember_of(jobs[0], "name", lambda item: asked.append(item.metadata.name))
        return asked

    assert facts(builder) == ["a"]
    assert facts(builder) == []
    assert facts(FactsBuilder("c", bundled())) == ["a"]

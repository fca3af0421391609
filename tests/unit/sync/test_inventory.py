"""Placement of entries in shards: stable, bounded, and silent when nothing changed."""

from collections.abc import Iterable

from gitops_ctl.core.ids import ObjectId
from gitops_ctl.sync.inventory import Record, Shard, entry_bytes, entry_of, entry_tree, place
from gitops_ctl.sync.model import Entry


def entries(names: Iterable[int], *, file: str = "") -> dict[ObjectId, Entry]:
    ids = [ObjectId("", "ConfigMap", "lab", f"n{number:05}") for number in names]
    return {item: Entry(item, "v1", "u", "sha256:d", "sha256:a", file) for item in ids}


def changed(before: Record, after: Record) -> list[int]:
    old = {shard.number: shard for shard in before.shards}
    return [shard.number for shard in after.shards if shard is not old.get(shard.number)]


def stored(record: Record) -> Record:
    return Record.of(Shard(shard.number, shard.entries, "1") for shard in record.shards)


def test_entries_survive_their_stored_form() -> None:
    item = Entry(ObjectId("apps", "Deployment", "lab", "web"), "v1", "u", "sha256:d", "sha256:a", "a.yaml")
    assert entry_of(entry_tree(item)) == item


def test_R13_ten_thousand_entries_fill_shards_up_to_the_limit() -> None:
    record = place(Record(), entries(range(10_000)))
    assert [len(shard.entries) for shard in record.shards] == [2000] * 5


def test_R14_a_shard_is_also_bounded_in_bytes() -> None:
    wanted = entries(range(3), file="f" * 1000)
    size = entry_bytes(next(iter(wanted.values())))
    record = place(Record(), wanted, max_bytes=2 * size)
    assert [len(shard.entries) for shard in record.shards] == [2, 1]


def test_one_change_writes_one_shard_and_no_change_writes_none() -> None:
    wanted = entries(range(4500))
    record = stored(place(Record(), wanted))
    assert changed(record, place(record, wanted)) == []
    item = next(iter(record.shards[1].entries))
    edited = {**wanted, item: Entry(item, "v1", "u", "sha256:other")}
    assert changed(record, place(record, edited)) == [1]


def test_a_removal_makes_room_that_the_next_new_entry_takes() -> None:
    record = stored(place(Record(), entries(range(4500))))
    wanted = entries([*range(10, 4500), 9000])
    after = place(record, wanted)
    assert changed(record, after) == [0]
    assert [len(shard.entries) for shard in after.shards] == [1991, 2000, 500]
    assert after.entries.keys() == wanted.keys()


def test_empty_shards_at_the_end_fall_away_and_the_first_one_stays() -> None:
    record = stored(place(Record(), entries(range(2500))))
    assert len(place(record, entries(range(10))).shards) == 1
    empty = place(record, {})
    assert [dict(shard.entries) for shard in empty.shards] == [{}]


def test_a_shard_whose_entries_grew_too_large_hands_some_on() -> None:
    wanted = entries(range(4))
    size = entry_bytes(next(iter(wanted.values())))
    record = stored(place(Record(), wanted, max_bytes=4 * size))
    grown = entries(range(4), file="f" * size)
    after = place(record, grown, max_bytes=4 * size)
    assert after.entries == grown
    assert all(sum(map(entry_bytes, shard.entries.values())) <= 4 * size for shard in after.shards)

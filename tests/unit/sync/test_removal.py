"""One prune from the guards to what it deletes: which sets may go, and for how long a permission holds."""

from collections.abc import Iterable
from typing import Any

from gitops_ctl.core.ids import NamespacedName, ObjectId
from gitops_ctl.sync.model import Entry, View
from gitops_ctl.sync.order import Deletion
from gitops_ctl.sync.prune import PruneSpec
from gitops_ctl.sync.removal import Pruned, Removal, remove_unlisted
from gitops_ctl.sync.remove import Removed
from gitops_ctl.sync.unit import Memory
from tests.support.sync import OWNER

TOTAL = 20


class Watched:
    """A cluster whose kinds all have informers."""

    def is_watched(self, _kind: object) -> bool:
        return True


class Refusing:
    """Stands for an account that may not delete anything."""

    cluster = Watched()

    def __init__(self) -> None:
        self.tried: list[list[str]] = []

    async def delete(self, doomed: Iterable[Deletion], *, own: NamespacedName | None) -> Removed:
        del own
        items = list(doomed)
        self.tried.append([item.entry.id.name for item in items])
        return Removed(failed={item.entry.id: "forbidden" for item in items})


def entries(*numbers: int) -> list[Entry]:
    return [Entry(ObjectId("", "ConfigMap", "lab", f"c{number}"), "v1", f"uid-{number}") for number in numbers]


async def removed(remover: Any, memory: Memory, *numbers: int) -> Pruned:
    removal = Removal(
        owner=OWNER,
        remover=remover,
        see=lambda entry: View(entry.uid, "1", "", OWNER.mark(entry.id)),
        listed_elsewhere=lambda _item: False,
        spec=PruneSpec(enabled=True),
        own=NamespacedName("lab", "applier"),
        remaining=TOTAL - len(numbers),
    )
    return await remove_unlisted(removal, entries(*numbers), memory=memory, total=TOTAL)


async def test_small_sets_that_could_not_go_one_after_another_are_no_permission_for_all_of_them() -> None:
    remover, memory = Refusing(), Memory(NamespacedName("lab", "site"), "u", None)
    assert (await removed(remover, memory, 0, 1, 2, 3)).blocked == ""
    assert (await removed(remover, memory, 4, 5, 6, 7)).blocked == "", "the first four are in Git again"
    pruned = await removed(remover, memory, *range(8))
    assert "8 of 20 objects" in pruned.blocked
    assert len(remover.tried) == 2


async def test_the_rest_of_a_set_that_passed_the_guards_may_go_without_asking_again() -> None:
    remover, memory = Refusing(), Memory(NamespacedName("lab", "site"), "u", None)
    memory.permitted = frozenset((entry.id, entry.uid) for entry in entries(*range(12)))
    assert (await removed(remover, memory, *range(10))).blocked == ""
    assert (await removed(remover, memory, *range(8))).blocked == ""
    assert "10 of 20 objects" in (await removed(remover, memory, *range(10))).blocked, "two of them came back meanwhile"

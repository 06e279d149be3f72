"""Holders keep the newest checkpoint of each stream, within their limits; workers find it wherever it is."""

import pytest

from pulse.errors import InputError
from streaming.fleet.fleet_table import FleetTable
from streaming.fleet.holder import CheckpointHolder
from streaming.fleet.membership import Membership
from streaming.fleet.replica_store import ReplicaStore
from streaming.protocol.errors import ProtocolError
from streaming.serve.checkpoints import Checkpoint
from tests.streaming.fleet.holders import LocalHolders


def test_an_older_generation_does_not_replace_a_newer_one() -> None:
    holder = CheckpointHolder(1000)
    assert holder.load("s") is None
    assert holder.save("s", 1, b"new", 60) == "saved"
    assert holder.save("s", 0, b"late", 60) == "newer"
    assert holder.load("s") == (1, b"new")
    assert holder.save("s", 1, b"newer", 60) == "saved"
    assert holder.load("s") == (1, b"newer")
    holder.remove("s")
    holder.remove("s")
    assert holder.load("s") is None
    assert holder.status().held_bytes == 0


def test_a_full_holder_refuses_more_bytes() -> None:
    holder = CheckpointHolder(10)
    assert holder.save("a", 0, b"123456", 60) == "saved"
    assert holder.save("b", 0, b"12345", 60) == "full"
    assert holder.save("a", 0, b"1234567890", 60) == "saved"
    assert holder.save("a", 0, b"12345678901", 60) == "full"
    assert holder.load("a") == (0, b"1234567890")
    assert holder.status().held_bytes == 10


def test_checkpoints_that_are_not_renewed_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    holder = CheckpointHolder(10)
    holder.save("a", 0, b"1234", 60)
    holder.save("b", 0, b"5678", 60)
    now = 50.0
    holder.save("a", 0, b"12345", 60)
    now = 61.0
    assert holder.save("c", 0, b"12345", 60) == "saved"
    assert (holder.load("a"), holder.load("b")) == ((0, b"12345"), None)
    now = 1000.0
    assert holder.sweep() == 2
    assert holder.status().checkpoints == 0


def test_each_checkpoint_is_kept_as_long_as_its_worker_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of several deployments, each with its own ``keep_s``, share the holders."""
    now_s = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    holders = LocalHolders("a")
    membership = Membership("w", "1")
    membership.table = FleetTable(1, (), holders.entries)
    for keep_s in (600.0, 60.0):
        ReplicaStore(membership, "b", holders, 1, keep_s).save(f"{keep_s:032.0f}.1", 0, moment(1))
    now_s = 61.0
    assert holders.holders["holder-a"].status().checkpoints == 1
    assert holders.holders_with(f"{600:032}.1") == {"holder-a"}
    now_s = 601.0
    assert holders.holders["holder-a"].status().checkpoints == 0


@pytest.mark.parametrize("limit_bytes", [0, -1])
def test_a_limit_that_holds_nothing_is_refused(limit_bytes: int) -> None:
    with pytest.raises(InputError, match=f"limit_bytes = {limit_bytes}: must be above 0"):
        CheckpointHolder(limit_bytes)


def test_a_holder_keeps_the_newest_table() -> None:
    holder = CheckpointHolder(10)
    for number in (2, 1):
        holder.set_table(FleetTable(number))
    assert (holder.table().number, holder.status().table) == (2, 2)


def stores(copies: int = 1, nodes: str = "abc") -> tuple[LocalHolders, list[ReplicaStore]]:
    membership, holders = Membership("w", "1"), LocalHolders(nodes)
    membership.table = FleetTable(1, (), holders.entries)
    return holders, [ReplicaStore(membership, node, holders, copies, 60.0) for node in nodes]


def moment(received: int) -> Checkpoint:
    return Checkpoint("m", 0, (received,), (received,), b"snapshot")


def test_checkpoints_are_on_other_nodes() -> None:
    holders, all_stores = stores()
    for store in all_stores:
        for _ in range(20):
            name = store.new_name()
            assert store.save(name, 0, moment(1))
            assert f"holder-{store.node}" not in holders.holders_with(name)
            assert store.load(name) == (moment(1), 0)
            store.remove(name)
            assert not holders.holders_with(name)


def test_a_single_node_holds_its_own_checkpoints() -> None:
    holders, (store,) = stores(nodes="a")
    name = store.new_name()
    assert store.save(name, 0, moment(1))
    assert holders.holders_with(name) == {"holder-a"}


def test_the_newest_checkpoint_survives_lost_holders() -> None:
    holders, (store, *_) = stores(nodes="abcd")
    name = store.new_name()
    assert store.save(name, 0, moment(1))
    (first,) = holders.holders_with(name)
    holders.lost.add(first)
    assert store.save(name, 0, moment(2))
    holders.lost.clear()
    assert len(holders.holders_with(name)) == 2
    assert store.load(name) == (moment(2), 0)
    assert store.save(name, 1, moment(1))
    assert store.load(name) == (moment(1), 1)


def test_two_copies_survive_one_loss() -> None:
    holders, (store, *_) = stores(copies=2)
    name = store.new_name()
    assert store.save(name, 0, moment(1))
    for lost_holder in holders.holders_with(name):
        holders.lost = {lost_holder}
        assert store.load(name) == (moment(1), 0)


def test_a_save_with_too_few_copies_is_not_safe() -> None:
    holders, (store, *_) = stores(copies=2)
    holders.lost = {"holder-a", "holder-b"}
    assert not store.save(store.new_name(), 0, moment(1))


def test_a_server_that_saves_an_older_generation_is_refused() -> None:
    _, (store, other, _) = stores()
    name = store.new_name()
    assert store.save(name, 1, moment(5))
    assert store.load(name)[1] == 1
    refused = [late for late in (store, other) if not late.save(name, 0, moment(3))]
    assert store in refused, "its first choice of a holder has the newer generation"
    assert store.load(name) == (moment(5), 1)


def test_unknown_checkpoints_and_no_holders_are_errors() -> None:
    holders, (store, *_) = stores()
    with pytest.raises(ProtocolError, match="no checkpoint"):
        store.load(store.new_name())
    holders.lost = set(holders.holders)
    with pytest.raises(ProtocolError, match="no checkpoint"):
        store.load(store.new_name())
    alone = ReplicaStore(Membership("w", "1"), "a", holders, 1, 60.0)
    assert not alone.save(alone.new_name(), 0, moment(1))
    alone.remove(alone.new_name())
    with pytest.raises(ProtocolError, match="no checkpoint holder"):
        alone.load(alone.new_name())


def test_a_damaged_checkpoint_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    holders, (store, *_) = stores(copies=2)
    name = store.new_name()
    assert store.save(name, 0, moment(1))
    first, second = sorted(holders.holders_with(name))
    holders.holders[first].save(name, 1, b"something else", 60)
    assert store.load(name) == (moment(1), 0)
    holders.holders[second].save(name, 1, moment(1).as_bytes()[:20], 60)
    with pytest.raises(ProtocolError, match="the checkpoint is damaged") as error:
        store.load(name)
    assert error.value.code == "resume"
    assert len(caplog.messages) == 3
    assert name not in caplog.text

# SPDX-License-Identifier: Apache-2.0
"""Stored bytes and their facts after kill -9, death at each fault point, power cuts and full
disks.  YARD_SWEEP and YARD_SEED as in test_crash.py.
"""
import os
import random
import time

import pytest
from storage_fleet import Fleet
from test_crash import IS_SWEEP, SEED, fall, fill_up, has_faults, new_disk, say, yard_on  # noqa: F401

CLIENTS = 12
KILLS = 500 if IS_SWEEP else 8
CUTS = 100 if IS_SWEEP else 3


def test_kill_9_under_12_writers_loses_and_mixes_nothing(fresh_yard, say):  # noqa: F811
    yard = fresh_yard()
    fleet = Fleet(yard, CLIENTS, SEED)
    chance = random.Random(SEED)
    slowest = 0.0
    for kill in range(KILLS):
        fleet.start()
        fleet.wait_acknowledged(1)
        time.sleep(chance.uniform(0, 0.4))
        yard.kill9()
        fleet.stop()
        slowest = max(slowest, yard.start())
        fleet.check(everything=kill % 50 == 49)
    fleet.check(everything=True)
    say(f"{KILLS} kills, {fleet.acknowledged} writes acknowledged, 0 missing or mixed,"
        f" slowest restart {slowest:.2f} s")


POINTS = (
    "storage.before-row", "storage.after-row", "storage.after-swap", "storage.after-block",
    "storage.before-append", "storage.after-append", "storage.before-mark",
    "storage.before-unlink", "storage.before-rename", "storage.after-rename",
    "storage.after-unlink", "storage.after-pages", "storage.after-assembly",
    "storage.after-file-sync", "files.before-datasync", "files.after-datasync",
    "files.before-unlink", "files.before-fsync", "files.before-rename", "files.after-rename",
    "writer.before-commit", "writer.after-commit", "writer.after-telling",
)


@pytest.mark.parametrize("point", POINTS)
def test_death_at_a_fault_point_leaves_old_or_new(fresh_yard, has_faults, point):  # noqa: F811
    yard = fresh_yard()
    fleet = Fleet(yard, 4, SEED)
    for nth in [1, 2, 3, 5, 8, 20] if IS_SWEEP else [1, 2, 6]:
        fall(yard, fleet, f"{point}:{nth}")
        yard.start()
        fleet.check(everything=True)
    fleet.start()
    assert fleet.wait_acknowledged(50)
    fleet.stop()


def test_a_power_cut_loses_and_mixes_nothing(new_disk, yard_on, say):  # noqa: F811
    """Unsynced writes are dropped as a disk without power drops them.  Every third time in the
    first moments of a new account."""
    disk = new_disk("ext4", 1024)
    chance = random.Random(SEED)
    yard = fleet = None
    acknowledged = 0
    for cut in range(CUTS):
        is_new = cut % 3 == 0
        if is_new:
            if yard is not None:
                acknowledged += fleet.acknowledged
                yard.stop()
                disk.command("rm", "-rf", str(yard.home))
            yard = yard_on(disk.point / f"yard-{cut}" / "home")
            yard.start()
            fleet = Fleet(yard, CLIENTS, SEED + cut)
        fleet.start()
        assert fleet.wait_acknowledged(1)
        time.sleep(0 if is_new else chance.uniform(0, 0.6))
        fleet.be_deaf()
        disk.cut_power()
        yard.kill9()
        fleet.stop()
        disk.unmount()
        disk.mount()
        yard.start()
        fleet.check(everything=True)
    acknowledged += fleet.acknowledged
    yard.stop()
    say(f"{CUTS} power cuts, {acknowledged} writes acknowledged, 0 missing or mixed")


@pytest.mark.parametrize("way", ["put_pages", "append", "put_range"])
def test_the_last_write_in_place_keeps_bytes_and_etag_over_a_power_cut(new_disk, yard_on, way):  # noqa: F811
    """Alone on its disk: nobody else's fsync takes the times of the file along."""
    disk = new_disk("ext4", 256)
    yard = yard_on(disk.point / "home")
    yard.start()
    fleet = Fleet(yard, 1, SEED)
    writer = fleet.writers[0]
    for _ in range(3):
        writer.open()
        if not writer.some("file" if way == "put_range" else "blob", "PageBlob", "AppendBlob", "File"):
            {"put_pages": writer.create_pages, "append": writer.create_append,
             "put_range": writer.create_file}[way]()
        for _ in range(30):  # until every slot has blocks of its own
            getattr(writer, way)()
        os.sync()
        time.sleep(0.1)
        getattr(writer, way)()
        disk.cut_power()
        yard.kill9()
        writer.close()
        disk.unmount()
        disk.mount()
        yard.start()
        fleet.check(everything=True)
    yard.stop()


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_full_disk_is_said_nothing_is_half_written_and_room_heals_it(new_disk, yard_on, kind):  # noqa: F811
    disk = new_disk(kind, 96)
    yard = yard_on(disk.point / "home")
    yard.start()
    fleet = Fleet(yard, 4, SEED)
    fleet.start()
    assert fleet.wait_acknowledged(60)
    fleet.stop()
    fill_up(disk.point / "ballast")
    refused = []
    for _ in range(40):  # some find room in what others gave back
        fleet.start()
        fleet.wait_acknowledged(10**9, 0.25)
        fleet.stop()
        refused += fleet.refused()
        if len(refused) > 20:
            break
        fill_up(disk.point / f"ballast-{time.monotonic_ns()}")
    assert refused, "a full disk takes everything"
    for answer in refused:
        assert answer.status in (500, 503, 507) and answer.code, answer
    assert {a.status for a in refused} == {507}, {(a.status, a.code) for a in refused}
    assert yard.process.poll() is None
    for file in disk.point.glob("ballast*"):
        file.unlink()
    yard.restart()  # so that rows of what failed have been looked at
    fleet.check(everything=True)
    fleet.start()
    assert fleet.wait_acknowledged(60)
    fleet.stop()
    assert not fleet.refused()
    yard.kill9()
    yard.start()
    fleet.check(everything=True)
    yard.stop()

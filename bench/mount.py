# SPDX-License-Identifier: Apache-2.0
"""The part "mount" of bench/storage: cold reads through mounts of a container.

The container's own folder is read beside a bind mount of it, `yard mount` and `rclone mount`, in
turns, each time another one first.  Cold means that each turn has a mount of its own, and that the
kernel has dropped its caches (root only; without root nothing is cold, and the table says so).
"""
import contextlib
import mmap
import os
import statistics
import subprocess
import time

MIB = 1 << 20
TURNS = 4
CONTAINER = "mount"


def make_data(tree, size, count):
    block = os.urandom(MIB)
    with open(tree / "large", "wb") as file:
        for _ in range(size // MIB):
            file.write(block)
    for n in range(count):
        file = tree / "files" / f"{n // 100:03d}" / f"{n:06d}.bin"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(block)


def read_file(path, buffer):
    fd = os.open(path, os.O_RDONLY)
    got = 0
    while some := os.readv(fd, [buffer]):
        got += some
    os.close(fd)
    return got


def read_large(root):
    return read_file(root / "large", bytearray(MIB))


def read_files(root):
    """In order, as a loader without shuffling has them."""
    buffer, got = bytearray(MIB), 0
    for folder in sorted(os.listdir(root / "files")):
        for name in sorted(os.listdir(root / "files" / folder)):
            got += read_file(root / "files" / folder / name, buffer)
    return got


def drop_caches():
    os.sync()
    with contextlib.suppress(OSError), open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("3")


def warm_memory(size):
    """Where memory is lent by a host, what was not in use for a while has to be asked for again; and
    a mount needs twice as much of it as the plain folder, for the caches of both ends."""
    with mmap.mmap(-1, 3 * size) as memory:
        for at in range(0, len(memory), mmap.PAGESIZE):
            memory[at] = 1


@contextlib.contextmanager
def mounted_by_us(yard, programs, where, *options):
    env = {**os.environ, "YARD_HOME": str(yard.home)}
    words = [f"{yard.account}/{CONTAINER}", where, *options]
    subprocess.run([programs / "yard", "mount", *words], env=env, check=True, capture_output=True)
    try:
        yield where
    finally:
        subprocess.run([programs / "yard", "umount", where], env=env, check=True, capture_output=True)


@contextlib.contextmanager
def mounted_by_rclone(yard, where):
    env = {**os.environ, "RCLONE_CONFIG": os.devnull, "RCLONE_CONFIG_YARD_TYPE": "azureblob",
           "RCLONE_CONFIG_YARD_SAS_URL": f"{yard.endpoint}?{yard.sas}", "NO_PROXY": "*"}
    process = subprocess.Popen(["rclone", "mount", f"yard:{CONTAINER}", where, "--read-only"], env=env,
                               stderr=subprocess.DEVNULL)
    while not os.path.ismount(where) and process.poll() is None:
        time.sleep(0.02)
    try:
        yield where
    finally:
        subprocess.run(["fusermount3", "-u", where], check=True)
        process.wait()


def rate(way, work, size):
    """MB/s of one cold turn."""
    with way() as root:
        drop_caches()
        warm_memory(size)
        begun = time.perf_counter()
        got = work(root)
        return got / 1e6 / (time.perf_counter() - begun)


def show(table, what, rates):
    plain = rates["plain folder"]
    for name, of_turns in rates.items():
        note = f"median {statistics.median(of_turns):,.0f}"
        if name != "plain folder":
            note += (f"; to the plain folder {max(of_turns) / max(plain):.2f}, medians "
                     f"{statistics.median(of_turns) / statistics.median(plain):.2f}")
        if name == "yard mount":
            note += ", wanted: 0.5"
        table.add(f"{what}, {name}", f"{max(of_turns):,.0f} MB/s", note)


def measure(table, folder, yard, programs, size, count, has_rclone):
    tree = yard.home / "storage" / yard.account / "blob" / CONTAINER / "tree"
    where = folder / "mounted"
    yard.make(CONTAINER)
    make_data(tree, size, count)
    where.mkdir()
    ways = {"plain folder": lambda: contextlib.nullcontext(tree)}
    if os.geteuid() == 0:
        ways["yard mount --bind"] = lambda: mounted_by_us(yard, programs, where, "--bind")
    else:
        table.add("cold reads", "-", "not cold: only root may drop the caches")
    ways["yard mount"] = lambda: mounted_by_us(yard, programs, where)
    if has_rclone:
        ways["rclone mount"] = lambda: mounted_by_rclone(yard, where)
    for what, work in ((f"cold read of {size // MIB} MiB", read_large),
                       (f"cold read of {count} files of 1 MiB", read_files)):
        rates = {name: [] for name in ways}
        for turn in range(TURNS):
            names = list(ways)
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                rates[name].append(rate(ways[name], work, size))
        show(table, what, rates)

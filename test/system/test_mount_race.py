# SPDX-License-Identifier: Apache-2.0
"""Mounts when answers are lost, when others write the same thing, and under many hands at once."""
import contextlib
import errno
import os
import random
import socket
import threading
import time
import traceback

import pytest

import storage_wire
from mounting import ACCOUNT, NEEDS_FUSE, Place, failing, mounted, tree_of

pytestmark = NEEDS_FUSE


@pytest.fixture(scope="module")
def place(yard):
    return Place(yard)


class Wire:
    """Stands between a mount and the yard, and now and then loses a request or its answer.

    A rule is for one request: (method, part of its target, does it arrive, what to do then).
    """

    def __init__(self, port):
        self.port_behind = port
        self.rules, self.seen = [], []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self, method, part, arrives=True, then=lambda: None):
        self.rules.append((method, part, arrives, then))

    def before(self, method, part, work):
        """Do it before the request arrives, which goes on and is answered."""
        self.rules.append((method, part, None, work))

    def count(self, method, part):
        return sum(1 for m, target in self.seen if m == method and part in target)

    def close(self):
        self.listener.close()
        assert not self.rules, f"never asked for: {self.rules}"

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.listener.accept()[0]
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    @staticmethod
    def _read_request(client):
        """-> head, body; (b"", b"") at the end."""
        got = b""
        while b"\r\n\r\n" not in got:
            some = client.recv(65536)
            if not some:
                return b"", b""
            got += some
        head, _, body = got.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        body = bytearray(body)
        while len(body) < length:
            body += client.recv(length - len(body))
        return head + b"\r\n\r\n", bytes(body)

    def _find_rule(self, method, target):
        for rule in self.rules:
            if rule[0] == method and rule[1] in target:
                self.rules.remove(rule)
                return rule
        return None

    def _serve(self, client):
        server = socket.create_connection(("127.0.0.1", self.port_behind))
        muted = threading.Event()

        def answer():
            with contextlib.suppress(OSError):
                while not muted.is_set() and (some := server.recv(1 << 20)):
                    if muted.is_set():
                        break
                    client.sendall(some)
            if not muted.is_set():
                client.close()

        answerer = threading.Thread(target=answer, daemon=True)
        answerer.start()
        with contextlib.suppress(OSError), client, server:
            while True:
                head, body = self._read_request(client)
                if not head:
                    break
                method, target = head.decode().split(" ", 2)[:2]
                self.seen.append((method, target))
                _, _, arrives, work = self._find_rule(method, target) or (None, None, None, None)
                if arrives is None:
                    if work:
                        work()
                    server.sendall(head + body)
                    continue
                muted.set()  # the next bytes of the answer end there
                if arrives:
                    server.sendall(head + body)
                    answerer.join()
                else:
                    server.shutdown(socket.SHUT_RDWR)
                work()
                client.shutdown(socket.SHUT_RDWR)
                break


@contextlib.contextmanager
def mounted_through(yard, place, name, *options, service="blob"):
    """-> folder, wire"""
    endpoint = (place.files if service == "file" else place.blobs).endpoint
    wire = Wire(int(endpoint.split(":")[2].split("/")[0]))
    sas = storage_wire.account_sas(ACCOUNT, place.blobs.key)
    source = f"http://127.0.0.1:{wire.port}/{ACCOUNT}/{name}?{sas}"
    with mounted(yard, source, *options, fresh=0) as folder:
        yield folder, wire
    wire.close()


def store(path, data, flags):
    """Everything that may fail, in sight: what with statements hide, close tells."""
    fd = os.open(path, flags, 0o644)
    for at in range(0, len(data), 1 << 20):
        os.write(fd, data[at : at + (1 << 20)])
    os.close(fd)


NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
EDIT = os.O_WRONLY
ANEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
SMALL, LARGE = b"small", b"0123456789abcdef" * (1 << 20)  # one request; two blocks


# -- answers that are lost -------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", SMALL, LARGE], ids=["empty", "small", "large"])
def test_a_new_file_whose_answer_was_lost_is_made(yard, place, data):
    name, tree = place.container()
    with mounted_through(yard, place, name, "--rw") as (folder, wire):
        for turn in ("first", "second"):  # the second time connections are there already
            wire.lose("PUT", "comp=blocklist" if len(data) > 1 << 23 else f"/{turn}?")
            store(folder / turn, data, NEW)
            assert (tree / turn).read_bytes() == data
            failing(errno.EEXIST, store, folder / turn, data, NEW)


@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["small", "large"])
def test_an_edit_whose_answer_was_lost_is_made(yard, place, data):
    name, tree = place.container()
    (tree / "file").write_bytes(data)
    with mounted_through(yard, place, name, "--rw") as (folder, wire):
        fd = os.open(folder / "file", os.O_RDWR)
        for piece in (b"one", b"two"):  # the second builds on what was learnt of the first
            wire.lose("PUT", "comp=blocklist" if len(data) > 1 << 23 else "/file?")
            os.pwrite(fd, piece, 0)
            os.fsync(fd)
            assert (tree / "file").read_bytes() == piece + data[3:]
        os.close(fd)
        assert (folder / "file").read_bytes() == b"two" + data[3:]


def test_blocks_are_not_sent_again_because_an_answer_was_lost(yard, place):
    name, tree = place.container()
    with mounted_through(yard, place, name, "--rw") as (folder, wire):
        wire.lose("PUT", "comp=blocklist")
        store(folder / "file", LARGE, ANEW)
        assert (tree / "file").read_bytes() == LARGE
        assert wire.count("PUT", "comp=block&") == wire.count("PUT", "comp=blocklist") == 2


def test_a_lost_answer_hides_nobody_elses_work(yard, place):
    name, tree = place.container()
    (tree / "file").write_bytes(b"before")
    with mounted_through(yard, place, name, "--rw") as (folder, wire):
        wire.lose("PUT", "/file?", then=lambda: place.blobs.put(f"/{name}/file", b"theirs"))
        failing(errno.ESTALE, store, folder / "file", b"our", EDIT)
        assert (tree / "file").read_bytes() == b"theirs"
        # Two take a lock: only one may have it, though the files are equal.
        wire.lose("PUT", "/lock?", arrives=False, then=lambda: place.blobs.put(f"/{name}/lock", b""))
        failing(errno.EEXIST, store, folder / "lock", b"", NEW)


def test_a_request_that_never_arrived_is_made_again(yard, place):
    name, tree = place.container()
    with mounted_through(yard, place, name, "--rw") as (folder, wire):
        wire.lose("PUT", "/file?", arrives=False)
        store(folder / "file", SMALL, NEW)
        assert (tree / "file").read_bytes() == SMALL


def test_removals_and_renames_whose_answer_was_lost_are_done(yard, place):
    name, tree = place.container()
    (tree / "file").write_bytes(SMALL)
    with mounted_through(yard, place, name, "--rw") as (folder, wire):
        wire.lose("DELETE", "/file?")
        os.unlink(folder / "file")
        assert tree_of(tree) == {}
    name, tree = place.share()
    (tree / "file").write_bytes(SMALL)
    with mounted_through(yard, place, name, "--share", service="file") as (folder, wire):
        wire.lose("PUT", "restype=directory")
        os.mkdir(folder / "made")
        wire.lose("PUT", "comp=rename")
        os.rename(folder / "file", folder / "made" / "moved")
        assert tree_of(tree) == tree_of(folder) == {"made": None, "made/moved": SMALL}
        wire.lose("DELETE", "/made/moved")
        os.unlink(folder / "made" / "moved")
        wire.lose("DELETE", "/made?")
        os.rmdir(folder / "made")
        assert tree_of(tree) == {}


# -- two who write the same ------------------------------------------------------------------------


def test_blocks_that_others_swept_away_are_sent_again(yard, place):
    name, tree = place.container()
    with mounted_through(yard, place, name, "--rw") as (folder, wire):
        wire.before("PUT", "comp=blocklist", lambda: place.blobs.put(f"/{name}/file", b"theirs"))
        store(folder / "file", LARGE, ANEW)
        assert (tree / "file").read_bytes() == LARGE
        assert wire.count("PUT", "comp=block&") == 2 * wire.count("PUT", "comp=blocklist") == 4


def test_the_blocks_of_two_writers_are_not_mixed(yard, place):
    name, tree = place.container()
    contents = [bytes([letter]) * (20 << 20) for letter in b"ab"]
    with mounted(yard, f"{ACCOUNT}/{name}", "--rw") as one, \
            mounted(yard, f"{ACCOUNT}/{name}", "--rw") as two:
        for turn in range(5):
            threads = [threading.Thread(target=store, args=(folder / "file", data, ANEW))
                       for folder, data in zip((one, two), contents)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert (tree / "file").read_bytes() in contents, turn


@pytest.mark.parametrize("service", ["blob", "file"])
def test_who_reads_goes_on_when_this_mount_renames_the_file(yard, place, service):
    name, tree = place.share() if service == "file" else place.container()
    option = "--share" if service == "file" else "--rw"
    data = random.Random(7).randbytes(8_000_000)
    (tree / "file").write_bytes(data)
    with mounted_through(yard, place, name, option, service=service) as (folder, wire):
        fd = os.open(folder / "file", os.O_RDONLY)
        assert os.pread(fd, 1000, 0) == data[:1000]
        time.sleep(0.5)  # what is fetched ahead of that has come
        wire.before("GET", "/file?", lambda: os.rename(folder / "file", folder / "moved"))
        assert os.pread(fd, 1000, 7_000_000) == data[7_000_000:7_001_000]
        os.close(fd)
        assert tree_of(folder) == {"moved": data}


# -- many hands ------------------------------------------------------------------------------------


def content(source):
    """Of one letter, so that a mixture shows."""
    return bytes([source.randrange(65, 91)]) * source.choice([1, 5000, 300_000, 1_200_000, 3_000_000])


def write_much(folder, own, until, failures):
    source, names = random.Random(own), [f"n{i}" for i in range(6)]
    (folder / own).mkdir()
    try:
        while time.monotonic() < until:
            path = folder / own / source.choice(names)
            work = source.randrange(5)
            if work == 0 and path.exists():
                path.unlink()
            elif work == 1 and path.exists():
                os.rename(path, folder / own / source.choice(names))
            elif work == 2 and not path.exists():
                store(path, content(source), ANEW)
                assert path.exists(), path
            else:
                store(folder / own / "new", content(source), ANEW)
                os.rename(folder / own / "new", path)
    except BaseException:
        failures.append((own, traceback.format_exc()))


def read_much(folder, seed, until, failures, counts, is_share):
    source = random.Random(seed)
    while time.monotonic() < until:
        try:
            for top, _, files in os.walk(folder):
                for name in files:
                    with open(os.path.join(top, name), "rb", buffering=0) as file:
                        size = os.fstat(file.fileno()).st_size
                        if source.random() < 0.3 and size:
                            data = os.pread(file.fileno(), 100_000, source.randrange(size))
                        else:
                            data = file.read()
                    # A blob is of one letter.  A name of a share may lead to another file
                    # while it is read, and a file that grows has zeros for a moment.
                    if set(data) - set(range(65, 91)) - {0} if is_share else data.strip(data[:1]):
                        failures.append((top, name, len(data), set(data)))
                    counts.append(len(data))
        except OSError as e:  # it was removed or replaced meanwhile
            if e.errno not in (errno.ENOENT, errno.ESTALE):
                failures.append(e)


@pytest.mark.parametrize("is_share", [False, True], ids=["container", "share"])
def test_many_read_and_write_at_once(yard, place, is_share):
    name, tree = place.share() if is_share else place.container()
    option = "--share" if is_share else "--rw"
    failures, counts = [], []
    with mounted(yard, f"{ACCOUNT}/{name}", option, "--cache-mib", 16, fresh=1) as folder, \
            mounted(yard, f"{ACCOUNT}/{name}", *["--share", "--ro"][: 2 * is_share], fresh=0) as other:
        until = time.monotonic() + 8
        threads = [threading.Thread(target=write_much, args=(folder, f"w{i}", until, failures))
                   for i in range(3)]
        threads += [threading.Thread(target=read_much, args=(where, i, until, failures, counts, is_share))
                    for i, where in enumerate((folder, folder, other))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures[:5]
        assert len(counts) > 20
        want = {path: data for path, data in tree_of(tree).items() if data is not None}
        got = {path: data for path, data in tree_of(folder).items() if data is not None}
        assert got == want

# SPDX-License-Identifier: Apache-2.0
"""Attacks on the storage service by names, by what lies in its folders, by sources of copies and by
bodies: nothing outside a container's folder is ever read or written, and every refusal has its own
word.  Signatures are attacked in test_storage_forgery.py."""
import base64
import ctypes
import hashlib
import os
import pathlib
import socket
import stat
import threading
import time
import urllib.parse

import pytest

from storage_account import make_account
from storage_wire import Storage, account_sas, md5

CANARY = b"the canary sings " + os.urandom(16).hex().encode()
MARK = b"written by the attacker"
ANSWER_S = 20  # the longest that any answer here may take, under a sanitizer on a busy machine
RACE_S = 6


@pytest.fixture(scope="module")
def account(yard):
    return make_account(yard, "attacked")


@pytest.fixture(scope="module")
def store(account):
    made = Storage(account.blob, account.name, account.key)
    made.make_container("victim")
    made.make_container("neighbour")
    made.put("/neighbour/secret", CANARY)
    return made


@pytest.fixture(scope="module")
def files(account):
    made = Storage(account.file, account.name, account.key)
    for share in ("victim", "neighbour"):
        assert made.call("PUT", f"/{share}", "restype=share").status == 201
    return made


def fingerprint(yard, account):
    """Everything in and around the data folder but the victims' own folders, and what a daemon
    writes by itself."""
    seen = {}
    skipped = {account.folder / "blob" / "victim", account.folder / "file" / "victim"}
    for parent, folders, names in os.walk(yard.folder):
        here = pathlib.Path(parent)
        folders[:] = [f for f in folders if here / f not in skipped]
        for name in [*folders, *names]:
            path = here / name
            if path == yard.log_file or ".db" in name:
                continue
            try:
                status = path.lstat()
                content = hashlib.md5(path.read_bytes()).hexdigest() if stat.S_ISREG(status.st_mode) else ""
            except FileNotFoundError:  # was thrown away meanwhile
                continue
            seen[str(path)] = (stat.S_IFMT(status.st_mode), content)
    return seen


def settled(yard, account, before):
    """The fingerprint once the daemon has emptied its trash, which it does after it has answered: when it
    is `before`, or when the trash is empty."""
    end = time.monotonic() + ANSWER_S
    trash = yard.home / "storage" / ".trash"
    while True:
        after = fingerprint(yard, account)
        is_over = after == before if before else not (trash.exists() and any(trash.iterdir()))
        if is_over or time.monotonic() > end:
            return after
        time.sleep(0.05)


@pytest.fixture
def guarded(yard, account, store, files):
    """Canaries in every folder on the way up; after the test all is as it was."""
    places = [yard.folder, yard.home, yard.home / "storage", account.folder, account.folder / "blob",
              account.folder / "file"]
    for place in places:
        (place / "canary").write_bytes(CANARY)
    before = settled(yard, account, None)
    yield
    after = settled(yard, account, before)
    for place in places:
        (place / "canary").unlink()
    assert after == before


def raw(store, request):
    """Send bytes as they are; gives status, header block and body."""
    host, port = store.netloc.split(":")
    with socket.create_connection((host, int(port)), timeout=ANSWER_S) as s:
        s.sendall(request)
        answer = b""
        while chunk := s.recv(65536):
            answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1]) if head.startswith(b"HTTP/1.1 ") else None
    return status, head, body


def ask(store, sas, method, path, query="", headers=None, data=b""):
    """A request whose target goes out exactly as written here."""
    target = f"{store.base}{path}?{'&'.join(p for p in (query, sas) if p)}".encode("latin-1")
    lines = [f"{method} ".encode() + target + b" HTTP/1.1", f"Host: {store.netloc}".encode(),
             b"Connection: close",
             f"Content-Length: {len(data)}".encode(), b"x-ms-version: 2021-12-02"]
    lines += [f"{name}: {value}".encode() for name, value in (headers or {}).items()]
    return raw(store, b"\r\n".join(lines) + b"\r\n\r\n" + data)


# -- names ------------------------------------------------------------------------------------------

UP = 12  # more than the data folder is deep
ESCAPES = [
    "..", "../", "../..", "%2e%2e", "%2e%2e/", "%2E%2E%2F", "..%2f", ".%2e/", "%252e%252e%252f",
    "%25252e%25252e", "..;/", "..%3b/",
    "..\\", "..%5c", "%5c..%5c", "..%255c", "....//", "....\\\\", ".../", "..%20/", "..%09/", "..%00/",
    "%00", "a%00b", "..%0d%0a/",
    "./", "%2e/", "/", "//", "%2f", "%2f%2f", "#", "%23", "%23/..", "?", "%3f/..",
    "%c0%ae%c0%ae/", "%c0%ae%c0%ae%c0%af", "%e0%80%ae%e0%80%ae/", "%f0%80%80%ae/", "%c1%9c", "%ff",
    "%fe%fe%ff%ff", "%ed%a0%80",
    "%u002e%u002e/", "%uff0e%uff0e/", "\u2025/", "%e2%80%a4%e2%80%a4/",
    "%ef%bc%8e%ef%bc%8e%ef%bc%8f",
    "%zz", "%", "%2", "~/", "$HOME/", "|id", "`id`", "$(id)", "C:%5c", "C:/", "%5c%5chost%5cshare%5c",
    "file:%2f%2f/",
]
TARGETS = ["canary", "secret.key", "token", "neighbour/tree/secret", "../neighbour/tree/secret", "odd/x",
           "tmp/x", "tree/x"]
ABSOLUTE = ["/etc/passwd", "//etc/passwd", "%2fetc%2fpasswd", "%2f%2fetc%2fpasswd", "/proc/self/environ",
            "%2fproc%2fself%2froot%2fetc%2fpasswd",
            "/dev/zero", "/dev/stdin"]
LONG = ["A" * 4096, "../" * 1365, "%2e%2e%2f" * 600, "a/" * 2048, "%00" * 1000,
        "x" * 255 + "/" + "y" * 4000, "é" * 2000, "%c3%a9" * 2000]


def corpus():
    names = list(ABSOLUTE) + LONG
    for escape in ESCAPES:
        names.append(escape)
        names.append(escape * UP + "canary")
    for target in TARGETS:
        names += [f"../{target}", f"../../{target}", f"..%2f{target}", f"%2e%2e%2f%2e%2e%2f{target}",
                  f"x/../../{target}", f"..\\..\\{target}"]
    return [name.encode("utf-8").decode("latin-1") for name in names]


def wrong_words(status, head):
    """Is a refusal without its word, or with a status that is none of ours?  What is no HTTP is
    refused before anybody knows that it is for storage."""
    if status in (400, 414, 431) and b"application/json" in head and b"Connection: close" in head:
        return False
    return status is None or status >= 500 or (status >= 400 and b"x-ms-error-code:" not in head.lower())


def test_names_of_blobs_stay_names(guarded, account, store):
    sas = account_sas(account.name, account.key, sp="rwdlacptx")
    bad = []
    stored = 0
    for name in corpus():
        path = f"/victim/{name}"
        put = ask(store, sas, "PUT", path, "", {"x-ms-blob-type": "BlockBlob"}, MARK)
        got = ask(store, sas, "GET", path)
        head = ask(store, sas, "HEAD", path)
        block = ask(store, sas, "PUT", path, "comp=block&blockid=Li4vLi4v", {}, MARK)
        gone = ask(store, sas, "DELETE", path)
        for what, (status, lines, body) in {"put": put, "get": got, "head": head, "block": block,
                                            "delete": gone}.items():
            if wrong_words(status, lines) or CANARY in body or b"root:" in body:
                bad.append((what, name[:60], status, lines[-200:], body[:200]))
        # What was taken is a blob with exactly this name, and no other.
        if put[0] == 201:
            stored += 1
            if got[0] != 200 or got[2] != MARK or gone[0] != 202:
                bad.append(("kept", name[:60], put[0], got[0], gone[0]))
    assert not bad, f"{len(bad)} of them: {bad[:5]}"
    assert stored > 50


def test_a_literal_name_is_listed_literally(guarded, account, store):
    sas = account_sas(account.name, account.key, sp="rwdlac")
    for raw_name, name in [
        ("../../canary", "../../canary"), ("%2e%2e/canary", "../canary"), ("%252e%252e/x", "%2e%2e/x"),
        ("..;/x", "..;/x"),
        ("..%5cx", "../x"), ("%2fetc%2fpasswd", "/etc/passwd"), (".", "."), ("..", ".."), ("%23", "#"),
        ("%3f", "?"),
    ]:
        assert ask(store, sas, "PUT", f"/victim/{raw_name}", "", {"x-ms-blob-type": "BlockBlob"},
                   MARK)[0] == 201, raw_name
        listed = store.call("GET", "/victim", "restype=container&comp=list").xml
        assert [n.text for n in listed.iter("Name")] == [name]
        assert ask(store, sas, "GET", f"/victim/{raw_name}")[2] == MARK
        assert ask(store, sas, "DELETE", f"/victim/{raw_name}")[0] == 202


@pytest.mark.parametrize("name, code", [
    ("%ff", "InvalidUri"), ("%c0%ae%c0%ae", "InvalidUri"), ("%ed%a0%80", "InvalidUri"),
    ("a%00b", "InvalidUri"), ("%zz", "InvalidUri"),
    ("%", "InvalidUri"), ("A" * 1025, "OutOfRangeInput"), ("a/" * 300 + "a", "OutOfRangeInput"),
])
def test_what_can_be_no_name_has_its_word(account, store, name, code):
    sas = account_sas(account.name, account.key)
    status, head, body = ask(store, sas, "PUT", f"/victim/{name}", "", {"x-ms-blob-type": "BlockBlob"},
                             MARK)
    assert status == 400 and f"<Code>{code}</Code>".encode() in body, body


def test_names_of_files_stay_below_their_share(guarded, account, files):
    sas = account_sas(account.name, account.key, sp="rwdlac")
    create = {"x-ms-type": "file", "x-ms-content-length": str(len(MARK)), "x-ms-file-permission": "inherit",
              "x-ms-file-attributes": "none", "x-ms-file-creation-time": "now",
              "x-ms-file-last-write-time": "now"}
    write = {"x-ms-write": "update", "x-ms-range": f"bytes=0-{len(MARK) - 1}"}
    bad = []
    for name in corpus():
        path = f"/victim/{name}"
        answers = {
            "put": ask(files, sas, "PUT", path, "", create),
            "range": ask(files, sas, "PUT", path, "comp=range", write, MARK),
            "get": ask(files, sas, "GET", path),
            "list": ask(files, sas, "GET", path, "restype=directory&comp=list"),
            "make": ask(files, sas, "PUT", path, "restype=directory",
                        {k: v for k, v in create.items() if "file-" in k}),
            "rename": ask(files, sas, "PUT", path, "comp=rename",
                          {"x-ms-file-rename-source": f"{files.url('/victim/none')}"}),
            "delete": ask(files, sas, "DELETE", path),
            "rmdir": ask(files, sas, "DELETE", path, "restype=directory"),
        }
        for what, (status, lines, body) in answers.items():
            if wrong_words(status, lines) or CANARY in body or b"root:" in body or b"<Name>canary" in body:
                bad.append((what, name[:60], status, lines[-200:], body[:200]))
        if answers["put"][0] == 201 and b".." in urllib.parse.unquote_to_bytes(name).split(b"/"):
            bad.append(("taken", name[:60], answers["put"]))
    assert not bad, f"{len(bad)} of them: {bad[:5]}"


@pytest.mark.parametrize("source", [
    "{base}/neighbour/../victim/x", "{base}/victim/../../../canary", "{base}/victim/%2e%2e/%2e%2e/canary",
    "/etc/passwd", "file:///etc/passwd",
    "{other}/victim/x", "http://127.0.0.1:1/victim/x", "", "..", "{base}/victim/%00", "{base}/victim",
])
def test_a_rename_takes_nothing_from_elsewhere(guarded, account, files, source):
    sas = account_sas(account.name, account.key)
    url = source.format(base=files.url("").rstrip("/"), other=f"http://{files.netloc}/otheracct")
    status, head, body = ask(files, sas, "PUT", "/victim/taken", "comp=rename",
                             {"x-ms-file-rename-source": url})
    assert 400 <= status < 500 and b"x-ms-error-code" in head.lower(), (status, head, body)


@pytest.mark.parametrize("path, query", [
    ("/..", "restype=container"), ("/%2e%2e", "restype=container"),
    ("/..%2fneighbour", "restype=container"), ("/victim%2f..", "restype=container"),
    ("/.", "restype=container"), ("/victim%00", "restype=container"), ("/%2fetc", "restype=container"),
    ("/neighbour%5ctree", "restype=container"),
    ("/" + "a" * 64, "restype=container"), ("/VICTIM", "restype=container"), ("/a_b", "restype=container"),
    ("/-ab", "restype=container"),
    ("/ab", "restype=container"), ("/..", "restype=share"), ("/%2e%2e%2f", "restype=share"),
    ("/a%2fb%2fc", "restype=share"),
])
def test_names_of_containers_and_shares(guarded, account, store, files, path, query):
    sas = account_sas(account.name, account.key)
    service = files if "share" in query else store
    for method in ("PUT", "DELETE"):
        status, head, body = ask(service, sas, method, path, query)
        assert 400 <= status < 500 and b"x-ms-error-code" in head.lower(), (method, status, head, body)


@pytest.mark.parametrize("target", [
    "/../attacked/victim/x", "/%2e%2e/attacked/victim/x", "//attacked/victim/x", "/attacked%2fvictim/x",
    "/attacked%00/victim/x", "/ATTACKED/victim/x",
    "/attacked-secondary%2f../victim/x", "/./attacked/victim/x", "/" + "a" * 5000 + "/victim/x",
    "/%ff/victim/x", "/nobody/victim/x",
])
def test_names_of_accounts(guarded, account, store, target):
    sas = account_sas(account.name, account.key)
    request = f"GET {target}?{sas} HTTP/1.1\r\nHost: {store.netloc}\r\nConnection: close\r\n\r\n"
    status, head, body = raw(store, request.encode("latin-1"))
    assert 400 <= status < 500, (status, head, body)


@pytest.mark.parametrize("host", ["evil.example", "attacked.blob.evil.example", "127.0.0.1.evil.example",
                                  "..", "a b", "victim@evil", "%2e%2e",
                                  "[::1", "attacked.blob.core.windows.net", "" ])
def test_other_hosts_are_not_ours(guarded, account, store, host):
    sas = account_sas(account.name, account.key)
    request = f"GET /attacked/neighbour/secret?{sas} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    status, head, body = raw(store, request.encode())
    assert status in (400, 421) and CANARY not in body, (status, head, body)


@pytest.mark.parametrize("query", [
    "snapshot=../../../../../../canary", "snapshot=..%2f..%2f..%2fcanary", "snapshot=%00",
    "snapshot=2020-01-01", "snapshot=/etc/passwd",
    "snapshot=" + "9" * 5000, "versionid=../../canary",
])
@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_a_snapshot_is_a_time_and_no_path(guarded, account, store, method, query):
    sas = account_sas(account.name, account.key)
    store.put("/victim/snapped", b"1")
    status, head, body = ask(store, sas, method, "/victim/snapped", query)
    assert 400 <= status < 500 or status == 501, (status, head)
    assert store.call("GET", "/victim/snapped").body == b"1"
    store.call("DELETE", "/victim/snapped")


@pytest.mark.parametrize("id_", [b"../../../../x", b"/etc/passwd", b"\0\0\0", b"..", b"\xff\xfe",
                                 b"a" * 64])
def test_an_id_of_a_block_is_no_path(guarded, store, id_):
    text = urllib.parse.quote(base64.b64encode(id_).decode(), safe="")
    assert store.call("PUT", "/victim/blocks", f"comp=block&blockid={text}", {}, MARK).status == 201
    body = f"<BlockList><Latest>{base64.b64encode(id_).decode()}</Latest></BlockList>".encode()
    assert store.call("PUT", "/victim/blocks", "comp=blocklist", {}, body).status == 201
    assert store.call("GET", "/victim/blocks").body == MARK
    store.call("DELETE", "/victim/blocks")


@pytest.mark.parametrize("query", ["prefix=../", "prefix=../../", "prefix=%2e%2e%2f&delimiter=%2f",
                                   "prefix=/etc/", "prefix=%00", "delimiter=%00",
                                   "prefix=" + "../" * 1000, "prefix=%ff", "marker=../../",
                                   "prefix=x&delimiter=" + "/" * 3000])
def test_a_listing_stays_in_its_container(guarded, store, query):
    store.put("/victim/x", b"1")
    sas = account_sas(store.account, store.key)
    answer = store.call("GET", "/victim", f"restype=container&comp=list&{query}", sas=sas)
    assert answer.status in (200, 400), answer
    assert b"canary" not in answer.body and b"secret" not in answer.body
    if answer.status == 400:
        assert answer.code
    store.call("DELETE", "/victim/x")


# -- what lies in the folders -----------------------------------------------------------------------


@pytest.fixture
def planted(yard, account):
    """Links, pipes, sockets and devices, as a job could leave them in the folder that it mounts."""
    made = []
    outside = yard.folder / "outside"
    outside.mkdir()
    (outside / "canary").write_bytes(CANARY)
    for service in ("blob", "file"):
        tree = account.folder / service / "victim" / "tree"
        links = {"absolute": outside / "canary", "folder": outside, "up": "../../../..", "root": "/",
                 "loop": "loop", "dangling": outside / "none",
                 "etc": "/etc/passwd", "self": "/proc/self/mem"}
        for name, target in links.items():
            (tree / name).symlink_to(target)
        os.mkfifo(tree / "pipe")
        with socket.socket(socket.AF_UNIX) as s:
            old = os.getcwd()
            os.chdir(tree)
            try:
                s.bind("socket")
            finally:
                os.chdir(old)
        made += [tree / name for name in (*links, "pipe", "socket")]
        try:
            os.mknod(tree / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
            made.append(tree / "zero")
        except PermissionError:
            pass
    yield [p.name for p in made if p.parent.parts[-3] == "blob"]
    assert (outside / "canary").read_bytes() == CANARY and os.listdir(outside) == ["canary"]
    for path in made:
        if path.is_symlink() or path.exists():
            path.unlink() if not path.is_dir() or path.is_symlink() else None
    (outside / "canary").unlink()
    outside.rmdir()


def test_what_is_no_file_is_no_blob(planted, account, store):
    listed = store.call("GET", "/victim", "restype=container&comp=list")
    assert [n.text for n in listed.xml.iter("Name")] == []
    listed = store.call("GET", "/victim", "restype=container&comp=list&delimiter=/")
    assert [n.text for n in listed.xml.iter("Name")] == []
    below = [f"{name}/canary" for name in planted] + ["folder/canary", "root/etc/passwd",
                                                      "up/neighbour/tree/secret"]
    for name in [*planted, *below]:
        for method in ("GET", "HEAD", "DELETE"):
            answer = store.call(method, f"/victim/{name}")
            assert (answer.status, answer.code) == (404, "BlobNotFound"), (method, name, answer)
        answer = store.call("PUT", f"/victim/{name}", "comp=metadata", {"x-ms-meta-a": "1"})
        assert answer.status == 404, (name, answer)


def test_writing_to_such_a_name_makes_a_blob_and_nothing_else(planted, account, store):
    below = ["folder/canary", "folder/new", "root/tmp/attacker", "up/attacker", "pipe/x"]
    for name in [*planted, *below]:
        answer = store.call("PUT", f"/victim/{name}", "", {"x-ms-blob-type": "BlockBlob"}, MARK)
        assert answer.status == 201, (name, answer)
        assert store.call("GET", f"/victim/{name}").body == MARK
        append = store.call("PUT", f"/victim/{name}", "", {"x-ms-blob-type": "AppendBlob"})
        assert append.status == 201
        assert store.call("PUT", f"/victim/{name}", "comp=appendblock", {}, MARK).status == 201
        assert store.call("DELETE", f"/victim/{name}").status == 202
    assert not pathlib.Path("/tmp/attacker").exists()


def test_what_is_no_file_is_not_in_a_share(planted, account, files):
    listed = files.call("GET", "/victim", "restype=directory&comp=list")
    assert [n.text for n in listed.xml.iter("Name")] == []
    make = {"x-ms-type": "file", "x-ms-content-length": "10"}
    write = {"x-ms-write": "update", "x-ms-range": "bytes=0-3"}
    for name in [*planted, "folder/canary", "root/etc/passwd", "folder/new", "pipe/x"]:
        for method, query, headers, data in [
            ("GET", "", {}, b""), ("HEAD", "", {}, b""), ("DELETE", "", {}, b""),
            ("PUT", "comp=range", write, b"EVIL"),
            ("GET", "restype=directory&comp=list", {}, b""),
            ("PUT", "comp=metadata", {"x-ms-meta-a": "1"}, b""), ("PUT", "", make, b""),
        ]:
            answer = files.call(method, f"/victim/{name}", query, headers, data)
            assert 400 <= answer.status < 500 or (method, query) == ("PUT", ""), (method, query, name,
                answer)
            assert CANARY not in answer.body and b"root:" not in answer.body


libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, RENAME_EXCHANGE = -100, 2


def exchange(a, b):
    """Two names change places in one step, so that there is no moment in between."""
    return libc.renameat2(AT_FDCWD, os.fsencode(a), AT_FDCWD, os.fsencode(b), RENAME_EXCHANGE)


@pytest.mark.parametrize("service", ["blob", "file"])
def test_a_folder_swapped_for_a_link_in_a_tight_loop(yard, account, store, files, service):
    tree = account.folder / service / "victim" / "tree"
    outside = yard.folder / "outside"
    outside.mkdir()
    (outside / "canary").write_bytes(CANARY)
    (tree / "dir").mkdir()
    (tree / "dir" / "canary").write_bytes(b"inside")
    (tree / "link").symlink_to(outside)
    if exchange(tree / "dir", tree / "link") != 0:
        pytest.skip("this file system cannot exchange names")
    over = threading.Event()
    swaps = [0]

    def swap():
        while not over.is_set():
            exchange(tree / "dir", tree / "link")
            swaps[0] += 1

    swapper = threading.Thread(target=swap)
    swapper.start()
    used = Storage(account.blob if service == "blob" else account.file, account.name, account.key)
    seen, written, until = set(), 0, time.monotonic() + RACE_S
    try:
        for i in range(100_000):
            if time.monotonic() > until:
                break
            got = used.call("GET", "/victim/dir/canary")
            seen.add((got.status, got.body if got.status == 200 else b""))
            if service == "blob":
                put = used.call("PUT", f"/victim/dir/new{i % 5}", "", {"x-ms-blob-type": "BlockBlob"}, MARK)
                used.call("DELETE", f"/victim/dir/new{i % 5}")
            else:
                put = used.call("PUT", f"/victim/dir/new{i % 5}", "",
                                {"x-ms-type": "file", "x-ms-content-length": "4"})
                used.call("PUT", f"/victim/dir/new{i % 5}", "comp=range",
                          {"x-ms-write": "update", "x-ms-range": "bytes=0-3"}, b"EVIL")
                used.call("DELETE", f"/victim/dir/new{i % 5}")
            assert put.status in (201, 400, 404, 409, 412), put
            written += put.status == 201
    finally:
        over.set()
        swapper.join()
    assert os.listdir(outside) == ["canary"] and (outside / "canary").read_bytes() == CANARY
    assert {body for status, body in seen if status == 200} <= {b"inside"}, seen
    assert {status for status, _ in seen} <= {200, 404}, seen
    assert swaps[0] > 1000 and written > 0
    for name in ("dir", "link"):
        path = tree / name
        if path.is_symlink():
            path.unlink()
        else:
            for item in path.iterdir():
                item.unlink()
            path.rmdir()
    (outside / "canary").unlink()
    outside.rmdir()
    for i in range(5):
        used.call("DELETE", f"/victim/dir/new{i}")


def test_a_file_swapped_for_a_link_in_a_tight_loop(yard, account, store):
    tree = account.folder / "blob" / "victim" / "tree"
    canary = yard.folder / "outside-file"
    canary.write_bytes(CANARY)
    (tree / "file").write_bytes(b"inside")
    (tree / "swapped").symlink_to(canary)
    over = threading.Event()

    def swap():
        while not over.is_set():
            exchange(tree / "file", tree / "swapped")

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen, until = set(), time.monotonic() + RACE_S / 2
    try:
        while time.monotonic() < until:
            got = store.call("GET", "/victim/file")
            seen.add((got.status, got.body if got.status == 200 else b""))
            listed = store.call("GET", "/victim", "restype=container&comp=list&prefix=file")
            sizes = {e.text for e in listed.xml.iter("Content-Length")}
            assert sizes <= {str(len(b"inside"))}
    finally:
        over.set()
        swapper.join()
    assert seen <= {(200, b"inside"), (404, b"")}, seen
    assert canary.read_bytes() == CANARY
    canary.unlink()
    (tree / "file").unlink()
    (tree / "swapped").unlink()


# -- sources of copies ------------------------------------------------------------------------------


class Trap:
    """A server that nobody may connect to."""

    def __init__(self):
        self.sockets = []
        self.visits = 0
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            try:
                s = socket.create_server((address, self.port if self.sockets else 0), family=family)
            except OSError:
                continue
            s.settimeout(0.2)
            self.sockets.append(s)
        self.over = False
        self.threads = [threading.Thread(target=self.watch, args=(s,)) for s in self.sockets]
        for thread in self.threads:
            thread.start()

    @property
    def port(self):
        return self.sockets[0].getsockname()[1]

    def watch(self, s):
        while not self.over:
            try:
                s.accept()[0].close()
                self.visits += 1
            except OSError:
                pass

    def close(self):
        self.over = True
        for thread in self.threads:
            thread.join()
        for s in self.sockets:
            s.close()


@pytest.fixture(scope="module")
def trap():
    made = Trap()
    yield made
    made.close()


SOURCES = [
    "http://127.0.0.1:{port}/attacked/neighbour/secret", "http://localhost:{port}/x",
    "http://[::1]:{port}/x", "http://[::]:{port}/x",
    "http://0.0.0.0:{port}/x", "http://2130706433:{port}/x", "http://0x7f000001:{port}/x",
    "http://0177.0.0.1:{port}/x", "http://127.1:{port}/x",
    "https://127.0.0.1:{port}/x", "http://169.254.169.254/latest/meta-data",
    "http://metadata.google.internal/", "http://evil.example/x",
    "http://{blob}@127.0.0.1:{port}/x", "http://127.0.0.1:{port}@{blob}/x",
    "http://{blob}#@127.0.0.1:{port}/", "http://{blob}:{port}/x",
    "//127.0.0.1:{port}/x", "file:///etc/passwd", "ftp://127.0.0.1:{port}/x",
    "gopher://127.0.0.1:{port}/_x", "unix:///var/run/docker.sock",
    "data:text/plain,x", "javascript:1", "{api}/subscriptions?api-version=2020-01-01", "/neighbour/secret",
    "neighbour/secret", "", " ", "http://", "http:///x",
    "http://{blob}", "http://{blob}/", "http://{blob}/attacked", "http://{blob}/attacked/neighbour",
    "http://{blob}/attacked/%00", "http://{blob}/" + "a" * 3000,
    "http://{blob}/attacked/victim/../neighbour/../../../canary", "http://{blob}/attacked/none/x",
    "http://{blob}/nobody/c/x", "http://{blob}/attacked/neighbour/none",
]


@pytest.mark.parametrize("kind", ["copy", "sync", "put", "block", "append", "file"])
def test_nothing_is_fetched_from_elsewhere(guarded, account, store, files, trap, kind):
    service = files if kind == "file" else store
    query, headers = {
        "copy": ("", {}),
        "sync": ("", {"x-ms-requires-sync": "true"}),
        "put": ("", {"x-ms-blob-type": "BlockBlob"}),
        "block": ("comp=block&blockid=MDAw", {}),
        "append": ("comp=appendblock", {}),
        "file": ("", {}),
    }[kind]
    if kind == "append":
        assert store.call("PUT", "/victim/taken", "", {"x-ms-blob-type": "AppendBlob"}).status == 201
    bad = []
    for source in SOURCES:
        url = source.format(port=trap.port, blob=service.netloc, api=account.yard.http_url)
        answer = service.call("PUT", "/victim/taken", query, {**headers, "x-ms-copy-source": url})
        if not (400 <= answer.status < 500 or answer.status == 501) or not answer.code:
            bad.append((url[:80], answer))
    assert not bad, bad[:5]
    assert trap.visits == 0
    service.call("DELETE", "/victim/taken")


def test_a_copy_needs_the_right_to_read_its_source(account, store):
    other = make_account(account.yard, "bystander")
    theirs = Storage(other.blob, other.name, other.key)
    theirs.make_container("loot")
    source = store.url("/neighbour/secret")
    wrong_blob = account_sas(account.name, other.key, sp="r")
    no_read = account_sas(account.name, account.key, sp="wl")
    old = account_sas(account.name, account.key, sp="r", se="2020-01-01T00:00:00Z")
    for url in (source, f"{source}?{wrong_blob}", f"{source}?{no_read}", f"{source}?{old}",
                f"{source}?sig=x"):
        for headers in ({}, {"x-ms-requires-sync": "true"}, {"x-ms-blob-type": "BlockBlob"}):
            answer = theirs.call("PUT", "/loot/taken", "", {**headers, "x-ms-copy-source": url})
            assert answer.status in (401, 403, 404) and answer.code, (url, answer)
            assert theirs.call("HEAD", "/loot/taken").status == 404
    # By a SAS that may write but not read, not from the same account either.
    sas = account_sas(account.name, account.key, sp="wc")
    answer = store.call("PUT", "/victim/taken", "", {"x-ms-copy-source": source}, sas=sas)
    assert answer.status in (401, 403, 404) and answer.code, answer
    assert store.call("HEAD", "/victim/taken").status == 404


# -- bodies and headers -----------------------------------------------------------------------------

LAUGHS = b"<!DOCTYPE x [<!ENTITY a0 'ha'>" + b"".join(
    b"<!ENTITY a%d '%s'>" % (i, b"&a%d;" % (i - 1) * 10) for i in range(1, 10)) + b"]>"
XML = {
    "bomb": LAUGHS + b"<%s>&a9;</%s>",
    "outside entity": b"<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><%s>&e;</%s>",
    "outside document type": b"<!DOCTYPE x SYSTEM 'http://127.0.0.1:1/x.dtd'><%s></%s>",
    "parameter entity": b"<!DOCTYPE x [<!ENTITY %% p SYSTEM 'file:///etc/passwd'> %%p;]><%s></%s>",
    "deep": b"<%s>" + b"<a>" * 100_000 + b"</a>" * 100_000 + b"</%s>",
    "wide": b"<%s>" + b"<a/>" * 200_000 + b"</%s>",
    "unclosed": b"<%s>",
    "nothing": b"",
    "no XML": b"\0\1\2\3 {}",
    "cut": b"<?xml version='1.0'",
    "other encoding": "<?xml version='1.0' encoding='utf-16'?><x/>".encode("utf-16"),
    "not UTF-8": b"<%s>\xff\xfe</%s>",
    "two roots": b"<%s></%s><x/>",
    "instruction": b"<?php system('id'); ?><x/>",
}
PLACES = [
    ("blob", "/victim/b", "comp=blocklist", b"BlockList"), ("blob", "/victim/tagged", "comp=tags", b"Tags"),
    ("blob", "/victim", "restype=container&comp=acl", b"SignedIdentifiers"),
    ("blob", "/", "restype=service&comp=properties", b"StorageServiceProperties"),
    ("file", "/victim", "restype=share&comp=acl", b"SignedIdentifiers"),
    ("file", "/", "restype=service&comp=properties", b"StorageServiceProperties"),
]


def resident_kib(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("VmRSS")))


@pytest.mark.parametrize("place", PLACES, ids=lambda p: f"{p[0]}-{p[2].split('=')[-1]}")
def test_hostile_xml_is_refused_at_once(yard, store, files, place):
    service, path, query, root = place
    used = store if service == "blob" else files
    store.put("/victim/tagged", b"1")
    before = resident_kib(yard.pid)
    for name, text in XML.items():
        if name == "nothing" and "acl" in query:
            continue  # which takes all policies away
        data = text.replace(b"%s", root).replace(b"%%", b"%")
        begun = time.monotonic()
        answer = used.call("PUT", path, query, {"Content-MD5": md5(data)}, data)
        assert answer.status in (400, 413), (name, answer)
        assert answer.code in ("InvalidXmlDocument", "InvalidXmlNodeValue", "RequestBodyTooLarge",
                               "InvalidInput"), (name, answer)
        assert b"root:" not in answer.body
        assert time.monotonic() - begun < ANSWER_S
    assert resident_kib(yard.pid) - before < 256 * 1024  # a sanitizer keeps what is freed for a while
    store.call("DELETE", "/victim/tagged")


BOUNDARY = "batch_x"


def batch(*parts):
    body = "".join(f"--{BOUNDARY}\r\nContent-Type: application/http\r\nContent-ID: {i}\r\n\r\n{part}\r\n"
                   for i, part in enumerate(parts))
    return (body + f"--{BOUNDARY}--\r\n").encode("latin-1")


@pytest.mark.parametrize("body", [
    b"", b"rubbish", b"--batch_x", b"--batch_x--\r\n", b"--other\r\n\r\n--other--\r\n", b"\0" * 1000,
    b"--batch_x\r\n" * 5000, batch(""), batch("DELETE"),
    batch("DELETE / HTTP/1.1\r\n\r\n"), batch(*["DELETE /victim/x HTTP/1.1\r\n\r\n"] * 257),
    batch("GET /neighbour/secret HTTP/1.1\r\n\r\n"),
    batch("DELETE http://127.0.0.1:1/x HTTP/1.1\r\n\r\n"), batch("POST /?comp=batch HTTP/1.1\r\n\r\n"),
    batch("DELETE /victim/x HTTP/9.9\r\nContent-Length: 99999999\r\n\r\n"),
    batch("DELETE /../../canary HTTP/1.1\r\n\r\n"), batch("DELETE /victim/%00 HTTP/1.1\r\n\r\n"),
    batch("A" * 100_000),
])
def test_hostile_batches(guarded, store, body):
    answer = store.call("POST", "/", "comp=batch",
                        {"Content-Type": f"multipart/mixed; boundary={BOUNDARY}"}, body)
    assert answer.status in (202, 400, 413), answer
    assert CANARY not in answer.body
    assert store.call("GET", "/neighbour/secret").body == CANARY


@pytest.mark.parametrize("headers, status", [
    ({"x-ms-range": "bytes=5-1"}, 200), ({"x-ms-range": "bytes=-1"}, None),
    ({"x-ms-range": "bytes=99-"}, 416), ({"x-ms-range": "rows=1-2"}, None),
    ({"x-ms-range": "bytes=99999999999999999999-"}, None),
    ({"x-ms-range": "bytes=0-99999999999999999999"}, None), ({"x-ms-range": "bytes=0-1,3-4"}, None),
    ({"If-Modified-Since": "yesterday"}, None), ({"If-Match": "\"" + "x" * 2000}, None),
    ({"x-ms-lease-id": "../../x"}, None), ({"x-ms-if-tags": "'" * 500}, None),
    ({"x-ms-client-request-id": "x" * 2000}, None), ({"x-ms-version": "9" * 1000}, 400),
    ({"Range": "bytes=0-0"}, 206),
])
def test_hostile_headers_of_a_read(store, headers, status):
    store.put("/victim/read", b"12345")
    answer = store.call("GET", "/victim/read", "", headers)
    assert answer.status < 500, answer
    assert status is None or answer.status in (status, 416, 400), answer
    if answer.status >= 400:
        assert answer.code
    store.call("DELETE", "/victim/read")


@pytest.mark.parametrize("headers, data", [
    ({"x-ms-blob-type": "Nothing"}, b"1"), ({}, b"1"), ({"x-ms-blob-type": "PageBlob",
                                                         "x-ms-blob-content-length": "-512"}, b""),
    ({"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "99999999999999999999"}, b""),
    ({"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "1"}, b""),
    ({"x-ms-blob-type": "BlockBlob", "Content-MD5": "x"}, b"1"),
    ({"x-ms-blob-type": "BlockBlob", "Content-MD5": md5(b"2")}, b"1"),
    ({"x-ms-blob-type": "BlockBlob", "x-ms-content-crc64": "AAAAAAAAAAA="}, b"1"),
    ({"x-ms-blob-type": "BlockBlob", "x-ms-meta-": "1"}, b"1"),
    ({"x-ms-blob-type": "BlockBlob", "x-ms-meta-big": "x" * 9000}, b"1"),
    ({"x-ms-blob-type": "BlockBlob", "x-ms-tags": "&&&==="}, b"1"),
    ({"x-ms-blob-type": "BlockBlob", "x-ms-access-tier": "Molten"}, b"1"),
    ({"x-ms-blob-type": "BlockBlob", "x-ms-lease-id": "x"}, b"1"),
])
def test_hostile_headers_of_a_write_leave_nothing(store, headers, data):
    answer = store.call("PUT", "/victim/written", "", headers, data)
    assert 400 <= answer.status < 500 and answer.code, answer
    assert store.call("HEAD", "/victim/written").status == 404


def test_a_header_cannot_be_smuggled_through_a_name_or_metadata(store):
    for headers in ({"x-ms-blob-content-type": "a\tb"}, {"x-ms-meta-a": "x; y=\"z\""}):
        store.call("PUT", "/victim/h", "", {"x-ms-blob-type": "BlockBlob", **headers}, b"1")
    sas = account_sas(store.account, store.key)
    status, head, body = ask(store, sas, "GET", "/victim/h", "rsct=a%0d%0aSet-Cookie:%20x=1")
    assert b"set-cookie" not in head.lower()
    status, head, body = ask(store, sas, "GET", "/victim/none%0d%0aSet-Cookie:%20x=1")
    assert b"set-cookie" not in head.lower()


def test_half_an_upload_leaves_nothing(account, store):
    sas = account_sas(account.name, account.key)
    host, port = store.netloc.split(":")
    for cut in (0, 1, 5000):
        with socket.create_connection((host, int(port)), timeout=ANSWER_S) as s:
            s.sendall(f"PUT {store.base}/victim/half?{sas} HTTP/1.1\r\nHost: {store.netloc}\r\nContent-Length: 100000\r\n"
                      f"x-ms-blob-type: BlockBlob\r\nx-ms-version: 2021-12-02\r\n\r\n".encode() + b"x" * cut)
            time.sleep(0.1)
    time.sleep(0.3)
    assert store.call("HEAD", "/victim/half").status == 404
    assert os.listdir(account.folder / "blob" / "victim" / "tmp") == []


def test_no_secret_is_in_the_log(yard, account, store):
    """Last, so that everything above had its chance to say too much."""
    sas = account_sas(account.name, account.key)
    assert ask(store, sas, "GET", "/neighbour/secret")[0] == 200
    ask(store, sas[:-3] + "xxx", "GET", "/neighbour/secret")
    log = yard.log()
    assert account.key not in log and urllib.parse.quote(account.key, safe="") not in log
    assert urllib.parse.parse_qs(sas)["sig"][0] not in log and "sig=" not in log.replace("sig=REDACTED", "")
    assert CANARY.decode() not in log

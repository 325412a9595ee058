# SPDX-License-Identifier: Apache-2.0
"""Long listings: every name once, in byte order, in pages of any size, whatever the names contain
and whatever happens meanwhile.

YARD_LISTING_NAMES says how many names (default 5000; the full measure is 100000).
"""
import base64
import os
import random
import threading
import urllib.parse

import pytest

from storage_account import make_account
from storage_wire import Storage

NAMES = int(os.environ.get("YARD_LISTING_NAMES", "5000"))
ODD_SHARE = 10  # one of so many goes in by the API, and has a name that may be no path
MOST_BY_API = 3000
MOST_PER_PAGE = 5000

# Pieces that sort, quote or resolve wrongly somewhere.
PIECES = [
    "a", "b", "Z", "0", "00", "-", "_", ".", "..", "...", "/", "//", " ", "  ", "%", "%2F", "%25", "?",
    "#", "&",
    "&amp;", "<x>", "]]>", "+", "\"", "'", ";", ":", "*", "|", "~", "$", "@", "!", "(", ")", "[", "]", "{",
    "}", "^", "`",
    "=", ",", "\t", "\u007f", "é", "e\u0301", "ß", "漢字", "🚂", "\u200b", "\u2028", "\ufffd", "\uffee",
    "\U0010fffd",
    "con", "nul.txt", "a.", "a.b", "a/b", "a0", "x" * 300,
]


def odd_name(rng):
    while True:
        name = "".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 7)))
        if 0 < len(name) <= 1024 and "\\" not in name:
            return name


@pytest.fixture(scope="module")
def account(yard):
    return make_account(yard, "listaccount")


@pytest.fixture(scope="module")
def store(account):
    return Storage(account.blob, account.name, account.key)


def quoted(name):
    return urllib.parse.quote(name, safe="")


def write_plain_names(tree, count, rng):
    """Names that are paths, made behind the service's back as a job would."""
    names = set()
    for i in range(count):
        folder = f"d{rng.randrange(max(1, count // 500)):04}" + ("/sub.dir" if i % 7 == 0 else "")
        names.add(f"{folder}/f{i:06}.{rng.choice(['jpg', 'txt', 'é', 'b c'])}" if i % 11 else f"top-{i:06}")
    for folder in {name.rsplit("/", 1)[0] for name in names if "/" in name}:
        os.makedirs(tree / folder, exist_ok=True)
    for name in names:
        os.close(os.open(tree / name, os.O_CREAT | os.O_WRONLY, 0o644))
    return names


def put_all(account, container, names):
    """With a few connections."""
    rest = list(names)
    lock = threading.Lock()
    problems = []

    def work():
        store = Storage(account.blob, account.name, account.key)
        while True:
            with lock:
                if not rest:
                    break
                name = rest.pop()
            answer = store.call("PUT", f"/{container}/{quoted(name)}", "", {"x-ms-blob-type": "BlockBlob"},
                                b"x")
            if answer.status != 201:
                problems.append((name, answer))
        store.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems[:3]


@pytest.fixture(scope="module")
def filled(account, store):
    """A container and the names of all its blobs, in order."""
    rng = random.Random(20)
    store.make_container("many")
    odd = {odd_name(rng) for _ in range(min(MOST_BY_API, NAMES // ODD_SHARE))}
    odd |= set(NASTY)
    put_all(account, "many", odd)
    tree = account.folder / "blob" / "many" / "tree"
    plain = write_plain_names(tree, NAMES - len(odd), rng)
    return "many", sorted(odd | plain, key=lambda name: name.encode())


# A blob beside a "folder" of its name, and names that differ in what a file system may not see.
NASTY = [
    "n", "n/", "n//", "n/n", "n.n", "n0", "n n", "/", "//", "/n", ".", "..", "./n", "../n", "n/.", "n/..",
    "n/../m",
    "n/./m", "\u00e9n", "e\u0301n", "N", "n%2Fn", "n" * 255, "n" * 256, "n" * 1024, "/".join("n" * 254),
]


def text_of(element):
    if element.get("Encoded") == "true":
        return urllib.parse.unquote(element.text)
    return element.text or ""


def page(store, container, **query):
    """One page: its entries as (name, is prefix) in the order of the answer, and the next marker."""
    words = "&".join(f"{k}={quoted(str(v))}" for k, v in query.items() if v is not None)
    answer = store.call("GET", f"/{container}", f"restype=container&comp=list&{words}".rstrip("&"))
    assert answer.status == 200, answer
    root = answer.xml
    entries = [(text_of(item.find("Name")), item.tag == "BlobPrefix") for item in root.find("Blobs")]
    return entries, root.findtext("NextMarker")


def every_page(store, container, **query):
    marker = None
    while True:
        entries, marker = page(store, container, marker=marker, **query)
        yield entries
        if not marker:
            return


def all_names(store, container, **query):
    return [name for entries in every_page(store, container, **query) for name, _ in entries]


@pytest.mark.parametrize("size", [None, 1000, 997, 37])
def test_every_name_once_and_in_order(store, filled, size):
    container, names = filled
    if size and NAMES // size > 300:
        size = NAMES // 300
    pages = list(every_page(store, container, maxresults=size))
    most = size or MOST_PER_PAGE
    assert all(len(entries) == most for entries in pages[:-1]), [len(p) for p in pages]
    assert [name for entries in pages for name, _ in entries] == names


def hierarchy(names, prefix, delimiter):
    """What a listing by hierarchy must say, from the definition."""
    seen = {}
    for name in names:
        if not name.startswith(prefix):
            continue
        cut = name.find(delimiter, len(prefix))
        if cut < 0:
            seen.setdefault((name, False))
        else:
            seen.setdefault((name[: cut + len(delimiter)], True))
    return sorted(seen, key=lambda entry: (entry[0].encode(), entry[1]))


@pytest.mark.parametrize("prefix", ["", "d0000/", "d0000/sub", "d000", "n", "n/", "n//", "/", "//", ".",
                                    "../", "é", "%", "x"])
@pytest.mark.parametrize("size", [None, 13])
def test_by_hierarchy(store, filled, prefix, size):
    container, names = filled
    wanted = hierarchy(names, prefix, "/")
    if size and len(wanted) // size > 100:
        size = len(wanted) // 100
    pages = list(every_page(store, container, prefix=prefix, delimiter="/", maxresults=size))
    assert [entry for entries in pages for entry in entries] == wanted
    assert all(len(entries) == (size or MOST_PER_PAGE) for entries in pages[:-1])


@pytest.mark.parametrize("delimiter", [".", "a", "//", "%2F", "漢", " "])
def test_other_delimiters(store, filled, delimiter):
    container, names = filled
    got = [entry for entries in every_page(store, container, delimiter=delimiter, maxresults=500)
           for entry in entries]
    assert got == hierarchy(names, "", delimiter)


@pytest.mark.parametrize("prefix", ["d", "d0001/f", "top-", "n", "n/", "N", "\u00e9", "e\u0301", "🚂",
                                    "nothing here", "\t"])
def test_prefixes(store, filled, prefix):
    container, names = filled
    assert all_names(store, container, prefix=prefix, maxresults=1000) == [n for n in names
        if n.startswith(prefix)]


def test_a_tree_is_walked_to_every_leaf(store, filled):
    """As clients do: one listing for each prefix found."""
    container, names = filled
    found, todo = [], [""]
    while todo and len(found) <= len(names):
        prefix = todo.pop()
        for entries in every_page(store, container, prefix=prefix, delimiter="/"):
            for name, is_prefix in entries:
                (todo if is_prefix else found).append(name)
    assert sorted(found, key=str.encode) == names


def test_a_marker_can_be_used_again(store, filled):
    container, names = filled
    _, marker = page(store, container, maxresults=100)
    first = page(store, container, marker=marker, maxresults=50)
    assert first == page(store, container, marker=marker, maxresults=50)
    assert [name for name, _ in first[0]] == names[100:150]


@pytest.mark.parametrize("marker", ["rubbish", "../../etc/passwd", "%00", "A" * 5000, "//////",
                                    base64.b64encode(b"\xff\xfe").decode()])
def test_a_marker_that_is_none_is_refused_or_harmless(store, filled, marker):
    container, names = filled
    answer = store.call("GET", f"/{container}",
                        f"restype=container&comp=list&maxresults=5&marker={quoted(marker)}")
    assert answer.status in (200, 400), answer
    if answer.status == 400:
        assert answer.code in ("InvalidQueryParameterValue", "OutOfRangeInput",
                               "OutOfRangeQueryParameterValue",
                               "InvalidUri"), answer
    else:
        assert {text_of(n) for n in answer.xml.iter("Name")} <= set(names)


@pytest.mark.parametrize("size, status", [("0", 400), ("-1", 400), ("x", 400), ("5001", 200), ("1", 200)])
def test_sizes_of_pages(store, filled, size, status):
    container, _ = filled
    answer = store.call("GET", f"/{container}", f"restype=container&comp=list&maxresults={size}")
    assert answer.status == status, answer


def test_names_that_xml_cannot_hold(store):
    """Such names are percent-encoded, and say so, since 2021-02-12."""
    store.make_container("encoded")
    names = ["a\x01b", "a\u000bb", "a\uffffb", "a\ufffeb", "plain"]
    for name in names:
        store.put(f"/encoded/{quoted(name)}", b"1")
    assert all_names(store, "encoded") == sorted(names, key=str.encode)
    assert all_names(store, "encoded", maxresults=2) == sorted(names, key=str.encode)


def test_a_listing_holds_while_names_come_and_go(account, store):
    """What was there all the time is listed once; what came or went may be listed or not; no page
    fails and the order holds."""
    store.make_container("moving")
    stays = {f"stay/{i:04}" for i in range(300)} | {f"s{i:04}" for i in range(100)}
    put_all(account, "moving", stays)
    over = threading.Event()
    problems = []

    def disturb(seed):
        rng = random.Random(seed)
        own = Storage(account.blob, account.name, account.key)
        while not over.is_set():
            name = f"{rng.choice(['stay', 'gone', 'stay/deep', 's'])}/x{seed}-{rng.randrange(40)}"
            answer = own.call("PUT", f"/moving/{name}", "", {"x-ms-blob-type": "BlockBlob"}, b"x")
            if answer.status != 201:
                problems.append(answer)
            if rng.random() < 0.6:
                answer = own.call("DELETE", f"/moving/{name}")
                if answer.status != 202:
                    problems.append(answer)
        own.close()

    threads = [threading.Thread(target=disturb, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    try:
        for i in range(12):
            seen = all_names(store, "moving", maxresults=29)
            assert seen == sorted(set(seen), key=str.encode)
            assert stays <= set(seen)
            walked = [e for p in every_page(store, "moving", maxresults=7, delimiter="/") for e in p]
            assert len(walked) == len(set(walked)) and ("stay/", True) in walked
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not problems, problems[:3]


def test_containers_are_listed_in_order(store):
    names = sorted(f"order-{i:03}" for i in range(60))
    for name in random.Random(3).sample(names, len(names)):
        store.make_container(name)
    seen, marker = [], ""
    while True:
        root = store.call("GET", "/", f"comp=list&prefix=order-&maxresults=7&marker={quoted(marker)}").xml
        seen += [item.findtext("Name") for item in root.find("Containers")]
        marker = root.findtext("NextMarker")
        if not marker:
            break
    assert seen == names


def test_a_share_lists_every_file_once(account):
    files = Storage(account.file, account.name, account.key)
    assert files.call("PUT", "/many", "restype=share").status == 201
    tree = account.folder / "file" / "many" / "tree"
    names = {f"f{i:05} é.txt" for i in range(min(NAMES, 2000))} | {"A", "b", "C.", "#1", "100%", "a+b",
        "&", "漢字"}
    for name in names:
        (tree / name).touch()
    seen, marker = [], ""
    while True:
        answer = files.call("GET", "/many",
                            f"restype=directory&comp=list&maxresults=333&marker={quoted(marker)}")
        assert answer.status == 200, answer
        seen += [text_of(item.find("Name")) for item in answer.xml.find("Entries")]
        marker = answer.xml.findtext("NextMarker")
        if not marker:
            break
    assert len(seen) == len(set(seen)) and set(seen) == names

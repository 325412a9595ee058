# SPDX-License-Identifier: Apache-2.0
"""Clients of the storage service that know what they wrote, for tests that pull the daemon down
under them.

Every sector of 512 bytes says whose it is: name, version and place.  So a mixture of two versions
is seen whatever its seam.  A writer has names of its own and is the only one to write to them; a
few names are everybody's.  What was acknowledged is kept as a `State`; a request without an answer
leaves a doubt: afterwards the thing may be as it was or as it was wanted, and nothing in between.
Only writes in place (pages of a blob, ranges of a file) may have been done in part, by sectors.
"""
import base64
import contextlib
import http.client
import os
import random
import sqlite3
import threading
import time
import urllib.parse
import xml.etree.ElementTree as ElementTree

from fleet import LOST, Wrong, expect
from storage_account import make_account
from storage_wire import VERSION, Answer, account_sas, md5

ACCOUNT = "crashed"
CONTAINER = SHARE = "things"
SECTOR = 512
SIZES = (0, 1, 500, 512, 4096, 10_000, 10_000, 65_536, 300_000, 1 << 20, 3 << 20)
SLOTS = 16  # that a page blob or a file has, each written at once
PAGED = ("PageBlob", "File")
COMMON = ("common/one", "common/two", "common//odd")


def fill(tag, size):
    """What a part consists of; None is a hole, bytes are themselves."""
    if tag is None or isinstance(tag, bytes):
        return tag or bytes(size)
    rows = (f"{tag}+{at} ".ljust(SECTOR, ".") for at in range(0, size, SECTOR))
    return "".join(rows).encode()[:size]


class State:
    """A blob or file that is there."""

    def __init__(self, kind, parts, version, etag=None, older=None):
        self.kind = kind
        self.parts = parts  # [(tag, size)]
        self.version = version  # in the metadata
        self.etag = etag  # None = not told yet
        self.older = older  # what some sectors may still be of

    @property
    def size(self):
        return sum(size for _, size in self.parts)

    def content(self):
        return b"".join(fill(tag, size) for tag, size in self.parts)

    def holds(self, body):
        wanted = self.content()
        if body == wanted:
            return True
        if self.older is None or len(body) != len(wanted):
            return False
        old = self.older.content()
        spans = (slice(at, at + SECTOR) for at in range(0, len(body), SECTOR))
        return all(body[s] in (wanted[s], old[s]) for s in spans)

    def complain(self, answer):
        """What is wrong with an answer to GET, "" when nothing is."""
        if answer.status != 200:
            return f"{answer.status} {answer['x-ms-error-code']}"
        if not self.holds(answer.body):
            return f"other bytes: {describe(answer.body)}, not {self.parts[:6]}"
        if answer["x-ms-meta-v"] != self.version:
            return f"metadata {answer['x-ms-meta-v']}, not {self.version}"
        if (answer["x-ms-blob-type"] or "File") != self.kind:
            return f"a {answer['x-ms-blob-type']}, not a {self.kind}"
        if answer["Content-Type"] != f"text/{self.version}":
            return f"content type {answer['Content-Type']}, not text/{self.version}"
        if answer["Content-MD5"] not in (None, md5(answer.body)):
            return "another MD5"
        if self.etag not in (None, answer.etag):
            return f"ETag {answer.etag}, not {self.etag}"
        return ""


def describe(body):
    tags = []
    for at in range(0, len(body), SECTOR):
        tag = body[at : at + 60].decode(errors="replace").split("+")[0].strip("\0")
        if not tags or tags[-1] != tag:
            tags.append(tag)
    return f"{len(body)} bytes of {tags[:6]}"


class Thing:
    def __init__(self):
        self.told = None  # the State acknowledged, None = it is not there
        self.doubts = []  # States, or None for a delete
        self.staged = []  # (id, tag, size) of acknowledged blocks
        self.is_fresh = True


class Client:
    """One kept connection to one service; no request is ever sent twice."""

    def __init__(self, url, sas):
        where = urllib.parse.urlsplit(url)
        self.base, self.sas = where.path.rstrip("/"), sas
        self.http = http.client.HTTPConnection(where.hostname, where.port, timeout=60)

    def call(self, method, path, query="", headers=None, data=b""):
        target = f"{self.base}/{path}?{query}{'&' if query else ''}{self.sas}"
        sent = {"x-ms-version": VERSION, **(headers or {})}
        if method == "PUT" or data:
            sent["Content-Length"] = str(len(data))
        self.http.request(method, target, data or None, sent)
        return Answer(self.http.getresponse())

    def close(self):
        self.http.close()


class Depot:
    """The account that the fleet writes to."""

    def __init__(self, yard):
        self.yard = yard
        self.account = make_account(yard, ACCOUNT)
        self.sas = account_sas(ACCOUNT, self.account.key, se="2099-01-01T00:00:00Z")
        blob, file = self.blob(), self.file()
        for client, query in ((blob, "restype=container"), (file, "restype=share")):
            answer = client.call("PUT", CONTAINER, query)
            expect(answer.status == 201, "{}", answer)
            client.close()

    def blob(self):
        return Client(self.account.blob, self.sas)

    def file(self):
        return Client(self.account.file, self.sas)

    @property
    def folder(self):
        """Of the container, on the disk."""
        return self.account.folder / "blob" / CONTAINER


class Common:
    """Names that all write to.  Any version may be there that no acknowledged one came after."""

    def __init__(self):
        self.lock = threading.Lock()
        self.begun = {name: [] for name in COMMON}  # [State, begun, ended or None]

    def begin(self, name, state):
        entry = [state, time.monotonic(), None]
        with self.lock:
            self.begun[name].append(entry)
        return entry

    @staticmethod
    def end(entry, etag):
        entry[0].etag = etag
        entry[2] = time.monotonic()

    def check(self, client):
        """-> {name: State} of those that are there."""
        return {n: s for n, s in ((n, self.check_one(client, n)) for n in COMMON) if s}

    def check_one(self, client, name):
        entries = self.begun[name]
        newest = max((begun for _, begun, ended in entries if ended), default=None)
        possible = [
            s for s, _, ended in entries if newest is None or ended is None or ended >= newest
        ]
        answer = client.call("GET", f"{CONTAINER}/{quoted(name)}")
        if answer.status == 404 and newest is None:
            self.begun[name] = []
            return None
        complaints = [s.complain(answer) for s in possible]
        expect("" in complaints, "{}: {}", name, complaints[:4])
        state = possible[complaints.index("")]
        state.etag = answer.etag
        self.begun[name] = [[state, 0.0, 0.0]]
        return state


def quoted(name):
    return urllib.parse.quote(name, safe="/")


class Writer(threading.Thread):
    """Writes until it is told to stop or the daemon is gone."""

    def __init__(self, depot, common, number, seed):
        super().__init__(daemon=True)
        self.depot, self.common = depot, common
        self.name = f"w{number}"
        self.random = random.Random(f"{seed}/{number}")
        self.things = {}  # ("blob" or "file", name)
        self.made = 0
        self.reset()

    def reset(self):
        self.acknowledged = 0
        self.refused = []  # answers of 5xx
        self.problem = None
        self.stopping = threading.Event()
        self.is_deaf = False

    def succeed(self):
        """A thread runs once: this one takes up what another knew."""
        heir = Writer.__new__(Writer)
        threading.Thread.__init__(heir, daemon=True)
        heir.depot, heir.common, heir.name = self.depot, self.common, self.name
        heir.random, heir.things, heir.made = self.random, self.things, self.made
        heir.reset()
        return heir

    # -- what it does -----------------------------------------------------------------------

    def run(self):
        self.open()
        try:
            while not self.stopping.is_set():
                self.step()
        except LOST:
            pass
        except Exception as problem:  # the thread that waits for us must hear of it
            self.problem = problem
        finally:
            self.close()

    def open(self):
        self.blob, self.file = self.depot.blob(), self.depot.file()

    def close(self):
        self.blob.close()
        self.file.close()

    def version(self):
        self.made += 1
        return f"{self.name}-{self.made}"

    def some(self, service, *kinds):
        """One of its names that has a State of a kind, or None."""
        names = [
            n for (s, n), thing in self.things.items()
            if s == service and thing.told and thing.told.kind in kinds
        ]
        return self.random.choice(names) if names else None

    def any_name(self):
        """Few, so that they are often replaced; all sorts, so that odd/ is used too."""
        form = self.random.choice(("%s/a", "%s/a/b", "%s/d/e/f", "%s//x", "%s/./y", "%s-ü ñ", "%s/z%d"))
        return form % self.name if "%d" not in form else form % (self.name, self.random.randrange(9))

    def step(self):
        ways = (
            (20, self.put), (12, self.commit), (6, self.stage), (6, self.create_append),
            (14, self.append), (4, self.create_pages), (8, self.put_pages), (6, self.set_metadata),
            (4, self.copy), (14, self.delete), (6, self.put_common), (5, self.create_file),
            (12, self.put_range), (4, self.delete_file),
        )
        self.random.choices([w for _, w in ways], [n for n, _ in ways])[0]()

    def send(self, service, name, wanted, method, query="", headers=None, data=b""):
        """A write.  -> the answer when it was acknowledged; the thing is then as wanted."""
        thing = self.things.setdefault((service, name), Thing())
        thing.is_fresh = True
        thing.doubts.append(wanted)
        client = self.blob if service == "blob" else self.file
        answer = client.call(method, f"{CONTAINER}/{quoted(name)}", query, headers, data)
        if self.is_deaf:
            raise ConnectionAbortedError("deaf")
        if answer.status >= 500:  # then it must not have been done, not even in part
            self.refused.append(answer)
            thing.doubts.pop()
            if wanted is not None and wanted.older is not None:
                now = client.call("GET", f"{CONTAINER}/{quoted(name)}")
                self.check_one(f"{service} {name}", thing, now)
            return None
        expect(answer.status < 300, "{} {} {}: {}", method, name, query, answer)
        self.acknowledged += 1
        thing.told, thing.doubts = wanted, []
        if wanted:
            wanted.etag, wanted.older = answer.etag, None
        return answer

    @staticmethod
    def facts(version):
        return {"x-ms-meta-v": version, "x-ms-blob-content-type": f"text/{version}"}

    def drop_staged(self, name):
        if thing := self.things.get(("blob", name)):
            thing.staged = []

    def put(self):
        version, size = self.version(), self.random.choice(SIZES)
        wanted, name = State("BlockBlob", [(version, size)], version), self.any_name()
        headers = {"x-ms-blob-type": "BlockBlob", **self.facts(version)}
        self.drop_staged(name)
        self.send("blob", name, wanted, "PUT", "", headers, wanted.content())
        if self.random.random() < 0.2:
            self.read_back("blob", name)

    def put_common(self):
        version, name = self.version(), self.random.choice(COMMON)
        wanted = State("BlockBlob", [(version, self.random.choice(SIZES))], version)
        headers = {"x-ms-blob-type": "BlockBlob", **self.facts(version)}
        data = wanted.content()
        entry = self.common.begin(name, wanted)
        answer = self.blob.call("PUT", f"{CONTAINER}/{quoted(name)}", "", headers, data)
        if answer.status == 201 and not self.is_deaf:
            self.common.end(entry, answer.etag)
            self.acknowledged += 1

    def read_back(self, service, name):
        thing = self.things[(service, name)]
        client = self.blob if service == "blob" else self.file
        answer = client.call("GET", f"{CONTAINER}/{quoted(name)}")
        if thing.told and answer.status < 500 and not self.is_deaf:
            wrong = thing.told.complain(answer)
            expect(not wrong, "{} was just written, but: {}", name, wrong)

    # -- blocks --

    def stage_one(self, name):
        """One more block; it stays if it was acknowledged."""
        thing = self.things.setdefault(("blob", name), Thing())
        tag, size = self.version(), self.random.choice([s for s in SIZES if 0 < s <= 300_000])
        block_id = base64.b64encode(f"{tag:<20}".encode()).decode()
        query = f"comp=block&blockid={urllib.parse.quote(block_id, safe='')}"
        path = f"{CONTAINER}/{quoted(name)}"
        answer = self.blob.call("PUT", path, query, {}, fill(tag, size))
        if self.is_deaf:
            raise ConnectionAbortedError("deaf")
        if answer.status >= 500:
            self.refused.append(answer)
            return False
        expect(answer.status == 201, "Put Block {}: {}", name, answer)
        self.acknowledged += 1
        thing.staged.append((block_id, tag, size))
        return True

    def may_have_blocks(self, name):
        thing = self.things.get(("blob", name))
        return not (thing and thing.told and thing.told.kind != "BlockBlob")

    def stage(self):
        name = self.any_name()
        if self.may_have_blocks(name):
            self.stage_one(name)

    def commit(self):
        name, version = self.any_name(), self.version()
        if not self.may_have_blocks(name):
            return
        for _ in range(self.random.randrange(4)):
            if not self.stage_one(name):
                return
        thing = self.things.get(("blob", name))
        blocks = list(thing.staged) if thing else []
        self.random.shuffle(blocks)
        wanted = State("BlockBlob", [(tag, size) for _, tag, size in blocks], version)
        rows = "".join(f"<Latest>{i}</Latest>" for i, _, _ in blocks)
        self.drop_staged(name)
        self.send("blob", name, wanted, "PUT", "comp=blocklist", self.facts(version),
                  f"<BlockList>{rows}</BlockList>".encode())

    # -- in place --

    def create_append(self):
        version, name = self.version(), self.any_name()
        self.drop_staged(name)
        self.send("blob", name, State("AppendBlob", [], version), "PUT", "",
                  {"x-ms-blob-type": "AppendBlob", **self.facts(version)})

    def append(self):
        name = self.some("blob", "AppendBlob")
        if name is None:
            return
        told, tag = self.things[("blob", name)].told, self.version()
        size = self.random.choice([s for s in SIZES if 0 < s <= 300_000])
        wanted = State("AppendBlob", [*told.parts, (tag, size)], told.version)
        self.send("blob", name, wanted, "PUT", "comp=appendblock", {}, fill(tag, size))

    def create_pages(self):
        version, name = self.version(), self.any_name()
        slot = SECTOR * self.random.choice((1, 8, 32))
        self.drop_staged(name)
        self.send("blob", name, State("PageBlob", [(None, slot)] * SLOTS, version), "PUT", "",
                  {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(slot * SLOTS),
                   **self.facts(version)})

    def overwrite(self, service, name, query, word):
        """A few slots of a page blob or of a file."""
        told, tag = self.things[(service, name)].told, self.version()
        slot = told.parts[0][1]
        first = self.random.randrange(SLOTS)
        last = self.random.randrange(first, min(SLOTS, first + 4))
        is_clear = self.random.random() < 0.2
        what = None if is_clear else tag
        parts = [(f"{what}.{i}" if what else None, slot) if first <= i <= last else part
                 for i, part in enumerate(told.parts)]
        wanted = State(told.kind, parts, told.version, older=told)
        data = b"" if is_clear else b"".join(fill(t, s) for t, s in parts[first : last + 1])
        headers = {"x-ms-range": f"bytes={first * slot}-{(last + 1) * slot - 1}",
                   word: "clear" if is_clear else "update"}
        self.send(service, name, wanted, "PUT", query, headers, data)

    def put_pages(self):
        if name := self.some("blob", "PageBlob"):
            self.overwrite("blob", name, "comp=page", "x-ms-page-write")

    # -- the rest --

    def set_metadata(self):
        """It replaces the content type too, in a request of its own; both versions are new."""
        name = self.some("blob", "BlockBlob", "AppendBlob", "PageBlob")
        if name is None:
            return
        told = self.things[("blob", name)].told
        self.send("blob", name, State(told.kind, told.parts, told.version), "PUT",
                  "comp=metadata", {"x-ms-meta-v": told.version, "x-ms-meta-more": self.version()})

    def copy(self):
        source, name = self.some("blob", "BlockBlob"), self.any_name()
        if source is None or source == name or not self.may_have_blocks(name):
            return
        told = self.things[("blob", source)].told
        url = f"{self.depot.account.blob}/{CONTAINER}/{quoted(source)}?{self.depot.sas}"
        self.drop_staged(name)
        self.send("blob", name, State("BlockBlob", told.parts, told.version), "PUT", "",
                  {"x-ms-copy-source": url})

    def delete(self):
        name = self.some("blob", "BlockBlob", "AppendBlob", "PageBlob")
        if name:
            self.drop_staged(name)
            self.send("blob", name, None, "DELETE")

    def create_file(self):
        version = self.version()
        slot = SECTOR * self.random.choice((1, 8, 128))
        name = f"{self.name}-{self.random.randrange(6)}"
        if not self.send("file", name, State("File", [(None, slot)] * SLOTS, version), "PUT", "", {
                "x-ms-type": "file", "x-ms-content-length": str(slot * SLOTS),
                "x-ms-content-type": f"text/{version}", "x-ms-meta-v": version}):
            return
        if self.random.random() < 0.2:
            self.read_back("file", name)

    def put_range(self):
        if name := self.some("file", "File"):
            self.overwrite("file", name, "comp=range", "x-ms-write")

    def delete_file(self):
        if name := self.some("file", "File"):
            self.send("file", name, None, "DELETE")

    # -- what it checks afterwards ------------------------------------------------------------

    def check(self, blob, file, everything):
        for (service, name), thing in self.things.items():
            if everything or thing.is_fresh:
                answer = (blob if service == "blob" else file).call("GET", f"{CONTAINER}/{quoted(name)}")
                self.check_one(f"{service} {name}", thing, answer, lost_power=self.is_deaf)
                thing.is_fresh = False
        for name in [n for (s, n), thing in self.things.items() if s == "blob" and thing.staged]:
            self.check_staged(blob, name)

    @staticmethod
    def check_one(where, thing, answer, lost_power=False):
        doubts, thing.doubts = thing.doubts, []
        complaints = []
        for state in [thing.told, *doubts]:
            gone = "" if answer.status == 404 else f"it is there: {describe(answer.body)}"
            wrong = gone if state is None else state.complain(answer)
            is_new = state is not thing.told
            if not wrong and is_new and thing.told and state and answer.etag == thing.told.etag:
                # Bytes written in place may reach the disk before the time of their writing.
                if not (state.older and lost_power):
                    wrong = "new, but with the old ETag"
            if not wrong:
                if is_new and state and state.older:  # what it is now is what it must stay
                    freeze(state, answer.body)
                thing.told = state
                if state:
                    state.etag = answer.etag
                return
            complaints.append(wrong)
        raise Wrong(f"{where}: " + "; or ".join(complaints))

    def check_staged(self, blob, name):
        """Acknowledged blocks wait for their commit."""
        answer = blob.call("GET", f"{CONTAINER}/{quoted(name)}", "comp=blocklist&blocklisttype=uncommitted")
        expect(answer.status == 200, "blocks of {}: {}", name, answer)
        there = {b.findtext("Name"): int(b.findtext("Size")) for b in answer.xml.iter("Block")}
        for block_id, tag, size in self.things[("blob", name)].staged:
            expect(there.get(block_id) == size, "block {} of {}: {}", tag, name, there)

    def known(self, service):
        return {n: t.told for (s, n), t in self.things.items() if s == service and t.told}


def freeze(state, body):
    """Sectors of two versions: from now on they are what they are."""
    parts, at = [], 0
    for part, old in zip(state.parts, state.older.parts):
        there = body[at : at + part[1]]
        whole = [p for p in (part, old) if fill(*p) == there]
        parts.append(whole[0] if whole else (there, part[1]))
        at += part[1]
    state.parts, state.older = parts, None


class Fleet:
    """Writers that come back after every fall of the daemon."""

    def __init__(self, yard, count, seed):
        self.yard, self.depot, self.common = yard, Depot(yard), Common()
        self.writers = [Writer(self.depot, self.common, number, seed) for number in range(count)]
        self.acknowledged = 0

    def start(self):
        self.writers = [w.succeed() for w in self.writers]
        for w in self.writers:
            w.start()

    def wait_acknowledged(self, count, seconds=60):
        deadline = time.monotonic() + seconds
        while sum(w.acknowledged for w in self.writers) < count:
            if time.monotonic() > deadline or not any(w.is_alive() for w in self.writers):
                return False
            time.sleep(0.002)
        return True

    def be_deaf(self):
        """Believe no answer from now on: see fleet.py."""
        for w in self.writers:
            w.is_deaf = True

    def stop(self):
        for w in self.writers:
            w.stopping.set()
        for w in self.writers:
            w.join(120)
            expect(not w.is_alive(), "{} waits for an answer for ever", w.name)
        self.acknowledged += sum(w.acknowledged for w in self.writers)
        problems = [w.problem for w in self.writers if w.problem]
        if problems:
            raise problems[0]

    def refused(self):
        return [answer for w in self.writers for answer in w.refused]

    # -- the check ------------------------------------------------------------------------------

    def check(self, everything=False):
        blob, file = self.depot.blob(), self.depot.file()
        for w in self.writers:
            w.check(blob, file, everything)
        blobs, files = self.common.check(blob), {}
        for w in self.writers:
            blobs.update(w.known("blob"))
            files.update(w.known("file"))
        self.check_listing(blob, "restype=container&comp=list", blobs, "Blob", "Etag")
        self.check_listing(file, "restype=directory&comp=list", files, "File", None)
        self.check_disk(blobs)
        blob.close()
        file.close()

    @staticmethod
    def check_listing(client, query, known, tag, etag):
        """Names, sizes and ETags of the listing are those of the GETs, and there are no others."""
        listed, order, marker = {}, [], ""
        while True:
            where = f"&marker={urllib.parse.quote(marker, safe='')}" if marker else ""
            answer = client.call("GET", CONTAINER, f"{query}&maxresults=50{where}")
            expect(answer.status == 200, "listing: {}", answer)
            root = ElementTree.fromstring(answer.body)
            for row in root.iter(tag):
                facts = row.find("Properties")
                order.append(row.findtext("Name"))
                listed[order[-1]] = (int(facts.findtext("Content-Length")),
                                     facts.findtext(etag) if etag else None)
            marker = root.findtext("NextMarker")
            if not marker:
                break
        wanted = {n: (s.size, s.etag.strip('"') if etag else None) for n, s in known.items()}
        listed = {n: (size, e.strip('"') if e else None) for n, (size, e) in listed.items()}
        wrong = {n: (listed.get(n), wanted.get(n)) for n in listed.keys() | wanted.keys()
                 if listed.get(n) != wanted.get(n)}
        expect(not wrong, "listed and known differ: {}", dict(sorted(wrong.items())[:5]))
        expect(order == sorted(order, key=str.encode), "the listing is out of order")

    def check_disk(self, known):
        """What a scrubber would look at: no row, no file and no temporary file too many.  What is
        on its way to the bin counts for nothing."""
        expect(not os.listdir(self.depot.folder / "tmp"), "temporary files: {}",
               os.listdir(self.depot.folder / "tmp"))
        in_tree = sum(len(names) for _, _, names in os.walk(self.depot.folder / "tree"))
        odd = len(os.listdir(self.depot.folder / "odd"))
        expect(in_tree + odd == len(known), "{} files in tree and {} in odd for {} blobs",
               in_tree, odd, len(known))
        with contextlib.closing(
                sqlite3.connect(f"file:{self.yard.home}/storage.db?mode=ro", uri=True)) as database:
            rows = [n for (n,) in database.execute("SELECT name FROM blob WHERE snapshot = ''")]
            unsettled = [n for (n,) in database.execute("SELECT name FROM unsettled")]
        expect(not unsettled, "unsettled after a start: {}", unsettled)
        expect(len(rows) == len(set(rows)), "several rows of one blob: {}", sorted(rows))
        expect(set(rows) == set(known), "rows without a blob: {}, blobs without a row: {}",
               sorted(set(rows) - set(known))[:5], sorted(set(known) - set(rows))[:5])

# SPDX-License-Identifier: Apache-2.0
"""Clients that write as fast as they are answered, and remember exactly what they were told.

A writer has names of its own, so it alone knows what each of them must be.  What was acknowledged
is kept with the whole answer; a request that got none leaves a doubt: afterwards the resource may
be as it was or as it was wanted, and nothing in between.  `Fleet.check` compares all of that with
what a daemon has, in both directions: nothing acknowledged is missing, nothing else is there.
"""
import http.client
import json
import random
import sqlite3
import threading
import time

DELETED_S = 30  # by then an acknowledged delete must have been finished


class Client:
    """One kept connection, plain http, as raw as Python has it."""

    def __init__(self, yard, token=None):
        self.http = http.client.HTTPConnection(yard.http_host, yard.http_port, timeout=60)
        self.token = token or yard.token

    def call(self, method, path, body=None):
        """-> status, headers, JSON or None.  No whole answer is an exception of `LOST`."""
        headers = {"Authorization": f"Bearer {self.token}"}
        data = None
        if body is not None:
            data = json.dumps(body)
            headers["Content-Type"] = "application/json"
        self.http.request(method, path, data, headers)
        answer = self.http.getresponse()
        text = answer.read()
        return answer.status, answer.headers, json.loads(text) if text else None

    def close(self):
        self.http.close()


LOST = (OSError, http.client.HTTPException)


class Thing:
    """What one path must answer: `told` is the acknowledged body, None when it is gone."""

    def __init__(self, told=None, etag=None):
        self.told = told
        self.etag = etag
        self.doubts = []  # ("put", tags) or ("delete",) that failed or had no answer
        self.is_fresh = True  # touched since the last check


class Wrong(AssertionError):
    """The daemon broke its word."""


def expect(is_so, complaint, *what):
    if not is_so:
        raise Wrong(complaint.format(*what))


class Writer(threading.Thread):
    """Writes until it is told to stop or the daemon is gone."""

    def __init__(self, yard, number, seed):
        super().__init__(daemon=True)
        self.yard = yard
        self.name = f"c{number}"
        self.random = random.Random(f"{seed}/{number}")
        self.things = {}
        self.tokens = {}
        self.made = 0
        self.reset()

    def reset(self):
        """A thread runs once: this one takes up what another knew."""
        self.acknowledged = 0
        self.request_ids = []
        self.failures = []  # (begun, status) of answers with 5xx
        self.last_success = 0.0  # when the last acknowledged write was begun
        self.problem = None
        self.stopping = threading.Event()
        self.is_deaf = False  # from now on answers count as none

    def succeed(self):
        heir = Writer.__new__(Writer)
        threading.Thread.__init__(heir, daemon=True)
        heir.yard, heir.random, heir.made = self.yard, self.random, self.made
        heir.name, heir.things, heir.tokens = self.name, self.things, self.tokens
        heir.reset()
        return heir

    # -- what it does -----------------------------------------------------------------------

    def run(self):
        try:
            client = Client(self.yard)
            while not self.stopping.is_set():
                self.step(client)
        except LOST:
            pass
        except Exception as problem:  # the thread that waits for us must hear of it
            self.problem = problem

    def new_name(self, prefix):
        self.made += 1
        return f"{self.name}-{prefix}{self.made}"

    def of_kind(self, kind):
        return [
            path for path, thing in self.things.items()
            if thing.told and thing.told["type"].endswith(kind) and not self.is_below_gone(path)
        ]

    def step(self, client):
        groups, workspaces = self.of_kind("resourceGroups"), self.of_kind("workspaces")
        experiments = self.of_kind("experiments")
        dice = self.random.random()
        if not groups or (dice < 0.04 and len(groups) < 6):
            path = f"{self.yard.subscription}/resourceGroups/{self.new_name('g')}"
            self.put(client, path, {"location": "here", "tags": self.tags()})
        elif not workspaces or dice < 0.3:
            group = self.random.choice(groups)
            path = f"{group}/providers/Microsoft.BatchAI/workspaces/{self.new_name('w')}"
            self.put(client, path, {"location": "here", "tags": self.tags()})
        elif dice < 0.6:
            self.put(client, self.random.choice(workspaces), {"tags": self.tags()}, "PATCH")
        elif dice < 0.75:
            name = self.new_name("e")
            self.put(client, f"{self.random.choice(workspaces)}/experiments/{name}", {})
        elif dice < 0.85 and experiments:
            self.delete(client, self.random.choice(experiments))
        elif dice < 0.92:
            self.delete(client, self.random.choice(workspaces))
        elif dice < 0.95 and len(groups) > 1:
            self.delete(client, self.random.choice(groups))
        elif dice < 0.97:
            self.put_token(client, self.new_name("t"))
        elif self.tokens:
            self.delete_token(client, self.random.choice(sorted(self.tokens)))

    def tags(self):
        return {"v": str(self.random.randrange(10**9)), "of": self.name}

    def send(self, client, method, path, body=None):
        """A write.  -> the answer when it was acknowledged, None when it failed with 5xx."""
        begun = time.monotonic()
        status, headers, told = client.call(method, path, body)
        if self.is_deaf:
            return None
        if status >= 500:
            self.failures.append((begun, status))
            return None
        expect(status < 300, "{} {} was answered with {} {}", method, path, status, told)
        self.acknowledged += 1
        self.last_success = begun
        self.request_ids.append(headers["x-ms-request-id"])
        return headers, told

    def put(self, client, path, body, method="PUT"):
        thing = self.things.setdefault(path, Thing())
        thing.is_fresh = True
        thing.doubts.append(("put", body.get("tags")))
        answer = self.send(client, method, path, body)
        if answer is None:
            return
        headers, told = answer
        expect(told.get("tags") == body.get("tags"), "{} {} told {}", method, path, told)
        thing.told, thing.etag, thing.doubts = told, headers["ETag"], []
        if self.random.random() < 0.2:  # who wrote must read it
            status, headers, now = client.call("GET", path)
            if status < 500:
                self.expect_same(path, thing, status, headers, now)

    def delete(self, client, path):
        thing = self.things[path]
        thing.is_fresh = True
        thing.doubts.append(("delete",))
        if self.send(client, "DELETE", path) is not None:
            thing.told, thing.etag, thing.doubts = None, None, []

    def put_token(self, client, name):
        self.tokens[name] = "doubt"
        answer = self.send(client, "PUT", f"/yard/tokens/{name}", {"role": "reader"})
        if answer is not None:
            self.tokens[name] = answer[1]["token"]

    def delete_token(self, client, name):
        self.tokens[name] = "doubt"
        if self.send(client, "DELETE", f"/yard/tokens/{name}") is not None:
            del self.tokens[name]

    # -- what it checks afterwards ------------------------------------------------------------

    def is_below_gone(self, path):
        parts = path.split("/")
        above = ("/".join(parts[:n]) for n in range(2, len(parts)))
        return any(self.things[p].told is None for p in above if p in self.things)

    def expect_told(self, client, path, thing):
        self.expect_same(path, thing, *client.call("GET", path))

    @staticmethod
    def expect_same(path, thing, status, headers, now):
        expect(status == 200, "{} was acknowledged, but now: {} {}", path, status, now)
        expect(now == thing.told, "{} was acknowledged as {}, but is {}", path, thing.told, now)
        expect(headers["ETag"] == thing.etag, "{}: another ETag", path)

    def expect_gone(self, client, path):
        deadline = time.monotonic() + DELETED_S
        while True:
            status, _, now = client.call("GET", path)
            if status == 404:
                return
            expect(time.monotonic() < deadline, "{} was deleted, but is {}", path, now)
            time.sleep(0.01)

    def settle(self, client, path, thing):
        """An unanswered request took effect or did not: see which, and hold the daemon to it."""
        doubts, thing.doubts = thing.doubts, []
        status, headers, now = client.call("GET", path)
        if status == 200 and now == thing.told:
            return
        if status == 200 and ("put", now.get("tags")) in doubts and "deleting" not in str(now):
            thing.told, thing.etag = now, headers["ETag"]
            return
        may_be_gone = thing.told is None or ("delete",) in doubts
        expect(may_be_gone, "{} was {}, then perhaps {}, and is {}", path, thing.told, doubts, now)
        thing.told = thing.etag = None
        self.expect_gone(client, path)

    def check(self, client, everything):
        """Parents first, for they decide about what is below them."""
        for path in sorted(self.things, key=lambda p: p.count("/")):
            thing = self.things[path]
            if self.is_below_gone(path):
                thing.told, thing.doubts = None, []
                self.expect_gone(client, path)
            elif not (everything or thing.is_fresh):
                continue
            elif thing.doubts:
                self.settle(client, path, thing)
            elif thing.told:
                self.expect_told(client, path, thing)
            else:
                self.expect_gone(client, path)
            thing.is_fresh = False
        # Should one of these come back, check_nothing_else finds it.
        self.things = {path: thing for path, thing in self.things.items() if thing.told}

    def check_tokens(self, listed):
        for name, token in list(self.tokens.items()):
            if token == "doubt":
                del self.tokens[name]  # its value was told to nobody
                continue
            expect(name in listed, "the token {} was acknowledged, but is gone", name)
            mine = Client(self.yard, token)
            status, _, _ = mine.call("GET", "/subscriptions")
            expect(status == 200, "the token {} was acknowledged, but: {}", name, status)
            mine.close()


class Fleet:
    """Writers that come back after every fall of the daemon."""

    def __init__(self, yard, count, seed):
        self.yard = yard
        self.writers = [Writer(yard, number, seed) for number in range(count)]
        self.acknowledged = 0
        self.acknowledged_at_once = []  # per run

    def start(self):
        self.writers = [w.succeed() for w in self.writers]
        for w in self.writers:
            w.start()

    def wait_acknowledged(self, count, seconds=60):
        """Until so many writes of this run were acknowledged; false when it takes too long."""
        deadline = time.monotonic() + seconds
        while sum(w.acknowledged for w in self.writers) < count:
            if time.monotonic() > deadline or not any(w.is_alive() for w in self.writers):
                return False
            time.sleep(0.002)
        return True

    def be_deaf(self):
        """Believe no answer from now on.  For a power cut, which takes the kernel some time to
        act out; while it does, it lets fsync succeed and loses the data all the same."""
        for w in self.writers:
            w.is_deaf = True

    def stop(self):
        """Returns when all have stopped, or the daemon is gone and they have noticed."""
        for w in self.writers:
            w.stopping.set()
        for w in self.writers:
            w.join(120)
            expect(not w.is_alive(), "{} waits for an answer for ever", w.name)
        count = sum(w.acknowledged for w in self.writers)
        self.acknowledged += count
        self.acknowledged_at_once.append(count)
        problems = [w.problem for w in self.writers if w.problem]
        if problems:
            raise problems[0]

    def failures(self):
        return sorted(f for w in self.writers for f in w.failures)

    def last_success(self):
        return max(w.last_success for w in self.writers)

    # -- the check ------------------------------------------------------------------------------

    def check(self, everything=False, also=()):
        """`also` are paths that somebody else has written."""
        client = Client(self.yard)
        listed = {t["name"] for t in self.page(client, "/yard/tokens")}
        for w in self.writers:
            w.check(client, everything)
            w.check_tokens(listed)
        self.check_nothing_else(client, also)
        self.check_recorded()
        self.check_doctor(client)
        client.close()

    @staticmethod
    def page(client, path):
        rows = []
        while path:
            status, _, told = client.call("GET", path)
            expect(status == 200, "{}: {} {}", path, status, told)
            rows += told["value"]
            link = told.get("nextLink")
            path = "/" + link.split("/", 3)[3] if link else None
        return rows

    def check_nothing_else(self, client, also):
        """What was refused, undone or deleted has not come to life."""
        base = self.yard.subscription
        rows = self.page(client, f"{base}/resourceGroups") + self.page(client, f"{base}/resources")
        there = {row["id"] for row in rows}
        known = {
            path for w in self.writers for path, thing in w.things.items()
            if thing.told and not w.is_below_gone(path)
        } | set(also)
        expect(there <= known, "there is more than was written: {}", sorted(there - known)[:5])
        expect(known <= there, "not listed: {}", sorted(known - there)[:5])

    def check_recorded(self):
        """The record of a change is committed with it."""
        wanted = [i for w in self.writers for i in w.request_ids]
        database = sqlite3.connect(f"file:{self.yard.home}/yard.db?mode=ro", uri=True)
        for at in range(0, len(wanted), 500):
            some = wanted[at : at + 500]
            marks = ",".join("?" * len(some))
            (count,) = database.execute(
                "SELECT count(DISTINCT request_id) FROM event"
                f" WHERE outcome = 'Succeeded' AND request_id IN ({marks})", some,
            ).fetchone()
            expect(count == len(some), "{} changes are not in the audit log", len(some) - count)
        database.close()

    def check_doctor(self, client):
        status, _, told = client.call("GET", "/yard/doctor")
        expect(status == 200, "doctor: {} {}", status, told)
        bad = [f for f in told["value"] if not f["ok"]]
        expect(not bad and len(told["value"]) > 5, "doctor finds {}", bad)

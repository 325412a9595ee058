# SPDX-License-Identifier: Apache-2.0
"""The wire, byte for byte where it matters: status codes, headers, members and their types.

test/golden holds what a yard answers to a list of requests, as facts: a path template, a status,
the headers and the shape of the body.  After a wanted change they are written anew with
YARD_RECORD=1, and the difference is for the reviewer to read.

Where recordings of the original service's traffic lie beside the checkout, they are replayed too:
what was said there must be said here.
"""
import json
import os
import pathlib
import re
import time
import urllib.parse

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "test" / "golden"
RECORDINGS = ROOT.parent / "shared" / "reference" / "batchai" / "wire"

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z")
UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
ETAG = re.compile(r'"0x[0-9A-F]{15}"')
HTTP_DATE = re.compile(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT")
# Headers that a client may build on: there when they must be, absent when they must not be.
WATCHED = (
    "allow", "azure-asyncoperation", "cache-control", "content-type", "etag", "last-modified",
    "location", "retry-after", "www-authenticate",
)


def shape_text(text):
    if TIME.fullmatch(text):
        return "time"
    if UUID.fullmatch(text):
        return "uuid"
    if text.startswith(("https://", "http://")):
        return "url"
    return "arm id" if text.startswith("/subscriptions/") else "string"


def shape(value):
    """What a JSON value looks like, whatever it says."""
    if isinstance(value, dict):
        return {key: shape(member) for key, member in value.items()}
    if isinstance(value, list):
        kinds = {json.dumps(shape(item), sort_keys=True) for item in value}
        return [json.loads(kind) for kind in sorted(kinds)]
    if isinstance(value, str):
        return shape_text(value)
    return {bool: "boolean", int: "integer", float: "number", type(None): "null"}[type(value)]


def headers_of(answer):
    return sorted(name for name in WATCHED if name in answer.headers)


def body_of(answer):
    if not answer.content:
        return None
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    return answer.json()


def poll(yard, url, seconds=4):
    """Ask until it is over; what is said meanwhile is checked here."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = yard.rest("GET", url)
        running = answer.status_code == 202 or (
            answer.status_code == 200 and answer.json()["status"] == "InProgress"
        )
        if not running:
            return answer
        assert answer.headers["Retry-After"] == "1"
        if answer.status_code == 200:
            assert set(answer.json()) == {"id", "name", "status", "startTime"}
        time.sleep(0.02)
    raise AssertionError(f"{url} goes on and on")


# -- our own facts --------------------------------------------------------------------------------


class Player:
    """Plays the steps of a golden file against a yard."""

    def __init__(self, yard):
        self.yard = yard
        self.last = None
        self.words = {
            "subscription": yard.subscription_id, "tenant": yard.tenant_id,
            "file": re.sub("^http:", "https:", yard.file_url),
            "group": f"golden-{time.monotonic_ns()}", "account": f"gold{time.monotonic_ns()}"[:24],
        }

    def fill(self, text):
        return re.sub(r"\{(\w+)\}", lambda m: self.words[m[1]], text)

    def ask(self, step):
        if step["path"].startswith("@"):  # what the last 202 said
            return poll(self.yard, self.last.headers[step["path"][1:]])
        body = step.get("body")
        if isinstance(body, dict):
            body = json.loads(self.fill_all(json.dumps(body)))
        options = {"token": None} if step.get("token") == "none" else {}
        return self.yard.rest(step["method"], self.fill(step["path"]), json=body, **options)

    def fill_all(self, text):
        for word, value in self.words.items():
            text = text.replace("{" + word + "}", value)
        return text

    def facts(self, step):
        answer = self.ask(step)
        if answer.status_code == 202:
            self.last = answer
        facts = {"status": answer.status_code, "headers": headers_of(answer)}
        body = body_of(answer)
        if body is not None:
            facts["response"] = shape(body)
            if "error" in body:
                facts["error"] = body["error"]["code"]
        return facts


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.json")), ids=lambda f: f.stem)
def test_a_yard_answers_as_it_always_did(fresh_yard, file):
    golden = json.loads(file.read_text())
    player = Player(fresh_yard())  # lists show all there is, so nothing else may be there
    said = ("method", "path", "body", "token")
    now = [
        {**{k: step[k] for k in said if k in step}, **player.facts(step)} for step in golden["steps"]
    ]
    if os.environ.get("YARD_RECORD"):
        golden["steps"] = now
        file.write_text(json.dumps(golden, indent=1, ensure_ascii=False) + "\n")
    for step, seen in zip(golden["steps"], now):
        assert seen == step, f"{step['method']} {step['path']}"


def test_the_golden_files_cover_every_route_of_the_resource_manager(yard):
    """A route without a golden answer may change its shape unseen."""
    document = yard.rest("GET", "/openapi.json").json()
    covered = set()
    for file in GOLDEN.glob("*.json"):
        for step in json.loads(file.read_text())["steps"]:
            path = step["path"].split("?")[0]
            if path == "@azure-asyncoperation":
                path = "/subscriptions/x/operationresults/x"
            elif path == "@location":
                path = "/subscriptions/x/operationstatuses/x"
            covered.add((step["method"].lower(), re.sub(r"\{\w+\}", "x", path).lower()))
    missing = [
        f"{method.upper()} {path}"
        for path, methods in document["paths"].items()
        if path.startswith(("/subscriptions", "/tenants", "/providers"))
        for method in methods
        if "/locations/{location}/operation" not in path  # the same answers at another place
        and not any(m == method and fits(path, p) for m, p in covered)
    ]
    assert missing == []


def fits(pattern, path):
    expression = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(pattern.lower()))
    return re.fullmatch(expression, path) is not None


# -- the original's facts -------------------------------------------------------------------------


class Replay:
    """One recording, its host and operation ids rewritten to the yard's."""

    def __init__(self, yard, interactions):
        self.yard = yard
        self.interactions = interactions
        self.operation = None  # the last 202's poll URL here

    def prepare(self):
        """What the recording found there already: its groups."""
        for uri in {i["uri"] for i in self.interactions}:
            if match := re.match(r"https://[^/]+(/subscriptions/[^/]+/resourceGroups/[^/?]+)", uri):
                made = self.yard.rest("PUT", match[1], json={"location": "northeurope"})
                assert made.status_code in (200, 201), made.text

    def ask(self, recorded):
        if "/operationresults/" in recorded["uri"]:
            return poll(self.yard, self.operation)
        url = urllib.parse.urlsplit(recorded["uri"])
        answer = self.yard.rest(
            recorded["method"], f"{url.path}?{url.query}", json=recorded.get("requestBody")
        )
        self.operation = answer.headers.get("Azure-AsyncOperation", self.operation)
        return answer


def volatile_aside(value):
    """Host, times, ids of operations and the place they are polled at differ; nothing else may."""
    if isinstance(value, dict):
        return {key: volatile_aside(member) for key, member in value.items()}
    if isinstance(value, list):
        return shape(value)  # the original's subscription held more than ours
    if not isinstance(value, str):
        return value
    if TIME.fullmatch(value):
        return "<time>"
    if ETAG.fullmatch(value):
        return "<etag>"
    if HTTP_DATE.fullmatch(value):
        return "<date>"
    value = re.sub(r"^https://[^/]+", "https://<host>", value)
    value = re.sub(r"/locations/[^/]+/(operation\w+)/" + UUID.pattern, r"/locations/<place>/\1/<id>", value)
    return "<id>" if UUID.fullmatch(value) else value


COMPARED = ("azure-asyncoperation", "cache-control", "content-type", "etag", "last-modified", "location")


@pytest.mark.parametrize("name", [
    "sdk_workspaces__creation_and_deletion", "sdk_experiments__creation_and_deletion",
])
def test_recorded_traffic_gets_the_same_answers(yard, name):
    file = RECORDINGS / f"{name}.json"
    if not file.exists():
        pytest.skip("the recordings of the original service are not beside this checkout")
    replay = Replay(yard, json.loads(file.read_text())["interactions"])
    replay.prepare()
    for recorded in replay.interactions:
        answer = replay.ask(recorded)
        where = f"{recorded['method']} {recorded['uri']}"
        assert answer.status_code == recorded["status"], where
        theirs = recorded.get("responseBody")
        ours = body_of(answer)
        assert shape(ours) == shape(theirs), where
        assert volatile_aside(ours) == volatile_aside(theirs), where
        for header in COMPARED:
            said = answer.headers.get(header)
            assert volatile_aside(said) == volatile_aside(recorded["responseHeaders"].get(header)), (
                f"{header} of {where}"
            )
    assert len(replay.interactions) >= 7

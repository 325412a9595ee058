# SPDX-License-Identifier: Apache-2.0
"""Forged and misused signatures: every field of a SAS altered, every header of a signed request
altered, every letter and level tried against every operation.  Nothing that is not signed for is
done, and each refusal has its own word."""
import base64
import datetime
import random
import urllib.parse

import pytest

from storage_account import make_account
from storage_wire import VERSION, Storage, account_sas, authorization, http_date, iso, service_sas, sign

OLD = "2019-02-02"
SECRET = b"what is kept"


@pytest.fixture(scope="module")
def account(yard):
    return make_account(yard, "forged")


@pytest.fixture(scope="module")
def other(yard):
    return make_account(yard, "stranger")


@pytest.fixture(scope="module")
def store(account):
    made = Storage(account.blob, account.name, account.key)
    for name in ("con", "con2"):
        made.make_container(name)
        for blob in ("b", "b2", "dir/b"):
            made.put(f"/{name}/{blob}", SECRET)
    return made


@pytest.fixture(scope="module")
def files(account):
    made = Storage(account.file, account.name, account.key)
    assert made.call("PUT", "/shr", "restype=share").status == 201
    for name in ("f", "f2"):
        assert made.call("PUT", f"/shr/{name}", "", {"x-ms-type": "file",
                                                     "x-ms-content-length": str(len(SECRET))}).status == 201
        assert made.call("PUT", f"/shr/{name}", "comp=range", {
            "x-ms-write": "update", "x-ms-range": f"bytes=0-{len(SECRET) - 1}"}, SECRET).status == 201
    return made


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def refused(answer, *codes):
    assert answer.status == 403 and SECRET not in answer.body, answer
    assert answer.code in (codes or ("AuthenticationFailed",)), answer


# -- every field of a SAS ---------------------------------------------------------------------------


def fields(sas):
    return dict(urllib.parse.parse_qsl(sas, keep_blank_values=True))


def query(parts):
    return urllib.parse.urlencode(parts, quote_via=urllib.parse.quote)


OTHER_VALUES = {
    "sv": ["2018-11-09", "2015-04-05", "2099-01-01", "2021-12-2", "", "x"],
    "sp": ["rwdlacup", "w", "", "rr", "r,w", "R"],
    "se": ["2098-01-01T00:00:00Z", "2098-01-01", "9999-12-31T23:59:59Z", "", "never", "0"],
    "st": ["2019-01-01T00:00:00Z", "", "x"],
    "spr": ["https,http", "http", "", "https, http"],
    "sip": ["127.0.0.1", "0.0.0.0-255.255.255.255", "", "::1"],
    "ss": ["bfqt", "f", "", "B"],
    "srt": ["sco", "s", "", "O"],
    "sr": ["c", "b", "bs", "d", "s", "f", "", "x"],
    "si": ["policy", ""],
    "rsct": ["text/html", ""],
    "rscd": ["attachment", ""],
    "ses": ["scope", ""],
    "sdd": ["0", "1", "99999999999", "-1"],
    "snapshot": ["2020-01-01T00:00:00.0000000Z"],
    "skoid": ["00000000-0000-0000-0000-000000000000", ""],
}


def altered(sas):
    """Every SAS that differs from this one in one thing."""
    parts = fields(sas)
    for name, values in OTHER_VALUES.items():
        for value in values:
            if parts.get(name) != value and not (name not in parts and value == ""):
                yield f"{name}={value}", query({**parts, name: value})
    for name in parts:
        yield f"without {name}", query({k: v for k, v in parts.items() if k != name})
        yield f"{name} twice", sas + "&" + query({name: parts[name]})
        yield f"{name} first with another value", query({name: "x"}) + "&" + sas
    raw = base64.b64decode(parts["sig"])
    for i in range(len(raw)):
        forged = bytes(b ^ (1 << (i % 8)) if j == i else b for j, b in enumerate(raw))
        yield f"bit of byte {i} of sig", query({**parts, "sig": base64.b64encode(forged).decode()})
    for name, value in {
        "no sig": "", "short sig": parts["sig"][:-4], "long sig": parts["sig"] + "AAAA",
        "unpadded sig": parts["sig"].rstrip("="), "blank sig": " " + parts["sig"],
        "NUL in sig": parts["sig"] + "\0", "zeros": base64.b64encode(bytes(32)).decode(),
        "huge sig": "A" * 6000,
    }.items():
        yield name, query({**parts, "sig": value})
    yield "upper case", sas.upper()


@pytest.mark.parametrize("kind", ["account", "container", "blob", "old blob", "share", "file"])
def test_every_altered_field_is_refused(account, store, files, kind):
    facts = {"sp": "r", "se": "2097-01-01T00:00:00Z", "st": "2020-01-01T00:00:00Z", "spr": "https,http",
             "sip": "127.0.0.0-127.0.0.255"}
    used, path = (files, "/shr/f") if kind in ("share", "file") else (store, "/con/b")
    labels = {"rsct": "text/x", "rscd": "inline"}
    sas = {
        "account": lambda: account_sas(account.name, account.key, ss="b", srt="o", **facts),
        "container": lambda: service_sas(account.name, account.key, "con", **facts, **labels),
        "blob": lambda: service_sas(account.name, account.key, "con", "b", **facts, **labels),
        "old blob": lambda: service_sas(account.name, account.key, "con", "b", sv=OLD, **facts, **labels),
        "share": lambda: service_sas(account.name, account.key, "shr", service="file", sr="s", **facts,
                                     **labels),
        "file": lambda: service_sas(account.name, account.key, "shr", "f", service="file", sr="f", **facts,
                                    **labels),
    }[kind]()
    good = used.call("GET", path, sas=sas)
    assert (good.status, good.body) == (200, SECRET), good
    bad, tried = [], 0
    for what, forged in altered(sas):
        answer = used.call("GET", path, sas=forged)
        tried += 1
        ok = answer.status in (400, 401, 403, 404) and SECRET not in answer.body and answer.code
        # A field that is not part of what a kind signs changes nothing: then nothing more is given either.
        if not ok and answer.status == 200 and unsigned(kind, what):
            continue
        if not ok:
            bad.append((what, answer))
    assert not bad, f"{len(bad)} of {tried}: {[(w, a.status, a.code) for w, a in bad]}"
    assert tried > 80


def unsigned(kind, what):
    """The changes that leave what is signed as it was, by the protocol's own definition."""
    name = what.split("=")[0]
    if name == "sdd" or (name == "ses" and kind in ("share", "file", "old blob")):
        return True  # a depth without a directory, a scope before there were any
    if kind in ("share", "file"):
        return name == "snapshot"  # which is a parameter of blobs
    if kind == "account":
        return name in ("rsct", "rscd", "si", "skoid")  # labels, policies and users are of service SAS
    return False


def test_a_signature_of_one_thing_is_of_no_other(account, other, store, files):
    blob = service_sas(account.name, account.key, "con", "b")
    container = service_sas(account.name, account.key, "con", sp="rl")
    for path in ("/con/b2", "/con2/b", "/con/dir/b", "/con/B", "/con/b/", "/con//b", "/con/b%00",
                 "/con/b%2f..%2fb2", "/con/x/../b2"):
        answer = store.call("GET", path, sas=blob)
        assert answer.status in (400, 403), (path, answer)
    refused(store.call("GET", "/con", "restype=container&comp=list", sas=blob), "AuthenticationFailed",
            "AuthorizationPermissionMismatch")
    refused(store.call("GET", "/con2/b", sas=container))
    refused(store.call("GET", "/con2", "restype=container&comp=list", sas=container))
    refused(store.call("GET", "/", "comp=list", sas=container), "AuthenticationFailed",
            "AuthorizationPermissionMismatch", "AuthorizationResourceTypeMismatch")
    refused(files.call("GET", "/con/b", sas=container))
    refused(store.call("GET", "/con/b", sas=service_sas(account.name, account.key, "con", service="file",
                                                        sr="s")))
    for sas in (service_sas(account.name, other.key, "con", "b"),
                service_sas(other.name, other.key, "con", "b"), account_sas(other.name, other.key),
                account_sas(account.name, other.key), account_sas(account.name,
                    base64.b64encode(bytes(64)).decode())):
        refused(store.call("GET", "/con/b", sas=sas))


def test_times_protocol_and_place(account, store):
    for more, code in [
        ({"se": iso(-1)}, "AuthenticationFailed"), ({"st": iso(1), "se": iso(2)}, "AuthenticationFailed"),
        ({"se": "2020-01-01"}, "AuthenticationFailed"),
        ({"se": "tomorrow"}, "AuthenticationFailed"), ({"st": "x"}, "AuthenticationFailed"),
        ({"spr": "https"}, "AuthorizationProtocolMismatch"),
        ({"spr": "http"}, "AuthorizationProtocolMismatch"),
        ({"sip": "10.0.0.1"}, "AuthorizationSourceIPMismatch"),
        ({"sip": "127.0.0.2-127.0.0.9"}, "AuthorizationSourceIPMismatch"),
        ({"sip": "127.0.0.9-127.0.0.0"}, "AuthorizationSourceIPMismatch"),
        ({"sip": "x"}, "AuthorizationSourceIPMismatch"),
    ]:
        for sas in (account_sas(account.name, account.key, **more),
                    service_sas(account.name, account.key, "con", "b", **more)):
            answer = store.call("GET", "/con/b", sas=sas)
            refused(answer, code)
    # The other side of each border.
    for more in ({"se": iso(0.01)}, {"st": iso(-0.01)}, {"sip": "127.0.0.1"},
                 {"sip": "127.0.0.1-127.0.0.1"}, {"se": "2098-01-01"}, {"se": "2098-01-01T00:00Z"}):
        assert store.call("GET", "/con/b", sas=account_sas(account.name, account.key,
                                                           **more)).body == SECRET, more
    # Who claims to be elsewhere is where the connection comes from.
    sas = account_sas(account.name, account.key, sip="10.0.0.1")
    for header in ("X-Forwarded-For", "X-Real-IP", "Forwarded", "X-Client-IP", "True-Client-IP"):
        refused(store.call("GET", "/con/b", "", {header: "10.0.0.1"}, sas=sas),
                "AuthorizationSourceIPMismatch")
    refused(store.call("GET", "/con/b", "", {"X-Forwarded-Proto": "https"},
                       sas=account_sas(account.name, account.key, spr="https")),
            "AuthorizationProtocolMismatch")


# -- every letter against every operation -----------------------------------------------------------

XML_POLICIES = b"<SignedIdentifiers/>"
# operation: method, path, query, headers, body, letters of which one is enough, level
OPERATIONS = {
    "list containers": ("GET", "/", "comp=list", {}, b"", "l", "s"),
    "service properties": ("GET", "/", "restype=service&comp=properties", {}, b"", "r", "s"),
    "create container": ("PUT", "/new{n}", "restype=container", {}, b"", "cw", "c"),
    "container properties": ("GET", "/con", "restype=container", {}, b"", "r", "c"),
    "container metadata": ("PUT", "/con", "restype=container&comp=metadata", {}, b"", "w", "c"),
    "list blobs": ("GET", "/con", "restype=container&comp=list", {}, b"", "l", "c"),
    "read policies": ("GET", "/con", "restype=container&comp=acl", {}, b"", "", "c"),
    "set policies": ("PUT", "/con", "restype=container&comp=acl", {}, XML_POLICIES, "", "c"),
    "delete container": ("DELETE", "/none", "restype=container", {}, b"", "d", "c"),
    "read": ("GET", "/con/b", "", {}, b"", "r", "o"),
    "properties": ("HEAD", "/con/b", "", {}, b"", "r", "o"),
    "put new": ("PUT", "/con/new{n}", "", {"x-ms-blob-type": "BlockBlob"}, b"1", "cw", "o"),
    "overwrite": ("PUT", "/con/b2", "", {"x-ms-blob-type": "BlockBlob"}, SECRET, "w", "o"),
    "put block": ("PUT", "/con/staged", "comp=block&blockid=MDAw", {}, b"1", "w", "o"),
    "block list": ("GET", "/con/b", "comp=blocklist", {}, b"", "r", "o"),
    "metadata": ("PUT", "/con/b2", "comp=metadata", {}, b"", "w", "o"),
    "headers": ("PUT", "/con/b2", "comp=properties", {}, b"", "w", "o"),
    "tier": ("PUT", "/con/b2", "comp=tier", {"x-ms-access-tier": "Hot"}, b"", "w", "o"),
    "read tags": ("GET", "/con/b", "comp=tags", {}, b"", "t", "o"),
    "append": ("PUT", "/con/log", "comp=appendblock", {}, b"1", "aw", "o"),
    "delete": ("DELETE", "/con/none", "", {}, b"", "d", "o"),
    "delegation key": ("POST", "/", "restype=service&comp=userdelegationkey", {}, b"<KeyInfo/>", "", "s"),
}
LETTERS = "racwdltupxiyfm"


@pytest.mark.parametrize("name", OPERATIONS)
def test_one_letter_at_a_time(account, store, name):
    method, path, words, headers, data, enough, level = OPERATIONS[name]
    if name == "append" and store.call("HEAD", "/con/log").status == 404:
        assert store.call("PUT", "/con/log", "", {"x-ms-blob-type": "AppendBlob"}).status == 201
    for number, letter in enumerate(LETTERS):
        sas = account_sas(account.name, account.key, sp=letter)
        answer = store.call(method, path.format(n=number), words, headers, data, sas=sas)
        if letter in enough:
            assert answer.status not in (401, 403) and answer.status < 500, (letter, answer)
        else:
            code = "UnauthorizedBlobOverwrite" if (name, letter) == ("overwrite",
                "c") else "AuthorizationPermissionMismatch"
            assert (answer.status, answer["x-ms-error-code"]) == (403, code), (letter, answer)
            assert SECRET not in answer.body
    # All letters, but of another level or for another service.
    wrong = {"s": "co", "c": "so", "o": "sc"}[level]
    answer = store.call(method, path.format(n="w"), words, headers, data,
                        sas=account_sas(account.name, account.key, srt=wrong))
    assert answer.status == 403 and answer["x-ms-error-code"] in ("AuthorizationResourceTypeMismatch",
        "AuthorizationPermissionMismatch"), answer
    answer = store.call(method, path.format(n="w"), words, headers, data,
                        sas=account_sas(account.name, account.key, ss="fqt"))
    assert answer.status == 403 and answer["x-ms-error-code"] in ("AuthorizationServiceMismatch",
        "AuthorizationPermissionMismatch"), answer
    # And nobody at all.
    answer = store.call(method, path.format(n="w"), words, headers, data, auth=None)
    assert answer.status in (401,
                             403) and answer["x-ms-error-code"] == "NoAuthenticationInformation", answer
    assert SECRET not in answer.body


def test_a_service_sas_cannot_rule_its_container(account, store):
    sas = service_sas(account.name, account.key, "con", sp="racwdlt")
    for method, words, data in (
        ("PUT", "restype=container", b""), ("DELETE", "restype=container", b""),
        ("GET", "restype=container&comp=acl", b""),
        ("PUT", "restype=container&comp=acl", XML_POLICIES),
        ("PUT", "restype=container&comp=metadata", b""),
    ):
        refused(store.call(method, "/con", words, {}, data, sas=sas), "AuthorizationPermissionMismatch")


# -- signed requests --------------------------------------------------------------------------------


def signed_get(store, path="/con/b", words="timeout=30", headers=None, lite=False, key=None, account=None):
    sent = {"x-ms-version": VERSION, "x-ms-date": http_date(), "x-ms-meta-a": "1",
            "Content-Type": "text/x", **(headers or {})}
    auth = authorization(account or store.account, key or store.key, "GET", store.base + path, words, sent,
                         lite)
    return sent, auth


@pytest.mark.parametrize("lite", [False, True], ids=["SharedKey", "SharedKeyLite"])
def test_every_altered_part_of_a_signed_request(account, store, lite):
    sent, auth = signed_get(store, lite=lite)

    def send(path="/con/b", words="timeout=30", method="GET", headers=sent, authorization=auth):
        return store.call(method, path, words, headers, auth=authorization)

    assert send().body == SECRET
    scheme, signature = auth.split(":", 1)
    changes = {
        "path": dict(path="/con/b2"), "container": dict(path="/con2/b"), "case": dict(path="/con/B"),
        "encoding": dict(path="/con/%62"),
        "verb": dict(method="HEAD"), "delete": dict(method="DELETE"),
        "version": dict(headers={**sent, "x-ms-version": "2020-10-02"}),
        "type": dict(headers={**sent, "Content-Type": "text/y"}),
        "metadata": dict(headers={**sent, "x-ms-meta-a": "2"}),
        "one more": dict(headers={**sent, "x-ms-meta-b": "2"}),
        "one less": dict(headers={k: v for k, v in sent.items()
                                  if k != "x-ms-meta-a"} | {"x-ms-meta-a": None}),
        "date": dict(headers={**sent, "x-ms-date": http_date(now() + datetime.timedelta(seconds=1))}),
        "comp": dict(words="timeout=30&comp=metadata"),
        "no signature": dict(authorization=scheme + ":"), "short": dict(authorization=auth[:-4]),
        "long": dict(authorization=auth + "AAAA"),
        "other account": dict(authorization=auth.replace(store.account, "stranger")),
        "no account": dict(authorization=f"SharedKey {signature}"),
        "zeros": dict(authorization=f"{scheme}:{base64.b64encode(bytes(32)).decode()}"),
        "other scheme": dict(authorization=("SharedKey"
                                            if lite else "SharedKeyLite") + auth[auth.index(" "):]),
        "nonsense": dict(authorization="SharedKey"), "basic": dict(authorization="Basic dTpw"),
        "empty": dict(authorization=" "), "huge": dict(authorization="SharedKey " + "x" * 6000),
    }
    if not lite:  # which signs neither of them
        changes |= {"query": dict(words="timeout=31"), "one more word": dict(words="timeout=30&x=y"),
                    "range": dict(headers={**sent, "Range": "bytes=0-1"}),
                    "condition": dict(headers={**sent, "If-Match": "*"})}
    bad = []
    for what, change in changes.items():
        answer = send(**change)
        if answer.status not in (400, 401, 403) or SECRET in answer.body or not answer["x-ms-error-code"]:
            bad.append((what, answer))
    assert not bad, bad
    assert store.call("GET", "/con/b").body == SECRET


@pytest.mark.parametrize("minutes, good", [(-14, True), (14, True), (-16, False), (16, False),
                                           (-60 * 24 * 365, False), (60 * 24 * 365, False)])
def test_clocks_may_differ_by_a_quarter_of_an_hour(store, minutes, good):
    when = http_date(now() + datetime.timedelta(minutes=minutes))
    for headers in ({"x-ms-date": when}, {"x-ms-date": None, "Date": when}):
        answer = store.call("GET", "/con/b", "", headers)
        if good:
            assert answer.body == SECRET
        else:
            refused(answer)


@pytest.mark.parametrize("headers", [{"x-ms-date": None}, {"x-ms-date": "yesterday"}, {"x-ms-date": ""},
                                     {"x-ms-date": "0"}])
def test_a_signed_request_has_a_date(store, headers):
    answer = store.call("GET", "/con/b", "", headers)
    assert answer.status in (400, 403) and answer.code, answer


def test_the_key_of_another_account(store, other):
    sent, auth = signed_get(store, key=other.key)
    refused(store.call("GET", "/con/b", "timeout=30", sent, auth=auth))
    sent, auth = signed_get(store, key=other.key, account=other.name)
    answer = store.call("GET", "/con/b", "timeout=30", sent, auth=auth)
    assert answer.status in (400, 403) and SECRET not in answer.body, answer


def test_keys_and_tokens_of_the_house_do_not_cross(yard, account, store):
    for token in ("wrong", "", "x" * 5000, account.key):
        answer = store.call("GET", "/con/b", auth=f"Bearer {token}")
        assert answer.status in (400, 401, 403) and SECRET not in answer.body, answer
    reader = yard.rest("GET", "/subscriptions?api-version=2020-01-01", token=account.key)
    assert reader.status_code == 401


def test_random_noise_opens_nothing(store):
    rng = random.Random(8)
    alphabet = "abcxyzABC019=&%+-_.:/"
    for _ in range(150):
        noise = "sig=" + "".join(rng.choice(alphabet) for _ in range(rng.randrange(1, 80)))
        for name in rng.sample(["sv", "sr", "sp", "se", "ss", "srt", "st", "spr", "skoid", "sktid", "ske",
                                "skt"], 5):
            noise += f"&{name}={rng.choice(['2021-12-02', 'b', 'c', 'rwdl', '2098-01-01', 'x', 'sco', '%', '%ff'])}"
        answer = store.call("GET", "/con/b", sas=noise)
        assert answer.status in (400, 401, 403) and SECRET not in answer.body, (noise, answer)


def test_a_newline_in_a_name_does_not_move_the_fields(account, store):
    """The text that is signed is made of lines: no name may stand for two of them."""
    good = fields(service_sas(account.name, account.key, "con", "b", sp="r", sv="2021-12-02"))
    # What the text would be with the next field swallowed by the name of the blob.
    for sv, name in (("2020-10-02", "b%0a"), ("2018-11-09", "b%0a"), ("2015-04-05", "b%0a%0a%0a")):
        answer = store.call("GET", f"/con/{name}", sas=query({**good, "sv": sv}))
        assert answer.status in (400, 403), answer
    text = "\n".join(["r", "", good["se"], f"/blob/{account.name}/con/b", "", "", "", VERSION, "b", "", "",
                      "", "", "", "", ""])
    assert sign(account.key, text) == good["sig"]  # so we know what is signed

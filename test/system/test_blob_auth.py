# SPDX-License-Identifier: Apache-2.0
"""Who may do what to blobs: keys, SAS of every kind, tokens, addresses; and nobody else."""
import datetime
import urllib.parse
import uuid

import pytest

from storage_wire import (
    VERSION, Storage, account_sas, authorization, http_date, iso, md5, open_account, service_sas, sign)


@pytest.fixture(scope="module")
def store(yard):
    return open_account(yard, "authaccount")


@pytest.fixture(scope="module")
def con(store):
    """A container with one blob, "b"."""
    path = store.make_container("c" + uuid.uuid4().hex[:20])
    store.put(f"{path}/b", b"data", {"Content-Type": "text/x"})
    return path


def refused(answer, code, status=403):
    assert (answer.status, answer.code) == (status, code), answer


# -- nobody ------------------------------------------------------------------------------------------


OPERATIONS = [
    ("GET", "/", "comp=list"), ("GET", "/", "restype=service&comp=properties"),
    ("PUT", "/", "restype=service&comp=properties"), ("GET", "/", "restype=account&comp=properties"),
    ("POST", "/", "restype=service&comp=userdelegationkey"), ("POST", "/", "comp=batch"),
    ("PUT", "{con}", "restype=container"), ("GET", "{con}", "restype=container"),
    ("HEAD", "{con}", "restype=container"), ("DELETE", "{con}", "restype=container"),
    ("PUT", "{con}", "restype=container&comp=metadata"), ("GET", "{con}", "restype=container&comp=acl"),
    ("PUT", "{con}", "restype=container&comp=acl"), ("PUT", "{con}", "restype=container&comp=lease"),
    ("GET", "{con}", "restype=container&comp=list"), ("PUT", "{con}/b", ""), ("GET", "{con}/b", ""),
    ("HEAD", "{con}/b", ""), ("DELETE", "{con}/b", ""), ("GET", "{con}/b", "comp=metadata"),
    ("PUT", "{con}/b", "comp=metadata"), ("PUT", "{con}/b", "comp=properties"),
    ("GET", "{con}/b", "comp=tags"), ("PUT", "{con}/b", "comp=tags"), ("PUT", "{con}/b", "comp=tier"),
    ("PUT", "{con}/b", "comp=snapshot"), ("PUT", "{con}/b", "comp=lease"),
    ("PUT", "{con}/b", "comp=block&blockid=MDAw"), ("PUT", "{con}/b", "comp=blocklist"),
    ("GET", "{con}/b", "comp=blocklist"), ("PUT", "{con}/b", "comp=appendblock"),
    ("PUT", "{con}/b", "comp=page"), ("GET", "{con}/b", "comp=pagelist"),
]


@pytest.mark.parametrize("method, path, query", OPERATIONS)
def test_no_operation_is_open(store, con, method, path, query):
    path = path.format(con=con)
    wrong = authorization(store.account, md5(b"no key"), method, store.base + path, query, {})
    for auth, status, code in (
        (None, 401, "NoAuthenticationInformation"),
        ("Bearer nobody", 401, None),
        ("Basic YTpi", 400, "InvalidAuthenticationInfo"),
        (wrong, 403, "AuthenticationFailed"),
    ):
        answer = store.call(method, path, query, {"x-ms-blob-type": "BlockBlob"}, auth=auth)
        assert answer.status == status, (auth, answer)
        if code and method != "HEAD":
            assert answer.code == code
    forged = account_sas(store.account, md5(b"no key"))
    answer = store.call(method, path, query, {"x-ms-blob-type": "BlockBlob"}, sas=forged)
    assert (answer.status, answer["x-ms-error-code"]) == (403, "AuthenticationFailed")
    assert store.call("GET", f"{con}/b").body == b"data"


def test_an_unknown_account_is_not_found(store):
    nobody = Storage(store.endpoint.replace(store.account, "nobodysaccount"), "nobodysaccount", store.key)
    answer = nobody.call("GET", "/", "comp=list")
    refused(answer, "ResourceNotFound", 404)


# -- the key -----------------------------------------------------------------------------------------


def test_both_schemes_and_both_dates(store, con):
    for lite in (False, True):
        assert store.call("GET", f"{con}/b", lite=lite).status == 200
        assert store.call("GET", con, "restype=container&comp=list", lite=lite).status == 200
        answer = store.call("GET", f"{con}/b", "", {"x-ms-date": None, "Date": http_date()}, lite=lite)
        assert answer.status == 200


def test_the_clock_may_be_off_by_a_quarter_of_an_hour(store, con):
    now = datetime.datetime.now(datetime.timezone.utc)
    for minutes, status in ((-14, 200), (14, 200), (-16, 403), (16, 403)):
        date = http_date(now + datetime.timedelta(minutes=minutes))
        assert store.call("GET", f"{con}/b", "", {"x-ms-date": date}).status == status
    refused(store.call("GET", f"{con}/b", "", {"x-ms-date": None}), "AuthenticationFailed")


def test_headers_are_signed_in_any_known_order(store, con):
    meta = {"x-ms-meta-a_b": "1", "x-ms-meta-a1": "2", "x-ms-meta-ab": "3"}
    orders = [sorted(meta), ["x-ms-meta-a_b", "x-ms-meta-a1", "x-ms-meta-ab"]]
    for order in orders:
        sent = {"x-ms-version": VERSION, "x-ms-date": http_date(), "x-ms-blob-type": "BlockBlob",
                "Content-Length": "1", **meta}
        rest = sorted(name for name in sent if name.startswith("x-ms-") and name not in meta)
        lines = ["PUT", "", "", "1"] + [""] * 8
        names = [n for n in rest if n < "x-ms-meta"] + order + [n for n in rest if n > "x-ms-meta"]
        lines += [f"{name}:{sent[name]}" for name in names]
        text = "\n".join(lines) + f"\n/{store.account}{store.base}{con}/ordered"
        auth = f"SharedKey {store.account}:{sign(store.key, text)}"
        answer = store.call("PUT", f"{con}/ordered", "", sent, b"1", auth=auth)
        assert answer.status == 201, answer


def test_every_signed_part_counts(store, con):
    path = f"{con}/b"
    sent = {"x-ms-version": VERSION, "x-ms-date": http_date(), "x-ms-range": "bytes=0-1"}
    auth = authorization(store.account, store.key, "GET", store.base + path, "", sent)
    assert store.call("GET", path, "", sent, auth=auth).status == 206
    for headers in ({**sent, "x-ms-range": "bytes=0-2"}, {**sent, "x-ms-meta-new": "1"},
                    {**sent, "Range": "bytes=0-1"}, {**sent, "If-Match": "*"}, {**sent, "x-ms-range": None}):
        refused(store.call("GET", path, "", headers, auth=auth), "AuthenticationFailed")
    refused(store.call("GET", path, "comp=metadata", sent, auth=auth), "AuthenticationFailed")
    refused(store.call("GET", path + "c", "", sent, auth=auth), "AuthenticationFailed")
    refused(store.call("DELETE", path, "", sent, auth=auth), "AuthenticationFailed")


def rotate(yard, store, name):
    path = f"{yard.subscription}/resourceGroups/storage/providers/Microsoft.Storage/storageAccounts/{store.account}"
    answer = yard.rest("POST", path + "/regenerateKey", json={"keyName": name})
    assert answer.status_code == 200, answer.text
    return {key["keyName"]: key["value"] for key in answer.json()["keys"]}


def test_a_new_key_shuts_out_the_old_one_at_once(yard, store, con):
    first = Storage(store.endpoint, store.account, rotate(yard, store, "key2")["key2"])
    sas = service_sas(first.account, first.key, con[1:], "b")
    assert first.call("GET", f"{con}/b").status == 200 and first.call("GET", f"{con}/b", sas=sas).status == 200
    second = Storage(store.endpoint, store.account, rotate(yard, store, "key2")["key2"])
    assert second.call("GET", f"{con}/b").status == 200
    refused(first.call("GET", f"{con}/b"), "AuthenticationFailed")
    refused(first.call("GET", f"{con}/b", sas=sas), "AuthenticationFailed")
    assert store.call("GET", f"{con}/b").status == 200  # the other key is as it was


# -- account SAS -------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2015-04-05", "2018-11-09", "2020-10-02", "2020-12-06", "2026-10-06"])
def test_an_account_sas_of_each_version(store, con, version):
    sas = account_sas(store.account, store.key, sv=version)
    answer = store.call("GET", f"{con}/b", sas=sas, headers={"x-ms-version": None})
    assert (answer.body, answer["x-ms-version"]) == (b"data", version)


@pytest.mark.parametrize("limits, method, path, query, code", [
    ({"sp": "wdl"}, "GET", "{con}/b", "", "AuthorizationPermissionMismatch"),
    ({"sp": "rwl"}, "DELETE", "{con}/b", "", "AuthorizationPermissionMismatch"),
    ({"sp": "rwd"}, "GET", "{con}", "restype=container&comp=list", "AuthorizationPermissionMismatch"),
    ({"sp": "rl"}, "PUT", "{con}/new", "", "AuthorizationPermissionMismatch"),
    ({"sp": "rwdl"}, "GET", "{con}", "restype=container&comp=acl", "AuthorizationPermissionMismatch"),
    ({"ss": "f"}, "GET", "{con}/b", "", "AuthorizationServiceMismatch"),
    ({"srt": "sc"}, "GET", "{con}/b", "", "AuthorizationResourceTypeMismatch"),
    ({"srt": "so"}, "GET", "{con}", "restype=container&comp=list", "AuthorizationResourceTypeMismatch"),
    ({"srt": "co"}, "GET", "/", "comp=list", "AuthorizationResourceTypeMismatch"),
    ({"sip": "10.1.2.3"}, "GET", "{con}/b", "", "AuthorizationSourceIPMismatch"),
    ({"sip": "10.1.2.3-10.9.9.9"}, "GET", "{con}/b", "", "AuthorizationSourceIPMismatch"),
    ({"spr": "https"}, "GET", "{con}/b", "", "AuthorizationProtocolMismatch"),
    ({"se": iso(-1)}, "GET", "{con}/b", "", "AuthenticationFailed"),
    ({"st": iso(1), "se": iso(2)}, "GET", "{con}/b", "", "AuthenticationFailed"),
    ({"se": "tomorrow"}, "GET", "{con}/b", "", "AuthenticationFailed"),
    ({"sv": "2012-02-12"}, "GET", "{con}/b", "", "AuthenticationFailed"),
])
def test_each_limit_of_an_account_sas(store, con, limits, method, path, query, code):
    sas = account_sas(store.account, store.key, **limits)
    refused(store.call(method, path.format(con=con), query, {"x-ms-blob-type": "BlockBlob"}, sas=sas), code)


@pytest.mark.parametrize("limits", [
    {"sip": "127.0.0.1"}, {"sip": "127.0.0.0-127.0.0.9"}, {"spr": "https,http"}, {"st": iso(-1)},
    {"se": iso(48, "%Y-%m-%d")}, {"se": iso(2, "%Y-%m-%dT%H:%MZ")}, {"se": iso(2, "%Y-%m-%dT%H:%M:%S.1234567Z")},
    {"ss": "b", "srt": "o", "sp": "r"},
])
def test_limits_that_are_met(store, con, limits):
    sas = account_sas(store.account, store.key, **limits)
    assert store.call("GET", f"{con}/b", sas=sas).status == 200


def test_every_altered_byte_of_a_sas_is_refused(store, con):
    for sas in (account_sas(store.account, store.key, sp="r"),
                service_sas(store.account, store.key, con[1:], "b", rscc="no-store")):
        assert store.call("GET", f"{con}/b", sas=sas).status == 200
        for at, character in enumerate(sas):
            if character in "=&":
                continue
            altered = sas[:at] + ("x" if character != "x" else "y") + sas[at + 1:]
            answer = store.call("GET", f"{con}/b", sas=altered, headers={"x-ms-version": None})
            assert answer.status in (400, 401, 403), (altered, answer)
        for name, value in urllib.parse.parse_qsl(sas):
            twice = sas + "&" + urllib.parse.urlencode({name: value})
            assert store.call("GET", f"{con}/b", sas=twice).status == 403


# -- service SAS -------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2015-04-05", "2018-03-28", "2018-11-09", "2020-12-06", "2026-10-06"])
def test_a_service_sas_of_each_version(store, con, version):
    for blob in (None, "b"):
        sas = service_sas(store.account, store.key, con[1:], blob, sv=version)
        assert store.call("GET", f"{con}/b", sas=sas).body == b"data"


def test_a_blob_sas_opens_one_blob(store, con):
    store.put(f"{con}/b2", b"2")
    sas = service_sas(store.account, store.key, con[1:], "b", sp="rwdl")
    refused(store.call("GET", f"{con}/b2", sas=sas), "AuthenticationFailed")
    refused(store.call("GET", con, "restype=container&comp=list", sas=sas), "AuthenticationFailed")
    refused(store.call("GET", "/", "comp=list", sas=sas), "AuthenticationFailed")


def test_a_container_sas_opens_its_blobs_and_their_list(store, con):
    sas = service_sas(store.account, store.key, con[1:], sp="racwdlt")
    assert store.call("GET", con, "restype=container&comp=list", sas=sas).status == 200
    assert store.call("PUT", f"{con}/new", "", {"x-ms-blob-type": "BlockBlob"}, b"1", sas=sas).status == 201
    assert store.call("DELETE", f"{con}/new", sas=sas).status == 202
    for method, query in (("DELETE", "restype=container"), ("GET", "restype=container"),
                          ("PUT", "restype=container&comp=metadata"), ("PUT", "restype=container&comp=acl")):
        refused(store.call(method, con, query, sas=sas), "AuthorizationPermissionMismatch")
    other = store.make_container("c" + uuid.uuid4().hex[:20])
    refused(store.call("GET", other, "restype=container&comp=list", sas=sas), "AuthenticationFailed")


def test_creating_is_not_replacing(store, con):
    sas = service_sas(store.account, store.key, con[1:], sp="c")
    put = {"x-ms-blob-type": "BlockBlob"}
    path = f"{con}/{uuid.uuid4().hex}"
    assert store.call("PUT", path, "", put, b"1", sas=sas).status == 201
    refused(store.call("PUT", path, "", put, b"2", sas=sas), "UnauthorizedBlobOverwrite")
    refused(store.call("PUT", path, "", {**put, "If-None-Match": "*"}, b"2", sas=sas), "BlobAlreadyExists", 409)
    refused(store.call("PUT", path, "", {"x-ms-blob-type": "AppendBlob"}, sas=sas), "UnauthorizedBlobOverwrite")
    refused(store.call("PUT", path, "comp=blocklist", {}, b"<BlockList/>", sas=sas),
            "AuthorizationPermissionMismatch")
    assert store.call("GET", path).body == b"1"


@pytest.mark.parametrize("letter, method, query, headers, data, status", [
    ("r", "GET", "", {}, b"", 200), ("r", "HEAD", "", {}, b"", 200), ("r", "GET", "comp=blocklist", {}, b"", 200),
    ("a", "PUT", "comp=appendblock", {}, b"1", 409), ("t", "GET", "comp=tags", {}, b"", 200),
    ("t", "PUT", "comp=tags", {}, b"<Tags><TagSet/></Tags>", 204), ("c", "PUT", "comp=snapshot", {}, b"", 201),
    ("w", "PUT", "comp=tier", {"x-ms-access-tier": "Hot"}, b"", 200), ("w", "PUT", "comp=metadata", {}, b"", 200),
    ("w", "PUT", "comp=properties", {}, b"", 200), ("w", "PUT", "comp=block&blockid=MDAw", {}, b"1", 201),
    ("d", "PUT", "comp=lease", {"x-ms-lease-action": "break"}, b"", 409),
    ("d", "DELETE", "", {"x-ms-delete-snapshots": "include"}, b"", 202),
])
def test_each_letter_is_for_its_operations(store, con, letter, method, query, headers, data, status):
    store.put(f"{con}/letters", b"1")
    path = f"{con}/letters"
    others = "".join(l for l in "racwdlt" if l != letter and not (letter in "acd" and l == "w")
                     and not (letter == "w" and query.startswith("comp=snap")))
    refusing = service_sas(store.account, store.key, con[1:], sp=others)
    answer = store.call(method, path, query, headers, data, sas=refusing)
    assert (answer.status, answer["x-ms-error-code"]) == (403, "AuthorizationPermissionMismatch")
    allowing = service_sas(store.account, store.key, con[1:], sp=letter)
    assert store.call(method, path, query, headers, data, sas=allowing).status == status


def test_a_sas_may_relabel_what_it_opens(store, con):
    sas = service_sas(store.account, store.key, con[1:], "b", rscc="no-store", rscd="attachment; filename=x y",
                      rsce="identity", rscl="fr", rsct="text/plain")
    answer = store.call("GET", f"{con}/b", sas=sas)
    assert (answer["Cache-Control"], answer["Content-Disposition"]) == ("no-store", "attachment; filename=x y")
    assert (answer["Content-Encoding"], answer["Content-Language"]) == ("identity", "fr")
    assert answer["Content-Type"] == "text/plain"
    answer = store.call("GET", f"{con}/b", "rsct=text/html")
    assert answer["Content-Type"] == "text/x"  # without a SAS it means nothing


def test_a_snapshot_sas_opens_one_snapshot(store, con):
    store.put(f"{con}/s", b"old")
    moments = [store.call("PUT", f"{con}/s", "comp=snapshot")["x-ms-snapshot"] for _ in range(2)]
    sas = service_sas(store.account, store.key, con[1:], "s", sr="bs", snapshot=moments[0])
    assert store.call("GET", f"{con}/s", sas=sas).body == b"old"
    refused(store.call("GET", f"{con}/s", sas=sas.replace(urllib.parse.quote(moments[0]),
                                                         urllib.parse.quote(moments[1]))), "AuthenticationFailed")
    blob = service_sas(store.account, store.key, con[1:], "s")
    refused(store.call("GET", f"{con}/s", f"snapshot={urllib.parse.quote(moments[0])}", sas=blob),
            "AuthorizationResourceTypeMismatch")


def test_a_directory_sas_opens_what_is_below(store, con):
    store.put(f"{con}/d/e/f", b"below")
    store.put(f"{con}/d/ex", b"beside")
    sas = service_sas(store.account, store.key, con[1:], "d/e", sr="d") + "&sdd=2"
    assert store.call("GET", f"{con}/d/e/f", sas=sas).body == b"below"
    refused(store.call("GET", f"{con}/d/ex", sas=sas), "AuthenticationFailed")
    refused(store.call("GET", f"{con}/d/e/f", sas=sas.replace("sdd=2", "sdd=1")), "AuthenticationFailed")


def set_policy(store, con, text):
    body = f"<SignedIdentifiers>{text}</SignedIdentifiers>".encode()
    assert store.call("PUT", con, "restype=container&comp=acl", {}, body).status == 200


def test_a_policy_gives_and_takes_at_once(store, con):
    policy = ("<SignedIdentifier><Id>p</Id><AccessPolicy><Start>2020-01-01</Start><Expiry>{}</Expiry>"
              "<Permission>{}</Permission></AccessPolicy></SignedIdentifier>")
    sas = service_sas(store.account, store.key, con[1:], "b", sp=None, se=None, si="p")
    refused(store.call("GET", f"{con}/b", sas=sas), "AuthenticationFailed")
    set_policy(store, con, policy.format("2099-01-01", "r"))
    assert store.call("GET", f"{con}/b", sas=sas).status == 200
    set_policy(store, con, policy.format("2099-01-01", "w"))
    refused(store.call("GET", f"{con}/b", sas=sas), "AuthorizationPermissionMismatch")
    set_policy(store, con, policy.format("2021-01-01", "r"))
    refused(store.call("GET", f"{con}/b", sas=sas), "AuthenticationFailed")
    set_policy(store, con, policy.format("2099-01-01", "r"))
    assert store.call("GET", f"{con}/b", sas=sas).status == 200
    set_policy(store, con, "")
    refused(store.call("GET", f"{con}/b", sas=sas), "AuthenticationFailed")


# -- tokens ------------------------------------------------------------------------------------------


def test_the_yards_token_opens_its_accounts(yard, store, con):
    bearer = f"Bearer {yard.token}"
    assert store.call("GET", f"{con}/b", auth=bearer).body == b"data"
    assert store.call("PUT", f"{con}/t", "", {"x-ms-blob-type": "BlockBlob"}, b"1", auth=bearer).status == 201
    answer = store.call("GET", f"{con}/b", auth="Bearer nonsense")
    assert answer.status == 401 and answer["WWW-Authenticate"].startswith("Bearer")


def delegation_key(store, auth, hours=1, status=200):
    body = f"<KeyInfo><Start>{iso(-1)}</Start><Expiry>{iso(hours)}</Expiry></KeyInfo>".encode()
    answer = store.call("POST", "/", "restype=service&comp=userdelegationkey", {}, body, auth=auth)
    assert answer.status == status, answer
    return {child.tag: child.text for child in answer.xml} if status == 200 else answer


def delegation_sas(store, key, container, sv=VERSION, sp="r", changes=()):
    p = {"sv": sv, "sr": "c", "sp": sp, "se": iso(), "skoid": key["SignedOid"], "sktid": key["SignedTid"],
         "skt": key["SignedStart"], "ske": key["SignedExpiry"], "sks": key["SignedService"],
         "skv": key["SignedVersion"]}
    lines = [p["sp"], "", p["se"], f"/blob/{store.account}/{container}"]
    lines += [p[name] for name in ("skoid", "sktid", "skt", "ske", "sks", "skv")]
    lines += ["", "", ""] if sv >= "2020-02-10" else []
    lines += ["", ""] if sv >= "2025-07-05" else []
    lines += ["", "", sv, "c", ""] + ([""] if sv >= "2020-12-06" else [])
    lines += ["", ""] if sv >= "2026-04-06" else []
    lines += [""] * 5
    p["sig"] = sign(key["Value"], "\n".join(lines))
    return urllib.parse.urlencode({**p, **dict(changes)})


@pytest.mark.parametrize("version", ["2018-11-09", "2020-02-10", "2020-12-06", "2025-07-05", "2026-10-06"])
def test_a_user_can_hand_out_a_sas_of_its_own(yard, store, con, version):
    key = delegation_key(store, f"Bearer {yard.token}")
    assert key["SignedService"] == "b" and key["SignedTid"] == yard.tenant_id
    uuid.UUID(key["SignedOid"])
    sas = delegation_sas(store, key, con[1:], sv=version)
    assert store.call("GET", f"{con}/b", sas=sas).body == b"data"
    refused(store.call("DELETE", f"{con}/b", sas=sas), "AuthorizationPermissionMismatch")
    for change in ({"skoid": str(uuid.uuid4())}, {"ske": iso(9)}, {"sp": "rd"}, {"sks": "f"}, {"srh": "x"},
                   {"sduoid": str(uuid.uuid4())}):
        altered = delegation_sas(store, key, con[1:], version, changes=change)
        refused(store.call("GET", f"{con}/b", sas=altered), "AuthenticationFailed")


def test_only_a_user_has_a_key(yard, store):
    refused(delegation_key(store, "key", status=403), "AuthenticationFailed")
    refused(delegation_key(store, f"Bearer {yard.token}", hours=24 * 8, status=400), "InvalidXmlNodeValue", 400)


# -- addresses ---------------------------------------------------------------------------------------


def test_a_foreign_host_is_refused(store, con):
    for host in ("evil.example", "evil.example:80", f"{store.account}.blob.evil.example",
                 f"{store.account}.file.localhost", "127.0.0.1.evil.example"):
        answer = store.call("GET", f"{con}/b", host=host)
        assert answer.status == 421, (host, answer)


def test_other_names_of_the_same_machine_work(store, con):
    port = store.netloc.rsplit(":", 1)[1]
    for host in (f"localhost:{port}", f"127.0.0.2:{port}", f"[::1]:{port}", "localhost", f"somename:{port}"):
        assert store.call("GET", f"{con}/b", host=host).body == b"data"


def test_the_account_may_stand_in_the_host(fresh_yard):
    yard = fresh_yard("--storage-suffix", "yard.example")
    store = open_account(yard, "hostaccount")
    con = store.make_container("con")
    store.put(f"{con}/b", b"data")
    port = store.netloc.rsplit(":", 1)[1]
    host = f"hostaccount.blob.yard.example:{port}"
    assert store.call("GET", f"{con}/b", base="", host=host).body == b"data"
    listed = store.call("GET", con, "restype=container&comp=list", base="", host=host).xml
    assert listed.get("ServiceEndpoint") == f"http://{host}/"
    secondary = f"hostaccount-secondary.blob.yard.example:{port}"
    assert store.call("GET", f"{con}/b", base="", host=secondary).body == b"data"
    source = {"x-ms-copy-source": f"http://{host}{con}/b"}
    assert store.call("PUT", f"{con}/c", "", source, base="", host=host).status == 202
    for other in ("hostaccount.file.yard.example", "yard.example", "x.hostaccount.blob.yard.example"):
        assert store.call("GET", f"{con}/b", base="", host=f"{other}:{port}").status == 421


def test_https_is_spoken_on_the_same_port(yard, store, con):
    sas = service_sas(store.account, store.key, con[1:], "b", spr="https")
    refused(store.call("GET", f"{con}/b", sas=sas), "AuthorizationProtocolMismatch")
    answer = yard.session.get(f"https://{store.netloc}{store.base}{con}/b?{sas}", verify=yard.ca_file)
    assert (answer.status_code, answer.content) == (200, b"data")


@pytest.mark.parametrize("path", [
    "/../{account}{con}/b", "/%2e%2e/{account}{con}/b", "/{account}/..{con}/b", "/{account}/%2e%2e{con}/b",
    "/{account}{con}/../../../etc/passwd", "/{account}{con}/%2e%2e/%2e%2e/storage.db", "/{account}{con}/..%2f..%2fx",
    "/{account}{con}/..;/b", "/{account}{con}/%252e%252e/b", "/{account}{con}//etc/passwd",
    "/{account}{con}/..%5c..%5cx", "/{account}{con}/%c0%ae%c0%ae/x", "/{account}{con}/" + "a" * 1025,
    "/{account}/%2e%2e/%2e%2e/b", "/{account}//b", "/{account}{con}/.", "/{account}{con}/..",
])
def test_no_path_leads_out(store, con, path):
    """Each is refused, or a name like any other: then it is stored and read back as itself."""
    raw = path.format(account=store.account, con=con)
    put = store.call("PUT", raw, "", {"x-ms-blob-type": "BlockBlob"}, b"mine", base="")
    assert put.status in (201, 400, 404), put
    got = store.call("GET", raw, base="")
    if put.status == 201:
        assert got.body == b"mine"
        assert store.call("DELETE", raw, base="").status == 202
    else:
        assert got.status in (400, 404), got
    assert store.call("GET", f"{con}/b").body == b"data"

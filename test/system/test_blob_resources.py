# SPDX-License-Identifier: Apache-2.0
"""The Blob service on the wire, beyond put and get: listings, facts, leases, snapshots, copies,
append and page blobs, batches."""
import time
import urllib.parse
import uuid

import pytest

from storage_wire import (
    Storage, account_sas, authorization, crc64, http_date, md5, open_account, service_sas)


@pytest.fixture(scope="module")
def store(yard):
    return open_account(yard, "resourcesaccount")


@pytest.fixture(scope="module")
def other(yard):
    return open_account(yard, "otheraccount")


@pytest.fixture
def con(store):
    """The path of a new container."""
    return store.make_container("c" + uuid.uuid4().hex[:20])


def quoted(text):
    return urllib.parse.quote(text, safe="")


def lease(store, path, action, query="comp=lease", **headers):
    return store.call("PUT", path, query, {
        "x-ms-lease-action": action, **{name.replace("_", "-"): v for name, v in headers.items()}})


# -- listings --------------------------------------------------------------------------------------


def names_of(store, con, query):
    """All names, pages and prefixes of a listing, page by page."""
    found, prefixes, marker, pages = [], [], "", 0
    while True:
        root = store.call("GET", con, f"restype=container&comp=list&{query}&marker={quoted(marker)}").xml
        pages += 1
        for item in root.find("Blobs"):
            name = item.find("Name")
            text = urllib.parse.unquote(name.text) if name.get("Encoded") == "true" else name.text
            (found if item.tag == "Blob" else prefixes).append(text)
        marker = root.findtext("NextMarker")
        if not marker:
            return found, prefixes, pages


NAMES = ["a", "a/", "a/b", "a/b/c", "a//b", "a b+c%41", "b\u00e4\u20ac", "d\\e", "./x", "z<&>\"'", "ctl\x01\t\r\n",
         "\U0001F600", "\uFFFF", "~", "Upper", "upper"]


def test_listing_is_in_byte_order_whatever_the_names(store, con):
    for name in NAMES:
        store.put(f"{con}/{quoted(name)}", name.encode())
    want = sorted((name.replace("\\", "/") for name in NAMES), key=lambda name: name.encode())
    for most in (1, 2, 5000):
        found, prefixes, pages = names_of(store, con, f"maxresults={most}")
        assert (found, prefixes) == (want, [])
        assert pages == (len(want) // most if most < 3 else 1)
    for name in NAMES:
        assert store.call("GET", f"{con}/{quoted(name)}").body == name.encode()


def test_hierarchy_counts_blobs_and_prefixes_together(store, con):
    for name in ("1", "a/1", "a/2", "b", "c/1", "c/d/1", "e"):
        store.put(f"{con}/{name}")
    assert names_of(store, con, "delimiter=%2F")[:2] == (["1", "b", "e"], ["a/", "c/"])
    assert names_of(store, con, "delimiter=%2F&maxresults=2") == (["1", "b", "e"], ["a/", "c/"], 3)
    assert names_of(store, con, "delimiter=%2F&prefix=c/")[:2] == (["c/1"], ["c/d/"])
    assert names_of(store, con, "delimiter=%2F&prefix=c")[:2] == ([], ["c/"])
    assert names_of(store, con, "prefix=c")[0] == ["c/1", "c/d/1"]
    assert names_of(store, con, "delimiter=")[0] == ["1", "a/1", "a/2", "b", "c/1", "c/d/1", "e"]
    assert names_of(store, con, "prefix=nothing")[:2] == ([], [])


def test_the_shape_of_a_listing(store, con):
    made = store.put(f"{con}/b", b"data", {"x-ms-meta-Two": "2", "x-ms-tags": "t=v", "Content-Type": "text/x"})
    answer = store.call("GET", con, "restype=container&comp=list&include=metadata,tags,copy&prefix=b")
    root = answer.xml
    assert answer.body.startswith(b'<?xml version="1.0" encoding="utf-8"?><EnumerationResults ')
    assert root.get("ServiceEndpoint") == store.endpoint + "/"
    assert root.get("ContainerName") == con[1:]
    assert [child.tag for child in root] == ["Prefix", "Marker", "MaxResults", "Blobs", "NextMarker"]
    blob = root.find("Blobs/Blob")
    assert [child.tag for child in blob] == ["Name", "Properties", "Metadata", "Tags"]
    assert [child.tag for child in blob.find("Properties")] == [
        "Creation-Time", "Last-Modified", "Etag", "Content-Length", "Content-Type", "Content-Encoding",
        "Content-Language", "Content-MD5", "Cache-Control", "Content-Disposition", "BlobType", "AccessTier",
        "AccessTierInferred", "LeaseStatus", "LeaseState", "ServerEncrypted", "TagCount"]
    assert f'"{blob.findtext("Properties/Etag")}"' == made.etag
    assert blob.findtext("Properties/Last-Modified") == made["Last-Modified"]
    assert blob.findtext("Properties/Content-MD5") == md5(b"data")
    assert blob.findtext("Metadata/Two") == "2" and blob.findtext("Tags/TagSet/Tag/Value") == "v"


@pytest.mark.parametrize("query, code", [
    ("maxresults=0", "OutOfRangeQueryParameterValue"),
    ("maxresults=-1", "OutOfRangeQueryParameterValue"),
    ("maxresults=many", "InvalidQueryParameterValue"),
    ("marker=*", "OutOfRangeInput"),
])
def test_a_bad_listing_is_refused(store, con, query, code):
    answer = store.call("GET", con, f"restype=container&comp=list&{query}")
    assert (answer.status, answer.code) == (400, code)


def test_a_blob_that_is_only_blocks_is_listed_on_demand(store, con):
    store.call("PUT", f"{con}/b", "comp=block&blockid=MDAw", {}, b"1")
    assert names_of(store, con, "")[0] == []
    assert names_of(store, con, "include=uncommittedblobs")[0] == ["b"]


# -- facts -----------------------------------------------------------------------------------------


def test_metadata_replaces_metadata_and_makes_a_new_etag(store, con):
    made = store.put(f"{con}/b", b"1", {"x-ms-meta-old": "1", "Content-Type": "text/x"})
    changed = store.call("PUT", f"{con}/b", "comp=metadata", {"x-ms-meta-New": "2"})
    assert changed.status == 200 and changed.etag != made.etag
    answer = store.call("GET", f"{con}/b")
    assert answer["x-ms-meta-New"] == "2" and answer["x-ms-meta-old"] is None
    assert (answer["Content-Type"], answer.etag, answer.body) == ("text/x", changed.etag, b"1")
    for method in ("GET", "HEAD"):
        answer = store.call(method, f"{con}/b", "comp=metadata")
        assert (answer.status, answer["x-ms-meta-New"], answer.body) == (200, "2", b"")
    assert store.call("PUT", f"{con}/b", "comp=metadata").status == 200
    assert store.call("GET", f"{con}/b")["x-ms-meta-New"] is None
    assert store.call("PUT", f"{con}/nothing", "comp=metadata").code == "BlobNotFound"


def test_properties_replace_all_of_them(store, con):
    made = store.put(f"{con}/b", b"1", {"Content-Type": "text/x", "x-ms-blob-cache-control": "no-store"})
    changed = store.call("PUT", f"{con}/b", "comp=properties", {"x-ms-blob-content-language": "fr"})
    assert changed.status == 200 and changed.etag != made.etag
    answer = store.call("GET", f"{con}/b")
    assert (answer["Content-Language"], answer["Cache-Control"]) == ("fr", None)
    assert answer["Content-Type"] == "application/octet-stream"


def test_tags_and_tier_make_no_new_etag(store, con):
    made = store.put(f"{con}/b", b"1")
    body = "<Tags><TagSet><Tag><Key>a b</Key><Value>c</Value></Tag></TagSet></Tags>".encode()
    assert store.call("PUT", f"{con}/b", "comp=tags", {}, body).status == 204
    assert store.call("GET", f"{con}/b", "comp=tags").xml.findtext("TagSet/Tag/Key") == "a b"
    assert store.call("PUT", f"{con}/b", "comp=tier", {"x-ms-access-tier": "cool"}).status == 200
    answer = store.call("HEAD", f"{con}/b")
    assert (answer.etag, answer["x-ms-access-tier"]) == (made.etag, "Cool")
    assert answer["x-ms-access-tier-inferred"] is None
    assert store.call("PUT", f"{con}/b", "comp=tier", {"x-ms-access-tier": "x"}).code == "InvalidHeaderValue"
    assert store.call("PUT", f"{con}/b", "comp=tier").code == "MissingRequiredHeader"
    for body, code in ((b"<Tags/>", "InvalidXmlDocument"),
                       (b"<Tags><TagSet><Tag><Key/><Value>c</Value></Tag></TagSet></Tags>", "EmptyTagName"),
                       (b"<Tags><TagSet><Tag><Key>!</Key><Value>c</Value></Tag></TagSet></Tags>", "InvalidTag")):
        assert store.call("PUT", f"{con}/b", "comp=tags", {}, body).code == code
    assert store.call("GET", f"{con}/b", "", {"x-ms-if-tags": "\"a b\" = 'c'"}).status == 200
    assert store.call("GET", f"{con}/b", "", {"x-ms-if-tags": "\"a b\" = 'd'"}).code == "ConditionNotMet"


def test_deletion(store, con):
    store.put(f"{con}/b", b"1")
    assert store.call("DELETE", f"{con}/b").status == 202
    answer = store.call("DELETE", f"{con}/b")
    assert (answer.status, answer.code) == (404, "BlobNotFound")
    assert store.call("PUT", f"{con}/b", "comp=undelete").code == "BlobNotFound"


# -- leases ----------------------------------------------------------------------------------------


def test_a_lease_guards_a_blob(store, con):
    path, mine, yours = f"{con}/b", str(uuid.uuid4()), str(uuid.uuid4())
    made = store.put(path, b"1")
    got = lease(store, path, "acquire", x_ms_lease_duration="-1", x_ms_proposed_lease_id=mine)
    assert (got.status, got["x-ms-lease-id"], got.etag) == (201, mine, made.etag)
    assert lease(store, path, "acquire", x_ms_lease_duration="15").code == "LeaseAlreadyPresent"
    answer = store.call("HEAD", path)
    assert (answer["x-ms-lease-state"], answer["x-ms-lease-duration"]) == ("leased", "infinite")
    put = {"x-ms-blob-type": "BlockBlob"}
    answer = store.call("PUT", path, "", put, b"2")
    assert (answer.status, answer.code) == (412, "LeaseIdMissing")
    answer = store.call("PUT", path, "", {**put, "x-ms-lease-id": yours}, b"2")
    assert (answer.status, answer.code) == (412, "LeaseIdMismatchWithBlobOperation")
    assert store.call("DELETE", path).code == "LeaseIdMissing"
    assert store.call("GET", path, "", {"x-ms-lease-id": yours}).code == "LeaseIdMismatchWithBlobOperation"
    store.put(path, b"2", {"x-ms-lease-id": mine})
    changed = lease(store, path, "change", x_ms_lease_id=mine, x_ms_proposed_lease_id=yours)
    assert (changed.status, changed["x-ms-lease-id"]) == (200, yours)
    assert lease(store, path, "renew", x_ms_lease_id=mine).code == "LeaseIdMismatchWithLeaseOperation"
    assert lease(store, path, "renew", x_ms_lease_id=yours).status == 200
    assert lease(store, path, "release", x_ms_lease_id=yours).status == 200
    store.put(path, b"3")


def test_a_lease_can_be_broken(store, con):
    path = f"{con}/b"
    store.put(path, b"1")
    lease(store, path, "acquire", x_ms_lease_duration="60")
    broken = lease(store, path, "break", x_ms_lease_break_period="30")
    assert broken.status == 202 and 28 <= int(broken["x-ms-lease-time"]) <= 30
    assert store.call("HEAD", path)["x-ms-lease-state"] == "breaking"
    assert lease(store, path, "break", x_ms_lease_break_period="0")["x-ms-lease-time"] == "0"
    assert store.call("HEAD", path)["x-ms-lease-state"] == "broken"
    store.put(path, b"2")


@pytest.mark.parametrize("headers, code", [
    ({}, "MissingRequiredHeader"),
    ({"x-ms-lease-action": "borrow"}, "InvalidHeaderValue"),
    ({"x-ms-lease-action": "acquire"}, "MissingRequiredHeader"),
    ({"x-ms-lease-action": "acquire", "x-ms-lease-duration": "14"}, "InvalidHeaderValue"),
    ({"x-ms-lease-action": "acquire", "x-ms-lease-duration": "61"}, "InvalidHeaderValue"),
    ({"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15", "x-ms-proposed-lease-id": "me"},
     "InvalidHeaderValue"),
    ({"x-ms-lease-action": "renew"}, "MissingRequiredHeader"),
    ({"x-ms-lease-action": "break", "x-ms-lease-break-period": "61"}, "InvalidHeaderValue"),
])
def test_a_bad_lease_is_refused(store, con, headers, code):
    store.put(f"{con}/b", b"1")
    for path, query in ((con, "restype=container&comp=lease"), (f"{con}/b", "comp=lease")):
        answer = store.call("PUT", path, query, headers)
        assert (answer.status, answer.code) == (400, code)


def test_a_lease_guards_a_container(store, con):
    mine = str(uuid.uuid4())
    query = "restype=container&comp=lease"
    assert lease(store, con, "acquire", query, x_ms_lease_duration="15",
                 x_ms_proposed_lease_id=mine).status == 201
    assert store.call("GET", con, "restype=container")["x-ms-lease-status"] == "locked"
    assert store.call("DELETE", con, "restype=container").code == "LeaseIdMissing"
    answer = store.call("GET", con, "restype=container", {"x-ms-lease-id": str(uuid.uuid4())})
    assert answer.code == "LeaseIdMismatchWithContainerOperation"
    assert store.call("DELETE", con, "restype=container", {"x-ms-lease-id": mine}).status == 202


# -- snapshots -------------------------------------------------------------------------------------


def test_snapshots_stay_as_they_were(store, con):
    path = f"{con}/b"
    store.put(path, b"old", {"x-ms-meta-a": "1"})
    taken = store.call("PUT", path, "comp=snapshot")
    moment = taken["x-ms-snapshot"]
    assert taken.status == 201 and moment
    store.put(path, b"new")
    query = f"snapshot={quoted(moment)}"
    answer = store.call("GET", path, query)
    assert (answer.body, answer["x-ms-meta-a"]) == (b"old", "1")
    for change in ("comp=metadata", "comp=properties", "comp=lease"):
        assert store.call("PUT", path, f"{change}&{query}").code == "InvalidQueryParameterValue"
    assert store.call("PUT", path, f"comp=tier&{query}", {"x-ms-access-tier": "Cool"}).status == 200
    listed = store.call("GET", con, "restype=container&comp=list&include=snapshots").xml
    assert [b.findtext("Snapshot") for b in listed.find("Blobs")] == [moment, None]
    assert names_of(store, con, "")[0] == ["b"]
    answer = store.call("DELETE", path)
    assert (answer.status, answer.code) == (409, "SnapshotsPresent")
    assert store.call("DELETE", path, "", {"x-ms-delete-snapshots": "all"}).code == "InvalidHeaderValue"
    assert store.call("DELETE", path, query, {"x-ms-delete-snapshots": "only"}).code == "InvalidHeaderValue"
    assert store.call("DELETE", path, "", {"x-ms-delete-snapshots": "only"}).status == 202
    assert store.call("GET", path, query).code == "BlobNotFound"
    second = store.call("PUT", path, "comp=snapshot")["x-ms-snapshot"]
    assert store.call("DELETE", path, "", {"x-ms-delete-snapshots": "include"}).status == 202
    assert store.call("GET", path, f"snapshot={quoted(second)}").status == 404


# -- copies ----------------------------------------------------------------------------------------


def test_a_copy_is_complete_when_it_is_answered(store, con):
    store.put(f"{con}/a", b"data", {"Content-Type": "text/x", "x-ms-meta-m": "1", "x-ms-tags": "t=v"})
    for sync in ({}, {"x-ms-requires-sync": "true"}):
        answer = store.call("PUT", f"{con}/b", "", {"x-ms-copy-source": store.url(f"{con}/a"), **sync})
        assert (answer.status, answer["x-ms-copy-status"]) == (202, "success"), answer
        head = store.call("GET", f"{con}/b")
        assert (head.body, head["Content-Type"], head["x-ms-meta-m"]) == (b"data", "text/x", "1")
        assert head["x-ms-copy-id"] == answer["x-ms-copy-id"]
        assert (head["x-ms-copy-status"], head["x-ms-copy-progress"]) == ("success", "4/4")
        assert head["x-ms-copy-source"] == store.url(f"{con}/a")
        assert head["x-ms-tag-count"] is None
    store.call("PUT", f"{con}/c", "", {"x-ms-copy-source": store.url(f"{con}/a"), "x-ms-meta-n": "2",
                                       "x-ms-copy-source-tag-option": "COPY"})
    head = store.call("HEAD", f"{con}/c")
    assert (head["x-ms-meta-n"], head["x-ms-meta-m"], head["x-ms-tag-count"]) == ("2", None, "1")
    answer = store.call("PUT", f"{con}/b", f"comp=copy&copyid={head['x-ms-copy-id']}",
                        {"x-ms-copy-action": "abort"})
    assert (answer.status, answer.code) == (409, "NoPendingCopyOperation")


def test_a_blob_can_be_put_from_another(store, con):
    store.put(f"{con}/a", b"data", {"Content-Type": "text/x", "x-ms-meta-m": "1"})
    source = {"x-ms-copy-source": store.url(f"{con}/a"), "x-ms-blob-type": "BlockBlob"}
    answer = store.call("PUT", f"{con}/b", "", source)
    assert (answer.status, answer["Content-MD5"]) == (201, md5(b"data")), answer
    head = store.call("GET", f"{con}/b")
    assert (head.body, head["Content-Type"], head["x-ms-copy-id"]) == (b"data", "text/x", None)
    answer = store.call("PUT", f"{con}/b", "", {**source, "x-ms-copy-source-blob-properties": "false",
                                                "x-ms-source-content-md5": md5(b"data")})
    assert answer.status == 201
    assert store.call("GET", f"{con}/b")["Content-Type"] == "application/octet-stream"
    answer = store.call("PUT", f"{con}/b", "", {**source, "x-ms-source-content-md5": md5(b"other")})
    assert (answer.status, answer.code) == (400, "Md5Mismatch")


def test_parts_can_come_from_another_blob(store, con):
    store.put(f"{con}/a", b"0123456789")
    source = {"x-ms-copy-source": store.url(f"{con}/a"), "x-ms-source-range": "bytes=2-4"}
    assert store.call("PUT", f"{con}/b", "comp=block&blockid=MDAw", source).status == 201
    body = b"<BlockList><Latest>MDAw</Latest></BlockList>"
    assert store.call("PUT", f"{con}/b", "comp=blocklist", {}, body).status == 201
    assert store.call("GET", f"{con}/b").body == b"234"
    store.call("PUT", f"{con}/log", "", {"x-ms-blob-type": "AppendBlob"})
    assert store.call("PUT", f"{con}/log", "comp=appendblock", source).status == 201
    assert store.call("GET", f"{con}/log").body == b"234"
    bad = {**source, "x-ms-source-range": "bytes=20-30"}
    assert store.call("PUT", f"{con}/b", "comp=block&blockid=MDAw", bad).code == "InvalidRange"


@pytest.mark.parametrize("source", [
    "http://169.254.169.254/latest/meta-data", "http://127.0.0.1:1/a/c/b", "http://[::]:{port}/{account}/c/b",
    "http://2130706433:{port}/{account}/c/b", "http://localhost:22/x", "file:///etc/passwd", "ftp://127.0.0.1/x",
    "http://user@127.0.0.1:{port}/{account}{con}/a", "//127.0.0.1:{port}/{account}{con}/a", "{account}{con}/a",
    "http://127.0.0.1:{port}/{account}{con}/a#x", "https://{account}.blob.core.windows.net{con}/a",
    "http://127.0.0.1:{port}/", "http://127.0.0.1:{port}.evil.example/a/b/c",
])
def test_nothing_is_ever_fetched(store, con, source):
    store.put(f"{con}/a", b"data")
    url = source.format(port=store.netloc.rsplit(":", 1)[1], account=store.account, con=con)
    for extra in ({}, {"x-ms-blob-type": "BlockBlob"}):
        answer = store.call("PUT", f"{con}/b", "", {"x-ms-copy-source": url, **extra})
        assert (answer.status, answer.code) == (400, "CannotVerifyCopySource"), answer
    assert store.call("HEAD", f"{con}/b").status == 404


def test_a_source_must_be_readable_by_who_copies(store, other, con):
    theirs = other.make_container("c" + uuid.uuid4().hex[:20])
    other.put(f"{theirs}/a", b"theirs")
    name = theirs[1:]
    copy = lambda url, **options: store.call("PUT", f"{con}/b", "", {"x-ms-copy-source": url}, **options)
    answer = copy(other.url(f"{theirs}/a"))
    assert (answer.status, answer.code) == (403, "CannotVerifyCopySource")
    wrong = service_sas(other.account, store.key if store.key != other.key else md5(b"x"), name, "a")
    assert copy(other.url(f"{theirs}/a", wrong)).code == "CannotVerifyCopySource"
    no_read = service_sas(other.account, other.key, name, "a", sp="w")
    assert copy(other.url(f"{theirs}/a", no_read)).code == "CannotVerifyCopySource"
    right = service_sas(other.account, other.key, name, "a")
    assert copy(other.url(f"{theirs}/a", right)).status == 202
    head = store.call("GET", f"{con}/b")
    assert head.body == b"theirs" and "sig=" not in head["x-ms-copy-source"]
    # A SAS for the destination opens nothing else, in the same account neither.
    store.put(f"{con}/secret", b"secret")
    write = service_sas(store.account, store.key, con[1:], "b", sp="w")
    assert copy(store.url(f"{con}/secret"), sas=write).code == "CannotVerifyCopySource"
    answer = copy(store.url(f"{con}/nothing"))
    assert answer.status == 404


def test_conditions_of_the_source(store, con):
    made = store.put(f"{con}/a", b"data")
    source = {"x-ms-copy-source": store.url(f"{con}/a")}
    ok = store.call("PUT", f"{con}/b", "", {**source, "x-ms-source-if-match": made.etag})
    assert ok.status == 202
    answer = store.call("PUT", f"{con}/b", "", {**source, "x-ms-source-if-none-match": made.etag})
    assert (answer.status, answer.code) == (412, "SourceConditionNotMet")
    answer = store.call("PUT", f"{con}/b", "", {**source, "If-None-Match": "*"})
    assert (answer.status, answer.code) == (409, "BlobAlreadyExists")


# -- append and page blobs -------------------------------------------------------------------------


def test_an_append_blob_grows(store, con):
    path = f"{con}/log"
    assert store.call("PUT", path, "comp=appendblock", {}, b"1").code == "BlobNotFound"
    made = store.call("PUT", path, "", {"x-ms-blob-type": "AppendBlob", "Content-Type": "text/x"})
    assert made.status == 201
    for number, data in enumerate((b"one,", b"two")):
        answer = store.call("PUT", path, "comp=appendblock", {"Content-MD5": md5(data)}, data)
        assert (answer.status, answer["x-ms-blob-append-offset"]) == (201, str(4 * number)), answer
        assert answer["x-ms-blob-committed-block-count"] == str(number + 1)
    answer = store.call("GET", path)
    assert (answer.body, answer["x-ms-blob-type"], answer["Content-Type"]) == (b"one,two", "AppendBlob", "text/x")
    assert answer["x-ms-blob-committed-block-count"] == "2"
    for headers, code in (({"x-ms-blob-condition-appendpos": "3"}, "AppendPositionConditionNotMet"),
                          ({"x-ms-blob-condition-maxsize": "8"}, "MaxBlobSizeConditionNotMet")):
        answer = store.call("PUT", path, "comp=appendblock", headers, b"xx")
        assert (answer.status, answer.code) == (412, code)
    assert store.call("PUT", path, "comp=appendblock", {"x-ms-blob-condition-appendpos": "7"}, b"!").status == 201
    assert store.call("PUT", path, "comp=appendblock", {}, b"").code == "InvalidHeaderValue"
    assert store.call("PUT", path, "comp=appendblock", {"Content-MD5": md5(b"y")}, b"x").code == "Md5Mismatch"
    assert store.call("GET", path).body == b"one,two!"
    store.put(f"{con}/block", b"1")
    answer = store.call("PUT", f"{con}/block", "comp=appendblock", {}, b"1")
    assert (answer.status, answer.code) == (409, "InvalidBlobType")


def test_an_append_may_be_larger_since_2022(store, con):
    store.call("PUT", f"{con}/log", "", {"x-ms-blob-type": "AppendBlob"})
    data = bytes((4 << 20) + 1)
    answer = store.call("PUT", f"{con}/log", "comp=appendblock", {}, data)
    assert (answer.status, answer.code) == (413, "RequestBodyTooLarge")
    store.close()
    assert store.call("PUT", f"{con}/log", "comp=appendblock", {"x-ms-version": "2022-11-02"}, data).status == 201


def test_a_page_blob_is_written_in_pages(store, con):
    path = f"{con}/disk"
    page = {"x-ms-page-write": "update", "x-ms-range": "bytes=512-1023"}
    made = store.call("PUT", path, "", {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "4096"})
    assert made.status == 201
    answer = store.call("PUT", path, "comp=page", page, b"x" * 512)
    assert (answer.status, answer["x-ms-blob-sequence-number"]) == (201, "0"), answer
    assert store.call("GET", path).body == bytes(512) + b"x" * 512 + bytes(3072)
    ranges = lambda: [(r.findtext("Start"), r.findtext("End"))
                      for r in store.call("GET", path, "comp=pagelist").xml]
    assert ranges() == [("512", "1023")]
    for headers, data, status in (
        ({**page, "x-ms-range": "bytes=1-512"}, b"x" * 512, 416),
        ({**page, "x-ms-range": "bytes=0-1023"}, b"x" * 512, 400),
        ({**page, "x-ms-range": "bytes=4096-4607"}, b"x" * 512, 416),
        ({"x-ms-range": "bytes=0-511"}, b"x" * 512, 400),
        ({**page, "x-ms-if-sequence-number-eq": "1"}, b"x" * 512, 501),
    ):
        answer = store.call("PUT", path, "comp=page", headers, data)
        assert answer.status == status, (headers, answer)
    assert store.call("PUT", path, "comp=page", {**page, "x-ms-page-write": "clear"}).status == 201
    assert ranges() == []
    assert store.call("PUT", path, "comp=properties", {"x-ms-blob-content-length": "1024"}).status == 200
    assert store.call("HEAD", path)["Content-Length"] == "1024"
    assert store.call("PUT", f"{con}/odd", "", {
        "x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "100"}).code == "InvalidHeaderValue"


# -- batches ---------------------------------------------------------------------------------------


def batch_body(parts):
    lines = []
    for number, (method, target, headers) in enumerate(parts):
        lines += ["--batch_x", "Content-Type: application/http", "Content-Transfer-Encoding: binary",
                  f"Content-ID: {number}", "", f"{method} {target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()] + [""]
    return ("\r\n".join(lines) + "\r\n--batch_x--\r\n").encode()


def signed_part(store, method, path, base, query="", headers=None):
    """base: store.base, or "" as clients do that leave the account out."""
    sent = {"x-ms-date": http_date(), "Content-Length": "0", **(headers or {})}
    sent["Authorization"] = authorization(store.account, store.key, method, base + path, query, sent)
    return method, base + path + (f"?{query}" if query else ""), sent


def batch(store, parts, path="/", query="comp=batch", **options):
    return store.call("POST", path, query, {"Content-Type": "multipart/mixed; boundary=batch_x"},
                      batch_body(parts), **options)


def statuses(answer):
    assert answer.status == 202, answer
    boundary = answer["Content-Type"].split("boundary=")[1]
    assert answer.body.endswith(f"--{boundary}--\r\n".encode())
    parts = answer.body.decode().split(f"--{boundary}\r\n")[1:]
    return [(int(p.split("Content-ID: ")[1].split("\r\n")[0]), int(p.split("HTTP/1.1 ")[1][:3])) for p in parts]


@pytest.mark.parametrize("with_account", [True, False])
@pytest.mark.parametrize("level", ["service", "container", "mistaken"])
def test_a_batch_deletes(store, con, with_account, level):
    base = store.base if with_account else ""
    for name in ("a", "b%20c"):
        store.put(f"{con}/{name}", b"1")
    path, query = {"service": ("/", "comp=batch"), "container": (con, "restype=container&comp=batch"),
                   "mistaken": ("/", "restype=container&comp=batch")}[level]
    parts = [signed_part(store, "DELETE", f"{con}/{name}", base) for name in ("a", "b%20c", "nothing")]
    assert statuses(batch(store, parts, path, query)) == [(0, 202), (1, 202), (2, 404)]
    assert names_of(store, con, "")[0] == []


def test_a_batch_changes_tiers(store, con):
    store.put(f"{con}/a", b"1")
    part = signed_part(store, "PUT", f"{con}/a", store.base, "comp=tier", {"x-ms-access-tier": "Cool"})
    assert statuses(batch(store, [part])) == [(0, 200)]
    assert store.call("HEAD", f"{con}/a")["x-ms-access-tier"] == "Cool"


def test_parts_stand_under_the_sas_of_the_batch(store, con):
    store.put(f"{con}/a", b"1")
    store.put(f"{con}/b", b"1")
    bare = [("DELETE", f"{store.base}{con}/a", {"Content-Length": "0"})]
    assert statuses(batch(store, bare)) == [(0, 403)]  # a key signs one request and not its parts
    read = service_sas(store.account, store.key, con[1:], sp="r")
    assert statuses(batch(store, bare, con, "restype=container&comp=batch", sas=read)) == [(0, 403)]
    assert names_of(store, con, "")[0] == ["a", "b"]
    both = service_sas(store.account, store.key, con[1:], sp="rd")
    assert statuses(batch(store, bare, con, "restype=container&comp=batch", sas=both)) == [(0, 202)]
    account = account_sas(store.account, store.key, sp="d")
    own = [("DELETE", f"{store.base}{con}/b?{account}", {"Content-Length": "0"})]
    assert statuses(batch(store, own)) == [(0, 202)]


def test_a_forged_part_is_refused_alone(store, con):
    store.put(f"{con}/a", b"1")
    store.put(f"{con}/b", b"1")
    good = signed_part(store, "DELETE", f"{con}/a", store.base)
    method, target, headers = signed_part(store, "DELETE", f"{con}/a", store.base)
    forged = (method, f"{store.base}{con}/b", headers)
    assert statuses(batch(store, [good, forged])) == [(0, 202), (1, 403)]
    assert names_of(store, con, "")[0] == ["b"]


@pytest.mark.parametrize("parts, code", [
    ([], "InvalidInput"),
    ([("GET", "{con}/a", {})], "InvalidInput"),
    ([("DELETE", "{con}/a", {}), ("PUT", "{con}/a?comp=tier", {})], "AllBatchSubRequestsShouldBeSameApi"),
    ([("DELETE", "{con}/a", {})] * 257, "ExceedsMaxBatchRequestCount"),
    ([("DELETE", "{con}/%ff", {})], "InvalidUri"),
])
def test_a_batch_that_makes_no_sense_does_nothing(store, con, parts, code):
    store.put(f"{con}/a", b"1")
    filled = [(method, store.base + target.format(con=con), headers) for method, target, headers in parts]
    sas = account_sas(store.account, store.key)
    answer = batch(store, filled, sas=sas)
    assert answer.status == 400, answer
    assert answer.code == code
    assert store.call("HEAD", f"{con}/a").status == 200


@pytest.mark.parametrize("content_type, body", [
    ("text/plain", b""), ("multipart/mixed", b"--x\r\n\r\n--x--"), ("multipart/mixed; boundary=x", b""),
    ("multipart/mixed; boundary=x", b"--x\r\n"), ("multipart/mixed; boundary=x", b"--x\r\nno header\r\n--x--"),
    ("multipart/mixed; boundary=x", b"--x\r\na: b\r\n\r\nDELETE\r\n--x--"),
    ("multipart/mixed; boundary=x", b"--x\r\na: b\r\n\r\nDELETE /a/b HTTP/1.1\r\n\x00\r\n--x--"),
])
def test_a_batch_that_cannot_be_read_is_refused(store, content_type, body):
    answer = store.call("POST", "/", "comp=batch", {"Content-Type": content_type}, body)
    assert answer.status == 400 and answer.code in ("InvalidInput", "InvalidHeaderValue")

# SPDX-License-Identifier: Apache-2.0
"""The Blob service on the wire: every operation, every error's own word, the exact XML."""
import base64
import datetime
import re
import urllib.parse
import uuid

import pytest

from storage_wire import VERSION, Storage, crc64, http_date, md5, open_account, service_sas

ETAG = re.compile(r'^"0x[0-9A-F]{15,}"$')


@pytest.fixture(scope="module")
def store(yard):
    return open_account(yard, "protocolaccount")


@pytest.fixture
def con(store):
    """The path of a new container."""
    return store.make_container("c" + uuid.uuid4().hex[:20])


def block_id(number):
    return base64.b64encode(f"{number:06}".encode()).decode()


def quoted(text):
    return urllib.parse.quote(text, safe="")


def block_list(*blocks):
    body = "".join(f"<{kind}>{id_}</{kind}>" for kind, id_ in blocks)
    return f'<?xml version="1.0" encoding="utf-8"?><BlockList>{body}</BlockList>'.encode()


def stage(store, path, number, data, **headers):
    answer = store.call("PUT", path, f"comp=block&blockid={quoted(block_id(number))}", headers, data)
    assert answer.status == 201, answer
    return answer


# -- every answer -----------------------------------------------------------------------------------


def test_every_answer_has_the_usual_headers(store, con):
    for answer in (
        store.call("GET", con, "restype=container", {"x-ms-client-request-id": "my id"}),
        store.call("GET", f"{con}/nothing", "", {"x-ms-client-request-id": "my id"}),
    ):
        uuid.UUID(answer["x-ms-request-id"])
        assert answer["x-ms-version"] == VERSION
        assert answer["x-ms-client-request-id"] == "my id"
        assert answer["Date"] and answer["Server"]


@pytest.mark.parametrize("version", ["2015-02-21", "2018-11-09", "2026-10-06", "2099-12-31"])
def test_every_well_formed_version_is_taken_and_echoed(store, version):
    answer = store.call("GET", "/", "comp=list", {"x-ms-version": version})
    assert (answer.status, answer["x-ms-version"]) == (200, version)


@pytest.mark.parametrize("version", ["", "latest", "2021-1-1", "2021-12-02x", "20211202"])
def test_other_versions_are_refused(store, version):
    answer = store.call("GET", "/", "comp=list", {"x-ms-version": version})
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")


def test_errors_of_head_are_in_the_header_alone(store, con):
    answer = store.call("HEAD", f"{con}/nothing")
    assert (answer.status, answer["x-ms-error-code"], answer.body) == (404, "BlobNotFound", b"")


@pytest.mark.parametrize("method, path, query, status, code", [
    ("GET", "/", "comp=nothing", 400, "InvalidQueryParameterValue"),
    ("GET", "{con}", "restype=container&comp=nothing", 400, "InvalidQueryParameterValue"),
    ("GET", "{con}/b", "comp=query", 400, "InvalidQueryParameterValue"),
    ("GET", "/", "", 400, "InvalidQueryParameterValue"),
    ("POST", "{con}", "restype=container", 405, "UnsupportedHttpVerb"),
    ("DELETE", "/", "comp=list", 405, "UnsupportedHttpVerb"),
    ("GET", "{con}/%ff", "", 400, "InvalidUri"),
    ("GET", "{con}/%00", "", 400, "InvalidUri"),
    ("GET", "{con}/%zz", "", 400, "InvalidUri"),
    ("GET", "{con}/b", "versionid=2020-01-01", 501, "NotImplemented"),
    ("GET", "{con}x", "restype=container", 404, "ContainerNotFound"),
    ("GET", "{con}x/b", "", 404, "ContainerNotFound"),
    ("GET", "{con}x", "restype=container&comp=list", 404, "ContainerNotFound"),
    ("PUT", "/a", "restype=container", 400, None),
    ("PUT", "/UPPER", "restype=container", 400, "InvalidResourceName"),
    ("PUT", "/a--b", "restype=container", 400, "InvalidResourceName"),
])
def test_what_is_no_operation_has_its_own_error(store, con, method, path, query, status, code):
    answer = store.call(method, path.format(con=con), query)
    assert answer.status == status, answer
    if code:
        assert answer.code == code


@pytest.mark.parametrize("name", ["x-ms-encryption-key", "x-ms-encryption-scope", "x-ms-legal-hold",
                                  "x-ms-structured-body"])
def test_what_is_not_supported_is_refused_and_not_ignored(store, con, name):
    answer = store.call("PUT", f"{con}/b", "", {"x-ms-blob-type": "BlockBlob", name: "x"}, b"1")
    assert (answer.status, answer.code) == (501, "NotImplemented")
    assert store.call("HEAD", f"{con}/b").status == 404


def test_a_body_without_a_length_is_refused(store, con):
    answer = store.call("PUT", f"{con}/b", "", {
        "x-ms-blob-type": "BlockBlob", "Content-Length": None, "Transfer-Encoding": "chunked"},
        b"3\r\nabc\r\n0\r\n\r\n")
    assert (answer.status, answer.code) == (411, "MissingContentLengthHeader")


# -- the service -----------------------------------------------------------------------------------


def test_containers_are_listed_in_pages(store):
    prefix = "l" + uuid.uuid4().hex[:10]
    names = [f"{prefix}{i}" for i in range(5)]
    for name in names:
        store.make_container(name, headers={"x-ms-meta-Case_Kept": name})
    seen, marker = [], ""
    for _ in range(3):
        answer = store.call("GET", "/", f"comp=list&prefix={prefix}&maxresults=2&include=metadata"
                                        f"&marker={quoted(marker)}")
        root = answer.xml
        assert root.tag == "EnumerationResults"
        assert root.get("ServiceEndpoint") == store.endpoint + "/"
        for item in root.find("Containers"):
            assert [child.tag for child in item] == ["Name", "Properties", "Metadata"]
            assert item.findtext("Metadata/Case_Kept") == item.findtext("Name")
            assert item.findtext("Properties/LeaseState") == "available"
            assert ETAG.match(item.findtext("Properties/Etag"))
            seen.append(item.findtext("Name"))
        marker = root.findtext("NextMarker")
    assert (seen, marker) == (names, "")


def test_an_empty_include_is_no_include(store):
    assert store.call("GET", "/", "comp=list&maxresults=5000&include=").status == 200


def test_service_properties_are_kept_part_by_part(store):
    path = "restype=service&comp=properties"
    cors = ("<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://a.example</AllowedOrigins>"
            "<AllowedMethods>GET,PUT</AllowedMethods><MaxAgeInSeconds>60</MaxAgeInSeconds>"
            "<ExposedHeaders>x-ms-*</ExposedHeaders><AllowedHeaders>x-ms-*</AllowedHeaders>"
            "</CorsRule></Cors></StorageServiceProperties>")
    logging = ("<StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete>"
               "<Read>false</Read><Write>false</Write><RetentionPolicy><Enabled>false</Enabled>"
               "</RetentionPolicy></Logging></StorageServiceProperties>")
    preflight = {"Origin": "http://a.example", "Access-Control-Request-Method": "PUT",
                 "Access-Control-Request-Headers": "x-ms-version"}
    tags = [child.tag for child in store.call("GET", "/", path).xml]
    assert tags == ["Logging", "HourMetrics", "MinuteMetrics", "Cors", "DeleteRetentionPolicy",
                    "StaticWebsite"]
    assert store.call("OPTIONS", "/c/b", "", preflight, auth=None).code == "CorsPreflightFailure"
    assert store.call("PUT", "/", path, {}, cors.encode()).status == 202
    assert store.call("PUT", "/", path, {}, logging.encode()).status == 202
    root = store.call("GET", "/", path).xml
    assert root.findtext("Cors/CorsRule/AllowedMethods") == "GET,PUT"
    assert root.findtext("Logging/Delete") == "true"

    answer = store.call("OPTIONS", "/c/b", "", preflight, auth=None)
    assert answer.status == 200
    assert answer["Access-Control-Allow-Origin"] == "http://a.example"
    assert answer["Access-Control-Max-Age"] == "60"
    for change in ({"Origin": "http://b.example"}, {"Access-Control-Request-Method": "DELETE"},
                   {"Access-Control-Request-Headers": "x-other"}):
        answer = store.call("OPTIONS", "/c/b", "", {**preflight, **change}, auth=None)
        assert (answer.status, answer.code) == (403, "CorsPreflightFailure")
    answer = store.call("GET", "/", "comp=list", {"Origin": "http://a.example"})
    assert answer["Access-Control-Allow-Origin"] == "http://a.example"
    assert answer["Access-Control-Expose-Headers"] == "x-ms-*"
    assert store.call("GET", "/", "comp=list")["Access-Control-Allow-Origin"] is None


@pytest.mark.parametrize("body, status, code", [
    ("", 400, "InvalidXmlDocument"),
    ("<Other/>", 400, "InvalidXmlDocument"),
    ("<!DOCTYPE a><StorageServiceProperties/>", 400, "InvalidXmlDocument"),
    ("<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days>"
     "</DeleteRetentionPolicy></StorageServiceProperties>", 501, "NotImplemented"),
])
def test_service_properties_that_cannot_be_are_refused(store, body, status, code):
    answer = store.call("PUT", "/", "restype=service&comp=properties", {}, body.encode())
    assert (answer.status, answer.code) == (status, code)


def test_account_information_is_given_at_every_level(store, con):
    for path in ("/", con, f"{con}/blob"):
        for method in ("GET", "HEAD"):
            answer = store.call(method, path, "restype=account&comp=properties")
            assert answer.status == 200
            assert answer["x-ms-sku-name"] == "Standard_LRS" and answer["x-ms-account-kind"] == "StorageV2"


def test_the_secondary_can_be_read_and_not_written(store, con):
    base = store.base + "-secondary"
    store.put(f"{con}/b", b"1")
    assert store.call("GET", f"{con}/b", base=base).body == b"1"
    answer = store.call("PUT", f"{con}/b", "", {"x-ms-blob-type": "BlockBlob"}, b"2", base=base)
    assert (answer.status, answer.code) == (403, "InsufficientAccountPermissions")
    stats = store.call("GET", "/", "restype=service&comp=stats", base=base).xml
    assert stats.findtext("GeoReplication/Status") == "live"
    assert store.call("GET", "/", "restype=service&comp=stats").status == 400


# -- containers ------------------------------------------------------------------------------------


def test_a_container_lives(store):
    path = "/" + uuid.uuid4().hex
    made = store.call("PUT", path, "restype=container", {"x-ms-meta-One": "1", "x-ms-meta-two": "2"})
    assert made.status == 201 and ETAG.match(made.etag) and made["Last-Modified"]
    assert store.call("PUT", path, "restype=container").code == "ContainerAlreadyExists"
    for method in ("GET", "HEAD"):
        answer = store.call(method, path, "restype=container")
        assert (answer.status, answer.body, answer.etag) == (200, b"", made.etag)
        assert answer["x-ms-meta-One"] == "1" and answer["x-ms-lease-status"] == "unlocked"
        assert answer["x-ms-has-legal-hold"] == "false"
    changed = store.call("PUT", path, "restype=container&comp=metadata", {"x-ms-meta-three": "3"})
    assert changed.status == 200 and changed.etag != made.etag
    answer = store.call("GET", path, "restype=container&comp=metadata")
    assert answer["x-ms-meta-three"] == "3" and answer["x-ms-meta-One"] is None
    assert store.call("DELETE", path, "restype=container").status == 202
    assert store.call("DELETE", path, "restype=container").code == "ContainerNotFound"


def test_public_access_is_refused(store, con):
    access = {"x-ms-blob-public-access": "blob"}
    answer = store.call("PUT", "/publicone", "restype=container", access)
    assert (answer.status, answer.code) == (409, "PublicAccessNotPermitted")
    assert store.call("PUT", con, "restype=container&comp=acl", access).status == 409


def test_stored_policies_are_kept(store, con):
    body = ("<SignedIdentifiers><SignedIdentifier><Id>a &amp; b</Id><AccessPolicy>"
            "<Start>2020-01-01</Start><Expiry>2030-01-01T00:00:00.0000000Z</Expiry>"
            "<Permission>rl</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>")
    acl = "restype=container&comp=acl"
    assert store.call("GET", con, acl).xml.tag == "SignedIdentifiers"
    assert store.call("PUT", con, acl, {}, body.encode()).status == 200
    root = store.call("GET", con, acl).xml
    assert root.findtext("SignedIdentifier/Id") == "a & b"
    assert root.findtext("SignedIdentifier/AccessPolicy/Expiry") == "2030-01-01T00:00:00.0000000Z"
    assert store.call("PUT", con, acl).status == 200  # an empty body takes them all away
    assert len(store.call("GET", con, acl).xml) == 0
    six = "<SignedIdentifiers>" + "".join(
        f"<SignedIdentifier><Id>{i}</Id></SignedIdentifier>" for i in range(6)) + "</SignedIdentifiers>"
    assert store.call("PUT", con, acl, {}, six.encode()).code == "InvalidXmlDocument"


# -- put and get -----------------------------------------------------------------------------------


def test_a_block_blob_comes_back_as_it_was_put(store, con):
    data = b"hello, world"
    made = store.put(f"{con}/dir/a%20b.txt", data, {
        "Content-Type": "text/plain", "x-ms-blob-content-encoding": "identity",
        "x-ms-blob-content-language": "en", "x-ms-blob-content-disposition": "inline",
        "x-ms-blob-cache-control": "no-store", "x-ms-meta-Name": "v\u00e4lue", "x-ms-tags": "a=b&c=d%20e"})
    assert ETAG.match(made.etag) and made["Content-MD5"] == md5(data)
    assert made["x-ms-request-server-encrypted"] == "true"
    for method in ("GET", "HEAD"):
        answer = store.call(method, f"{con}/dir%2Fa%20b.txt")
        assert (answer.status, answer.etag) == (200, made.etag)
        assert answer.body == (data if method == "GET" else b"")
        for name, value in {
            "Content-Length": "12", "Content-Type": "text/plain", "Content-Encoding": "identity",
            "Content-Language": "en", "Content-Disposition": "inline", "Cache-Control": "no-store",
            "Content-MD5": md5(data), "Accept-Ranges": "bytes", "x-ms-blob-type": "BlockBlob",
            "x-ms-lease-state": "available", "x-ms-lease-status": "unlocked",
            "x-ms-server-encrypted": "true", "x-ms-tag-count": "2",
            "Last-Modified": made["Last-Modified"],
        }.items():
            assert answer[name] == value, name
        assert answer["x-ms-meta-Name"].encode("latin-1").decode() == "v\u00e4lue"
        assert answer["x-ms-creation-time"]
    assert answer["x-ms-access-tier"] == "Hot" and answer["x-ms-access-tier-inferred"] == "true"


def test_an_unlabelled_blob_is_octets(store, con):
    store.put(f"{con}/b", b"")
    answer = store.call("GET", f"{con}/b")
    assert (answer.status, answer.body, answer["Content-Type"]) == (200, b"", "application/octet-stream")


@pytest.mark.parametrize("headers, status, code", [
    ({}, 400, "MissingRequiredHeader"),
    ({"x-ms-blob-type": "Other"}, 400, "InvalidHeaderValue"),
    ({"x-ms-blob-type": "BlockBlob", "Content-MD5": md5(b"other")}, 400, "Md5Mismatch"),
    ({"x-ms-blob-type": "BlockBlob", "Content-MD5": "short"}, 400, "InvalidMd5"),
    ({"x-ms-blob-type": "BlockBlob", "x-ms-blob-content-md5": md5(b"other")}, 400, "Md5Mismatch"),
    ({"x-ms-blob-type": "BlockBlob", "x-ms-content-crc64": crc64(b"other")}, 400, "Crc64Mismatch"),
    ({"x-ms-blob-type": "BlockBlob", "x-ms-content-crc64": crc64(b"1"), "Content-MD5": md5(b"1")},
     400, "BothCrc64AndMd5HeaderPresent"),
    ({"x-ms-blob-type": "BlockBlob", "x-ms-meta-a-b": "1"}, 400, "InvalidMetadata"),
    ({"x-ms-blob-type": "BlockBlob", "x-ms-meta-1a": "1"}, 400, "InvalidMetadata"),
    ({"x-ms-blob-type": "BlockBlob", "x-ms-meta-": "1"}, 400, "EmptyMetadataKey"),
    ({"x-ms-blob-type": "BlockBlob", "x-ms-meta-a": "x" * 4096, "x-ms-meta-b": "y" * 4096},
     400, "MetadataTooLarge"),
    ({"x-ms-blob-type": "BlockBlob", "x-ms-tags": "a=b&a=c"}, 400, "DuplicateTagNames"),
    ({"x-ms-blob-type": "BlockBlob", "x-ms-tags": "a"}, 400, "InvalidHeaderValue"),
    ({"x-ms-blob-type": "BlockBlob", "x-ms-access-tier": "Lukewarm"}, 400, "InvalidHeaderValue"),
    ({"x-ms-blob-type": "BlockBlob", "x-ms-lease-id": "me"}, 400, "InvalidHeaderValue"),
    ({"x-ms-blob-type": "BlockBlob", "If-Modified-Since": "now"}, 400, "InvalidHeaderValue"),
    ({"x-ms-blob-type": "AppendBlob"}, 400, "InvalidHeaderValue"),
    ({"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}, 400, "InvalidHeaderValue"),
])
def test_a_bad_put_leaves_nothing(store, con, headers, status, code):
    answer = store.call("PUT", f"{con}/b", "", headers, b"1")
    assert (answer.status, answer.code) == (status, code), answer
    assert store.call("HEAD", f"{con}/b").status == 404


def test_good_hashes_are_accepted(store, con):
    store.put(f"{con}/a", b"data", {"Content-MD5": md5(b"data")})
    store.put(f"{con}/b", b"data", {"x-ms-content-crc64": crc64(b"data")})
    assert crc64(b"123456789") == "iJh5CoYUi64="


def test_a_body_that_is_too_large_is_refused_before_it_comes(store, con):
    answer = store.call("PUT", f"{con}/b", "", {
        "x-ms-blob-type": "BlockBlob", "Content-Length": str(5001 * 1024 * 1024), "Expect": "100-continue"})
    assert (answer.status, answer.code) == (413, "RequestBodyTooLarge")
    store.close()


@pytest.mark.parametrize("header", ["Range", "x-ms-range"])
@pytest.mark.parametrize("span, status, body, content_range", [
    ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
    ("bytes=4-", 206, b"456789", "bytes 4-9/10"),
    ("bytes=8-100", 206, b"89", "bytes 8-9/10"),
    ("bytes=0-33554431", 206, b"0123456789", "bytes 0-9/10"),
    ("bytes=10-", 416, None, "bytes */10"),
    ("bytes=100-200", 416, None, "bytes */10"),
])
def test_ranges(store, con, header, span, status, body, content_range):
    store.put(f"{con}/b", b"0123456789")
    answer = store.call("GET", f"{con}/b", "", {header: span})
    assert (answer.status, answer["Content-Range"]) == (status, content_range)
    if body is None:
        assert answer.code == "InvalidRange"
    else:
        assert answer.body == body
        assert answer["Content-MD5"] is None
        assert answer["x-ms-blob-content-md5"] == md5(b"0123456789")


def test_the_protocols_own_range_wins_and_can_be_hashed(store, con):
    store.put(f"{con}/b", b"0123456789")
    answer = store.call("GET", f"{con}/b", "", {"Range": "bytes=0-1", "x-ms-range": "bytes=2-4",
                                                "x-ms-range-get-content-md5": "true"})
    assert (answer.body, answer["Content-MD5"]) == (b"234", md5(b"234"))
    answer = store.call("GET", f"{con}/b", "", {"x-ms-range": "bytes=2-4",
                                                "x-ms-range-get-content-crc64": "true"})
    assert answer["x-ms-content-crc64"] == crc64(b"234")
    store.put(f"{con}/big", bytes(5 << 20))
    answer = store.call("GET", f"{con}/big", "", {"x-ms-range": f"bytes=0-{5 << 20}",
                                                  "x-ms-range-get-content-md5": "true"})
    assert (answer.status, answer.code) == (400, "OutOfRangeInput")


# -- conditions ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def conditioned(store):
    con = store.make_container("c" + uuid.uuid4().hex[:20])
    made = store.put(f"{con}/b", b"data")
    return f"{con}/b", made


OTHER = '"0x8DFFFFFFFFFFFFF"'


def condition(made, name, which):
    if name in ("If-Match", "If-None-Match"):
        return {"same": made.etag, "other": OTHER, "any": "*", "list": f"{OTHER}, {made.etag}"}[which]
    moment = datetime.datetime.strptime(made["Last-Modified"], "%a, %d %b %Y %H:%M:%S GMT")
    hours = {"before": -1, "same": 0, "after": 1}[which]
    return http_date(moment + datetime.timedelta(hours=hours))


@pytest.mark.parametrize("conditions, read, write", [
    ({"If-Match": "same"}, 200, 200),
    ({"If-Match": "list"}, 200, 200),
    ({"If-Match": "any"}, 200, 200),
    ({"If-Match": "other"}, 412, 412),
    ({"If-None-Match": "other"}, 200, 200),
    ({"If-None-Match": "same"}, 304, 412),
    ({"If-None-Match": "list"}, 304, 412),
    ({"If-None-Match": "any"}, 400, None),
    ({"If-Modified-Since": "before"}, 200, 200),
    ({"If-Modified-Since": "same"}, 304, 412),
    ({"If-Modified-Since": "after"}, 304, 412),
    ({"If-Unmodified-Since": "before"}, 412, 412),
    ({"If-Unmodified-Since": "same"}, 200, 200),
    ({"If-Unmodified-Since": "after"}, 200, 200),
    ({"If-Match": "same", "If-Unmodified-Since": "before"}, 412, 200),
    ({"If-None-Match": "other", "If-Modified-Since": "after"}, 200, 200),
    ({"If-None-Match": "same", "If-Modified-Since": "before"}, 200, 412),
])
def test_conditions(store, conditioned, conditions, read, write):
    path, made = conditioned
    headers = {name: condition(made, name, which) for name, which in conditions.items()}
    for method in ("GET", "HEAD"):
        answer = store.call(method, path, "", headers)
        assert answer.status == read, (method, answer)
        if read in (304, 412):
            assert answer["x-ms-error-code"] == "ConditionNotMet"
        if read == 304:
            assert answer.body == b""
    if write is not None:
        # A tier changes no ETag: the blob stays as the other rows know it.
        answer = store.call("PUT", path, "comp=lease", {
            **headers, "x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"})
        assert answer.status == (201 if write == 200 else 412), answer
        if write == 200:
            store.call("PUT", path, "comp=lease", {
                "x-ms-lease-action": "release", "x-ms-lease-id": answer["x-ms-lease-id"]})


def test_conditions_of_creation(store, con):
    put = {"x-ms-blob-type": "BlockBlob"}
    answer = store.call("PUT", f"{con}/b", "", {**put, "If-Match": "*"}, b"1")
    assert (answer.status, answer.code) == (412, "ConditionNotMet")
    made = store.put(f"{con}/b", b"1", {"If-None-Match": "*"})
    answer = store.call("PUT", f"{con}/b", "", {**put, "If-None-Match": "*"}, b"2")
    assert (answer.status, answer.code) == (409, "BlobAlreadyExists")
    answer = store.call("PUT", f"{con}/b", "", {**put, "If-None-Match": made.etag}, b"2")
    assert (answer.status, answer.code) == (412, "ConditionNotMet")
    assert store.call("GET", f"{con}/b").body == b"1"
    store.put(f"{con}/b", b"2", {"If-Match": made.etag})
    answer = store.call("PUT", f"{con}/b", "", {**put, "If-Match": made.etag}, b"3")
    assert (answer.status, answer.code) == (412, "ConditionNotMet")
    assert store.call("GET", f"{con}/b").body == b"2"


# -- blocks ----------------------------------------------------------------------------------------


def test_blocks_become_a_blob_in_the_order_of_the_list(store, con):
    path = f"{con}/b"
    for number, data in ((2, b"two"), (1, b"one"), (3, b"never")):
        answer = stage(store, path, number, data)
        assert answer["x-ms-content-crc64"] == crc64(data)
    assert store.call("GET", path).status == 404
    listed = store.call("GET", path, "comp=blocklist&blocklisttype=all").xml
    assert len(listed.find("CommittedBlocks")) == 0
    assert {b.findtext("Name") for b in listed.find("UncommittedBlocks")} == {block_id(n) for n in (1, 2, 3)}
    body = block_list(("Latest", block_id(1)), ("Uncommitted", block_id(2)))
    made = store.call("PUT", path, "comp=blocklist", {
        "x-ms-blob-content-type": "text/x", "x-ms-meta-mtime": "now", "x-ms-blob-content-md5": md5(b"x"),
        "x-ms-blob-content-encoding": "", "x-ms-blob-content-language": "",
        "x-ms-blob-content-disposition": "", "x-ms-blob-cache-control": ""}, body)
    assert made.status == 201 and ETAG.match(made.etag), made
    answer = store.call("GET", path)
    assert (answer.body, answer["Content-Type"], answer["Content-MD5"]) == (b"onetwo", "text/x", md5(b"x"))
    assert answer["Content-Encoding"] is None and answer["x-ms-meta-mtime"] == "now"
    listed = store.call("GET", path, "comp=blocklist&blocklisttype=all")
    assert [(b.findtext("Name"), b.findtext("Size")) for b in listed.xml.find("CommittedBlocks")] == [
        (block_id(1), "3"), (block_id(2), "3")]
    assert len(listed.xml.find("UncommittedBlocks")) == 0
    assert (listed.etag, listed["x-ms-blob-content-length"]) == (made.etag, "6")

    stage(store, path, 4, b"four")
    assert store.call("HEAD", path).etag == made.etag  # a block alone changes nothing
    body = block_list(("Committed", block_id(2)), ("Latest", block_id(4)))
    assert store.call("PUT", path, "comp=blocklist", {}, body).status == 201
    assert store.call("GET", path).body == b"twofour"


@pytest.mark.parametrize("body, code", [
    (b"", "InvalidXmlDocument"),
    (b"<BlockList><Latest>", "InvalidXmlDocument"),
    (b"<Other/>", "InvalidXmlDocument"),
    (b"<BlockList><Newest>MDAwMDAx</Newest></BlockList>", "InvalidXmlDocument"),
    (b"<BlockList><Latest>MDAwMDA5</Latest></BlockList>", "InvalidBlockList"),
    (b"<BlockList><Committed>MDAwMDAx</Committed></BlockList>", "InvalidBlockList"),
])
def test_a_bad_list_changes_nothing(store, con, body, code):
    stage(store, f"{con}/b", 1, b"1")
    answer = store.call("PUT", f"{con}/b", "comp=blocklist", {}, body)
    assert (answer.status, answer.code) == (400, code), answer
    assert store.call("HEAD", f"{con}/b").status == 404


@pytest.mark.parametrize("query, headers, data, code", [
    ("comp=block", {}, b"1", "MissingRequiredQueryParameter"),
    ("comp=block&blockid=*", {}, b"1", "InvalidQueryParameterValue"),
    ("comp=block&blockid=" + quoted(base64.b64encode(bytes(65)).decode()), {}, b"1",
     "InvalidQueryParameterValue"),
    ("comp=block&blockid=MDAw", {}, b"", "InvalidHeaderValue"),
    ("comp=block&blockid=MDAw", {"Content-MD5": md5(b"2")}, b"1", "Md5Mismatch"),
])
def test_a_bad_block_is_refused(store, con, query, headers, data, code):
    answer = store.call("PUT", f"{con}/b", query, headers, data)
    assert (answer.status, answer.code) == (400, code), answer


def test_ids_of_one_blob_are_of_one_length(store, con):
    stage(store, f"{con}/b", 1, b"1")
    answer = store.call("PUT", f"{con}/b", "comp=block&blockid=MDAw", {}, b"1")
    assert (answer.status, answer.code) == (400, "InvalidBlobOrBlock")


def test_blobs_by_hand_and_services_agree_about_an_empty_list(store, con):
    assert store.call("PUT", f"{con}/b", "comp=blocklist", {}, block_list()).status == 201
    assert store.call("GET", f"{con}/b").body == b""

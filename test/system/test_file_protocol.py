# SPDX-License-Identifier: Apache-2.0
"""The File service on the wire: every operation, every error's own word, the exact XML."""
import os
import re
import urllib.parse
import uuid

import pytest

from storage_account import make_account
from storage_wire import VERSION, Storage, account_sas, crc64, md5, service_sas

ETAG = re.compile(r'^"0x[0-9A-F]{15,}"$')
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$")
MIB = 1024 * 1024
FACTS = (
    "x-ms-file-permission-key", "x-ms-file-attributes", "x-ms-file-creation-time",
    "x-ms-file-last-write-time", "x-ms-file-change-time", "x-ms-file-id", "x-ms-file-parent-id",
)


@pytest.fixture(scope="module")
def account(yard):
    return make_account(yard, "fileaccount")


@pytest.fixture(scope="module")
def store(account):
    return Storage(account.file, account.name, account.key)


@pytest.fixture
def share(store):
    """The path of a new share."""
    name = "s" + uuid.uuid4().hex[:20]
    assert store.call("PUT", f"/{name}", "restype=share").status == 201
    return f"/{name}"


@pytest.fixture
def tree(account, share):
    """Where the share lies on the disk."""
    return account.folder / "file" / share[1:] / "tree"


def quoted(text):
    return urllib.parse.quote(text, safe="")


def create(store, path, size=0, headers=None, **options):
    return store.call("PUT", path, "", {
        "x-ms-type": "file", "x-ms-content-length": str(size), **(headers or {})}, **options)


def put_range(store, path, data, first=0, headers=None, **options):
    return store.call("PUT", path, "comp=range", {
        "x-ms-range": f"bytes={first}-{first + len(data) - 1}", "x-ms-write": "update",
        **(headers or {})}, data, **options)


def make(store, path, data=b"", headers=None):
    answer = create(store, path, len(data), headers)
    assert answer.status == 201, answer
    for first in range(0, len(data), 4 * MIB):
        answer = put_range(store, path, data[first:first + 4 * MIB], first)
        assert answer.status == 201, answer
    return answer


def mkdir(store, path, **headers):
    answer = store.call("PUT", path, "restype=directory", headers)
    assert answer.status == 201, answer
    return answer


def names(answer):
    return [(entry.tag, entry.findtext("Name")) for entry in answer.xml.find("Entries")]


def check_facts(answer):
    assert ETAG.match(answer.etag) and answer["Last-Modified"]
    for name in FACTS:
        assert answer[name], name
    for name in ("creation", "last-write", "change"):
        assert TIME.match(answer[f"x-ms-file-{name}-time"])


# -- shares -----------------------------------------------------------------------------------------


def test_a_share_is_made_read_changed_and_removed(store):
    made = store.call("PUT", "/life", "restype=share", {
        "x-ms-share-quota": "100", "x-ms-access-tier": "Hot", "x-ms-meta-a": "b"})
    assert made.status == 201 and ETAG.match(made.etag)
    assert store.call("PUT", "/life", "restype=share").code == "ShareAlreadyExists"
    for method in ("GET", "HEAD"):
        read = store.call(method, "/life", "restype=share")
        assert (read.status, read["x-ms-share-quota"], read["x-ms-access-tier"]) == (200, "100", "Hot")
        assert read["x-ms-meta-a"] == "b" and read["x-ms-enabled-protocols"] == "SMB"
        assert read["x-ms-lease-state"] == "available" and read.etag == made.etag
    changed = store.call("PUT", "/life", "restype=share&comp=properties", {"x-ms-share-quota": "7"})
    assert changed.status == 200 and changed.etag != made.etag
    assert store.call("PUT", "/life", "restype=share&comp=metadata", {"x-ms-meta-c": "d"}).status == 200
    read = store.call("GET", "/life", "restype=share&comp=metadata")
    assert read["x-ms-meta-c"] == "d" and read["x-ms-meta-a"] is None
    assert store.call("GET", "/life", "restype=share")["x-ms-share-quota"] == "7"
    assert store.call("DELETE", "/life", "restype=share").status == 202
    gone = store.call("GET", "/life", "restype=share")
    assert (gone.status, gone.code) == (404, "ShareNotFound")


@pytest.mark.parametrize("headers", [
    {"x-ms-share-quota": "0"}, {"x-ms-share-quota": "x"}, {"x-ms-share-quota": "262145"},
    {"x-ms-access-tier": "Frozen"}, {"x-ms-enabled-protocols": "NFS"},
])
def test_a_share_with_bad_properties_is_refused(store, headers):
    answer = store.call("PUT", "/bad-share", "restype=share", headers)
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")


@pytest.mark.parametrize("name", ["ab", "UPPER", "a--b", "a_b", "a.b", "%2e%2e", "-abc"])
def test_a_share_with_a_bad_name_is_refused(store, name):
    answer = store.call("PUT", f"/{name}", "restype=share")
    assert (answer.status, answer.code) == (400, "InvalidResourceName")


def test_shares_are_listed_by_prefix_and_page(store):
    for name in ("list-a", "list-b", "list-c"):
        store.call("PUT", f"/{name}", "restype=share", {"x-ms-meta-of": name})
    first = store.call("GET", "/", "comp=list&prefix=list-&maxresults=2&include=metadata").xml
    assert [s.findtext("Name") for s in first.find("Shares")] == ["list-a", "list-b"]
    assert first.find("Shares/Share/Metadata").findtext("of") == "list-a"
    assert first.find("Shares/Share/Properties").findtext("Quota") == "5120"
    rest = store.call(
        "GET", "/", f"comp=list&prefix=list-&marker={quoted(first.findtext('NextMarker'))}&include=").xml
    assert [s.findtext("Name") for s in rest.find("Shares")] == ["list-c"]
    assert not rest.findtext("NextMarker")


def test_policies_are_kept_and_count_at_once(store, share, account):
    make(store, f"{share}/x", b"data")
    body = (b"<SignedIdentifiers><SignedIdentifier><Id>reader</Id><AccessPolicy>"
            b"<Start>2020-01-01T00:00:00Z</Start><Expiry>2099-01-01T00:00:00Z</Expiry>"
            b"<Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>")
    assert store.call("PUT", share, "restype=share&comp=acl", {}, body).status == 200
    read = store.call("GET", share, "restype=share&comp=acl").xml
    assert read.findtext("SignedIdentifier/AccessPolicy/Permission") == "r"
    sas = service_sas(account.name, account.key, share[1:], sr="s", service="file", sp=None, se=None,
                      si="reader")
    assert store.call("GET", f"{share}/x", sas=sas).body == b"data"
    assert store.call("PUT", share, "restype=share&comp=acl", {}, b"").status == 200
    assert store.call("GET", f"{share}/x", sas=sas).status == 403


def test_stats_add_up_what_is_there(store, share, tree):
    make(store, f"{share}/a", b"12345")
    (tree / "b").write_bytes(b"123")
    stats = store.call("GET", share, "restype=share&comp=stats").xml
    assert (stats.tag, stats.findtext("ShareUsageBytes")) == ("ShareStats", "8")


def test_a_share_lease_guards_the_share(store, share):
    taken = store.call("PUT", share, "restype=share&comp=lease",
                       {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"})
    assert taken.status == 201
    assert store.call("DELETE", share, "restype=share").code == "LeaseIdMissing"
    wrong = store.call("GET", share, "restype=share", {"x-ms-lease-id": str(uuid.uuid4())})
    assert (wrong.status, wrong.code) == (412, "LeaseIdMismatchWithContainerOperation")
    broken = store.call("PUT", share, "restype=share&comp=lease",
                        {"x-ms-lease-action": "break", "x-ms-lease-break-period": "0"})
    assert (broken.status, broken["x-ms-lease-time"]) == (202, "0")
    assert store.call("DELETE", share, "restype=share").status == 202


def test_permissions_are_stored_and_found(store, share):
    sddl = "O:SYG:SYD:(A;;FA;;;SY)"
    made = store.call("PUT", share, "restype=share&comp=filepermission",
                      {"Content-Type": "application/json"}, b'{"permission": "%s"}' % sddl.encode())
    key = made["x-ms-file-permission-key"]
    assert made.status == 201 and key
    read = store.call("GET", share, "restype=share&comp=filepermission",
                      {"x-ms-file-permission-key": key})
    assert read.status == 200 and sddl in read.body.decode()
    unknown = store.call("GET", share, "restype=share&comp=filepermission",
                         {"x-ms-file-permission-key": "1*1"})
    assert (unknown.status, unknown.code) == (400, "FileInvalidPermissionKey")
    given = create(store, f"{share}/a", 0, {"x-ms-file-permission-key": key})
    said = create(store, f"{share}/b", 0, {"x-ms-file-permission": sddl})
    own = create(store, f"{share}/c", 0, {"x-ms-file-permission": "Inherit"})
    assert given["x-ms-file-permission-key"] == said["x-ms-file-permission-key"] == key
    assert own["x-ms-file-permission-key"] != key
    default = store.call("GET", share, "restype=share&comp=filepermission",
                         {"x-ms-file-permission-key": own["x-ms-file-permission-key"]})
    assert default.status == 200
    assert create(store, f"{share}/d", 0, {"x-ms-file-permission-key": "1*1"}).status == 400


def test_there_are_no_snapshots(store, share):
    for answer in (
        store.call("PUT", share, "restype=share&comp=snapshot"),
        store.call("GET", share, "restype=share&sharesnapshot=2020-01-01T00:00:00.0000000Z"),
        store.call("GET", share, "restype=directory&comp=list&sharesnapshot=2020-01-01T00:00:00Z"),
    ):
        assert (answer.status, answer.code) == (400, "ShareSnapshotOperationNotSupported")


def test_service_properties_are_kept(store):
    read = store.call("GET", "/", "restype=service&comp=properties")
    assert read.status == 200 and read.xml.find("Cors") is not None
    body = (b"<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins>"
            b"<AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds>"
            b"<ExposedHeaders>*</ExposedHeaders><AllowedHeaders>*</AllowedHeaders></CorsRule></Cors>"
            b"</StorageServiceProperties>")
    assert store.call("PUT", "/", "restype=service&comp=properties", {}, body).status == 202
    read = store.call("GET", "/", "restype=service&comp=properties").xml
    assert read.findtext("Cors/CorsRule/AllowedOrigins") == "*"


# -- directories ------------------------------------------------------------------------------------


def test_a_directory_is_made_read_changed_and_removed(store, share):
    made = store.call("PUT", f"{share}/d", "restype=directory", {
        "x-ms-meta-a": "b", "x-ms-file-attributes": "Hidden", "x-ms-file-permission": "inherit",
        "x-ms-file-creation-time": "now", "x-ms-file-last-write-time": "now"})
    assert made.status == 201
    check_facts(made)
    assert set(made["x-ms-file-attributes"].split("|")) == {"Directory", "Hidden"}
    again = store.call("PUT", f"{share}/D", "restype=directory")
    assert (again.status, again.code) == (409, "ResourceAlreadyExists")
    read = store.call("GET", f"{share}/d", "restype=directory")
    check_facts(read)
    assert read["x-ms-meta-a"] == "b" and read["x-ms-server-encrypted"] == "true"
    changed = store.call("PUT", f"{share}/d", "restype=directory&comp=properties", {
        "x-ms-file-attributes": "None", "x-ms-file-creation-time": "2020-02-03T04:05:06.1234567Z",
        "x-ms-file-last-write-time": "2021-02-03T04:05:06.7654321Z", "x-ms-file-permission": "preserve"})
    assert changed.status == 200 and changed["x-ms-file-attributes"] == "Directory"
    assert changed["x-ms-file-creation-time"] == "2020-02-03T04:05:06.1234567Z"
    assert changed["x-ms-file-last-write-time"] == "2021-02-03T04:05:06.7654321Z"
    store.call("PUT", f"{share}/d", "restype=directory&comp=metadata", {"x-ms-meta-c": "d", "x-ms-meta": ""})
    read = store.call("GET", f"{share}/d", "restype=directory&comp=metadata")
    assert read["x-ms-meta-c"] == "d" and read["x-ms-meta-a"] is None
    make(store, f"{share}/d/x")
    full = store.call("DELETE", f"{share}/d", "restype=directory")
    assert (full.status, full.code) == (409, "DirectoryNotEmpty")
    assert store.call("DELETE", f"{share}/d/x").status == 202
    assert store.call("DELETE", f"{share}/d", "restype=directory").status == 202
    gone = store.call("GET", f"{share}/d", "restype=directory")
    assert (gone.status, gone.code) == (404, "ResourceNotFound")


def test_the_root_directory_is_there_and_stays(store, share):
    read = store.call("GET", share, "restype=directory")
    assert read.status == 200 and read["x-ms-file-parent-id"] == "0"
    assert store.call("DELETE", share, "restype=directory").status == 409
    assert store.call("PUT", share, "restype=directory&comp=metadata", {"x-ms-meta-a": "b"}).status == 200
    assert store.call("GET", share, "restype=directory")["x-ms-meta-a"] == "b"


def test_what_lacks_its_parent_is_refused_by_name(store, share):
    for answer in (
        create(store, f"{share}/no/x", 1),
        store.call("PUT", f"{share}/no/x", "restype=directory"),
        put_range(store, f"{share}/no/x", b"1"),
        store.call("HEAD", f"{share}/no/x"),
    ):
        assert answer.status == 404 and answer["x-ms-error-code"] == "ParentNotFound"
    assert store.call("GET", f"{share}/no").code == "ResourceNotFound"
    assert store.call("GET", "/no-share/x").code == "ShareNotFound"


def test_a_file_is_no_directory_and_the_other_way_round(store, share):
    mkdir(store, f"{share}/d")
    make(store, f"{share}/d/f", b"x")
    # python's exists() takes any answer but 404 for a fault
    asked = store.call("GET", f"{share}/d%2Ff", "restype=directory")
    assert (asked.status, asked.code) == (404, "ResourceNotFound")
    assert store.call("HEAD", f"{share}/d")["x-ms-error-code"] == "ResourceNotFound"
    assert create(store, f"{share}/d").code == "ResourceTypeMismatch"


def test_a_listing_has_what_is_asked_for(store, share):
    mkdir(store, f"{share}/sub")
    make(store, f"{share}/a%20b%26c.txt", b"12345")
    plain = store.call("GET", share, "restype=directory&comp=list")
    assert names(plain) == [("File", "a b&c.txt"), ("Directory", "sub")]
    file = plain.xml.find("Entries/File")
    assert file.findtext("Properties/Content-Length") == "5" and file.find("Attributes") is None
    full = store.call("GET", share, "restype=directory&comp=list"
                      "&include=timestamps,Etag,Attributes,PermissionKey", {"x-ms-file-extended-info": "true"})
    root = full.xml
    assert root.get("ShareName") == share[1:] and root.get("DirectoryPath") == ""
    assert root.findtext("DirectoryId")
    file = root.find("Entries/File")
    head = store.call("HEAD", f"{share}/a%20b%26c.txt")
    assert file.findtext("Properties/Etag") == head.etag
    assert file.findtext("FileId") == head["x-ms-file-id"]
    assert file.findtext("Attributes") == "Archive"
    assert file.findtext("PermissionKey") == head["x-ms-file-permission-key"]
    for word in ("CreationTime", "LastAccessTime", "LastWriteTime", "ChangeTime"):
        assert TIME.match(file.findtext(f"Properties/{word}"))
    assert root.find("Entries/Directory").findtext("Attributes") == "Directory"


def test_a_listing_pages_in_byte_order(store, share, tree):
    everything = sorted([f"n{i:03}" for i in range(95)] + ["Z", "ä", "a.b", "a-b", "a b"], key=str.encode)
    for name in everything:
        (tree / name).touch()
    seen, marker = [], ""
    while True:
        page = store.call(
            "GET", share, f"restype=directory&comp=list&maxresults=7&marker={quoted(marker)}")
        seen += [name for _, name in names(page)]
        marker = page.xml.findtext("NextMarker")
        if not marker:
            break
    assert seen == everything
    some = store.call("GET", share, "restype=directory&comp=list&prefix=N01")
    assert [name for _, name in names(some)] == [f"n{i:03}" for i in range(10, 20)]
    assert store.call("GET", share, "restype=directory&comp=list&marker=***").status == 400


def test_there_are_no_handles(store, share):
    make(store, f"{share}/f", b"x")
    for path in (f"{share}/", f"{share}/f"):
        listed = store.call("GET", path, "comp=listhandles")
        assert listed.status == 200 and not list(listed.xml.find("Entries"))
        closed = store.call("PUT", path, "comp=forceclosehandles", {"x-ms-handle-id": "*"})
        assert (closed.status, closed["x-ms-number-of-handles-closed"]) == (200, "0")
    assert store.call("GET", f"{share}/none", "comp=listhandles").status == 404


# -- files ------------------------------------------------------------------------------------------


def test_a_file_is_made_written_read_and_removed(store, share):
    data = os.urandom(5 * MIB + 77)
    made = create(store, f"{share}/f.bin", len(data), {
        "x-ms-content-type": "text/x", "x-ms-cache-control": "no-cache", "x-ms-content-md5": md5(data),
        "x-ms-content-disposition": "inline", "x-ms-meta-k": "v", "x-ms-file-attributes": "None"})
    assert made.status == 201 and made["x-ms-request-server-encrypted"] == "true"
    check_facts(made)
    etags = {made.etag}
    for first in range(0, len(data), 4 * MIB):
        put = put_range(store, f"{share}/f.bin", data[first:first + 4 * MIB], first)
        assert put.status == 201
        etags.add(put.etag)
    assert len(etags) == 3
    read = store.call("GET", f"{share}/f.bin")
    assert (read.status, read.body == data) == (200, True)
    check_facts(read)
    assert (read["Content-Type"], read["Cache-Control"], read["Content-Disposition"]) == (
        "text/x", "no-cache", "inline")
    assert (read["Content-MD5"], read["x-ms-meta-k"], read["x-ms-type"]) == (md5(data), "v", "File")
    assert read["Accept-Ranges"] == "bytes" and read["x-ms-lease-state"] == "available"
    head = store.call("HEAD", f"{share}/f.bin")
    assert (head.status, head["Content-Length"], head.etag) == (200, str(len(data)), put.etag)
    assert store.call("DELETE", f"{share}/f.bin").status == 202
    assert store.call("DELETE", f"{share}/f.bin").code == "ResourceNotFound"


@pytest.mark.parametrize("value, status, first, last", [
    ("bytes=2-4", 206, 2, 4), ("bytes=2-", 206, 2, 9), ("bytes=0-33554431", 206, 0, 9),
    ("bytes=-3", 206, 7, 9), ("bytes=10-", 416, None, None), ("bytes=99-100", 416, None, None),
])
def test_a_range_is_read(store, share, value, status, first, last):
    make(store, f"{share}/f", b"0123456789")
    for header in ("Range", "x-ms-range"):
        answer = store.call("GET", f"{share}/f", "", {header: value})
        assert answer.status == status
        if status == 416:
            assert (answer.code, answer["Content-Range"]) == ("InvalidRange", "bytes */10")
        else:
            assert answer.body == b"0123456789"[first:last + 1]
            assert answer["Content-Range"] == f"bytes {first}-{last}/10"


def test_a_range_has_its_own_md5_when_asked_for(store, share):
    make(store, f"{share}/f", b"0123456789", {"x-ms-content-md5": md5(b"0123456789")})
    part = store.call("GET", f"{share}/f", "", {
        "x-ms-range": "bytes=1-3", "x-ms-range-get-content-md5": "true"})
    assert (part["Content-MD5"], part["x-ms-content-md5"]) == (md5(b"123"), md5(b"0123456789"))


@pytest.mark.parametrize("first, length, headers, status, code", [
    (8, 3, {}, 416, "InvalidRange"),
    (0, 11, {}, 416, "InvalidRange"),
    (0, 3, {"x-ms-range": "bytes=0-3"}, 400, "InvalidHeaderValue"),
    (0, 3, {"x-ms-range": "bytes=3-0"}, 400, "InvalidHeaderValue"),
    (0, 3, {"x-ms-range": "bytes=0-"}, 400, "InvalidHeaderValue"),
    (0, 3, {"x-ms-range": "0-2"}, 400, "InvalidHeaderValue"),
    (0, 3, {"x-ms-range": None}, 400, "MissingRequiredHeader"),
    (0, 3, {"x-ms-write": None}, 400, "MissingRequiredHeader"),
    (0, 3, {"x-ms-write": "append"}, 400, "InvalidHeaderValue"),
    (0, 3, {"x-ms-write": "clear"}, 400, "InvalidHeaderValue"),
    (0, 3, {"Content-MD5": md5(b"other")}, 400, "Md5Mismatch"),
    (0, 3, {"Content-MD5": "short"}, 400, "InvalidMd5"),
    (0, 3, {"x-ms-content-crc64": crc64(b"other")}, 400, "Crc64Mismatch"),
])
def test_a_bad_put_range_changes_nothing(store, share, first, length, headers, status, code):
    make(store, f"{share}/f", b"0123456789")
    before = store.call("HEAD", f"{share}/f").etag
    answer = put_range(store, f"{share}/f", b"x" * length, first, headers)
    assert (answer.status, answer.code) == (status, code)
    read = store.call("GET", f"{share}/f")
    assert (read.body, read.etag) == (b"0123456789", before)


def test_hashes_of_a_range_are_checked_and_told(store, share):
    create(store, f"{share}/f", 10)
    good = put_range(store, f"{share}/f", b"abc", 0, {"Content-MD5": md5(b"abc")})
    assert (good.status, good["Content-MD5"]) == (201, md5(b"abc"))
    other = put_range(store, f"{share}/f", b"abc", 0)
    assert other["x-ms-content-crc64"] == crc64(b"abc")


def test_more_than_4_mib_is_too_large_for_a_range(store, share):
    create(store, f"{share}/f", 8 * MIB)
    answer = put_range(store, f"{share}/f", b"x" * (4 * MIB + 1))
    assert (answer.status, answer["x-ms-error-code"]) == (413, "RequestBodyTooLarge")


def test_ranges_are_cleared_and_listed(store, share):
    create(store, f"{share}/f", 8 * 65536)
    put_range(store, f"{share}/f", b"x" * 65536)
    put_range(store, f"{share}/f", b"y" * 65536, 4 * 65536)
    cleared = store.call("PUT", f"{share}/f", "comp=range",
                         {"x-ms-range": "bytes=0-65535", "x-ms-write": "clear"})
    assert cleared.status == 201
    listed = store.call("GET", f"{share}/f", "comp=rangelist")
    assert listed["x-ms-content-length"] == str(8 * 65536)
    assert [(r.findtext("Start"), r.findtext("End")) for r in listed.xml] == [("262144", "327679")]
    none = store.call("GET", f"{share}/f", "comp=rangelist", {"x-ms-range": "bytes=0-1000"})
    assert list(none.xml) == []
    assert store.call("GET", f"{share}/f").body[:65536] == bytes(65536)


def test_a_file_may_come_with_its_content(store, share):
    answer = create(store, f"{share}/f", 6, data=b"abc")
    assert answer.status == 201
    assert store.call("GET", f"{share}/f").body == b"abc\0\0\0"
    long = create(store, f"{share}/g", 2, data=b"abc")
    assert (long.status, long.code) == (400, "InvalidHeaderValue")


@pytest.mark.parametrize("headers, code", [
    ({"x-ms-content-length": None}, "MissingRequiredHeader"),
    ({"x-ms-content-length": "-1"}, "InvalidHeaderValue"),
    ({"x-ms-content-length": "4398046511105"}, "InvalidHeaderValue"),
    ({"x-ms-type": "blob"}, "InvalidHeaderValue"),
    ({"x-ms-file-attributes": "Shiny"}, "InvalidHeaderValue"),
    ({"x-ms-file-attributes": "Directory"}, "InvalidHeaderValue"),
    ({"x-ms-file-creation-time": "yesterday"}, "InvalidHeaderValue"),
    ({"x-ms-content-md5": "short"}, "InvalidMd5"),
    ({"x-ms-meta-1": "x"}, "InvalidMetadata"),
])
def test_a_bad_file_is_not_made(store, share, headers, code):
    answer = create(store, f"{share}/f", 1, headers)
    assert (answer.status, answer.code) == (400, code)
    assert store.call("HEAD", f"{share}/f").status == 404


def test_properties_are_set_as_clients_set_them(store, share):
    made = create(store, f"{share}/f", 3, {
        "x-ms-content-type": "text/x", "x-ms-file-creation-time": "2001-02-03T04:05:06.7000000Z"})
    resized = store.call("PUT", f"{share}/f", "comp=properties", {
        "x-ms-content-length": "9", "x-ms-file-permission": "preserve",
        "x-ms-file-attributes": "preserve", "x-ms-file-creation-time": "preserve",
        "x-ms-file-last-write-time": "preserve"})
    assert resized.status == 200 and resized.etag != made.etag
    assert resized["x-ms-file-creation-time"] == "2001-02-03T04:05:06.7000000Z"
    assert resized["x-ms-file-last-write-time"] == made["x-ms-file-last-write-time"]
    head = store.call("HEAD", f"{share}/f")
    assert (head["Content-Length"], head["Content-Type"]) == ("9", "text/x")
    changed = store.call("PUT", f"{share}/f", "comp=properties", {
        "x-ms-content-language": "de", "x-ms-file-attributes": "ReadOnly | Hidden",
        "x-ms-file-last-write-time": "now"})
    assert changed["x-ms-file-attributes"] == "ReadOnly|Hidden"
    assert changed["x-ms-file-last-write-time"] > made["x-ms-file-last-write-time"]
    head = store.call("HEAD", f"{share}/f")
    assert (head["Content-Type"], head["Content-Language"]) == ("application/octet-stream", "de")
    for answer in (put_range(store, f"{share}/f", b"x"), store.call("DELETE", f"{share}/f")):
        assert (answer.status, answer.code) == (409, "ReadOnlyAttribute")


def test_metadata_is_replaced_whole(store, share):
    made = create(store, f"{share}/f", 1, {"x-ms-meta-a": "1"})
    answer = store.call("PUT", f"{share}/f", "comp=metadata", {"x-ms-meta-B": "2", "x-ms-meta": "junk"})
    assert answer.status == 200 and answer.etag != made.etag
    read = store.call("GET", f"{share}/f", "comp=metadata")
    assert read["x-ms-meta-a"] is None and read["x-ms-meta-b"] == "2"


def test_the_time_of_the_last_write_can_be_kept(store, share):
    made = create(store, f"{share}/f", 3, {"x-ms-file-last-write-time": "2001-02-03T04:05:06.7000001Z"})
    kept = put_range(store, f"{share}/f", b"abc", 0, {"x-ms-file-last-write-time": "preserve"})
    assert kept["x-ms-file-last-write-time"] == "2001-02-03T04:05:06.7000001Z"
    assert kept.etag != made.etag
    moved = put_range(store, f"{share}/f", b"abc")
    assert moved["x-ms-file-last-write-time"] > "2026"
    assert moved.etag != kept.etag


def test_a_lease_guards_a_file(store, share):
    make(store, f"{share}/f", b"abc")
    lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    assert store.call("PUT", f"{share}/f", "comp=lease", {**lease, "x-ms-lease-duration": "15"}).status == 400
    taken = store.call("PUT", f"{share}/f", "comp=lease", lease)
    assert taken.status == 201
    mine = {"x-ms-lease-id": taken["x-ms-lease-id"]}
    other = {"x-ms-lease-id": str(uuid.uuid4())}
    for headers, code in (({}, "LeaseIdMissing"), (other, "LeaseIdMismatchWithFileOperation")):
        for answer in (
            put_range(store, f"{share}/f", b"x", 0, headers),
            create(store, f"{share}/f", 1, headers),
            store.call("DELETE", f"{share}/f", "", headers),
            store.call("PUT", f"{share}/f", "comp=metadata", headers),
        ):
            assert (answer.status, answer.code) == (412, code)
    assert put_range(store, f"{share}/f", b"x", 0, mine).status == 201
    assert store.call("HEAD", f"{share}/f")["x-ms-lease-state"] == "leased"
    released = store.call("PUT", f"{share}/f", "comp=lease", {"x-ms-lease-action": "release", **mine})
    assert released.status == 200
    assert store.call("DELETE", f"{share}/f").status == 202


# -- copies and renames -----------------------------------------------------------------------------


def test_a_file_is_copied(store, share):
    make(store, f"{share}/from", b"content", {"x-ms-meta-a": "b", "x-ms-content-type": "text/x"})
    copied = store.call("PUT", f"{share}/to", "", {"x-ms-copy-source": store.url(f"{share}/from")})
    assert (copied.status, copied["x-ms-copy-status"]) == (202, "success") and copied["x-ms-copy-id"]
    read = store.call("GET", f"{share}/to")
    assert (read.body, read["Content-Type"], read["x-ms-meta-a"]) == (b"content", "text/x", "b")
    assert read["x-ms-copy-id"] == copied["x-ms-copy-id"] and read["x-ms-copy-progress"] == "7/7"
    missing = store.call("PUT", f"{share}/to", "", {"x-ms-copy-source": store.url(f"{share}/none")})
    assert missing.status == 404
    foreign = store.call("PUT", f"{share}/to", "", {"x-ms-copy-source": "http://169.254.169.254/a/b/c"})
    assert (foreign.status, foreign.code) == (400, "CannotVerifyCopySource")


def test_a_range_comes_from_another_file(store, share):
    make(store, f"{share}/from", b"0123456789")
    make(store, f"{share}/to", b"abcdefghij")
    answer = store.call("PUT", f"{share}/to", "comp=range", {
        "x-ms-copy-source": store.url(f"{share}/from"), "x-ms-source-range": "bytes=2-4",
        "x-ms-range": "bytes=5-7", "x-ms-write": "update"})
    assert (answer.status, answer["x-ms-content-crc64"]) == (201, crc64(b"234"))
    assert store.call("GET", f"{share}/to").body == b"abcde234ij"


def test_files_and_directories_are_renamed(store, share):
    mkdir(store, f"{share}/d")
    made = make(store, f"{share}/d/a", b"1", {"x-ms-meta-k": "v"})
    make(store, f"{share}/b", b"2")
    taken = store.call("PUT", f"{share}/b", "comp=rename",
                       {"x-ms-file-rename-source": store.url(f"{share}/d/a")})
    assert (taken.status, taken.code) == (409, "ResourceAlreadyExists")
    moved = store.call("PUT", f"{share}/b", "comp=rename", {
        "x-ms-file-rename-source": store.url(f"{share}/d/a"),
        "x-ms-file-rename-replace-if-exists": "true"})
    assert moved.status == 200
    read = store.call("GET", f"{share}/b")
    assert (read.body, read["x-ms-meta-k"]) == (b"1", "v")
    assert read["x-ms-file-id"] == made["x-ms-file-id"]
    answer = store.call("PUT", f"{share}/e", "restype=directory&comp=rename",
                        {"x-ms-file-rename-source": store.url(f"{share}/d")})
    assert answer.status == 200
    assert store.call("GET", f"{share}/d", "restype=directory").status == 404
    assert store.call("PUT", "/other-share", "restype=share").status == 201
    far = store.call("PUT", "/other-share/x", "comp=rename",
                     {"x-ms-file-rename-source": store.url(f"{share}/b")})
    assert far.status == 400


def test_a_rename_to_an_address_without_the_account_is_understood(store, share):
    """As the client for JavaScript (12.32) sends it with addresses in path style."""
    make(store, f"{share}/a", b"1")
    source = {"x-ms-file-rename-source": store.url(f"{share}/a")}
    assert store.call("PUT", f"{share}/b", "comp=rename", source, base="").status == 200
    assert store.call("GET", f"{share}/b").body == b"1"
    other = {"x-ms-file-rename-source": store.url(f"{share}/b").replace(store.account, "otheraccount")}
    assert store.call("PUT", f"{share}/c", "comp=rename", other, base="").status in (403, 404)
    assert store.call("PUT", f"{share}/c", "comp=rename", other).status >= 400
    assert store.call("GET", f"{share}/b").body == b"1"


# -- names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [
    "a b", "ä", "漢字", "a+b", "a%b", "#x", "a&b=c", "a;b", "[x]{y}", "it's", "~", ".dot", "-dash", "a,b", "@",
])
def test_names_come_back_as_they_were(store, share, name):
    make(store, f"{share}/{quoted(name)}", b"x")
    assert names(store.call("GET", share, "restype=directory&comp=list")) == [("File", name)]
    assert store.call("GET", f"{share}/{quoted(name)}").body == b"x"


def test_slashes_may_be_encoded(store, share):
    mkdir(store, f"{share}/a")
    mkdir(store, f"{share}/a%2Fb")
    make(store, f"{share}/a%2Fb%2Ff", b"x")
    assert store.call("GET", f"{share}/a/b/f").body == b"x"


def test_case_is_kept_and_not_asked_for(store, share):
    mkdir(store, f"{share}/Dir")
    make(store, f"{share}/dIR/File.Txt", b"x")
    assert store.call("GET", f"{share}/DIR/FILE.TXT").body == b"x"
    assert names(store.call("GET", f"{share}/dir", "restype=directory&comp=list")) == [("File", "File.Txt")]


def test_trailing_dots_go_unless_they_are_allowed(store, share):
    allowed = {"x-ms-allow-trailing-dot": "true"}
    make(store, f"{share}/x..", b"plain")
    assert names(store.call("GET", share, "restype=directory&comp=list")) == [("File", "x")]
    assert create(store, f"{share}/x.", 3, allowed).status == 201
    assert store.call("HEAD", f"{share}/x.", "", allowed)["Content-Length"] == "3"
    assert store.call("HEAD", f"{share}/x.")["Content-Length"] == "5"


# Each of these, as a path in a share, must never lead out of it.
TRAVERSAL = [
    "..", "../x", "%2e%2e", "%2e%2e/x", "..%2fx", "%2e%2e%2fx", "a/../../x", "a/%2e%2e/%2e%2e/x", "./x", "%2e",
    "%2e%2e%5cx", "..%5cx", "%00", "a%00b", "%c0%ae%c0%ae/x", "%ff", "%0a", "a%0d%0ab", "%7f", "a//b", "//etc",
    "a:b", "a*b", "a%3fb", "a%22b", "a%3cb", "a%3eb", "a%7cb", "C:/x", "..." + "/x", "%252e%252e%252fx..%2f..",
    "a/" * 252 + "x", "a" * 256, quoted("é" * 128),
]


@pytest.mark.parametrize("path", TRAVERSAL, ids=range(len(TRAVERSAL)))
def test_bad_paths_are_refused_and_lead_nowhere(store, share, account, path):
    canary = account.folder.parent / "canary"
    canary.write_text("untouched")
    for answer in (
        create(store, f"{share}/{path}", 1),
        store.call("GET", f"{share}/{path}"),
        store.call("PUT", f"{share}/{path}", "restype=directory"),
        store.call("DELETE", f"{share}/{path}"),
    ):
        assert 400 <= answer.status < 500, answer
    assert canary.read_text() == "untouched"
    assert not list((account.folder / "file" / share[1:] / "tree").iterdir())


def test_a_name_that_is_escaped_twice_is_decoded_once(store, share, tree):
    make(store, f"{share}/%252e%252e", b"x")
    assert [p.name for p in tree.iterdir()] == ["%2e%2e"]


# -- mounts -----------------------------------------------------------------------------------------


def test_what_a_job_writes_is_there_at_once_and_the_other_way_round(store, share, tree):
    (tree / "out").mkdir()
    (tree / "out" / "log.txt").write_text("line 1\n")
    first = store.call("GET", f"{share}/out/log.txt")
    assert first.body == b"line 1\n"
    check_facts(first)
    with open(tree / "out" / "log.txt", "a", encoding="ascii") as log:
        log.write("line 2\n")
    second = store.call("GET", f"{share}/out/log.txt")
    assert second.body == b"line 1\nline 2\n" and second.etag != first.etag
    make(store, f"{share}/in.bin", b"for the job")
    assert (tree / "in.bin").read_bytes() == b"for the job"
    # fileMode of a mount is 0777 unless it says otherwise: a script on a share can be run.
    assert (tree / "in.bin").stat().st_mode & 0o777 == 0o777


def test_links_and_pipes_in_a_share_are_not_there(store, share, tree, account):
    secret = account.folder.parent / "secret"
    secret.write_text("secret")
    os.symlink(secret, tree / "link")
    os.symlink(account.folder.parent, tree / "up")
    os.mkfifo(tree / "pipe")
    for path in ("link", "up/secret", "up", "pipe"):
        assert store.call("GET", f"{share}/{path}").status == 404
        assert put_range(store, f"{share}/{path}", b"x").status == 404
    assert names(store.call("GET", share, "restype=directory&comp=list")) == []
    assert secret.read_text() == "secret"


def test_a_quota_is_kept(store, share):
    store.call("PUT", share, "restype=share&comp=properties", {"x-ms-share-quota": "1"})
    assert create(store, f"{share}/a", 1 << 30).status == 201
    full = create(store, f"{share}/b", 1)
    assert (full.status, full.code) == (403, "ShareSizeLimitReached")
    assert store.call("DELETE", f"{share}/a").status == 202
    assert create(store, f"{share}/b", 1).status == 201


# -- who may ----------------------------------------------------------------------------------------


def test_a_share_sas_opens_its_share_only(store, share, account):
    make(store, f"{share}/f", b"data")
    sas = service_sas(account.name, account.key, share[1:], sr="s", service="file", sp="rl")
    assert store.call("GET", f"{share}/f", sas=sas).body == b"data"
    assert store.call("GET", share, "restype=directory&comp=list", sas=sas).status == 200
    for answer in (
        put_range(store, f"{share}/f", b"x", sas=sas),
        store.call("DELETE", f"{share}/f", sas=sas),
        store.call("GET", "/life2/f", sas=sas),
        store.call("DELETE", share, "restype=share", sas=sas),
        store.call("GET", "/", "comp=list", sas=sas),
    ):
        assert answer.status == 403


def test_a_file_sas_opens_its_file_only(store, share, account):
    make(store, f"{share}/f", b"data")
    make(store, f"{share}/g", b"other")
    sas = service_sas(account.name, account.key, share[1:], "f", sr="f", service="file", sp="r",
                      rsct="image/x")
    read = store.call("GET", f"{share}/f", sas=sas)
    assert (read.body, read["Content-Type"]) == (b"data", "image/x")
    for path in ("g", "F", "f/", "./f"):
        assert store.call("GET", f"{share}/{path}", sas=sas).status in (400, 403)


def test_an_account_sas_that_may_create_may_not_replace(store, share, account):
    sas = account_sas(account.name, account.key, sp="c", ss="f", srt="o")
    assert create(store, f"{share}/new", 3, sas=sas).status == 201
    again = create(store, f"{share}/new", 3, sas=sas)
    assert (again.status, again.code) == (403, "AuthorizationPermissionMismatch")
    assert put_range(store, f"{share}/new", b"abc", sas=sas).status == 403


def test_without_a_signature_nothing_is_said(store, share):
    for answer in (store.call("GET", f"{share}/f", auth=None), store.call("GET", "/", "comp=list", auth=None)):
        assert answer.status == 401
    forged = store.call("GET", f"{share}/f", auth=f"SharedKey {store.account}:" + "A" * 43 + "=")
    assert forged.status == 403


# -- crashes ----------------------------------------------------------------------------------------


def test_what_was_acknowledged_survives_a_kill(fresh_yard):
    yard = fresh_yard()
    account = make_account(yard, "crashaccount")
    store = Storage(account.file, account.name, account.key)
    assert store.call("PUT", "/share", "restype=share").status == 201
    told = {}
    for round_ in range(6):
        for i in range(20):
            path, data = f"/share/f{i}", os.urandom(1000 + round_)
            etag = create(store, path, len(data), {"x-ms-meta-round": str(round_)}, data=data).etag
            told[path] = (data, etag, str(round_))
        yard.kill9()
        store.close()
        yard.start()
        for path, (data, etag, meta) in told.items():
            read = store.call("GET", path)
            assert (read.body == data, read.etag, read["x-ms-meta-round"]) == (True, etag, meta)

# SPDX-License-Identifier: Apache-2.0
"""Debian's python3-azure-storage, unmodified: what a training user does with blobs and shares, and
every kind of signature that the SDK can make."""
import base64
import datetime
import hashlib
import io
import os
import threading
import uuid

import pytest

pytest.importorskip("azure.storage.blob", reason="python3-azure-storage is not installed")
from azure.core import MatchConditions
from azure.core.credentials import AccessToken, AzureSasCredential
from azure.core.exceptions import (
    ClientAuthenticationError, HttpResponseError, ResourceExistsError, ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import (
    AccessPolicy, AccountSasPermissions, BlobBlock, BlobClient, BlobLeaseClient, BlobPrefix,
    BlobSasPermissions, BlobServiceClient, BlobType, ContainerClient, ContainerSasPermissions,
    ContentSettings, CorsRule, ResourceTypes, StandardBlobTier,
    generate_account_sas, generate_blob_sas, generate_container_sas,
)

from storage_account import make_account

EAGER = {"retry_total": 0}  # what goes wrong once must be seen


def soon(hours=1):
    return datetime.datetime.utcnow() + datetime.timedelta(hours=hours)


@pytest.fixture(scope="module")
def account(yard):
    return make_account(yard, "pythonaccount")


@pytest.fixture(scope="module")
def service(account):
    with BlobServiceClient.from_connection_string(account.connection_string(), **EAGER) as client:
        yield client


@pytest.fixture
def con(service):
    return service.create_container("c" + uuid.uuid4().hex[:20])


def code_of(call, *args, **options):
    """The status and the word with which a call is refused."""
    with pytest.raises(HttpResponseError) as caught:
        call(*args, **options)
    return caught.value.status_code, caught.value.error_code


# -- containers -------------------------------------------------------------------------------------


def test_the_service_describes_itself(service):
    info = service.get_account_information()
    assert info["account_kind"] == "StorageV2" and info["sku_name"] == "Standard_LRS"
    rule = CorsRule(["https://page.example"], ["GET", "PUT"], max_age_in_seconds=60,
                    allowed_headers=["x-ms-*"], exposed_headers=["x-ms-*"])
    service.set_service_properties(cors=[rule])
    seen = service.get_service_properties()["cors"]
    assert [r.allowed_origins for r in seen] == [rule.allowed_origins]
    service.set_service_properties(cors=[])


def test_containers_from_creation_to_deletion(service):
    name = "life" + uuid.uuid4().hex[:8]
    con = service.create_container(name, metadata={"owner": "me", "Case": "Kept"})
    with pytest.raises(ResourceExistsError) as caught:
        service.create_container(name)
    assert caught.value.error_code == "ContainerAlreadyExists"
    properties = con.get_container_properties()
    assert properties.metadata == {"owner": "me", "Case": "Kept"}
    assert properties.public_access is None and properties.lease.state == "available"
    con.set_container_metadata({"new": "1"})
    assert con.get_container_properties().metadata == {"new": "1"}
    assert con.exists()
    listed = list(service.list_containers(name_starts_with="life", include_metadata=True))
    assert [(c.name, c.metadata) for c in listed] == [(name, {"new": "1"})]
    con.delete_container()
    assert not con.exists()
    assert code_of(con.get_container_properties) == (404, "ContainerNotFound")
    service.create_container(name).delete_container()  # the name is free at once


def test_containers_come_in_pages(service):
    names = [f"pages-{i}" for i in range(7)]
    for name in names:
        service.create_container(name)
    pages = service.list_containers(name_starts_with="pages-", results_per_page=3).by_page()
    assert [[c.name for c in page] for page in pages] == [names[:3], names[3:6], names[6:]]
    for name in names:
        service.delete_container(name)


def test_a_leased_container_is_not_deleted(con):
    lease = con.acquire_lease(lease_duration=15)
    assert code_of(con.delete_container) == (412, "LeaseIdMissing")
    assert con.get_container_properties().lease.state == "leased"
    lease.renew()
    lease.change(str(uuid.uuid4()))
    assert lease.break_lease(lease_break_period=0) == 0
    con.delete_container()


# -- block blobs ------------------------------------------------------------------------------------


def test_a_blob_goes_up_and_comes_down(con):
    data = os.urandom(300_000)
    settings = ContentSettings(
        content_type="image/jpeg", content_encoding="x", content_language="de",
        content_disposition="attachment", cache_control="no-store",
    )
    blob = con.upload_blob("dir/a.jpg", data, metadata={"k": "v"}, content_settings=settings)
    assert blob.download_blob().readall() == data
    properties = blob.get_blob_properties()
    kept = properties.content_settings
    assert properties.size == len(data) and properties.metadata == {"k": "v"}
    assert properties.blob_type == BlobType.BlockBlob
    assert (kept.content_type, kept.content_encoding, kept.content_language) == ("image/jpeg", "x", "de")
    assert (kept.content_disposition, kept.cache_control) == ("attachment", "no-store")
    assert bytes(kept.content_md5) == hashlib.md5(data).digest()
    assert properties.creation_time <= properties.last_modified

    with pytest.raises(ResourceExistsError) as caught:
        blob.upload_blob(b"other")
    assert caught.value.error_code == "BlobAlreadyExists"
    blob.upload_blob(b"other", overwrite=True)
    assert blob.download_blob().readall() == b"other"
    assert blob.get_blob_properties().metadata == {}
    blob.delete_blob()
    assert not blob.exists()
    assert code_of(blob.download_blob) == (404, "BlobNotFound")


def test_ranges(con):
    data = bytes(range(256)) * 10
    blob = con.upload_blob("r", data)
    assert blob.download_blob(offset=10, length=5).readall() == data[10:15]
    assert blob.download_blob(offset=2500).readall() == data[2500:]
    assert blob.download_blob(offset=0, length=10**6).readall() == data
    assert blob.download_blob(offset=5, length=100, validate_content=True).readall() == data[5:105]
    assert code_of(blob.download_blob, offset=len(data), length=1) == (416, "InvalidRange")
    empty = con.upload_blob("empty", b"")
    assert empty.download_blob().readall() == b""


@pytest.mark.parametrize("data", [b"", b"x", bytes(5 << 20)], ids=len)
def test_streams_of_unknown_length(con, data):
    class Once:
        """A pipe: cannot be sought, does not know its size."""

        def __init__(self):
            self.rest = io.BytesIO(data)

        def read(self, count=-1):
            return self.rest.read(count)

    blob = con.upload_blob("stream", Once())
    out = io.BytesIO()
    assert blob.download_blob().readinto(out) == len(data)
    assert out.getvalue() == data
    assert b"".join(blob.download_blob().chunks()) == data


def test_eighty_megabytes_go_up_by_blocks(con):
    unit = os.urandom(1 << 20)
    data = b"".join(unit[i:] + unit[:i] for i in range(80))
    blob = con.upload_blob("big", data, max_concurrency=4)
    committed, staged = blob.get_block_list("all")
    assert len(committed) == 20 and not staged and sum(b.size for b in committed) == len(data)
    assert blob.get_blob_properties().size == len(data)
    got = blob.download_blob(max_concurrency=4).readall()
    assert hashlib.sha256(got).digest() == hashlib.sha256(data).digest()


def test_blocks_by_hand(con):
    blob = con.get_blob_client("blocks")
    for number in (3, 1, 2):
        blob.stage_block(f"{number:04}", f"<{number}>".encode(), validate_content=True)
    assert not blob.exists()
    committed, staged = blob.get_block_list("all")
    assert committed == [] and sorted(b.id for b in staged) == ["0001", "0002", "0003"]
    blob.commit_block_list([BlobBlock(f"{n:04}") for n in (1, 3)], metadata={"m": "1"})
    assert blob.download_blob().readall() == b"<1><3>"
    blob.stage_block("0009", b"<9>")
    blob.commit_block_list([BlobBlock("0009"), BlobBlock("0003"), BlobBlock("0009")])
    assert blob.download_blob().readall() == b"<9><3><9>"
    assert code_of(blob.commit_block_list, [BlobBlock("0007")]) == (400, "InvalidBlockList")
    assert blob.download_blob().readall() == b"<9><3><9>"


def test_concurrent_uploads_of_one_blob_are_never_mixed(con):
    values = [bytes([65 + i]) * 200_000 for i in range(4)]

    def write(value):
        for _ in range(5):
            con.upload_blob("raced", value, overwrite=True)

    writers = [threading.Thread(target=write, args=(value,)) for value in values]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        try:
            seen.add(con.download_blob("raced").readall())
        except ResourceNotFoundError:
            pass
    for writer in writers:
        writer.join()
    seen.add(con.download_blob("raced").readall())
    assert seen <= set(values)


def test_metadata_headers_tags_and_tier(con):
    blob = con.upload_blob("facts", b"1", tags={"project": "yard"})
    before = blob.get_blob_properties()
    blob.set_blob_metadata({"a": "1", "a_b": "2", "UPPER": "3"})
    after = blob.get_blob_properties()
    assert after.metadata == {"a": "1", "a_b": "2", "UPPER": "3"} and after.etag != before.etag
    blob.set_http_headers(ContentSettings(content_type="text/x", content_md5=bytearray(16)))
    after = blob.get_blob_properties()
    assert after.content_settings.content_type == "text/x"
    assert bytes(after.content_settings.content_md5) == bytes(16)

    assert blob.get_blob_tags() == {"project": "yard"}
    blob.set_blob_tags({"run": "7", "stage": "eval +-./:=_"})
    assert blob.get_blob_tags() == {"run": "7", "stage": "eval +-./:=_"}
    assert blob.get_blob_properties().etag == after.etag  # tags are beside the blob
    assert blob.get_blob_properties().tag_count == 2
    blob.set_blob_tags(None)
    assert blob.get_blob_tags() == {}

    for tier in (StandardBlobTier.COOL, StandardBlobTier.HOT):
        blob.set_standard_blob_tier(tier)
        assert blob.get_blob_properties().blob_tier == tier
    cool = con.upload_blob("cool", b"1", standard_blob_tier=StandardBlobTier.COOL)
    assert cool.get_blob_properties().blob_tier == "Cool"


def test_conditions(con):
    blob = con.upload_blob("when", b"1")
    first = blob.get_blob_properties()
    blob.upload_blob(b"2", overwrite=True, etag=first.etag, match_condition=MatchConditions.IfNotModified)
    with pytest.raises(ResourceModifiedError) as caught:
        blob.upload_blob(b"3", overwrite=True, etag=first.etag,
                         match_condition=MatchConditions.IfNotModified)
    assert (caught.value.status_code, caught.value.error_code) == (412, "ConditionNotMet")
    now = blob.get_blob_properties()
    assert code_of(blob.get_blob_properties, etag=now.etag,
                   match_condition=MatchConditions.IfModified)[0] == 304
    assert code_of(blob.delete_blob, if_unmodified_since=now.last_modified
                   - datetime.timedelta(seconds=1)) == (412, "ConditionNotMet")
    # The second in which it was written counts as unmodified.
    assert blob.download_blob(if_unmodified_since=now.last_modified).readall() == b"2"
    assert code_of(blob.upload_blob, b"4") == (409, "BlobAlreadyExists")
    tagged = con.upload_blob("tagged", b"1", tags={"a": "1"})
    assert tagged.download_blob(if_tags_match_condition="\"a\"='1'").readall() == b"1"
    assert code_of(tagged.download_blob, if_tags_match_condition="\"a\"='2'") == (412, "ConditionNotMet")
    blob.delete_blob(etag=now.etag, match_condition=MatchConditions.IfNotModified)


def test_leases(con):
    blob = con.upload_blob("leased", b"1")
    lease = blob.acquire_lease(lease_duration=15)
    assert code_of(blob.upload_blob, b"2", overwrite=True) == (412, "LeaseIdMissing")
    assert code_of(blob.delete_blob) == (412, "LeaseIdMissing")
    assert code_of(blob.delete_blob, lease=str(uuid.uuid4())) == (412, "LeaseIdMismatchWithBlobOperation")
    assert code_of(blob.acquire_lease) == (409, "LeaseAlreadyPresent")
    assert blob.download_blob().readall() == b"1"
    blob.upload_blob(b"2", overwrite=True, lease=lease)
    assert blob.get_blob_properties().lease.status == "locked"
    lease.renew()
    changed = str(uuid.uuid4())
    lease.change(changed)
    assert lease.id == changed
    lease.release()
    endless = BlobLeaseClient(blob)
    endless.acquire(lease_duration=-1)
    assert blob.get_blob_properties().lease.duration == "infinite"
    assert endless.break_lease() == 0
    assert blob.get_blob_properties().lease.state == "broken"
    blob.delete_blob()


def test_snapshots(con):
    blob = con.upload_blob("snapped", b"old", metadata={"v": "1"})
    snapshot = blob.create_snapshot()["snapshot"]
    blob.upload_blob(b"new", overwrite=True)
    old = con.get_blob_client("snapped", snapshot=snapshot)
    assert old.download_blob().readall() == b"old" and old.get_blob_properties().metadata == {"v": "1"}
    assert blob.download_blob().readall() == b"new"
    listed = [(b.name, b.snapshot) for b in con.list_blobs(include=["snapshots"])]
    assert listed == [("snapped", snapshot), ("snapped", None)]
    assert [b.name for b in con.list_blobs()] == ["snapped"]
    assert code_of(blob.delete_blob) == (409, "SnapshotsPresent")
    blob.delete_blob(delete_snapshots="include")
    assert not old.exists()


# -- append and page blobs --------------------------------------------------------------------------


def test_append_blobs_are_logs(con):
    log = con.get_blob_client("log.txt")
    log.create_append_blob(metadata={"kind": "log"})
    for line in range(20):
        answer = log.append_block(f"line {line}\n", validate_content=True)
    assert answer["blob_append_offset"] and answer["blob_committed_block_count"] == 20
    text = "".join(f"line {line}\n" for line in range(20)).encode()
    assert log.download_blob().readall() == text
    assert code_of(log.append_block, b"x", appendpos_condition=1) == (412, "AppendPositionConditionNotMet")
    assert code_of(log.append_block, b"x", maxsize_condition=len(text)) == (412,
        "MaxBlobSizeConditionNotMet")
    log.append_block(b"end\n", appendpos_condition=len(text), maxsize_condition=len(text) + 4)
    assert log.get_blob_properties().blob_type == BlobType.AppendBlob
    assert code_of(con.get_blob_client("log.txt").stage_block, "0001", b"x") == (409, "InvalidBlobType")
    con.upload_blob("log.txt", b"more\n", blob_type=BlobType.AppendBlob)
    assert log.download_blob().readall() == text + b"end\nmore\n"


def test_concurrent_appends_keep_lines_whole(con):
    log = con.get_blob_client("many.txt")
    log.create_append_blob()

    def write(name):
        for i in range(10):
            log.append_block(f"{name}{i}\n")

    writers = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    lines = log.download_blob().readall().decode().split()
    assert sorted(lines) == sorted(f"{name}{i}" for name in "abc" for i in range(10))
    assert [l for l in lines if l[0] == "b"] == [f"b{i}" for i in range(10)]


def test_page_blobs(con):
    page = con.get_blob_client("disk.vhd")
    page.create_page_blob(4096, sequence_number=3)
    page.upload_page(b"A" * 512, offset=512, length=512)
    page.upload_page(b"B" * 1024, offset=2048, length=1024)
    assert page.download_blob().readall() == (
        bytes(512) + b"A" * 512 + bytes(1024) + b"B" * 1024 + bytes(1024))
    assert [(r.start, r.end, r.cleared) for r in page.list_page_ranges()] == [
        (512, 1023, False), (2048, 3071, False)]
    page.clear_page(offset=2048, length=512)
    assert [(r.start, r.end) for r in page.list_page_ranges()] == [(512, 1023), (2560, 3071)]
    page.resize_blob(1024)
    assert page.get_blob_properties().size == 1024
    assert code_of(page.create_page_blob, 100)[0] == 400


# -- copies -----------------------------------------------------------------------------------------


def test_copies_within_the_yard(con, account, service):
    source = con.upload_blob("from/a", b"content", metadata={"m": "1"},
                             content_settings=ContentSettings(content_type="text/x"))
    copy = con.get_blob_client("to/a")
    answer = copy.start_copy_from_url(source.url)
    assert answer["copy_status"] == "success" and answer["copy_id"]
    properties = copy.get_blob_properties()
    assert properties.metadata == {"m": "1"} and properties.content_settings.content_type == "text/x"
    assert (properties.copy.status, properties.copy.source) == ("success", source.url)
    assert copy.download_blob().readall() == b"content"

    # Another account of the same yard wants a signature in the source's address.
    other = make_account(account.yard, "otheraccount")
    with BlobServiceClient.from_connection_string(other.connection_string(), **EAGER) as there:
        target = there.create_container("target").get_blob_client("b")
        assert code_of(target.start_copy_from_url, source.url)[0] in (403, 404)
        sas = generate_blob_sas(account.name, con.container_name, "from/a", account_key=account.key,
                                permission="r", expiry=soon())
        target.start_copy_from_url(f"{source.url}?{sas}", requires_sync=True, metadata={"n": "2"})
        assert target.download_blob().readall() == b"content"
        assert target.get_blob_properties().metadata == {"n": "2"}
        third = there.get_blob_client("target", "c")
        third.upload_blob_from_url(f"{source.url}?{sas}")
        assert third.download_blob().readall() == b"content"
        pieces = there.get_blob_client("target", "d")
        pieces.stage_block_from_url("0001", f"{source.url}?{sas}", source_offset=0, source_length=3)
        pieces.stage_block_from_url("0002", f"{source.url}?{sas}", source_offset=5, source_length=2)
        pieces.commit_block_list([BlobBlock("0002"), BlobBlock("0001")])
        assert pieces.download_blob().readall() == b"ntcon"
    assert code_of(copy.start_copy_from_url, "http://169.254.169.254/latest/meta-data")[0] in (400, 403,
        404)
    assert code_of(copy.abort_copy, answer["copy_id"]) == (409, "NoPendingCopyOperation")


def test_batches(con):
    names = [f"batch/{i} ü%" for i in range(5)]
    for name in names:
        con.upload_blob(name, b"1")
    answers = list(con.delete_blobs(*names[:3], "batch/missing", raise_on_any_failure=False))
    assert [a.status_code for a in answers] == [202, 202, 202, 404]
    assert [b.name for b in con.list_blobs()] == sorted(names[3:])
    answers = con.set_standard_blob_tier_blobs(StandardBlobTier.COOL, *names[3:])
    assert [a.status_code for a in answers] == [200, 200]
    assert {b.blob_tier for b in con.list_blobs()} == {"Cool"}


# -- names and lists --------------------------------------------------------------------------------

# Segments "." and ".." are missing: the SDK's own HTTP library takes them out of the address.
NAMES = [
    "plain", "ünïcödé/漢字/emoji 🚂", "e\u0301 decomposed", "\u00e9 composed", "with space", " lead", "trail ",
    "per%cent", "%41", "%2F", "%2e%2e", "question?x=1&y=2", "hash#frag", "plus+plus", "quote\"double",
    "it's", "a;b", "a:b", "a|b", "a*b", "a<b>&amp;c", "trailing/", "trailing//", "double//slash",
    "triple///x", "...", "ends.", "ends./x.", ".hidden",
    "~", "$x", "@at", "[b]", "{b}", "^", "`tick`", "tab\there", "x" * 255, "y" * 256,
    "/".join("z" * 100 for _ in range(10)),
    "é" * 500, "1" * 1024, "漢" * 1024, "🚂" * 1024, "CON", "con.txt", "UPPER", "upper", "a", "a/b", "a/b/c",
    "-x", "\u007f",
]


def test_names_contain_anything(con):
    for i, name in enumerate(NAMES):
        con.upload_blob(name, str(i).encode())
    in_order = sorted(NAMES, key=lambda name: name.encode())
    assert [b.name for b in con.list_blobs()] == in_order
    pages = [[b.name for b in page] for page in con.list_blobs(results_per_page=7).by_page()]
    assert sum(pages, []) == in_order and {len(p) for p in pages[:-1]} == {7}
    for i, name in enumerate(NAMES):
        blob = con.get_blob_client(name)
        assert blob.download_blob().readall() == str(i).encode(), name
        assert blob.get_blob_properties().name == name
        assert name in [b.name for b in con.list_blobs(name_starts_with=name)]
    for name in NAMES:
        con.delete_blob(name)
    assert list(con.list_blobs()) == []


def test_a_backslash_is_a_slash(con):
    con.upload_blob("back\\slash", b"1")
    assert [b.name for b in con.list_blobs()] == ["back/slash"]
    assert con.download_blob("back/slash").readall() == b"1"


def test_walking_by_hierarchy(con):
    for name in ("a.txt", "dir/1", "dir/2", "dir/sub/3", "dir//4", "other/x", "z"):
        con.upload_blob(name, b"1", metadata={"n": "1"})
    top = [(type(i).__name__, i.name) for i in con.walk_blobs()]
    # The SDK itself puts the prefixes of a page before its blobs.
    assert top == [("BlobPrefix", "dir/"), ("BlobPrefix", "other/"), ("BlobProperties", "a.txt"),
                   ("BlobProperties", "z")]
    inside = [i.name for i in con.walk_blobs("dir/")]
    assert inside == ["dir//", "dir/sub/", "dir/1", "dir/2"]
    assert [i.name for i in con.walk_blobs("dir//")] == ["dir//4"]
    pages = con.walk_blobs(results_per_page=2).by_page()
    assert [[i.name for i in page] for page in pages] == [["dir/", "a.txt"], ["other/", "z"]]
    deep = [i for i in con.walk_blobs() if isinstance(i, BlobPrefix)]
    assert [i.name for i in deep[0]] == inside  # a prefix can be walked on
    assert [b.metadata for b in con.list_blobs("other/", include=["metadata"])] == [{"n": "1"}]


# -- signatures -------------------------------------------------------------------------------------


def test_account_sas(con, account):
    con.upload_blob("b", b"1")

    def client(**changes):
        facts = dict(resource_types=ResourceTypes(service=True, container=True, object=True),
                     permission=AccountSasPermissions(read=True, list=True), expiry=soon())
        sas = generate_account_sas(account.name, account.key, **{**facts, **changes})
        return BlobServiceClient(account.blob, AzureSasCredential(sas))

    reader = client()
    there = reader.get_container_client(con.container_name)
    assert [b.name for b in there.list_blobs()] == ["b"] and there.download_blob("b").readall() == b"1"
    assert con.container_name in [c.name for c in reader.list_containers()]
    assert code_of(there.upload_blob, "c", b"2") == (403, "AuthorizationPermissionMismatch")
    assert code_of(there.delete_blob, "b") == (403, "AuthorizationPermissionMismatch")
    for changes, code in [
        ({"expiry": soon(-1)}, "AuthenticationFailed"),
        ({"start": soon(1), "expiry": soon(2)}, "AuthenticationFailed"),
        ({"resource_types": ResourceTypes(service=True)}, "AuthorizationResourceTypeMismatch"),
        ({"ip": "10.1.2.3"}, "AuthorizationSourceIPMismatch"),
        ({"protocol": "https"}, "AuthorizationProtocolMismatch"),
    ]:
        blob = client(**changes).get_blob_client(con.container_name, "b")
        assert code_of(blob.download_blob) == (403, code), changes
    ours = client(ip="127.0.0.1-127.0.0.9", start=soon(-1), protocol="https,http")
    assert ours.get_blob_client(con.container_name, "b").download_blob().readall() == b"1"
    by_cli = BlobServiceClient(account.blob, account.sas())
    by_cli.get_blob_client(con.container_name, "c").upload_blob(b"2")


def test_container_and_blob_sas(con, account):
    con.upload_blob("dir/b ü", b"1")
    con.upload_blob("other", b"2")
    sas = generate_container_sas(account.name, con.container_name, account.key, expiry=soon(),
                                 permission=ContainerSasPermissions(read=True, list=True))
    there = ContainerClient.from_container_url(f"{con.url}?{sas}")
    assert [b.name for b in there.list_blobs()] == ["dir/b ü", "other"]
    assert there.download_blob("other").readall() == b"2"
    assert code_of(there.upload_blob, "x", b"") == (403, "AuthorizationPermissionMismatch")
    elsewhere = BlobServiceClient(account.blob, sas).get_container_client("not-" + con.container_name)
    assert code_of(elsewhere.list_blobs().next)[0] == 403

    facts = dict(account_key=account.key, permission=BlobSasPermissions(read=True), expiry=soon())
    sas = generate_blob_sas(account.name, con.container_name, "dir/b ü", content_type="text/x",
                            content_disposition="attachment; filename=x", cache_control="no-cache", **facts)
    blob = BlobClient(account.blob, con.container_name, "dir/b ü", credential=sas)
    got = blob.download_blob()
    assert got.readall() == b"1" and got.properties.content_settings.content_type == "text/x"
    assert got.properties.content_settings.content_disposition == "attachment; filename=x"
    wrong = BlobClient(account.blob, con.container_name, "other", credential=sas)
    assert code_of(wrong.download_blob) == (403, "AuthenticationFailed")
    assert code_of(blob.delete_blob) == (403, "AuthorizationPermissionMismatch")

    snapshot = con.get_blob_client("other").create_snapshot()["snapshot"]
    con.upload_blob("other", b"3", overwrite=True)
    sas = generate_blob_sas(account.name, con.container_name, "other", snapshot=snapshot, **facts)
    old = BlobClient(account.blob, con.container_name, "other", snapshot=snapshot, credential=sas)
    assert old.download_blob().readall() == b"2"
    assert code_of(BlobClient(account.blob, con.container_name, "other",
                              credential=sas).download_blob)[0] == 403


def test_create_without_write_makes_new_blobs_only(con, account):
    sas = generate_container_sas(account.name, con.container_name, account.key, expiry=soon(),
                                 permission="c")
    there = ContainerClient.from_container_url(f"{con.url}?{sas}")
    there.upload_blob("new", b"1")
    assert code_of(there.upload_blob, "new", b"2", overwrite=True)[0] in (403, 409)
    assert con.download_blob("new").readall() == b"1"


def test_a_revoked_policy_works_at_the_next_request(con, account):
    con.upload_blob("b", b"1")
    policy = AccessPolicy(permission="rl", expiry=soon(), start=soon(-1))
    con.set_container_access_policy({"readers": policy, "äöü": AccessPolicy(permission="r")})
    kept = con.get_container_access_policy()
    assert [i.id for i in kept["signed_identifiers"]] == ["readers", "äöü"]
    assert kept["signed_identifiers"][0].access_policy.permission == "rl"
    sas = generate_container_sas(account.name, con.container_name, account.key, policy_id="readers")
    there = ContainerClient.from_container_url(f"{con.url}?{sas}")
    assert there.download_blob("b").readall() == b"1"
    assert code_of(there.delete_blob, "b") == (403, "AuthorizationPermissionMismatch")
    con.set_container_access_policy({"readers": AccessPolicy(permission="l", expiry=soon())})
    assert code_of(there.download_blob, "b") == (403, "AuthorizationPermissionMismatch")
    assert [b.name for b in there.list_blobs()] == ["b"]
    con.set_container_access_policy({"readers": AccessPolicy(permission="rl", expiry=soon(-1))})
    assert code_of(there.download_blob, "b") == (403, "AuthenticationFailed")
    con.set_container_access_policy({})
    assert code_of(there.download_blob, "b") == (403, "AuthenticationFailed")
    assert con.download_blob("b").readall() == b"1"


class YardToken:
    """The yard's own token as an Azure credential."""

    def __init__(self, token):
        self.token = token

    def get_token(self, *scopes, **more):
        return AccessToken(self.token, int(soon().timestamp()))


@pytest.fixture
def by_token(yard, account):
    url = account.secure(account.blob)
    with BlobServiceClient(url, YardToken(yard.token), connection_verify=yard.ca_file) as client:
        yield client


def test_the_token_of_the_yard_over_tls(by_token, con, yard, account):
    there = by_token.get_container_client(con.container_name)
    there.upload_blob("b", b"1")
    assert [b.name for b in there.list_blobs()] == ["b"]
    wrong = BlobServiceClient(account.secure(account.blob), YardToken("wrong"),
                              connection_verify=yard.ca_file)
    assert code_of(wrong.list_containers().next)[0] == 401


def test_user_delegation_sas(by_token, con, yard, account):
    con.upload_blob("b", b"1")
    con.upload_blob("c", b"2")
    key = by_token.get_user_delegation_key(soon(-1), soon())
    facts = dict(user_delegation_key=key, expiry=soon())
    sas = generate_blob_sas(account.name, con.container_name, "b", permission="r", **facts)
    blob = BlobClient(account.blob, con.container_name, "b", credential=sas)
    assert blob.download_blob().readall() == b"1"
    assert code_of(BlobClient(account.blob, con.container_name, "c",
                              credential=sas).download_blob)[0] == 403
    assert code_of(blob.delete_blob) == (403, "AuthorizationPermissionMismatch")
    sas = generate_container_sas(account.name, con.container_name, permission="rl", **facts)
    there = ContainerClient.from_container_url(f"{con.url}?{sas}")
    assert [b.name for b in there.list_blobs()] == ["b", "c"]
    key.value = base64.b64encode(bytes(32)).decode()
    sas = generate_blob_sas(account.name, con.container_name, "b", permission="r", **facts)
    assert code_of(BlobClient(account.blob, con.container_name, "b", credential=sas).download_blob) == (
        403, "AuthenticationFailed")


def test_a_wrong_key_opens_nothing(account, con):
    text = account.connection_string().replace(account.key, base64.b64encode(bytes(64)).decode())
    with BlobServiceClient.from_connection_string(text) as stranger:
        with pytest.raises(ClientAuthenticationError) as caught:
            stranger.create_container("forged")
    assert (caught.value.status_code, caught.value.error_code) == (403, "AuthenticationFailed")


def test_keys_rotate(yard):
    account = make_account(yard, "rotateaccount")
    old = BlobServiceClient.from_connection_string(account.connection_string(), **EAGER)
    old.create_container("mine")
    sas = BlobServiceClient(account.blob, account.sas())
    assert sas.get_container_client("mine").exists()
    yard.run("storage", "account", "keys", "renew", "-g", "storage", "-n", account.name, "--key", "key1")
    assert code_of(old.get_container_client("mine").get_container_properties)[0] == 403
    assert code_of(sas.get_container_client("mine").get_container_properties)[0] == 403
    keys = yard.rest("POST", f"{yard.subscription}/resourceGroups/storage/providers/Microsoft.Storage"
                             f"/storageAccounts/{account.name}/listKeys").json()["keys"]
    assert keys[0]["value"] != account.key
    account.key = keys[0]["value"]
    new = BlobServiceClient.from_connection_string(account.connection_string(), **EAGER)
    assert new.get_container_client("mine").exists()


def test_tls_with_the_yards_authority(account, yard):
    text = account.connection_string(secure=True)
    with BlobServiceClient.from_connection_string(text, connection_verify=yard.ca_file) as client:
        con = client.create_container("overtls")
        con.upload_blob("b", os.urandom(3 << 20))
        assert len(con.download_blob("b").readall()) == 3 << 20

# SPDX-License-Identifier: Apache-2.0
"""Debian's python3-azure-storage, unmodified, on file shares."""
import base64
import datetime
import hashlib
import os
import uuid

import pytest

pytest.importorskip("azure.storage.fileshare", reason="python3-azure-storage is not installed")
from azure.core.exceptions import HttpResponseError, ResourceExistsError
from azure.storage.fileshare import (
    AccessPolicy, AccountSasPermissions, ContentSettings, FileSasPermissions, NTFSAttributes,
    ResourceTypes, ShareClient, ShareDirectoryClient, ShareFileClient, ShareSasPermissions,
    ShareServiceClient, generate_account_sas, generate_file_sas, generate_share_sas,
)

from storage_account import make_account

EAGER = {"retry_total": 0}  # what goes wrong once must be seen


def soon(hours=1):
    return datetime.datetime.utcnow() + datetime.timedelta(hours=hours)


@pytest.fixture(scope="module")
def account(yard):
    return make_account(yard, "pythonfiles")


@pytest.fixture(scope="module")
def service(account):
    with ShareServiceClient.from_connection_string(account.connection_string(), **EAGER) as client:
        yield client


@pytest.fixture
def share(service):
    return service.create_share("s" + uuid.uuid4().hex[:20])


def code_of(call, *args, **options):
    with pytest.raises(HttpResponseError) as caught:
        call(*args, **options)
    return caught.value.status_code, caught.value.error_code


# -- shares -----------------------------------------------------------------------------------------


def test_shares_from_creation_to_deletion(service):
    name = "life" + uuid.uuid4().hex[:8]
    share = service.create_share(name, metadata={"owner": "me"}, quota=3)
    with pytest.raises(ResourceExistsError) as caught:
        service.create_share(name)
    assert caught.value.error_code == "ShareAlreadyExists"
    properties = share.get_share_properties()
    assert (properties.quota, properties.metadata) == (3, {"owner": "me"})
    share.set_share_quota(5)
    share.set_share_metadata({"new": "1"})
    listed = list(service.list_shares(name_starts_with="life", include_metadata=True))
    assert [(s.name, s.quota, s.metadata) for s in listed] == [(name, 5, {"new": "1"})]
    share.get_file_client("f").upload_file(bytes(1000))
    assert share.get_share_stats() >= 0
    share.delete_share()
    assert code_of(share.get_share_properties) == (404, "ShareNotFound")
    service.create_share(name).delete_share()


def test_shares_come_in_pages(service):
    names = [f"pages-{i}" for i in range(5)]
    for name in names:
        service.create_share(name)
    pages = service.list_shares(name_starts_with="pages-", results_per_page=2).by_page()
    assert [[s.name for s in page] for page in pages] == [names[:2], names[2:4], names[4:]]


def test_service_properties(service):
    seen = service.get_service_properties()
    assert "cors" in seen
    service.set_service_properties(cors=[])


def test_the_quota_is_kept(service):
    share = service.create_share("quota" + uuid.uuid4().hex[:8], quota=1)
    full = share.get_file_client("full")
    assert code_of(full.create_file, (1 << 30) + 1) == (403, "ShareSizeLimitReached")
    full.create_file(1 << 30)
    assert code_of(share.get_file_client("more").create_file, 1) == (403, "ShareSizeLimitReached")
    assert code_of(full.resize_file, (1 << 30) + 1) == (403, "ShareSizeLimitReached")
    share.set_share_quota(2)
    share.get_file_client("more").create_file(1)
    share.delete_share()


def test_a_leased_share_is_not_deleted(share):
    lease = share.acquire_lease(lease_duration=15)
    assert code_of(share.delete_share)[0] == 412
    lease.release()
    share.delete_share()


# -- directories and files ------------------------------------------------------------------------


def test_directories_from_creation_to_deletion(share):
    top = share.create_directory("top", metadata={"a": "1"})
    assert code_of(share.create_directory, "top") == (409, "ResourceAlreadyExists")
    sub = top.create_subdirectory("sub ü")
    assert sub.exists() and top.get_directory_properties().metadata == {"a": "1"}
    top.set_directory_metadata({"b": "2"})
    assert top.get_directory_properties().metadata == {"b": "2"}
    assert code_of(share.delete_directory, "top") == (409, "DirectoryNotEmpty")
    assert code_of(share.create_directory, "no/parent") == (404, "ParentNotFound")
    top.delete_subdirectory("sub ü")
    share.delete_directory("top")
    assert not top.exists()


def test_a_file_goes_up_and_comes_down(share):
    data = os.urandom(300_000)
    share.create_directory("d")
    file = share.get_file_client("d/f.bin")
    settings = ContentSettings(content_type="image/jpeg", cache_control="no-store",
                               content_md5=bytearray(hashlib.md5(data).digest()))
    file.upload_file(data, metadata={"k": "v"}, content_settings=settings)
    assert file.download_file().readall() == data
    properties = file.get_file_properties()
    assert properties.size == len(data) and properties.metadata == {"k": "v"}
    assert properties.content_settings.content_type == "image/jpeg"
    assert properties.last_write_time and properties.creation_time and properties.file_attributes
    assert file.download_file(offset=100, length=50).readall() == data[100:150]
    assert code_of(file.download_file, offset=len(data), length=1) == (416, "InvalidRange")
    file.set_file_metadata({"n": "1"})
    file.set_http_headers(ContentSettings(content_type="text/x"))
    properties = file.get_file_properties()
    assert properties.metadata == {"n": "1"} and properties.content_settings.content_type == "text/x"
    file.delete_file()
    assert code_of(file.get_file_properties)[0] == 404


def test_a_missing_directory_is_said(share):
    file = share.get_file_client("missing/f")
    assert code_of(file.upload_file, b"1") == (404, "ParentNotFound")


def test_twenty_megabytes_in_ranges(share):
    unit = os.urandom(1 << 20)
    data = b"".join(unit[i:] + unit[:i] for i in range(20)) + b"end"
    file = share.get_file_client("big")
    file.upload_file(data, max_concurrency=4)
    got = file.download_file(max_concurrency=4).readall()
    assert hashlib.sha256(got).digest() == hashlib.sha256(data).digest()


def test_ranges_are_written_cleared_and_listed(share):
    file = share.get_file_client("sparse")
    file.create_file(1 << 20)
    assert file.get_ranges() == []
    file.upload_range(b"A" * 4096, 4096, 4096, validate_content=True)
    file.upload_range(b"B" * 512, 65536, 512)
    data = bytearray(1 << 20)
    data[4096:8192], data[65536:66048] = b"A" * 4096, b"B" * 512
    assert file.download_file().readall() == bytes(data)
    assert file.get_ranges()[0]["start"] == 4096
    file.clear_range(4096, 4096)
    data[4096:8192] = bytes(4096)
    assert file.download_file().readall() == bytes(data)
    assert code_of(file.upload_range, b"C" * 512, (1 << 20) - 256, 512)[0] in (400, 416)
    file.resize_file(100)
    assert file.download_file().readall() == bytes(100)
    source = share.get_file_client("source")
    source.upload_file(b"0123456789")
    assert file.get_file_properties().size == 100


def test_smb_properties(share):
    when = datetime.datetime(2020, 5, 17, 10, 11, 12, 123456)
    file = share.get_file_client("smb")
    file.create_file(10, file_attributes=NTFSAttributes(read_only=True, archive=True),
                     file_creation_time=when, file_last_write_time=when)
    properties = file.get_file_properties()
    assert "ReadOnly" in str(properties.file_attributes)
    assert str(properties.creation_time).startswith("2020-05-17")
    key = share.create_permission_for_share("O:BAG:BAD:(A;;FA;;;SY)")
    assert share.get_permission_for_share(key) == "O:BAG:BAD:(A;;FA;;;SY)"
    keyed = share.get_file_client("keyed")
    keyed.create_file(1, permission_key=key)
    assert keyed.get_file_properties().permission_key == key


def test_lists_of_files(share):
    names = ["a.txt", "b ü.txt", "漢字", "plus+", "per%cent", "semi;colon", "it's", "#hash", "&amp;",
             "x" * 200]
    share.create_directory("d")
    share.create_directory("d/sub")
    for name in names:
        share.get_file_client(f"d/{name}").upload_file(name.encode())
    listed = list(share.list_directories_and_files("d"))
    assert sorted(i["name"] for i in listed if not i["is_directory"]) == sorted(names)
    assert [i["name"] for i in listed if i["is_directory"]] == ["sub"]
    sizes = {i["name"]: i["size"] for i in listed if not i["is_directory"]}
    assert sizes == {name: len(name.encode()) for name in names}
    for name in names:
        assert share.get_file_client(f"d/{name}").download_file().readall() == name.encode()
    directory = share.get_directory_client("d")
    pages = [[i["name"] for i in page] for page in
             directory.list_directories_and_files(results_per_page=4).by_page()]
    assert sorted(sum(pages, [])) == sorted(names + ["sub"]) and max(map(len, pages)) == 4
    assert [i["name"] for i in directory.list_directories_and_files(name_starts_with="b")] == ["b ü.txt"]
    detailed = list(directory.list_directories_and_files(
        name_starts_with="a", include=["timestamps", "Etag", "Attributes", "PermissionKey"]))
    assert detailed[0].etag and detailed[0].last_write_time


def test_names_are_kept_but_compared_without_case(share):
    share.get_file_client("Mixed.TXT").upload_file(b"1")
    assert share.get_file_client("mixed.txt").download_file().readall() == b"1"
    assert [i["name"] for i in share.list_directories_and_files()] == ["Mixed.TXT"]


@pytest.mark.parametrize("name", ["a:b", "a*b", "a|b", 'a"b', "a<b", "a>b"])
def test_names_that_no_share_takes(share, name):
    status, code = code_of(share.get_file_client(name).create_file, 1)
    assert (status, code) == (400, "InvalidResourceName")


def test_files_and_directories_are_renamed(share):
    share.create_directory("a")
    file = share.get_file_client("a/f")
    file.upload_file(b"1", metadata={"k": "v"})
    moved = file.rename_file("a/g ü")
    assert moved.download_file().readall() == b"1" and moved.get_file_properties().metadata == {"k": "v"}
    assert code_of(file.get_file_properties)[0] == 404
    share.get_file_client("a/h").upload_file(b"2")
    assert code_of(moved.rename_file, "a/h") == (409, "ResourceAlreadyExists")
    moved.rename_file("a/h", overwrite=True)
    assert share.get_file_client("a/h").download_file().readall() == b"1"
    share.get_directory_client("a").rename_directory("b")
    assert share.get_file_client("b/h").download_file().readall() == b"1"


def test_copies_within_the_yard(share, account):
    source = share.get_file_client("from")
    source.upload_file(b"content", metadata={"m": "1"})
    copy = share.get_file_client("to")
    assert copy.start_copy_from_url(source.url)["copy_status"] == "success"
    assert copy.download_file().readall() == b"content"
    assert copy.get_file_properties().copy.status == "success"
    sas = generate_file_sas(account.name, share.share_name, ["from"], account_key=account.key,
                            permission="r", expiry=soon())
    target = share.get_file_client("ranged")
    target.create_file(4)
    target.upload_range_from_url(f"{source.url}?{sas}", offset=0, length=4, source_offset=2)
    assert target.download_file().readall() == b"nten"
    assert code_of(copy.start_copy_from_url, "http://169.254.169.254/latest/meta-data")[0] in (400, 403,
        404)


def test_leases_of_files(share):
    file = share.get_file_client("leased")
    file.upload_file(b"1")
    lease = file.acquire_lease()
    assert code_of(file.delete_file)[0] == 412
    file.delete_file(lease=lease)


def test_handles(share):
    share.create_directory("d")
    assert list(share.get_directory_client("d").list_handles(recursive=True)) == []
    assert share.get_directory_client("d").close_all_handles() == {
        "closed_handles_count": 0, "failed_handles_count": 0}


def test_what_a_job_writes_is_there_at_once(share, account):
    """The folder of a share is the share."""
    [folder] = [p for p in account.folder.rglob(share.share_name) if p.is_dir()]
    tree = folder / "tree" if (folder / "tree").is_dir() else folder
    share.create_directory("out")
    (tree / "out" / "model.bin").write_bytes(b"weights")
    assert [i["name"] for i in share.list_directories_and_files("out")] == ["model.bin"]
    assert share.get_file_client("out/model.bin").download_file().readall() == b"weights"
    share.get_file_client("out/back").upload_file(b"other way")
    assert (tree / "out" / "back").read_bytes() == b"other way"


# -- signatures -------------------------------------------------------------------------------------


def test_signatures_of_every_kind(share, account):
    share.create_directory("d")
    share.get_file_client("d/f ü").upload_file(b"1")
    share.get_file_client("g").upload_file(b"2")

    sas = generate_account_sas(account.name, account.key,
                               ResourceTypes(service=True, container=True, object=True),
                               AccountSasPermissions(read=True, list=True), soon())
    service = ShareServiceClient(account.file, sas)
    assert share.share_name in [s.name for s in service.list_shares()]
    there = service.get_share_client(share.share_name)
    assert there.get_file_client("g").download_file().readall() == b"2"
    assert code_of(there.get_file_client("g").delete_file) == (403, "AuthorizationPermissionMismatch")

    sas = generate_share_sas(account.name, share.share_name, account.key, expiry=soon(),
                             permission=ShareSasPermissions(read=True, list=True))
    there = ShareClient.from_share_url(f"{share.url}?{sas}")
    assert {i["name"] for i in there.list_directories_and_files()} == {"d", "g"}
    assert there.get_file_client("d/f ü").download_file().readall() == b"1"
    assert code_of(there.create_directory, "x")[0] == 403
    assert code_of(there.delete_share)[0] == 403

    sas = generate_file_sas(account.name, share.share_name, ["d", "f ü"], account_key=account.key,
                            permission=FileSasPermissions(read=True), expiry=soon(), content_type="text/x")
    file = ShareFileClient(account.file, share.share_name, "d/f ü", credential=sas)
    got = file.download_file()
    assert got.readall() == b"1" and got.properties.content_settings.content_type == "text/x"
    assert code_of(ShareFileClient(account.file, share.share_name, "g",
                                   credential=sas).download_file)[0] == 403
    assert code_of(file.delete_file)[0] == 403


def test_a_revoked_policy_works_at_the_next_request(share, account):
    share.get_file_client("f").upload_file(b"1")
    share.set_share_access_policy({"readers": AccessPolicy(permission="rl", expiry=soon())})
    kept = share.get_share_access_policy()["signed_identifiers"]
    assert [(i.id, i.access_policy.permission) for i in kept] == [("readers", "rl")]
    sas = generate_share_sas(account.name, share.share_name, account.key, policy_id="readers")
    there = ShareClient.from_share_url(f"{share.url}?{sas}")
    assert there.get_file_client("f").download_file().readall() == b"1"
    share.set_share_access_policy({})
    assert code_of(there.get_file_client("f").download_file) == (403, "AuthenticationFailed")


def test_a_wrong_key_opens_nothing(account):
    text = account.connection_string().replace(account.key, base64.b64encode(bytes(64)).decode())
    with ShareServiceClient.from_connection_string(text) as stranger:
        assert code_of(stranger.create_share, "forged") == (403, "AuthenticationFailed")


def test_tls_with_the_yards_authority(account, yard):
    text = account.connection_string(secure=True)
    with ShareServiceClient.from_connection_string(text, connection_verify=yard.ca_file) as client:
        file = client.create_share("overtls").get_file_client("f")
        file.upload_file(bytes(3 << 20))
        assert file.download_file().readall() == bytes(3 << 20)

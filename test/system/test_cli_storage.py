# SPDX-License-Identifier: Apache-2.0
"""The verbs for data against a real daemon: containers, blobs, shares, folders, files."""
import base64
import hashlib
import json
import os
import re
import urllib.request

import pytest

from storage_account import assert_same, make_account, make_tree, read_tree

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00$")


@pytest.fixture(scope="module")
def account(yard):
    return make_account(yard, "clistore")


@pytest.fixture(scope="module")
def storage(yard, account):
    """storage("blob list", "-c", "x") -> the JSON that it prints."""

    def call(words, *args, **options):
        out = yard.run("storage", *words.split(), *args, **options).stdout
        return json.loads(out) if out.strip() else None

    return call


@pytest.fixture(scope="module")
def refused(yard, account):
    def call(status, says, words, *args, **options):
        done = yard.run("storage", *words.split(), *args, check=False, **options)
        assert done.returncode == status, (words, args, done.stderr)
        assert re.search(says, done.stderr), done.stderr
        assert done.stdout == ""

    return call


# -- containers and blobs -------------------------------------------------------------------------


def test_container_life(storage, refused):
    assert storage("container create", "-n", "life", "--metadata", "a=b", "team=vision") == {"created": True}
    assert storage("container create", "-n", "life") == {"created": False}
    refused(1, r"\(ContainerAlreadyExists\)", "container create", "-n", "life", "--fail-on-exist")
    shown = storage("container show", "-n", "life")
    assert shown["name"] == "life" and shown["metadata"] == {"a": "b", "team": "vision"}
    assert TIME.match(shown["properties"]["lastModified"])
    assert shown["properties"]["lease"] == {"duration": None, "state": "available", "status": "unlocked"}
    listed = storage("container list", "--prefix", "li")
    assert [c["name"] for c in listed] == ["life"] and listed[0]["metadata"] == shown["metadata"]
    assert storage("container exists", "-n", "life") == {"exists": True}
    assert storage("container delete", "-n", "life") == {"deleted": True}
    assert storage("container exists", "-n", "life") == {"exists": False}
    assert storage("container delete", "-n", "life") == {"deleted": False}
    refused(3, r"\(ContainerNotFound\)", "container delete", "-n", "life", "--fail-not-exist")
    refused(3, r"\(ContainerNotFound\)", "container show", "-n", "life")
    refused(1, r"\(InvalidResourceName\)", "container create", "-n", "NO")
    refused(2, r"not key=value", "container create", "-n", "life", "--metadata", "nothing")


def test_container_list_is_cut_when_asked(storage):
    for n in range(7):
        storage("container create", "-n", f"many-{n}")
    assert len(storage("container list", "--prefix", "many-", "--num-results", "3")) == 3
    assert len(storage("container list", "--prefix", "many-", "--num-results", "*")) == 7


def test_blob_life(yard, storage, refused):
    path = yard.folder / "cat.jpg"
    path.write_bytes(b"meow")
    storage("container create", "-n", "images")
    name = "train/ä b#?%41.jpg"
    where = ("-c", "images", "-n", name)
    sent = storage("blob upload", *where, "-f", path, "--metadata", "label=cat")
    assert sent["content_md5"] == "SkvkDJasYxTpHZPzgEOmNA==" and sent["etag"].startswith('"0x')
    refused(1, r"\(BlobAlreadyExists\).*--overwrite", "blob upload", *where, "-f", path)
    assert storage("blob upload", *where, "-f", path, "--overwrite", "--metadata", "label=cat")
    shown = storage("blob show", *where)
    assert shown["name"] == name and shown["container"] == "images" and shown["metadata"] == {"label": "cat"}
    content = shown["properties"]
    assert content["contentLength"] == 4 and content["blobType"] == "BlockBlob"
    assert content["contentSettings"]["contentType"] == "image/jpeg"
    assert storage("blob exists", *where) == {"exists": True}
    assert yard.run("storage", "blob", "download", *where).stdout == "meow"
    down = yard.folder / "down.jpg"
    assert storage("blob download", *where, "-f", down)["name"] == name
    assert down.read_bytes() == b"meow"
    url = storage("blob url", *where)
    assert url.endswith("/clistore/images/train/%C3%A4%20b%23%3F%2541.jpg")
    link = storage("blob generate-sas", *where, "--permissions", "r", "--expiry", "2099-01-01T00:00Z",
                   "--full-uri", "--content-type", "text/x-purr")
    with urllib.request.urlopen(link) as answer:
        assert answer.read() == b"meow" and answer.headers["Content-Type"] == "text/x-purr"
    assert storage("blob delete", *where) is None
    assert storage("blob exists", *where) == {"exists": False}
    refused(3, r"\(BlobNotFound\)", "blob delete", *where)
    refused(3, r"\(BlobNotFound\)", "blob show", *where)
    refused(3, r"\(BlobNotFound\)", "blob download", *where, "-f", down)
    refused(3, "no file", "blob upload", "-c", "images", "-f", yard.folder / "none")


def test_a_large_blob_goes_in_pieces(yard, storage):
    path = yard.folder / "large"
    path.write_bytes(os.urandom(20 * 2**20 + 5))
    storage("container create", "-n", "large")
    storage("blob upload", "-c", "large", "-f", path, "--no-progress")
    assert storage("blob show", "-c", "large", "-n", "large")["properties"]["contentLength"] == 20 * 2**20 + 5
    storage("blob download", "-c", "large", "-n", "large", "-f", yard.folder / "larger")
    assert (yard.folder / "larger").read_bytes() == path.read_bytes()


def test_blob_list(yard, storage):
    storage("container create", "-n", "listing")
    for name in ("a.txt", "d/b.txt", "d/e/c.txt"):
        (yard.folder / "x").write_text(name)
        storage("blob upload", "-c", "listing", "-n", name, "-f", yard.folder / "x")
    names = lambda *more: [b["name"] for b in storage("blob list", "-c", "listing", *more)]
    assert names() == ["a.txt", "d/b.txt", "d/e/c.txt"]
    assert names("--prefix", "d/") == ["d/b.txt", "d/e/c.txt"]
    assert sorted(names("--delimiter", "/")) == ["a.txt", "d/"]
    assert names("--num-results", "2") == ["a.txt", "d/b.txt"]
    table = yard.run("storage", "blob", "list", "-c", "listing", "-o", "table").stdout.splitlines()
    assert table[0].split("  ")[0] == "Name" and "Content Type" in table[0] and len(table) == 5


def test_blob_batches(yard, storage):
    source, back = yard.folder / "batch", yard.folder / "batch-back"
    made = make_tree(source, 3)
    storage("container create", "-n", "batch")
    would = yard.run("storage", "blob", "upload-batch", "-s", source, "-d", "batch", "--dryrun").stdout
    assert would.count("DRYRUN: copy ") == len(made) and storage("blob list", "-c", "batch") == []
    sent = storage("blob upload-batch", "-s", source, "-d", "batch", "--destination-path", "in/here",
                   "--metadata", "a=b")
    assert len(sent) == len(made) and set(sent[0]) == {"Blob", "Last Modified", "Type", "eTag"}
    assert {b["name"] for b in storage("blob list", "-c", "batch")} == {f"in/here/{n}" for n in made}
    assert storage("blob show", "-c", "batch", "-n", "in/here/a.txt")["metadata"] == {"a": "b"}
    got = storage("blob download-batch", "-s", "batch/in/here", "-d", back)
    assert got == sorted(made)
    assert_same(back, made)
    part = yard.folder / "batch-part"
    storage("blob download-batch", "-s", "batch", "-d", part, "--pattern", "in/here/train/*.jpg")
    assert sorted(read_tree(part)) == ["in/here/train/0001.jpg", "in/here/train/0002.jpg"]
    storage("blob delete-batch", "-s", "batch", "--pattern", "*.jpg")
    assert len(storage("blob list", "-c", "batch")) == len(made) - 2
    storage("blob delete-batch", "-s", "batch")
    assert storage("blob list", "-c", "batch") == []


# -- shares, folders and files --------------------------------------------------------------------


def test_share_life(storage, refused):
    assert storage("share create", "-n", "scripts", "--quota", "7") == {"created": True}
    assert storage("share create", "-n", "scripts") == {"created": False}
    assert storage("share show", "-n", "scripts")["properties"]["quota"] == 7
    assert "scripts" in [s["name"] for s in storage("share list")]
    assert storage("share exists", "-n", "scripts") == {"exists": True}
    assert storage("share url", "-n", "scripts").endswith("/clistore/scripts")
    assert storage("share delete", "-n", "scripts") == {"deleted": True}
    assert storage("share exists", "-n", "scripts") == {"exists": False}
    refused(2, "--quota", "share create", "-n", "scripts", "--quota", "much")


def test_the_recipes_lines(yard, account, storage):
    """As the Batch AI recipes have them, but for the program's name."""
    (yard.folder / "jobprep_benchmark.sh").write_text("#!/bin/sh\n")
    own = ("--account-name", "clistore")
    assert storage("share create", "-n", "recipes", *own)["created"]
    assert storage("directory create", "-n", "horovod", "-s", "recipes", *own)["created"]
    storage("file upload", "-s", "recipes", "--source", "jobprep_benchmark.sh", "--path", "horovod", *own)
    listed = storage("file list", "-s", "recipes", "-p", "horovod", *own)
    assert [(f["name"], f["type"], f["properties"]["contentLength"]) for f in listed] == [
        ("jobprep_benchmark.sh", "file", 10)]


def test_directory_life(storage, refused):
    storage("share create", "-n", "folders")
    assert storage("directory create", "-s", "folders", "-n", "a") == {"created": True}
    assert storage("directory create", "-s", "folders", "-n", "a/b") == {"created": True}
    assert storage("directory create", "-s", "folders", "-n", "a") == {"created": False}
    refused(3, r"\(ParentNotFound\)", "directory create", "-s", "folders", "-n", "x/y")
    assert [d["name"] for d in storage("directory list", "-s", "folders")] == ["a"]
    assert [d["name"] for d in storage("directory list", "-s", "folders", "-n", "a")] == ["b"]
    refused(1, r"\(DirectoryNotEmpty\)", "directory delete", "-s", "folders", "-n", "a")
    assert storage("directory delete", "-s", "folders", "-n", "a/b") == {"deleted": True}
    assert storage("directory exists", "-s", "folders", "-n", "a/b") == {"exists": False}


def test_file_life(yard, storage, refused):
    text = "x" * 5_000_000  # more than one range
    (yard.folder / "log.txt").write_text(text)
    storage("share create", "-n", "logs")
    where = ("-s", "logs", "-p", "job/one.txt")
    storage("file upload", "-s", "logs", "--source", yard.folder / "log.txt", "--path", "job/one.txt")
    assert storage("file exists", *where) == {"exists": True}
    assert storage("file show", *where)["properties"]["contentLength"] == len(text)
    storage("file download", *where, "--dest", yard.folder / "back.txt")
    assert (yard.folder / "back.txt").read_text() == text
    (yard.folder / "here").mkdir()
    storage("file download", *where, "--dest", yard.folder / "here")
    assert (yard.folder / "here" / "one.txt").read_text() == text
    link = storage("file generate-sas", *where, "--permissions", "r", "--expiry", "2099-01-01", "--full-uri")
    with urllib.request.urlopen(link) as answer:
        assert answer.read().decode() == text
    assert storage("file url", *where).endswith("/clistore/logs/job/one.txt")
    storage("file delete", *where)
    assert storage("file exists", *where) == {"exists": False}
    refused(3, r"\(ResourceNotFound\)", "file delete", *where)
    refused(3, r"\(ResourceNotFound\)", "file download", *where)


def test_file_batches(yard, storage):
    source, back = yard.folder / "fbatch", yard.folder / "fbatch-back"
    made = make_tree(source, 4)
    storage("share create", "-n", "fbatch")
    sent = storage("file upload-batch", "-s", source, "-d", "fbatch", "--destination-path", "in")
    assert len(sent) == len(made) and sent[0].startswith("http")
    assert storage("file download-batch", "-s", "fbatch/in", "-d", back) == sorted(made)
    assert_same(back, made)
    storage("file delete-batch", "-s", "fbatch", "--pattern", "*.jpg")
    assert storage("file exists", "-s", "fbatch", "-p", "in/train/0001.jpg") == {"exists": False}
    assert storage("file exists", "-s", "fbatch", "-p", "in/a.txt") == {"exists": True}


# -- who is asking --------------------------------------------------------------------------------


def test_ways_in(yard, account, storage, refused):
    storage("container create", "-n", "ways")
    nowhere = {"YARD_HOME": str(yard.folder / "nowhere")}
    shown = storage("account show-connection-string", "-n", "clistore")["connectionString"]
    assert f"AccountKey={account.key}" in shown and f"BlobEndpoint={account.blob}/" in shown
    exists = ("container exists", "-n", "ways")
    there = {"exists": True}
    assert storage(*exists, "--connection-string", shown, env=nowhere) == there
    assert storage(*exists, env={**nowhere, "AZURE_STORAGE_CONNECTION_STRING": shown}) == there
    endpoint = ("--blob-endpoint", account.blob)
    assert storage(*exists, "--account-name", "clistore", "--account-key", account.key, *endpoint,
                   env=nowhere) == there
    assert storage(*exists, *endpoint, env={
        **nowhere, "AZURE_STORAGE_ACCOUNT": "clistore", "AZURE_STORAGE_KEY": account.key}) == there
    sas = account.sas("rl", "b", "c")
    assert storage(*exists, "--account-name", "clistore", "--sas-token", "?" + sas) == there
    assert storage(*exists, env={"AZURE_STORAGE_ACCOUNT": "clistore", "AZURE_STORAGE_SAS_TOKEN": sas}) == there
    assert storage(*exists, "--auth-mode", "login") == there
    refused(1, r"\(Authorization", "container create", "-n", "other", "--account-name", "clistore",
            "--sas-token", sas)
    refused(1, r"\(AuthenticationFailed\)", *exists, "--account-name", "clistore", "--account-key",
            "AAAA", *endpoint)
    refused(3, "there is no storage account", *exists, "--account-name", "nobody")
    refused(1, "connection string", *exists, "--connection-string", "AccountName=x")
    refused(1, "no yard is running", *exists, env=nowhere)


def test_without_a_name_the_account_must_be_the_only_one(yard, account, storage, refused):
    other = make_account(yard, "clisecond")
    try:
        refused(2, "--account-name with one of: .*clistore", "container list")
    finally:
        yard.run("storage", "account", "delete", "-n", other.name, "-y")


def test_a_reader_comes_in_with_its_token(yard, account, storage):
    storage("container create", "-n", "readers")
    token = json.loads(yard.run("token", "create", "lookabout", "--role", "reader", "-o", "json").stdout)["token"]
    env = {"YARD_URL": yard.api_url, "YARD_TOKEN": token, "YARD_CA_FILE": yard.ca_file}
    assert storage("container exists", "-n", "readers", env=env) == {"exists": True}


def test_secrets_stay_secret(yard, account):
    sas = account.sas()
    done = yard.run("storage", "container", "list", "--account-name", "clistore", "--sas-token", sas, "--debug")
    signed = yard.run("storage", "container", "list", "--debug")
    signature = re.search(r"sig=([^&]+)", sas)[1]
    assert signature not in done.stderr and "sig=***" in done.stderr
    assert account.key not in signed.stderr and re.search(r"Authorization: SharedKey \*\*\*", signed.stderr)


def test_a_renewed_key_works_at_once(yard, account, storage):
    storage("container create", "-n", "renewed")
    yard.run("storage", "account", "keys", "renew", "-n", "clistore", "--key", "key1")
    assert storage("container exists", "-n", "renewed") == {"exists": True}


def test_md5_is_that_of_the_file(yard, storage):
    (yard.folder / "sum").write_bytes(b"1" * 100_000)
    storage("container create", "-n", "sums")
    storage("blob upload", "-c", "sums", "-f", yard.folder / "sum")
    kept = storage("blob show", "-c", "sums", "-n", "sum")["properties"]["contentSettings"]["contentMd5"]
    assert base64.b64decode(kept) == hashlib.md5(b"1" * 100_000).digest()

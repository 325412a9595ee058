# SPDX-License-Identifier: Apache-2.0
"""`yard copy` and its kin against a real daemon: every form, every way to be broken off.

YARD_SWEEP=1 adds the big run: 20,000 small files and one of 4 GB, with kills.
"""
import base64
import hashlib
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import time

import pytest
import requests

from storage_account import assert_same, make_account, make_tree, read_tree

MIB = 2**20


@pytest.fixture(scope="module")
def account(yard):
    return make_account(yard, "copystore")


@pytest.fixture
def place(yard, account, tmp_path_factory):
    return Place(yard, account, tmp_path_factory.mktemp("copy"))


class Place:
    """A folder, and the command line in it."""

    def __init__(self, yard, account, folder):
        self.yard, self.account, self.folder = yard, account, pathlib.Path(folder)
        # A container of its own for each test.
        self.box = "box-" + hashlib.md5(str(folder).encode()).hexdigest()[:12]
        self.blob = f"{account.blob}/{self.box}"
        self.file = f"{account.file}/{self.box}"

    def command(self, *args):
        return [str(self.yard.programs / "yard"), *map(str, args)]

    def run(self, *args, status=0, env=None):
        done = subprocess.run(self.command(*args), cwd=self.folder, env=self.yard.env(env),
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == status, (args, done.stdout, done.stderr)
        assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr
        return done

    def start(self, *args):
        return subprocess.Popen(self.command(*args), cwd=self.folder, env=self.yard.env(),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def result(self, *args, **options):
        out = self.run(*args, "-o", "json", **options).stdout
        return json.loads(out) if out.strip() else None

    def blobs(self, box=None):
        """{name: bytes} of a container, past everything that is tested here."""
        from azure.storage.blob import ContainerClient

        client = ContainerClient.from_connection_string(
            self.account.connection_string(), box or self.box)
        return {b.name: client.download_blob(b.name).readall() for b in client.list_blobs()}

    def names(self):
        from azure.storage.blob import ContainerClient

        client = ContainerClient.from_connection_string(self.account.connection_string(), self.box)
        return {b.name for b in client.list_blobs()}

    def put_blob(self, name, data, **options):
        from azure.storage.blob import BlobServiceClient

        client = BlobServiceClient.from_connection_string(self.account.connection_string())
        box = client.get_container_client(self.box)
        if not box.exists():
            box.create_container()
        box.upload_blob(name, data, overwrite=True, **options)

    def tree(self, name, seed=1, big=0):
        return make_tree(self.folder / name, seed, big)


# -- there and back -------------------------------------------------------------------------------


def test_the_seeds_line(place):
    """azcopy copy -r . https://ACCOUNT.blob.core.windows.net/CONTAINER/?SAS, with our program."""
    made = place.tree("data", big=9 * MIB)
    sas = place.account.sas("acdlpruw", "b", "co")
    place.folder = place.folder / "data"
    done = place.run("copy", "-r", ".", f"https://copystore.blob.core.windows.net/{place.box}/?{sas}")
    assert f'there was no container "{place.box}": made it' in done.stderr
    assert re.fullmatch(rf"Copied {len(made)} files, 9\.\d MiB in \d+\.\d s \([\d.]+ [KM]iB/s\)\.\n", done.stdout)
    assert_same(place.blobs(), made)


@pytest.mark.parametrize("service", ["blob", "file"])
def test_a_tree_comes_back_as_it_was(place, service):
    made = place.tree("data", big=21 * MIB + 3)
    (place.folder / "data" / "nothing-in-it").mkdir()
    url = getattr(place, service)
    up = place.result("copy", "-r", "data", url)
    assert up["files"] == len(made) and up["failed"] == 0 and up["state"] == "Completed"
    assert up["bytes"] == sum(map(len, made.values()))
    place.run("copy", "-r", url + "/data", "back")
    assert_same(place.folder / "back" / "data", made)
    # A share has folders, blobs have none.
    assert (place.folder / "back" / "data" / "nothing-in-it").exists() == (service == "file")
    assert not list((place.folder / "back").rglob(".*yard-*"))


def test_between_services(place):
    made = place.tree("data", big=9 * MIB)
    place.run("copy", "-r", "data/*", place.blob)
    place.run("copy", "-r", place.blob + "/*", f"{place.account.blob}/{place.box}-2")
    place.run("copy", "-r", f"{place.account.blob}/{place.box}-2/*", place.file)
    place.run("copy", "-r", place.file + "/*", place.file + "-2")
    place.run("copy", "-r", place.file + "-2/*", f"{place.account.blob}/{place.box}-3/deep")
    assert_same(place.blobs(place.box + "-2"), made)
    assert_same(place.blobs(place.box + "-3"), {f"deep/{n}": data for n, data in made.items()})


def test_the_server_copies_by_itself(place):
    place.put_blob("a", b"x" * 100_000)
    done = place.run("copy", place.blob + "/a", place.blob + "/b", "--debug")
    assert "x-ms-copy-source: http" in done.stderr
    assert not re.search(r"GET /copystore/[^/]+/a", done.stderr)
    assert place.blobs() == {"a": b"x" * 100_000, "b": b"x" * 100_000}


def test_over_tls(place):
    made = place.tree("data")
    url = place.account.secure(place.blob)
    place.run("copy", "-r", "data", url)
    place.run("copy", "-r", url, "back")
    assert_same(place.folder / "back" / place.box / "data", made)


def test_with_a_signature_alone(place):
    made = place.tree("data")
    nowhere = {"YARD_HOME": str(place.folder / "nowhere")}
    sas = place.account.sas()
    place.run("copy", "-r", "data", f"{place.blob}?{sas}", "--from-to", "LocalBlob", env=nowhere)
    assert_same(place.blobs(), {f"data/{n}": data for n, data in made.items()})
    without = place.run("copy", "-r", "data", place.blob, "--from-to", "LocalBlob", env=nowhere, status=1)
    assert "no shared access signature" in without.stderr
    unclear = place.run("copy", "-r", "data", f"{place.blob}?{sas}", env=nowhere, status=1)
    assert "--from-to" in unclear.stderr
    # Neither the journal nor the messages have it.
    kept = "".join(p.read_text() for p in (place.folder / "nowhere").rglob("job.json"))
    assert "source" in kept and sas[-20:] not in kept


# -- what goes where ------------------------------------------------------------------------------


def test_places(place):
    place.tree("data")
    to = lambda *args: place.run("copy", *args)
    one = place.folder / "one.txt"
    one.write_text("1")
    to("one.txt", place.blob)
    to("one.txt", place.blob + "/d/")
    to("one.txt", place.blob + "/named")
    to("data/train/*", place.blob + "/flat")
    to("-r", "data/train/", place.blob + "/under")
    to("-r", "data/train", place.blob + "/bare", "--as-subdir", "false")
    train = {"0001.jpg", "0002.jpg", "deep/er/still/x.bin"}
    assert set(place.blobs()) == {
        "one.txt", "d/one.txt", "named", "flat/0001.jpg", "flat/0002.jpg",
        *(f"under/train/{n}" for n in train), *(f"bare/{n}" for n in train),
    }
    (place.folder / "there").mkdir()
    to(place.blob + "/one.txt", "there")
    to(place.blob + "/one.txt", "new.txt")
    to(place.blob + "/one.txt", "deep/er/")
    to(place.blob + "/flat/*", "flat")
    assert (place.folder / "there/one.txt").read_text() == "1"
    assert (place.folder / "new.txt").read_text() == "1"
    assert (place.folder / "deep/er/one.txt").read_text() == "1"
    assert sorted(read_tree(place.folder / "flat")) == ["0001.jpg", "0002.jpg"]
    assert "-r" in place.run("copy", "data", place.blob, status=1).stderr
    assert "nothing at" in place.run("copy", "-r", place.blob + "/none", "x", status=3).stderr
    assert "nothing at" in place.run("copy", "none", place.blob, status=3).stderr
    assert "must be a URL" in place.run("copy", "-r", "data", "data2", status=2).stderr
    assert "whole account" in place.run("copy", "-r", "data", place.account.blob, status=2).stderr


def test_picking(place):
    made = place.tree("data")
    place.run("copy", "-r", "data/*", place.blob, "--include-pattern", "*.txt;*.bin", "--exclude-pattern", "a*")
    wanted = {n for n in made
              if n.endswith((".txt", ".bin")) and not n.rsplit("/", 1)[-1].startswith("a")}
    assert set(place.blobs()) == wanted and wanted
    place.run("copy", "-r", place.blob + "/*", "part", "--include-path", "train;percent%20")
    assert set(read_tree(place.folder / "part")) == {
        n for n in wanted if n.startswith(("train/", "percent%20/"))}
    place.run("copy", "-r", place.blob + "/t*", "more")
    assert set(read_tree(place.folder / "more")) == {n for n in wanted if n.startswith("t")}


def test_a_dry_run_changes_nothing(place):
    made = place.tree("data")
    done = place.run("copy", "-r", "data", place.blob, "--dry-run")
    assert done.stdout.count("DRYRUN: copy data/") == len(made)
    assert not place.result("storage", "container", "exists", "-n", place.box, "--account-name",
                            "copystore")["exists"]
    assert place.result("copy", "list") == [] or all(
        place.box not in job["destination"] for job in place.result("copy", "list"))


def test_overwriting(place):
    place.tree("data", big=9 * MIB)
    place.run("copy", "-r", "data/*", place.blob)
    before = place.blobs()
    place.tree("data", seed=2, big=9 * MIB)
    skipped = place.result("copy", "-r", "data/*", place.blob, "--overwrite", "false")
    assert skipped["files"] == 0 and skipped["skipped"] == len(before)
    older = place.result("copy", "-r", "data/*", place.blob, "--overwrite", "ifSourceNewer")
    assert older["files"] == 0 and place.blobs() == before
    os.utime(place.folder / "data/a.txt", times=(4e9, 4e9))
    newer = place.result("copy", "-r", "data/*", place.blob, "--overwrite", "ifSourceNewer")
    assert newer["files"] == 1
    place.run("copy", "-r", "data/*", place.blob)
    assert_same(place.blobs(), place.folder / "data")
    assert place.result("copy", place.blob + "/a.txt", "data/a.txt", "--overwrite", "false")["skipped"] == 1
    assert "terminal" in place.run("copy", "data/a.txt", place.blob, "--overwrite", "prompt", status=2).stderr


def test_links(place):
    made = place.tree("data")
    (place.folder / "data/link").symlink_to("train")
    (place.folder / "data/loose").symlink_to("nowhere")
    done = place.run("copy", "-r", "data/*", place.blob, "--verbose")
    assert done.stderr.count("passed over") == 2
    assert_same(place.blobs(), made)
    place.run("copy", "-r", "data/*", place.blob + "/all", "--follow-symlinks")
    assert "all/link/0001.jpg" in place.blobs()


# -- whole and true -------------------------------------------------------------------------------


def test_checksums(place):
    data = os.urandom(9 * MIB)
    (place.folder / "big").write_bytes(data)
    place.run("copy", "big", place.blob, "--put-md5")
    kept = place.result("storage", "blob", "show", "-c", place.box, "-n", "big", "--account-name", "copystore")
    assert kept["properties"]["contentSettings"]["contentMd5"] == base64.b64encode(
        hashlib.md5(data).digest()).decode()
    place.run("copy", place.blob + "/big", "back")
    assert (place.folder / "back").read_bytes() == data


@pytest.mark.parametrize("size", [1000, 9 * MIB])
def test_damaged_data_is_not_taken(place, size):
    from azure.storage.blob import BlobClient, ContentSettings

    place.put_blob("bad", os.urandom(size))
    BlobClient.from_connection_string(place.account.connection_string(), place.box, "bad").set_http_headers(
        ContentSettings(content_md5=bytearray(hashlib.md5(b"other").digest())))
    done = place.run("copy", place.blob + "/bad", "bad", status=1)
    assert "FAILED" in done.stderr and "MD5" in done.stderr
    assert not (place.folder / "bad").exists()
    place.run("copy", place.blob + "/bad", "bad", "--check-md5", "NoCheck")
    assert (place.folder / "bad").stat().st_size == size


def test_names_that_lead_out_stay_in(place):
    place.put_blob("good/a", b"1")
    for name in ("../evil", "x/../../evil", "good//double", "dots/./a"):
        sas = place.account.sas()
        url = f"{place.blob}/{requests.utils.quote(name, safe='')}?{sas}".replace("..", "%2E%2E").replace("/./", "/%2E/")
        answer = requests.put(url, data=b"x", headers={"x-ms-blob-type": "BlockBlob"}, timeout=30)
        assert answer.status_code in (201, 400), answer.text
    names = place.names()
    assert "../evil" in names or "good//double" in names
    (place.folder / "in").mkdir()
    done = place.run("copy", "-r", place.blob + "/*", "in/here", status=1)
    assert done.stderr.count("cannot be a path here") == len(names) - 1
    assert read_tree(place.folder) == {"in/here/good/a": b"1"}


def test_times_are_kept_when_asked(place):
    place.put_blob("a", b"1")
    place.run("copy", place.blob + "/a", "a", "--preserve-last-modified-time")
    shown = place.result("storage", "blob", "show", "-c", place.box, "-n", "a", "--account-name", "copystore")
    stamp = shown["properties"]["lastModified"]
    assert time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime((place.folder / "a").stat().st_mtime)) == stamp


def test_a_file_that_grows_while_it_is_copied_fails_by_name(place):
    (place.folder / "data").mkdir()
    (place.folder / "data/still").write_bytes(b"1" * 100)
    with open(place.folder / "data/grows", "wb") as grows:
        grows.write(b"0" * 40 * MIB)
        grows.flush()
        copy = place.start("copy", "-r", "data", place.blob, "--cap-mbps", "200")
        time.sleep(0.5)
        grows.write(b"1")
        grows.flush()
        out, err = copy.communicate(timeout=60)
    assert copy.returncode == 1 and "grows: " in err and "changed meanwhile" in err, err
    assert place.blobs() == {"data/still": b"1" * 100}


# -- broken off -----------------------------------------------------------------------------------


def requests_of(done, pattern):
    return len(re.findall(pattern, done.stderr))


def test_small_files_go_on_after_a_kill(place):
    data = place.folder / "data"
    data.mkdir()
    for n in range(400):
        (data / f"{n:04}").write_bytes(str(n).encode() * 3000)
    copy = place.start("copy", "-r", "data", place.blob, "--cap-mbps", "20", "--parallel", "4")
    wait_for_blobs(place, 30)
    copy.kill()
    copy.communicate()
    job = place.result("copy", "list")[0]
    assert job["state"] == "Interrupted" and job["destination"] == place.blob
    again = place.result("copy", "-r", "data", place.blob, "--cap-mbps", "20", "--parallel", "4")
    assert again["earlierFiles"] >= 20 and again["files"] == 400 - again["earlierFiles"]
    assert again["jobId"] == job["id"]
    assert_same(place.blobs(), {f"data/{k}": v for k, v in read_tree(data).items()})
    # It has ended: the same words begin anew.
    assert place.result("copy", "-r", "data", place.blob, "--cap-mbps", "20", "--parallel", "4")["earlierFiles"] == 0


def test_small_files_that_come_down_go_on_after_a_kill(place):
    for n in range(40):
        (place.folder / f"{n:04}").write_bytes(str(n).encode() * 100_000)
    made = read_tree(place.folder)
    place.run("copy", "./*", place.blob)
    words = ("copy", place.blob + "/*", "back", "--cap-mbps", "15", "--parallel", "4")
    for wanted in (3, 8, 13):
        copy = place.start(*words)
        deadline = time.monotonic() + 30
        while len(list(place.folder.glob("back/0*"))) < wanted and time.monotonic() < deadline:
            time.sleep(0.01)
        copy.kill()
        copy.communicate()
    again = place.result(*words)
    assert again["earlierFiles"] > 0 and again["files"] + again["earlierFiles"] == 40
    assert_same(place.folder / "back", made)  # and nothing unfinished beside it


def wait_for_blobs(place, count, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if len(place.names()) >= count:
                return
        except Exception:  # the container is not there yet
            pass
        time.sleep(0.02)
    raise AssertionError("the copy does not get on")


def test_what_vanished_meanwhile_is_copied_again(place):
    data = place.folder / "data"
    data.mkdir()
    for n in range(200):
        (data / f"{n:04}").write_bytes(str(n).encode() * 3000)
    copy = place.start("copy", "-r", "data", place.blob, "--cap-mbps", "20", "--parallel", "4")
    wait_for_blobs(place, 40)
    copy.kill()
    copy.communicate()
    place.run("rm", "-r", f"copystore/{place.box}/data")
    again = place.result("copy", "-r", "data", place.blob, "--cap-mbps", "20", "--parallel", "4")
    assert again["files"] == 200 and again["earlierFiles"] == 0
    assert len(place.blobs()) == 200


@pytest.mark.parametrize("way", ["up", "down", "share"])
def test_a_large_file_goes_on_where_it_was(place, way):
    data = os.urandom(64 * MIB)
    (place.folder / "big").write_bytes(data)
    words = {"up": ("big", place.blob + "/big"), "down": (place.blob + "/big", "back"),
             "share": ("big", place.file + "/big")}[way]
    if way == "down":
        place.run("copy", "big", place.blob + "/big")
    # Five seconds long, cut after two: some pieces are there by then, on a busy machine too.
    slow = ("copy", *words, "--cap-mbps", "100", "--block-size-mb", "2", "--parallel", "4")
    copy = place.start(*slow)
    time.sleep(2)
    assert copy.poll() is None
    copy.kill()
    copy.communicate()
    if way == "down":
        assert not (place.folder / "back").exists()
    done = place.run(*slow, "--debug")
    pieces = requests_of(done, r"> PUT [^ ]*comp=(block&|range)") if way != "down" else requests_of(
        done, r"> GET /[^ ]*/big ")
    assert 0 < pieces < 32, pieces
    if way == "share":
        place.run("copy", place.file + "/big", "back")
    if way == "up":
        assert place.blobs()["big"] == data
    else:
        assert (place.folder / "back").read_bytes() == data


def test_a_source_that_changed_is_not_mixed_with_old_pieces(place):
    old, new = os.urandom(32 * MIB), os.urandom(32 * MIB)
    (place.folder / "big").write_bytes(old)
    slow = ("copy", "big", place.blob + "/big", "--cap-mbps", "200", "--block-size-mb", "2", "--parallel", "4")
    copy = place.start(*slow)
    time.sleep(0.6)
    copy.kill()
    copy.communicate()
    (place.folder / "big").write_bytes(new)
    place.run("copy", "big", place.blob + "/big", "--block-size-mb", "2")
    assert place.blobs()["big"] == new


def test_interrupting_says_how_to_go_on(place):
    (place.folder / "big").write_bytes(os.urandom(32 * MIB))
    copy = place.start("copy", "big", place.blob, "--cap-mbps", "100")
    time.sleep(0.7)
    copy.send_signal(signal.SIGINT)
    out, err = copy.communicate(timeout=20)
    assert copy.returncode == 1
    job = re.search(r"interrupted; go on with: yard copy resume (\w{8})\n", err)
    assert job, err
    done = place.run("copy", "resume", job[1])
    assert "Copied 1 file, 32.0 MiB" in done.stdout
    assert (place.folder / "big").read_bytes() == place.blobs()["big"]
    assert "ended well" in place.run("copy", "resume", job[1], status=1).stderr
    assert "no job" in place.run("copy", "resume", "zzzz", status=3).stderr


def test_the_same_copy_twice_at_once_is_refused(place):
    (place.folder / "big").write_bytes(os.urandom(16 * MIB))
    words = ("copy", "big", place.blob, "--cap-mbps", "50")
    copy = place.start(*words)
    time.sleep(0.5)
    try:
        assert "going on already" in place.run(*words, status=1).stderr
    finally:
        copy.kill()
        copy.communicate()


def test_failures_are_named_and_made_good(place):
    made = place.tree("data")
    (place.folder / "data/what?.txt").write_text("no name for a share")
    done = place.run("copy", "-r", "data/*", place.file, status=1)
    assert re.search(r"FAILED: .*what%3F\.txt: \(InvalidResourceName\)", done.stderr)
    assert f"Copied {len(made)} files" in done.stdout and ", 1 failed." in done.stdout
    (place.folder / "data/what?.txt").unlink()
    again = place.result("copy", "-r", "data/*", place.file)
    assert again["earlierFiles"] == len(made) and again["files"] == 0 and again["state"] == "Completed"


def test_it_gives_up_when_nothing_works(place):
    data = place.folder / "data"
    data.mkdir()
    for n in range(200):
        (data / str(n)).write_bytes(b"x")
    place.run("storage", "container", "create", "-n", place.box, "--account-name", "copystore")
    sas = place.account.sas("rl", "b", "sco")
    done = place.run("copy", "-r", "data", f"{place.blob}?{sas}", status=1)
    assert "gave up" in done.stderr and "AuthorizationPermissionMismatch" in done.stderr
    assert done.stderr.count("FAILED: ") <= 21


def test_the_server_may_fall_and_come_back(fresh_yard, tmp_path):
    yard = fresh_yard()
    place = Place(yard, make_account(yard, "fallstore"), tmp_path)
    data = tmp_path / "data"
    data.mkdir()
    for n in range(300):
        (data / f"{n:04}").write_bytes(str(n).encode() * 5000)
    (data / "big").write_bytes(os.urandom(24 * MIB))
    copy = place.start("copy", "-r", "data", place.blob, "--cap-mbps", "100")
    wait_for_blobs(place, 20)
    for _ in range(2):
        yard.kill9()
        yard.start()
        time.sleep(0.3)
    out, err = copy.communicate(timeout=120)
    assert copy.returncode == 0, err
    assert "Copied 301 files" in out
    assert_same(place.blobs(), {f"data/{k}": v for k, v in read_tree(data).items()})


# -- sync -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("service", ["blob", "file"])
def test_sync(place, service):
    made = place.tree("data")
    url = getattr(place, service) + "/here"
    assert place.result("sync", "data", url)["files"] == len(made)
    assert place.result("sync", "data", url)["files"] == 0
    (place.folder / "data/a.txt").write_bytes(b"longer than before" * 10000)
    (place.folder / "data/new").write_bytes(b"new")
    for name in ("a.txt", "new"):  # the services tell whole seconds: not of this very one
        os.utime(place.folder / "data" / name, times=(1.7e9, 1.7e9))
    (place.folder / "data/empty").unlink()
    plan = place.result("sync", "data", url, "--dry-run")["plan"]
    assert {step["source"] for step in plan} == {"data/a.txt", "data/new"}
    assert place.result("sync", "data", url)["files"] == 2
    assert place.result("sync", "data", url, "--delete-destination", "true")["removed"] == 1
    assert place.result("sync", url, "back")["files"] == len(made)
    assert_same(place.folder / "back", place.folder / "data")
    (place.folder / "back/extra").write_text("x")
    os.utime(place.folder / "data/new", times=(4e9, 4e9))
    assert place.result("sync", "data", url)["files"] == 1
    done = place.result("sync", url, "back", "--delete-destination", "true", "--exclude-pattern", "extra")
    assert done["removed"] == 0
    assert place.result("sync", url, "back", "--delete-destination", "true")["removed"] == 1
    assert "no folder" in place.run("sync", "none", url, status=3).stderr


# -- looking and removing -------------------------------------------------------------------------


@pytest.mark.parametrize("service", ["blob", "file"])
def test_ls_cat_rm(place, service):
    made = place.tree("data")
    short = f"copystore/{place.box}"
    place.run("copy", "-r", "data/*", getattr(place, service))
    lines = lambda *args: place.run("ls", *args).stdout.splitlines()
    assert "copystore/" in lines() and place.box + "/" in lines("copystore")
    assert sorted(lines(short)) == sorted({n.split("/")[0] + "/" * ("/" in n) for n in made})
    assert sorted(lines(short + "/train")) == ["0001.jpg", "0002.jpg", "deep/"]
    assert lines("-r", short + "/train/deep")[-1] == "er/still/x.bin"
    assert lines(short + "/a.txt") == ["a.txt"]
    assert lines(getattr(place, service) + "/train/*.jpg") == ["0001.jpg", "0002.jpg"]
    rows = place.result("ls", "-r", short)
    assert {r["name"]: r["size"] for r in rows if r["type"] == "file"} == {n: len(d) for n, d in made.items()}
    assert re.match(r" +\d+  \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  0001.jpg$", lines("-l", short + "/train")[0])
    for name in ("with space/a b.txt", "percent%20/100%.txt", "ünï/čödé 漢字.txt"):
        done = subprocess.run(place.command("cat", f"{short}/{name}"), env=place.yard.env(), capture_output=True)
        assert done.stdout == made[name], done.stderr
    place.run("rm", short + "/a.txt")
    assert "-r" in place.run("rm", short + "/train", status=1).stderr
    assert "nothing at" in place.run("rm", short + "/a.txt", status=3).stderr
    assert place.run("rm", "-r", short + "/train", "--dry-run").stdout.count("DRYRUN: remove") == 3
    assert "Removed 2 files" in place.run("rm", "-r", short, "--include-pattern", "*.jpg").stdout
    place.run("rm", "-r", short + "/train")
    assert "train/" not in lines(short)
    place.run("rm", "-r", short)
    assert lines("-r", short) == []
    assert "does not name one file" in place.run("cat", short, status=2).stderr
    assert "no container or share" in place.run("ls", "copystore/none", status=3).stderr


# -- the person at the terminal -------------------------------------------------------------------


def on_terminal(place, *args, answers=()):
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(place.folder)
        command = place.command(*args)
        os.execve(command[0], command, place.yard.env({"TERM": "xterm"}))
    shown, answers = b"", list(answers)
    try:
        while chunk := os.read(fd, 4096):
            shown += chunk
            if answers and shown.rstrip().endswith(b"n(o)ne:"):
                os.write(fd, answers.pop(0).encode() + b"\n")
    except OSError:
        pass  # the other end is closed
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(fd)
    return status, shown.decode()


def test_progress_on_a_terminal(place):
    (place.folder / "big").write_bytes(os.urandom(32 * MIB))
    status, shown = on_terminal(place, "copy", "big", place.blob, "--cap-mbps", "200", "--block-size-mb", "1")
    assert status == 0
    assert re.search(r"\r\[[#>.]{20}\] +\d+%  0/1 files  [\d.]+ MiB  [\d.]+ MiB/s  0:0\d left\x1b\[K", shown), shown
    assert shown.splitlines()[-1].split("\x1b[K")[-1].startswith("Copied 1 file, 32.0 MiB")
    # And nowhere else.
    assert "\r" not in place.run("copy", "big", place.blob).stderr


def test_asking_before_overwriting(place):
    for name in "abc":
        (place.folder / name).write_text("new " + name)
        place.put_blob(name, b"old")
    status, shown = on_terminal(place, "copy", "./*", place.blob, "--overwrite", "prompt", "--parallel", "1",
                                answers=["y", "n", "o"])
    assert status == 0 and "Copied 1 file" in shown
    assert place.blobs() == {"a": b"new a", "b": b"old", "c": b"old"}


def test_azcopys_spellings(place):
    place.tree("data")
    place.run("cp", "data/*", place.blob, "--recursive=true", "--put-md5", "--overwrite=ifSourceNewer",
              "--from-to=LocalBlob", "--check-length=false", "--log-level=NONE", status=2)
    place.run("cp", "data/*", place.blob, "--recursive=true", "--put-md5", "--overwrite=ifSourceNewer",
              "--from-to=LocalBlob", "--check-length=false")
    assert_same(place.blobs(), place.folder / "data")
    assert "does not fit" in place.run("cp", "data/*", place.blob, "--from-to=BlobLocal", status=2).stderr


# -- on demand ------------------------------------------------------------------------------------


@pytest.mark.skipif(not os.environ.get("YARD_SWEEP"), reason="the big run: YARD_SWEEP=1")
def test_twenty_thousand_files_and_four_gigabytes(fresh_yard, tmp_path):
    yard = fresh_yard()
    place = Place(yard, make_account(yard, "sweepstore"), tmp_path)
    data = tmp_path / "data"
    for n in range(20_000):
        path = data / f"{n % 100:02}" / f"{n:05}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(n.to_bytes(4, "big") * (n % 2500))
    with open(data / "model", "wb") as model:
        for _ in range(64):
            model.write(os.urandom(64 * MIB))
    words = ("copy", "-r", "data", place.blob)
    for killed in range(3):
        copy = place.start(*words)
        time.sleep(4)
        if killed == 1:
            yard.kill9()
            yard.start()
        copy.kill()
        copy.communicate()
    done = place.run(*words)
    print(done.stdout)
    for killed in range(2):
        copy = place.start("copy", "-r", place.blob + "/data", "back")
        time.sleep(2)
        copy.kill()
        copy.communicate()
    print(place.run("copy", "-r", place.blob + "/data", "back").stdout)
    subprocess.run(["diff", "-r", str(data), str(tmp_path / "back/data")], check=True)
    rows = place.result("ls", "-r", f"sweepstore/{place.box}/data")
    assert len(rows) == 20_001 and [r["name"] for r in rows] == sorted(r["name"] for r in rows)

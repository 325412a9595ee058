# SPDX-License-Identifier: Apache-2.0
"""A job's files as they are written: pushed, never polled, without a lost or repeated byte."""
import hashlib
import http.client
import pathlib
import threading
import time

import pytest

pytest.importorskip("azure.mgmt.batchai", reason="python3-azure is not installed")

from azure.mgmt.batchai import models as m
from batchai_house import SHARE_ROOT, BatchAIHouse, until

LONG_S = 60


class Stream:
    """GET .../log over plain http, as raw as Python has it."""

    def __init__(self, yard, path, query, token=None):
        self.http = http.client.HTTPConnection(yard.http_host, yard.http_port, timeout=LONG_S)
        self.http.request("GET", f"{path}/log?{query}", headers={"Authorization": f"Bearer {token or yard.token}"})
        self.answer = self.http.getresponse()
        self.seen = bytearray()  # bytes would be copied for every piece

    @property
    def offset(self):
        return int(self.answer.headers["x-yard-offset"])

    def read(self, count):
        """Exactly so many bytes more."""
        wanted = len(self.seen) + count
        while len(self.seen) < wanted:
            piece = self.answer.read1(wanted - len(self.seen))
            assert piece, f"it ended after {self.seen!r}"
            self.seen += piece
        return bytes(self.seen[-count:])

    def rest(self):
        """All until it ends well; a stream that is cut off raises."""
        while piece := self.answer.read(65536):
            self.seen += piece
        return bytes(self.seen)

    def close(self):
        self.http.close()


@pytest.fixture(scope="module")
def house(yard):
    return BatchAIHouse(yard)


@pytest.fixture(autouse=True)
def no_job_goes_on(house):
    """A test that fails must not keep the nodes from the next."""
    yield
    for job in house.yard.rest("GET", "/yard/jobs?state=active").json()["value"]:
        house.yard.rest("POST", f"{job['id']}/terminate")


@pytest.fixture(scope="module")
def cluster(house):
    house.make_cluster("c", 2)
    house.wait_for_nodes("c", 2)
    return "c"


def follow(house, job, query="follow=true", **options):
    stream = Stream(house.yard, house.job_path(job), query, **options)
    assert stream.answer.status == 200, stream.answer.read()
    return stream


def share_folder(house):
    return house.yard.home / "storage" / house.account / "file" / "share" / "tree"


def signals(house, name):
    """A file by which a test tells a job to go on."""
    return share_folder(house) / name, f"{SHARE_ROOT}/{name}"


def end(house, job):
    house.client.jobs.begin_terminate(house.group, house.workspace, house.experiment, job).result()


def test_each_line_comes_before_the_next_is_written(house, cluster):
    """The job writes its next line only when the test has seen the last: nobody can be polling."""
    flag, path = signals(house, "go")
    house.submit("pushed", house.job_parameters(
        cluster, f"for i in 1 2 3 4 5; do echo line $i; while [ ! -e {path}-$i ]; do sleep 0.01; done; done",
    ))
    stream = follow(house, "pushed")
    assert stream.offset == 0
    for i in range(1, 6):
        assert stream.read(7) == f"line {i}\n".encode()
        pathlib.Path(f"{flag}-{i}").touch()
    assert stream.rest().count(b"\n") == 5
    assert house.wait_for_end("pushed").execution_state == "succeeded"


def test_it_waits_for_a_file_that_is_not_there_yet_and_ends_with_the_job(house, cluster):
    flag, path = signals(house, "appear")
    house.submit("late", house.job_parameters(
        cluster, f"cd $AZ_BATCHAI_OUTPUT_OUTPUTS; while [ ! -e {path} ]; do sleep 0.01; done;"
        " mkdir -p a/b; echo there > a/b/late.txt",
    ))
    stream = follow(house, "late", "follow=true&outputdirectoryid=OUTPUTS&directory=a/b&file=late.txt")
    never = follow(house, "late", "follow=true&outputdirectoryid=OUTPUTS&file=never.txt")
    house.wait_for_state("late", "running")
    flag.touch()
    assert stream.rest() == b"there\n"
    assert never.rest() == b""  # it waited to the end, and there was nothing
    gone = Stream(house.yard, house.job_path("late"), "follow=true&outputdirectoryid=OUTPUTS&file=never.txt")
    assert gone.answer.status == 404


def test_a_job_that_waits_can_be_followed_and_ends(house):
    house.make_cluster("none", 0)
    house.submit("waiting", house.job_parameters("none", "echo never"))
    stream = follow(house, "waiting")
    end(house, "waiting")
    assert stream.rest() == b""
    house.client.clusters.begin_delete(house.group, house.workspace, "none").result()


def test_a_file_that_is_written_is_read_from_any_place(house, cluster):
    house.run("whole", cluster, "printf 0123456789")
    path = house.job_path("whole")
    for query, text, offset in (
        ("", b"0123456789", 0), ("offset=4", b"456789", 4), ("offset=10", b"", 10), ("offset=99", b"", 99),
        ("follow=true", b"0123456789", 0), ("follow=true&offset=7", b"789", 7), ("follow=true&offset=99", b"", 99),
        ("file=stderr.txt", b"", 0), ("follow=false&directory=.&outputdirectoryid=stdouterr", b"0123456789", 0),
    ):
        stream = Stream(house.yard, path, query)
        assert (stream.answer.status, stream.offset, stream.rest()) == (200, offset, text), query
        stream.close()
    head = house.yard.rest("HEAD", f"{path}/log?follow=true")
    assert head.status_code == 200 and head.headers["Content-Length"] == "10"


def test_nothing_is_lost_or_repeated_when_the_daemon_falls_and_comes_back(fresh_yard):
    """The client asks again from where it was; the job never noticed."""
    house = BatchAIHouse(fresh_yard())
    house.make_cluster("c", 1)
    house.wait_for_nodes("c", 1)
    house.submit("lines", house.job_parameters(
        "c", "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); [ $((i % 10)) = 0 ] && sleep 0.01; done"
    ))
    seen = b""
    cuts = [lambda y: y.kill9(), lambda y: y.stop(), lambda y: y.kill9()]
    while True:
        stream = follow(house, "lines", f"follow=true&offset={len(seen)}")
        assert stream.offset == len(seen)
        if not cuts:
            seen += stream.rest()
            break
        seen += stream.read(1000)
        cuts.pop()(house.yard)
        with pytest.raises((http.client.HTTPException, OSError)):
            stream.rest()  # cut off is not the same as ended
        seen += stream.seen[1000:]
        stream.close()
        house.yard.start()
    assert seen == b"".join(b"line %d\n" % i for i in range(3000))
    assert house.wait_for_end("lines").execution_state == "succeeded"


def resident_mib(yard):
    status = pathlib.Path(f"/proc/{yard.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def test_a_client_that_does_not_read_costs_no_memory(house, cluster):
    house.submit("much", house.job_parameters(
        cluster, "head -c 64000000 /dev/zero | tr '\\0' 'x'; echo; sleep 600", input_directories=None,
    ))
    stream = follow(house, "much")
    size = lambda: getattr(house.files("much").get("stdout.txt"), "content_length", 0)
    until(lambda: size() == 64000001)
    before = resident_mib(house.yard)
    time.sleep(1)
    assert resident_mib(house.yard) - before < 16
    digest = hashlib.sha256(stream.read(64000001)).hexdigest()
    assert digest == hashlib.sha256(b"x" * 64000000 + b"\n").hexdigest()
    end(house, "much")
    assert len(stream.rest()) == 64000001


def test_many_idle_followers_are_cheap_and_all_hear_the_next_line(house, cluster):
    many = 300
    flag, path = signals(house, "many")
    house.submit("many", house.job_parameters(
        cluster, f"echo first; while [ ! -e {path} ]; do sleep 0.01; done; echo second"
    ))
    follow(house, "many").read(6)
    before = resident_mib(house.yard)
    streams = [follow(house, "many") for _ in range(many)]
    assert all(s.read(6) == b"first\n" for s in streams)
    threads = len(list(pathlib.Path(f"/proc/{house.yard.pid}/task").iterdir()))
    assert threads < 100
    assert resident_mib(house.yard) - before < 0.1 * many
    flag.touch()
    assert all(s.rest() == b"first\nsecond\n" for s in streams)


def test_clients_that_leave_are_forgotten(house, cluster):
    flag, path = signals(house, "left")
    house.submit("left", house.job_parameters(
        cluster, f"echo first; while [ ! -e {path} ]; do sleep 0.01; done; echo second"
    ))
    leaving = [follow(house, "left") for _ in range(50)]
    staying = follow(house, "left")
    staying.read(6)
    for stream in leaving:
        stream.close()
    flag.touch()
    assert staying.rest() == b"first\nsecond\n"


def test_a_log_on_no_share_is_found_on_its_node(house, cluster):
    flag, path = signals(house, "local")
    parameters = house.job_parameters(
        cluster, f"echo here; while [ ! -e {path} ]; do sleep 0.01; done; echo done",
        std_out_err_path_prefix="$AZ_BATCHAI_JOB_TEMP_DIR", output_directories=None,
    )
    house.submit("local", parameters)
    house.wait_for_state("local", "running")

    def open_log():
        stream = Stream(house.yard, house.job_path("local"), "follow=true")
        return stream if stream.answer.status == 200 else None

    stream = until(open_log)
    assert stream.read(5) == b"here\n"
    flag.touch()
    assert stream.rest() == b"here\ndone\n"


def test_a_link_that_a_job_made_leads_nowhere(house, cluster):
    house.run("linking", cluster, "ln -s /etc/hostname $AZ_BATCHAI_OUTPUT_OUTPUTS/name;"
              " ln -s / $AZ_BATCHAI_OUTPUT_OUTPUTS/root; mkfifo $AZ_BATCHAI_OUTPUT_OUTPUTS/pipe; mkdir"
              " $AZ_BATCHAI_OUTPUT_OUTPUTS/folder")
    for query in ("file=name", "file=hostname&directory=root/etc", "file=pipe", "file=folder"):
        for following in ("", "&follow=true"):
            answer = Stream(house.yard, house.job_path("linking"),
                            f"outputdirectoryid=OUTPUTS&{query}{following}").answer
            assert answer.status in (400, 403, 404, 409), (query, answer.status, answer.read())


def test_a_reader_of_the_group_may_read_and_others_do_not_know_of_it(house, cluster):
    house.run("private", cluster, "echo mine")

    def token(name, group):
        made = house.yard.rest("PUT", f"/yard/tokens/{name}", json={"role": "reader", "resourceGroup": group})
        return made.json()["token"]

    house.resource.resource_groups.create_or_update("elsewhere", {"location": "eastus"})
    assert follow(house, "private", token=token("log-reader", house.group)).rest() == b"mine\n"
    other = Stream(house.yard, house.job_path("private"), "follow=true", token=token("log-other", "elsewhere"))
    assert other.answer.status == 404


def test_closing_the_yard_does_not_wait_for_followers(fresh_yard):
    house = BatchAIHouse(fresh_yard())
    house.make_cluster("c", 0)
    house.submit("waiting", house.job_parameters("c", "true"))
    streams = [follow(house, "waiting") for _ in range(20)]
    begun = time.monotonic()
    house.yard.stop()
    assert time.monotonic() - begun < 10  # a drain may take 30 s
    for stream in streams:
        with pytest.raises((http.client.HTTPException, OSError)):
            stream.rest()
    house.yard.start()

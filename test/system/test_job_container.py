# SPDX-License-Identifier: Apache-2.0
"""Jobs in containers: real ones of podman, with an image made here."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest
from container_image import Registry, make_image, need_containers, run
from job_house import MOUNTS, JobHouse, until

USER, PASSWORD = "lab", "p4ss-of-the-lab-canary"


def settings(image, **more):
    return {"imageSourceRegistry": {"image": image, **more}}


@pytest.fixture(scope="module")
def image():
    return make_image()


@pytest.fixture(scope="module")
def house(image, start_yard):
    house = JobHouse(start_yard("--grace-seconds", "2"))
    house.make_cluster("two", 2)
    return house


def containers_of(house):
    """Names of what runs for this yard: containers are named after attempts."""
    uuids = [folder.name for folder in house.yard.home.glob("attempts/*")]
    named = run("podman", "ps", "--all", "--format", "{{.Names}}", text=True).stdout.split()
    return [name for name in named if any(uuid in name for uuid in uuids)]


def error_of(job):
    (error,) = job["executionInfo"]["errors"]
    details = " ".join(row["value"] for row in error.get("details", ()))
    return error["code"], f"{error['message']} {details}"


# -- what a job sees --------------------------------------------------------------------------------


def test_what_preparation_does_to_the_container_is_there_for_the_job(house, image):
    done = house.run(
        "prepared", "two", "cat /installed; echo $TOOL; cat $AZ_BATCHAI_JOB_TEMP/data; pwd",
        containerSettings=settings(image),
        jobPreparation={"commandLine": "echo inside > /installed; echo 'export TOOL=found' >> ~/.bashrc;"
                        " echo data > $AZ_BATCHAI_JOB_TEMP/data; echo prepared"},
    )
    assert done["executionState"] == "succeeded", house.explain("prepared")
    *said, folder = house.log("prepared").split()
    assert said == ["inside", "found", "data"] and folder.endswith("/jobs/vision/trials/prepared/wd")
    assert house.log("prepared", "stdout-job_prep.txt") == "prepared\n"
    assert not os.path.exists("/installed")
    assert house.run("next", "two", "ls /installed", containerSettings=settings(image))[
        "executionState"] == "failed"  # the next job's container is a new one
    house.check("prepared", "next")


def test_a_container_has_its_image_and_the_nodes_network_and_folders(house, image):
    done = house.run(
        "inside", "two", "ls -d /usr/share /home || echo image; hostname; echo $AZ_BATCH_NODE_ID; df /dev/shm;"
        " echo written > $AZ_BATCHAI_OUTPUT_OUT/file; cat $AZ_BATCHAI_MPI_HOST_FILE; echo $SECRET",
        containerSettings={**settings(image), "shmSize": "100mb"},
        outputDirectories=[{"id": "OUT", "pathPrefix": f"{MOUNTS}/logs"}],
        secrets=[{"name": "SECRET", "value": "s3cret 'of $the \"job"}],
    )
    assert done["executionState"] == "succeeded", house.explain("inside")
    said = house.log("inside").split("\n")
    assert said[0] == "image" and said[1] == said[2] and said[1] in house.nodes("two")
    assert "102400" in house.log("inside")
    assert said[-2] == "s3cret 'of $the \"job"
    assert (house.folder("inside") / "outputs" / "file").read_text() == "written\n"
    house.check("inside")
    assert containers_of(house) == []


def test_containers_of_two_nodes_reach_each_other_by_ssh(house, image):
    done = house.run(
        "ssh", "two", 'for host in $(echo $AZ_BATCH_HOST_LIST | tr "," " "); do ssh $host'
        ' "cat /installed; hostname"; done; echo done', nodeCount=2, containerSettings=settings(image),
        jobPreparation={"commandLine": "echo on $AZ_BATCH_NODE_ID > /installed"},
    )
    assert done["executionState"] == "succeeded", house.explain("ssh")
    said = house.log("ssh").split("\n")
    names = sorted(house.nodes("two"))
    assert sorted([said[0], said[2]]) == [f"on {n}" for n in names], said
    assert sorted([said[1], said[3]]) == names and said[4] == "done"
    house.check("ssh")


def test_exit_codes_and_failed_preparation(house, image):
    done = house.run("code", "two", "exit 42", containerSettings=settings(image))
    assert done["executionState"] == "failed" and done["executionInfo"]["exitCode"] == 42
    done = house.run("bad-prep", "two", "echo never", containerSettings=settings(image),
                     jobPreparation={"commandLine": "exit 4"})
    assert done["executionInfo"]["exitCode"] == 4 and error_of(done)[0] == "JobPreparationFailed"
    assert "never" not in house.log("bad-prep")
    house.check("code", "bad-prep")


# -- ends --------------------------------------------------------------------------------------------


def pids_of(command):
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes() == command:
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_terminate_ends_what_runs_in_the_container(house, image):
    house.submit("long", "two", "trap 'sleep 0.7; echo heard; exit 0' TERM; sleep 604 & echo up; wait",
                 containerSettings=settings(image))
    house.await_log("long", "up")
    assert len(pids_of(b"sleep\x00604\x00")) == 1
    house.terminate("long")
    done = house.wait_for_end("long")
    assert error_of(done)[0] == "JobTerminated"
    assert "heard" in house.log("long")
    until(lambda: not pids_of(b"sleep\x00604\x00"), 5)
    house.check("long")
    assert containers_of(house) == []


@pytest.mark.parametrize("blow", ["rm", "kill"])
def test_container_that_is_killed_from_outside(house, image, blow):
    name = f"blow-{blow}"
    house.submit(name, "two", "echo up; sleep 605", containerSettings=settings(image))
    house.await_log(name, "up")
    (box,) = containers_of(house)
    run("podman", "--cgroup-manager", "cgroupfs", "--runtime", "runc",
        *(["rm", "-f", "-t", "0"] if blow == "rm" else ["kill"]), box)
    done = house.wait_for_end(name)
    assert done["executionState"] == "failed" and done["executionInfo"].get("exitCode") != 0
    house.check(name)
    assert containers_of(house) == []
    house.wait_for_nodes("two", 2)


def test_daemon_is_killed_while_a_container_runs(fresh_yard, image):
    house = JobHouse(fresh_yard("--grace-seconds", "2"))
    house.make_cluster("two", 1)
    house.submit("survivor", "two", "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.4; done; exit 7",
                 containerSettings=settings(image))
    house.await_log("survivor", "line 2")
    house.yard.kill9()
    time.sleep(0.5)
    house.yard.start()
    done = house.wait_for_end("survivor")
    assert done["executionInfo"]["exitCode"] == 7, house.explain("survivor")
    assert house.log("survivor") == "".join(f"line {i}\n" for i in range(1, 9))
    house.check("survivor")
    assert containers_of(house) == []


def test_supervisor_of_a_contained_task_is_killed(house, image):
    house.submit("no-shim", "two", "echo up; sleep 606", containerSettings=settings(image))
    house.await_log("no-shim", "up")
    for file in house.yard.home.glob("attempts/*/main/shim"):
        pid = int(file.read_text().split()[0])
        if os.path.exists(f"/proc/{pid}"):
            os.kill(pid, signal.SIGKILL)
    done = house.wait_for_end("no-shim")
    assert done["executionState"] == "failed" and "exitCode" not in done["executionInfo"]
    until(lambda: not pids_of(b"sleep\x00606\x00"), 5)
    house.check("no-shim")
    house.wait_for_nodes("two", 2)


# -- causes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name,image_name,words", [
    ("no-such", "localhost/no-such-image:1", ("localhost/no-such-image:1",)),
    ("nowhere", "registry.nowhere.invalid/tool:1", ("registry.nowhere.invalid/tool:1", "reached")),
    ("refused", "127.0.0.1:1/tool:1", ("127.0.0.1:1/tool:1", "reached")),
])
def test_image_that_cannot_be_had(house, name, image_name, words):
    done = house.run(name, "two", "true", containerSettings=settings(image_name))
    code, text = error_of(done)
    assert done["executionState"] == "failed" and code == "FailedStartingContainer"
    assert all(word in text for word in words), text
    assert "exitCode" not in done["executionInfo"]
    assert image_name in house.why(name) and "\n" not in house.why(name)
    house.check(name)


def test_image_that_has_no_shell(house, tmp_path):
    run("podman", "import", "-", "localhost/yard-empty:1",
        input=subprocess.run(["tar", "-C", str(tmp_path), "-c", "."], capture_output=True).stdout)
    done = house.run("empty", "two", "true", containerSettings=settings("localhost/yard-empty:1"))
    run("podman", "rmi", "-f", "localhost/yard-empty:1")
    code, text = error_of(done)
    assert code == "FailedStartingContainer" and "yard-empty" in text, text
    house.check("empty")


def test_mapped_to_another_image(house, image):
    answer = house.yard.rest("PUT", "/yard/images/example%2Fgone:1", json={"target": image})
    assert answer.status_code == 200
    done = house.run("mapped", "two", "ls -d /usr/share || echo image",
                     containerSettings=settings("example/gone:1"))
    assert done["executionState"] == "succeeded" and house.log("mapped") == "image\n", house.explain("mapped")


@pytest.fixture
def registry(tmp_path, image):
    registry = Registry(tmp_path, image, USER, PASSWORD)
    yield registry
    registry.stop()
    subprocess.run(["podman", "rmi", "-f", f"{registry.address}/lab/tool:1"], capture_output=True)


def test_private_registry(fresh_yard, registry):
    """Credentials open it, are needed, and are told to nobody."""
    yard = fresh_yard("--nodes", "namespaces", start=False)
    yard.start(env={"CONTAINERS_REGISTRIES_CONF": str(registry.config)})
    house = JobHouse(yard)
    house.make_cluster("two", 1)
    name = f"{registry.address}/lab/tool:1"
    done = house.run("anonymous", "two", "true", containerSettings=settings(name))
    code, text = error_of(done)
    assert code == "FailedStartingContainer" and "credentials" in text, text
    server = {"serverUrl": registry.address}
    wrong = {"username": USER, "password": PASSWORD[::-1]}
    done = house.run("wrong", "two", "true", containerSettings=settings(name, credentials=wrong, **server))
    code, text = error_of(done)
    assert code == "FailedStartingContainer" and PASSWORD[::-1] not in text, text
    right = {"username": USER, "password": PASSWORD}
    done = house.run("right", "two", "echo in; sleep 1",
                     containerSettings=settings(name, credentials=right, **server))
    assert done["executionState"] == "succeeded", house.explain("right")
    assert done["containerSettings"]["imageSourceRegistry"]["credentials"].get("password") is None
    assert PASSWORD not in json.dumps(done) and PASSWORD not in yard.log()
    for place in [*house.tree().rglob("*"), *(yard.home / "attempts").rglob("*")]:
        assert not place.is_file() or PASSWORD.encode() not in place.read_bytes(), place
    missing = f"{registry.address}/lab/other:1"
    done = house.run("missing", "two", "true",
                     containerSettings=settings(missing, credentials=right, **server))
    assert "no such image" in error_of(done)[1], done
    house.check("anonymous", "wrong", "right", "missing")


# -- runtimes ------------------------------------------------------------------------------------------


def path_without(folder, *names):
    """This machine's programs but for some."""
    folder.mkdir()
    for place in ("/usr/bin", "/usr/sbin", "/bin", "/sbin"):
        for program in os.listdir(place):
            if program not in names and not (folder / program).is_symlink():
                (folder / program).symlink_to(os.path.join(place, program))
    return folder


def test_machine_without_a_runtime(fresh_yard, tmp_path):
    need_containers()
    yard = fresh_yard(start=False)
    yard.start(env={"PATH": str(path_without(tmp_path / "bin", "podman", "docker"))})
    house = JobHouse(yard)
    house.make_cluster("two", 1)
    done = house.run("none", "two", "true", containerSettings=settings("any/image:1"))
    code, text = error_of(done)
    assert code == "FailedStartingContainer" and "neither podman nor docker" in text
    house.check("none")


def test_runtime_that_hangs_holds_nobody(fresh_yard, tmp_path):
    """A pull that never ends can be cancelled, and other jobs go on meanwhile."""
    need_containers()
    folder = path_without(tmp_path / "bin", "podman", "docker")
    (folder / "podman").write_text(
        "#!/bin/sh\ncase \"$*\" in *pull*) sleep 607;; esac\n"
        f"exec {shutil.which('podman')} \"$@\"\n"
    )
    (folder / "podman").chmod(0o755)
    yard = fresh_yard("--grace-seconds", "2", start=False)
    yard.start(env={"PATH": str(folder)})
    house = JobHouse(yard)
    house.make_cluster("two", 2)
    house.submit("hanging", "two", "true", containerSettings=settings("localhost/never:1"))
    until(lambda: pids_of(b"sleep\x00607\x00"))
    assert house.run("beside", "two", "echo fine")["executionState"] == "succeeded"
    house.terminate("hanging")
    assert error_of(house.wait_for_end("hanging", 10))[0] == "JobTerminated"
    until(lambda: not pids_of(b"sleep\x00607\x00"), 5)
    house.check("hanging", "beside")
    house.wait_for_nodes("two", 2)

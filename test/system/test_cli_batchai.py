# SPDX-License-Identifier: Apache-2.0
"""az's verbs for clusters, file servers and jobs, as recipes use them."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import time

import pytest

from test_cli import refused, result

GROUP, WORKSPACE, EXPERIMENT, ACCOUNT = "batchai.recipes", "recipe_workspace", "exp", "recipestore"
IN_WORKSPACE = ("-g", GROUP, "-w", WORKSPACE)
IN_EXPERIMENT = (*IN_WORKSPACE, "-e", EXPERIMENT)
LONG_S = 90


@pytest.fixture(scope="module")
def house(yard):
    """What every recipe makes first."""
    result(yard, "group", "create", "-n", GROUP, "-l", "eastus")
    result(yard, "batchai", "workspace", "create", "-g", GROUP, "-n", WORKSPACE, "-l", "eastus")
    result(yard, "batchai", "experiment", "create", *IN_WORKSPACE, "-n", EXPERIMENT)
    result(yard, "storage", "account", "create", "-n", ACCOUNT, "--sku", "Standard_LRS", "-g", GROUP)
    for share in ("logs", "scripts", "share"):
        result(yard, "storage", "share", "create", "-n", share, "--account-name", ACCOUNT)
    result(yard, "storage", "container", "create", "-n", "container", "--account-name", ACCOUNT)
    return yard


@pytest.fixture(scope="module")
def cluster(house):
    result(house, "batchai", "cluster", "create", "-n", "two", *IN_WORKSPACE, "-s", "host", "-t", "2",
           "--generate-ssh-keys")
    return "two"


def write(yard, name, value):
    (yard.folder / name).write_text(json.dumps(value))
    return name


def job_file(yard, command, name="job.json", **properties):
    """A job that logs to a share, with the placeholder of the recipes."""
    return write(yard, name, {"$schema": "ignored", "properties": {
        "nodeCount": 1,
        "customToolkitSettings": {"commandLine": command},
        "stdOutErrPathPrefix": "$AZ_BATCHAI_JOB_MOUNT_ROOT/logs",
        "outputDirectories": [{"id": "MODEL", "pathPrefix": "$AZ_BATCHAI_JOB_MOUNT_ROOT/logs",
                               "pathSuffix": "Models"}],
        "mountVolumes": {"azureFileShares": [{
            "azureFileUrl": "https://<AZURE_BATCHAI_STORAGE_ACCOUNT>.file.core.windows.net/logs",
            "relativeMountPath": "logs",
        }]},
        **properties,
    }})


def submit(yard, name, command, cluster="two", **properties):
    return result(yard, "batchai", "job", "create", "-c", cluster, "-n", name, *IN_EXPERIMENT,
                  "-f", job_file(yard, command, **properties), "--storage-account-name", ACCOUNT)


def wait(yard, name, check=False):
    return yard.run("batchai", "job", "wait", "-n", name, *IN_EXPERIMENT, check=check, timeout=LONG_S)


def until(question, what="it did not happen"):
    deadline = time.monotonic() + LONG_S
    while not (answer := question()):
        assert time.monotonic() < deadline, what
        time.sleep(0.1)
    return answer


def columns(yard, *args):
    return re.split(r"\s{2,}", yard.run(*args, "-o", "table").stdout.splitlines()[0].strip())


# -- clusters ---------------------------------------------------------------------------------------


def test_a_cluster_is_printed_as_az_prints_it(house, cluster):
    shown = result(house, "batchai", "cluster", "show", "-n", cluster, *IN_WORKSPACE)
    assert set(shown) == {
        "allocationState", "allocationStateTransitionTime", "creationTime", "currentNodeCount",
        "errors", "id", "name", "nodeSetup", "nodeStateCounts", "provisioningState",
        "provisioningStateTransitionTime", "resourceGroup", "scaleSettings", "subnet", "type",
        "userAccountSettings", "virtualMachineConfiguration", "vmPriority", "vmSize",
    }
    assert shown["scaleSettings"] == {
        "autoScale": None,
        "manual": {"nodeDeallocationOption": "requeue", "targetNodeCount": 2},
    }
    assert shown["virtualMachineConfiguration"]["imageReference"] == {
        "offer": "UbuntuServer", "publisher": "Canonical", "sku": "16.04-LTS", "version": "latest",
        "virtualMachineImageId": None,
    }
    user = shown["userAccountSettings"]
    assert user["adminUserPassword"] is None
    assert user["adminUserSshPublicKey"].startswith("ssh-rsa AAAA")
    assert shown["resourceGroup"] == GROUP and shown["nodeSetup"] is None
    assert shown["creationTime"].endswith("+00:00")


def test_generated_keys_are_a_pair_that_ssh_knows(house, cluster):
    private, public = house.folder / ".ssh/id_rsa", house.folder / ".ssh/id_rsa.pub"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert stat.S_IMODE(private.parent.stat().st_mode) == 0o700
    if shutil.which("ssh-keygen"):
        again = subprocess.run(["ssh-keygen", "-y", "-f", private], capture_output=True, text=True,
                               check=True).stdout
        assert again.split()[:2] == public.read_text().split()[:2]
    before = private.read_text()
    result(house, "batchai", "cluster", "create", "-n", "again", *IN_WORKSPACE, "-s", "host", "-t", "0",
           "--generate-ssh-keys")
    assert private.read_text() == before
    house.run("batchai", "cluster", "delete", "-n", "again", *IN_WORKSPACE, "-y")


@pytest.mark.parametrize("options, scale", [
    (["-t", "0"], {"manual": {"targetNodeCount": 0}}),
    (["--min", "0", "--max", "0"], {"manual": {"targetNodeCount": 0}}),
    (["--min", "0", "--max", "3"], {"autoScale": {"minimumNodeCount": 0, "maximumNodeCount": 3,
                                                  "initialNodeCount": 0}}),
])
def test_scale_follows_az(house, options, scale):
    shown = result(house, "batchai", "cluster", "create", "-n", "scaled", *IN_WORKSPACE, "-s", "host",
                   *options, "--image", "UbuntuDSVM", "-u", "demo", "-p", "Dem0Pa$$w0rd",
                   "--vm-priority", "lowpriority")
    try:
        (kind, wanted), = scale.items()
        assert wanted.items() <= shown["scaleSettings"][kind].items()
        assert shown["vmPriority"] == "lowpriority"
        assert shown["userAccountSettings"] == {
            "adminUserName": "demo", "adminUserPassword": None, "adminUserSshPublicKey": None,
        }
        assert shown["virtualMachineConfiguration"]["imageReference"]["publisher"] == "microsoft-ads"
    finally:
        house.run("batchai", "cluster", "delete", "--ids", shown["id"], "-y")
    refused(house, 3, "ClusterNotFound", "batchai", "cluster", "show", "-n", "scaled", *IN_WORKSPACE)


@pytest.mark.parametrize("options, says", [
    (["-s", "host"], "how many nodes"),
    (["-t", "1"], "which size of machine"),
    (["-s", "host", "--min", "1"], "go together"),
    (["-s", "host", "--min", "3", "--max", "1"], "greater"),
    (["-s", "host", "-t", "x"], "not a number"),
    (["-s", "host", "-t", "1", "-i", "a:b"], "publisher:offer:sku:version"),
    (["-s", "host", "-t", "1", "--custom-image", "x"], "not a resource id"),
    (["-s", "host", "-t", "1", "-k", "nonsense"], "neither a public SSH key"),
    (["-s", "host", "-t", "1", "--setup-task", "true"], "go together"),
    (["-s", "host", "-t", "1", "--afs-name", "logs"], "which storage account"),
    (["-s", "host", "-t", "1", "--generate-ssh-key", "--afs-nam", "x"], "which storage account"),
])
def test_a_wrong_cluster_is_refused_before_it_is_made(house, options, says):
    refused(house, 2, says, "batchai", "cluster", "create", "-n", "never", *IN_WORKSPACE, *options)
    refused(house, 3, "ClusterNotFound", "batchai", "cluster", "show", "-n", "never", *IN_WORKSPACE)


def test_a_second_cluster_of_the_name_is_refused(house, cluster):
    refused(house, 1, "there already", "batchai", "cluster", "create", "-n", cluster, *IN_WORKSPACE,
            "-s", "host", "-t", "1")


def test_resize_and_auto_scale_change_the_scale(house):
    result(house, "batchai", "cluster", "create", "-n", "size", *IN_WORKSPACE, "-s", "host", "-t", "0",
           "--generate-ssh-keys")
    auto = result(house, "batchai", "cluster", "auto-scale", "-n", "size", *IN_WORKSPACE,
                  "--min", "0", "--max", "2")
    assert auto["scaleSettings"]["manual"] is None
    assert auto["scaleSettings"]["autoScale"]["maximumNodeCount"] == 2
    fixed = result(house, "batchai", "cluster", "resize", "-n", "size", *IN_WORKSPACE, "-t", "0")
    assert fixed["scaleSettings"]["autoScale"] is None
    house.run("batchai", "cluster", "delete", "-n", "size", *IN_WORKSPACE, "-y", "--no-wait")


def test_the_command_line_wins_over_the_file(house):
    file = write(house, "cluster.json", {"location": "eastus", "properties": {
        "vmSize": "STANDARD_D1",
        "nodeSetup": {"mountVolumes": {"azureFileShares": [{
            "accountName": "<AZURE_BATCHAI_STORAGE_ACCOUNT>",
            "azureFileUrl": "https://<AZURE_BATCHAI_STORAGE_ACCOUNT>.file.core.windows.net/share",
            "credentials": {"accountKey": "<AZURE_BATCHAI_STORAGE_KEY>"},
            "relativeMountPath": "azfiles",
        }]}},
        "userAccountSettings": {"adminUserName": "DemoUser", "adminUserPassword": "DemoPa$$w0rd"},
        "scaleSettings": {"autoScale": {"minimumNodeCount": 0, "maximumNodeCount": 1}},
    }})
    shown = result(house, "batchai", "cluster", "create", "-n", "mixed", *IN_WORKSPACE, "-f", file,
                   "-t", "0", "--bfs-name", "container",
                   env={"AZURE_BATCHAI_STORAGE_ACCOUNT": ACCOUNT})
    assert shown["vmSize"].upper() == "STANDARD_D1"
    assert shown["scaleSettings"]["manual"]["targetNodeCount"] == 0
    assert shown["userAccountSettings"]["adminUserName"] == "DemoUser"
    volumes = shown["nodeSetup"]["mountVolumes"]
    assert volumes["azureFileShares"] == [{
        "accountName": ACCOUNT, "credentials": {"accountKey": None, "accountKeySecretReference": None},
        "azureFileUrl": f"https://{ACCOUNT}.file.core.windows.net/share", "directoryMode": "0777",
        "fileMode": "0777", "relativeMountPath": "azfiles",
    }]
    assert volumes["azureBlobFileSystems"][0]["containerName"] == "container"
    assert volumes["azureBlobFileSystems"][0]["relativeMountPath"] == "bfs"
    house.run("batchai", "cluster", "delete", "-n", "mixed", *IN_WORKSPACE, "-y")


def test_auto_storage_is_made_once(house):
    for name in ("auto1", "auto2"):
        shown = result(house, "batchai", "cluster", "create", "-n", name, *IN_WORKSPACE, "-s", "host",
                       "-t", "0", "--use-auto-storage")
        volumes = shown["nodeSetup"]["mountVolumes"]
        assert volumes["azureFileShares"][0]["relativeMountPath"] == "autoafs"
        assert volumes["azureBlobFileSystems"][0]["relativeMountPath"] == "autobfs"
        house.run("batchai", "cluster", "delete", "-n", name, *IN_WORKSPACE, "-y")
    accounts = result(house, "storage", "account", "list", "-g", "batchaiautostorage")
    assert [bool(re.fullmatch("bai[a-z]{12}", a["name"])) for a in accounts] == [True]
    name = accounts[0]["name"]
    shares = result(house, "storage", "share", "list", "--account-name", name, "--query", "[].name")
    containers = result(house, "storage", "container", "list", "--account-name", name,
                        "--query", "[].name")
    assert (shares, containers) == (["batchaishare"], ["batchaicontainer"])


def test_the_output_of_the_setup_task_is_listed(house):
    result(house, "batchai", "cluster", "create", "-n", "setup", *IN_WORKSPACE, "-s", "host", "-t", "1",
           "--storage-account-name", ACCOUNT, "--afs-name", "logs", "--setup-task", "echo set up",
           "--setup-task-output", "$AZ_BATCHAI_MOUNT_ROOT/afs")
    try:
        where = ("batchai", "cluster", "file", "list", "-c", "setup", *IN_WORKSPACE)
        until(lambda: "stdout-" in house.run(*where, check=False).stdout)
        files = {f["name"]: f for f in result(house, *where)}
        (name,) = [n for n in files if n.startswith("stdout-")]
        assert set(files[name]) == {"downloadUrl", "isDirectory", "name", "size"}
        until(lambda: result(house, *where, "--query", f"[?name=='{name}'].size | [0]") == 7)
        assert house.session.get(files[name]["downloadUrl"]).text == "set up\n"
        assert columns(house, *where) == ["Name", "Is directory", "Size"]
    finally:
        house.run("batchai", "cluster", "delete", "-n", "setup", *IN_WORKSPACE, "-y")


def test_tables_have_the_columns_of_az(house, cluster):
    submit(house, "table", "true")
    assert wait(house, "table").returncode == 0
    assert columns(house, "batchai", "cluster", "list", *IN_WORKSPACE) == [
        "Name", "Resource Group", "Workspace", "VM Size", "State", "Idle", "Running", "Preparing",
        "Leaving", "Unusable",
    ]
    assert columns(house, "batchai", "job", "list", *IN_EXPERIMENT) == [
        "Name", "Cluster", "Cluster RG", "Cluster Workspace", "Tool", "Nodes", "State", "Exit code",
    ]
    assert columns(house, "batchai", "job", "file", "list", "-j", "table", *IN_EXPERIMENT) == [
        "Name", "Type", "Size", "Modified",
    ]
    row = house.run("batchai", "job", "show", "-n", "table", *IN_EXPERIMENT, "-o", "table").stdout
    assert row.splitlines()[2].split() == [
        "table", cluster, GROUP, WORKSPACE, "custom", "1", "succeeded", "0",
    ]


# -- nodes ------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="nodes have SSH as root only")
def test_commands_run_on_nodes(house, cluster):
    nodes = until(lambda: len(n := result(house, "batchai", "cluster", "node", "list", "-c", cluster,
                                          *IN_WORKSPACE)) == 2 and n)
    assert columns(house, "batchai", "cluster", "node", "list", "-c", cluster, *IN_WORKSPACE) == [
        "ID", "IP", "SSH Port",
    ]
    where = ("batchai", "cluster", "node", "exec", "-c", cluster, *IN_WORKSPACE,
             "-k", house.folder / ".ssh/id_rsa")
    second = until(lambda: (d := house.run(*where, "-n", nodes[1]["nodeId"], "--exec",
                                           "hostname; echo 'it''s'; exit 7", check=False)
                            ).returncode == 7 and d)
    assert second.stdout.splitlines() == [nodes[1]["nodeId"], "its"]
    refused(house, 2, "LOCALPORT", *where, "-L", "nonsense")
    refused(house, 3, "no node", *where, "-n", "tvm-none", "--exec", "true")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def first_bytes(port):
    """What is said first at a port of this machine; "" while nobody listens."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as end:
            return end.recv(64).decode()
    except OSError:
        return ""


@pytest.mark.skipif(os.geteuid() != 0, reason="nodes have SSH as root only")
def test_ports_are_led_to_a_node(house, cluster):
    """-L: of two ports to the node's own SSH, while a command runs there, and until Ctrl-C without one."""
    where = ("batchai", "cluster", "node", "exec", "-c", cluster, *IN_WORKSPACE,
             "-k", house.folder / ".ssh/id_rsa")
    until(lambda: house.run(*where, "--exec", "true", check=False).returncode == 0)
    for more, status in ((("--exec", "read line; exit 6"), 6), ((), 255)):  # as ssh has it
        ports = free_port(), free_port()
        tunnels = [word for port in ports for word in ("-L", f"{port}:localhost:22")]
        running = subprocess.Popen(
            [str(house.programs / "yard"), *map(str, where), *tunnels, *more], env=house.env(),
            cwd=house.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, start_new_session=True)
        try:
            for port in ports:
                until(lambda: first_bytes(port).startswith("SSH-2.0-"), f"nothing at port {port}")
            if not more:
                os.killpg(running.pid, signal.SIGINT)  # as a terminal does
            _, errors = running.communicate("go on\n" if more else None, timeout=LONG_S)
        finally:
            running.kill()
        assert running.returncode == status, errors
        assert ("until Ctrl-C" in errors) == (not more)
        assert not any(map(first_bytes, ports))


@pytest.mark.skipif(os.geteuid() != 0, reason="nodes have SSH as root only")
def test_a_password_opens_a_node(house):
    """-p: the password of the cluster's account, with what shells find special; a wrong one is refused."""
    password = "it's $HOME \"7\""
    result(house, "batchai", "cluster", "create", "-n", "word", *IN_WORKSPACE, "-s", "host", "-t", "1",
           "-u", "tester", "-p", password)
    where = ("batchai", "cluster", "node", "exec", "-c", "word", *IN_WORKSPACE)
    try:
        done = until(lambda: (d := house.run(*where, "-p", password, "--exec", "id -un; exit 9",
                                             check=False)).returncode == 9 and d)
        assert done.stdout.strip() in ("root", "tester")  # one number, two names
        assert password not in done.stderr
        wrong = house.run(*where, "-p", "not it", "--exec", "true", check=False)
        assert wrong.returncode == 255 and "Permission denied" in wrong.stderr
        assert not list(pathlib.Path("/tmp").glob("yard-askpass-*"))
    finally:
        house.run("batchai", "cluster", "delete", "-n", "word", *IN_WORKSPACE, "-y")


# -- file servers -----------------------------------------------------------------------------------


def test_a_file_server_lives_and_is_mounted_by_name(house, cluster):
    made = result(house, "batchai", "file-server", "create", "-n", "datasets", *IN_WORKSPACE, "-s",
                  "Standard_D1_V2", "--disk-count", "2", "--disk-size", "10", "--storage-sku",
                  "Standard_LRS", "-u", "demo", "-p", "Dem0Pa$$w0rd")
    assert made["dataDisks"]["diskSizeInGb"] == 10 and made["mountSettings"]["mountPoint"]
    assert columns(house, "batchai", "file-server", "list", *IN_WORKSPACE) == [
        "Name", "Resource Group", "Size", "Disks", "Public IP", "Internal IP", "Mount Point",
    ]
    assert "2 x 10 Gb" in house.run("batchai", "file-server", "show", "-n", "datasets", *IN_WORKSPACE,
                                    "-o", "table").stdout
    nfs = "$AZ_BATCHAI_JOB_MOUNT_ROOT/nfs"
    for name, command in (("nfs1", f"echo kept > {nfs}/f"), ("nfs2", f"cat {nfs}/f")):
        result(house, "batchai", "job", "create", "-c", cluster, "-n", name, *IN_EXPERIMENT,
               "-f", job_file(house, command), "--storage-account-name", ACCOUNT, "--nfs", "datasets")
        assert wait(house, name).returncode == 0
    shown = house.run("batchai", "job", "file", "stream", "-j", "nfs2", *IN_EXPERIMENT,
                      "-f", "stdout.txt")
    assert shown.stdout == "kept\n"
    house.run("batchai", "file-server", "delete", "--ids", made["id"], "-y")
    refused(house, 3, "FileServerNotFound", "batchai", "file-server", "show", "-n", "datasets",
            *IN_WORKSPACE)


# -- jobs -------------------------------------------------------------------------------------------


def test_a_job_is_printed_as_az_prints_it(house, cluster):
    made = submit(house, "shape", "echo hi | tee $AZ_BATCHAI_OUTPUT_MODEL/result.txt")
    assert made["constraints"] == {"maxWallClockTime": "7 days, 0:00:00"}
    assert made["mountVolumes"]["azureFileShares"][0]["accountName"] == ACCOUNT
    assert made["mountVolumes"]["azureFileShares"][0]["credentials"] == {
        "accountKey": None, "accountKeySecretReference": None,
    }
    assert made["horovodSettings"] is None and made["schedulingPriority"] == "normal"
    assert made["cluster"]["resourceGroup"] == GROUP
    done = wait(house, "shape")
    assert done.returncode == 0 and "Job succeeded at" in done.stderr and done.stdout == ""
    shown = result(house, "batchai", "job", "show", "-n", "shape", *IN_EXPERIMENT)
    assert shown["executionInfo"]["exitCode"] == 0 and shown["executionInfo"]["errors"] is None
    segment = result(house, "batchai", "job", "show", "-n", "shape", *IN_EXPERIMENT,
                     "--query", "jobOutputDirectoryPathSegment")
    assert segment.startswith(f"{house.subscription_id}/{GROUP}/workspaces/{WORKSPACE}/experiments/")
    files = result(house, "batchai", "job", "file", "list", "-j", "shape", *IN_EXPERIMENT,
                   "-d", "MODEL")
    assert [set(f) for f in files] == [
        {"contentLength", "downloadUrl", "fileType", "lastModified", "name"}
    ]
    assert house.session.get(files[0]["downloadUrl"]).text == "hi\n"
    refused(house, 1, "there already", "batchai", "job", "create", "-c", cluster, "-n", "shape",
            *IN_EXPERIMENT, "-f", job_file(house, "true"), "--storage-account-name", ACCOUNT)


def test_wait_exits_with_the_exit_code_of_the_job(house, cluster):
    submit(house, "code", "exit 42")
    done = wait(house, "code")
    assert done.returncode == 42 and "JobFailed: Job failed" in done.stderr
    stopped = submit(house, "stopped", "sleep 1000")
    house.run("batchai", "job", "terminate", "--ids", stopped["id"], "-y")
    done = wait(house, "stopped")
    assert done.returncode == 255 and "JobTerminated" in done.stderr
    house.run("batchai", "job", "delete", "-n", "stopped", *IN_EXPERIMENT, "-y")
    refused(house, 3, "JobNotFound", "batchai", "job", "show", "-n", "stopped", *IN_EXPERIMENT)


def test_a_job_of_a_file_that_lacks_something_is_refused(house, cluster):
    base = ("batchai", "job", "create", "-c", cluster, "-n", "bad", *IN_EXPERIMENT, "-f")
    file = job_file(house, "true")
    refused(house, 2, "AZURE_BATCHAI_STORAGE_ACCOUNT", *base, file)
    refused(house, 3, "no storage account", *base, file, "--storage-account-name", "stranger")
    refused(house, 3, "missing.json", *base, "missing.json")
    (house.folder / "broken.json").write_text("{")
    refused(house, 1, "broken.json", *base, "broken.json")
    refused(house, 1, "properties", *base, write(house, "bare.json", {"nodeCount": 1}))
    refused(house, 3, "ClusterNotFound", "batchai", "job", "create", "-c", "none", "-n", "bad",
            *IN_EXPERIMENT, "-f", file, "--storage-account-name", ACCOUNT)
    refused(house, 3, "JobNotFound", "batchai", "job", "show", "-n", "bad", *IN_EXPERIMENT)


def test_volumes_of_the_options_are_mounted_for_the_job(house, cluster):
    """azure-cli's own test of mounting at job level, with its file."""
    file = write(house, "refs.json", {"properties": {
        "stdOutErrPathPrefix": "$AZ_BATCHAI_JOB_MOUNT_ROOT/afs",
        "outputDirectories": [{"id": "OUTPUT", "pathPrefix": "$AZ_BATCHAI_JOB_MOUNT_ROOT/bfs",
                               "pathSuffix": "output", "type": "custom"}],
        "nodeCount": 1, "toolType": "custom",
        "customToolkitSettings": {"commandLine": "echo hi | tee $AZ_BATCHAI_OUTPUT_OUTPUT/result.txt"},
    }})
    result(house, "batchai", "job", "create", "-c", cluster, "-n", "volumes", *IN_EXPERIMENT, "-f", file,
           "--afs-name", "share", "--bfs-name", "container",
           env={"AZURE_BATCHAI_STORAGE_ACCOUNT": ACCOUNT})
    assert wait(house, "volumes").returncode == 0
    names = result(house, "batchai", "job", "file", "list", "-j", "volumes", *IN_EXPERIMENT,
                   "-d", "OUTPUT", "--query", "[].name")
    assert names == ["result.txt"]


# -- streams ----------------------------------------------------------------------------------------

LINES = 400
SLOWLY = f"for i in $(seq {LINES}); do echo line $i of many; sleep 0.01; done"
WANTED = "".join(f"line {i} of many\n" for i in range(1, LINES + 1))


def follow(yard, *args):
    return subprocess.Popen([yard.programs / "yard", *map(str, args)], env=yard.env(), text=True,
                            cwd=yard.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_stream_survives_restarts_and_kills_of_the_yard(house, cluster):
    submit(house, "long", SLOWLY)
    streams = [
        follow(house, "batchai", "job", "file", "stream", "-j", "long", *IN_EXPERIMENT, "-f", "stdout.txt"),
        follow(house, "logs", "-f", "exp/long"),
    ]
    try:
        for stream in streams:
            assert stream.stdout.readline() == "line 1 of many\n"
        house.restart()
        time.sleep(0.5)
        house.kill9()
        time.sleep(0.3)
        house.start()
        for stream in streams:
            rest, errors = stream.stdout.read(), stream.stderr.read()
            stream.wait(LONG_S)
            assert "line 1 of many\n" + rest == WANTED
            assert stream.returncode == 0 and errors == ""
    finally:
        for stream in streams:
            stream.kill()
            stream.wait()
    assert wait(house, "long").returncode == 0


def test_ctrl_c_leaves_the_job_running(house, cluster):
    submit(house, "left", "echo begun; sleep 600")
    stream = follow(house, "logs", "-f", "left")
    assert stream.stdout.readline() == "begun\n"
    stream.send_signal(signal.SIGINT)
    rest, errors = stream.communicate(timeout=LONG_S)
    assert stream.returncode == 130 and rest == ""
    assert "The job goes on. Come back with: yard logs -f left" in errors
    assert result(house, "batchai", "job", "show", "-n", "left", *IN_EXPERIMENT,
                  "--query", "executionState") == "running"
    assert "running" in house.run("jobs", "--state", "active").stdout
    house.run("batchai", "job", "terminate", "-n", "left", *IN_EXPERIMENT, "-y")


def test_a_reader_that_leaves_ends_the_stream(house, cluster):
    submit(house, "pipe", SLOWLY)
    stream = follow(house, "logs", "-f", "pipe")
    assert stream.stdout.readline() == "line 1 of many\n"
    stream.stdout.close()
    stream.stderr.close()
    assert stream.wait(LONG_S) == 0
    assert wait(house, "pipe").returncode == 0


def test_logs_of_a_job_that_has_none_say_so(house, cluster):
    refused(house, 3, "FileNotFound", "logs", "long", "--file", "nothing.txt")
    refused(house, 3, "did you mean", "logs", "lonk")

# SPDX-License-Identifier: Apache-2.0
"""The scenarios of the Azure SDK's own live tests of Batch AI, with the SDK as Debian ships it.

Each test is one scenario: what the recorded service did with it is done here, by real nodes.
"""
import io
import os
import re
import shutil
import subprocess
import tarfile
import time

import pytest

pytest.importorskip("azure.mgmt.batchai", reason="python3-azure is not installed")

import requests
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.mgmt.batchai import models as m
from batchai_house import AFS, SHARE_ROOT, BatchAIHouse, errors_of, fetch, until

TERMINATED = ("JobTerminated", "The specified job has been terminated by the user")


@pytest.fixture(scope="module")
def house(yard):
    return BatchAIHouse(yard)


@pytest.fixture(scope="module")
def cluster(house):
    """One node that most tests share: jobs leave nothing behind on it."""
    house.make_cluster("shared", 1)
    house.wait_for_nodes("shared", 1)
    return "shared"


@pytest.fixture(scope="module")
def pair(house):
    house.make_cluster("pair", 2)
    house.wait_for_nodes("pair", 2)
    return "pair"


# -- workspaces and experiments: what is below them goes with them -------------------------------


def test_deleting_a_workspace_leaves_the_jobs_of_others_alone(house, cluster):
    """A job that waits in one workspace stays when another one, with its job, is deleted."""
    for workspace in ("first", "second"):
        house.make_workspace(workspace)
        house.make_cluster("c", 0, workspace=workspace)
        house.make_experiment("e", workspace)
        parameters = house.job_parameters("c", "true")
        parameters.cluster.id = house.cluster_id("c", workspace)
        house.submit("j", parameters, experiment="e", workspace=workspace)
    house.client.workspaces.begin_delete(house.group, "first").result()
    with pytest.raises(ResourceNotFoundError) as gone:
        house.job("j", "e", "first")
    assert gone.value.error.code == "WorkspaceNotFound"
    assert house.job("j", "e", "second").execution_state == "queued"
    assert house.cluster("c", "second").provisioning_state == "succeeded"
    house.client.workspaces.begin_delete(house.group, "second").result()
    names = [w.name for w in house.client.workspaces.list_by_resource_group(house.group)]
    assert names == [house.workspace]


def test_deleting_an_experiment_leaves_the_jobs_of_others_alone(house):
    house.make_cluster("none", 0)
    for experiment in ("e1", "e2"):
        house.make_experiment(experiment)
        house.submit("j", house.job_parameters("none", "true"), experiment=experiment)
    house.client.experiments.begin_delete(house.group, house.workspace, "e1").result()
    with pytest.raises(ResourceNotFoundError):
        house.job("j", "e1")
    assert house.job("j", "e2").execution_state == "queued"
    house.client.experiments.begin_delete(house.group, house.workspace, "e2").result()
    house.client.clusters.begin_delete(house.group, house.workspace, "none").result()


# -- clusters --------------------------------------------------------------------------------------


def test_cluster_from_creation_to_deletion(house):
    made = house.make_cluster("life", 1)
    assert made.name == "life" and made.type == "Microsoft.BatchAI/workspaces/clusters"
    assert made.id == house.cluster_id("life")
    assert made.provisioning_state == "succeeded" and made.vm_size == "STANDARD_D1"
    assert made.vm_priority == "lowpriority"
    assert made.user_account_settings.admin_user_name == "demoUser"
    assert made.user_account_settings.admin_user_password is None
    image = made.virtual_machine_configuration.image_reference
    assert (image.publisher, image.offer, image.sku) == ("Canonical", "UbuntuServer", "16.04-LTS")
    (share,) = made.node_setup.mount_volumes.azure_file_shares
    assert share.credentials.account_key is None and share.file_mode == "0777"
    assert made.scale_settings.manual.node_deallocation_option == "requeue"
    assert "life" in [c.name for c in house.client.clusters.list_by_workspace(house.group, house.workspace)]
    house.wait_for_nodes("life", 1)
    (node,) = house.nodes("life")
    assert node.node_id.startswith("tvm-") and node.ip_address and node.port > 0
    house.client.clusters.begin_delete(house.group, house.workspace, "life").result()
    with pytest.raises(ResourceNotFoundError) as gone:
        house.cluster("life")
    assert gone.value.error.code == "ClusterNotFound"
    assert gone.value.error.message == "The specified cluster life is not found"


def test_the_set_up_task_runs_with_its_variables_and_secrets(house):
    task = m.SetupTask(
        command_line="echo $GREETING $SECRET_GREETING",
        environment_variables=[m.EnvironmentVariable(name="GREETING", value="setup task")],
        secrets=[m.EnvironmentVariableWithSecretValue(name="SECRET_GREETING", value="has a secret")],
        std_out_err_path_prefix=SHARE_ROOT,
    )
    made = house.make_cluster("setup", 1, setup_task=task)
    shown = made.node_setup.setup_task
    assert [(s.name, s.value) for s in shown.secrets] == [("SECRET_GREETING", None)]
    assert shown.std_out_err_path_suffix.startswith(
        f"{house.yard.subscription_id}/{house.group}/workspaces/{house.workspace}/clusters/setup/"
    )
    house.wait_for_nodes("setup", 1)
    (node,) = house.nodes("setup")
    folder = house.shares.get_share_client("share").get_directory_client(shown.std_out_err_path_suffix)
    text = folder.get_file_client(f"stdout-{node.node_id}.txt").download_file().readall()
    assert text == b"setup task has a secret\n"
    house.client.clusters.begin_delete(house.group, house.workspace, "setup").result()


def test_a_failed_set_up_makes_the_node_unusable_and_says_why(house):
    task = m.SetupTask(command_line="exit 7", std_out_err_path_prefix=SHARE_ROOT)
    house.make_cluster("broken", 1, setup_task=task)
    seen = until(lambda: (c := house.cluster("broken")).node_state_counts.unusable_node_count == 1 and c)
    assert seen.errors and seen.errors[0].code and seen.errors[0].message
    house.client.clusters.begin_delete(house.group, house.workspace, "broken").result()


def test_resizing_to_nothing_and_back(house):
    house.make_cluster("resized", 1)
    house.wait_for_nodes("resized", 1)
    shrunk = house.resize("resized", 0)
    assert shrunk.scale_settings.manual.target_node_count == 0
    house.wait_for_nodes("resized", 0)
    assert house.nodes("resized") == []
    house.resize("resized", 1)
    house.wait_for_nodes("resized", 1)
    done = house.run("after-resize", "resized", "echo hello")
    assert done.execution_state == "succeeded"
    house.expect("after-resize", "stdouterr", {"stdout.txt": "hello\n", "stderr.txt": ""})
    house.client.clusters.begin_delete(house.group, house.workspace, "resized").result()


def test_auto_scale_follows_the_jobs(house, fresh_yard):
    """From nothing to one node for a job, and back when it is idle."""
    quick = BatchAIHouse(fresh_yard("--idle-seconds", "1"))
    scale = m.ScaleSettings(auto_scale=m.AutoScaleSettings(
        minimum_node_count=0, maximum_node_count=1, initial_node_count=0
    ))
    quick.make_cluster("auto", scale=scale)
    quick.wait_for_nodes("auto", 0)
    done = quick.run("job", "auto", "echo auto")
    assert done.execution_state == "succeeded"
    quick.wait_for_nodes("auto", 0)
    switched = quick.resize("auto", 0)  # PATCH may change from automatic to manual
    assert switched.scale_settings.auto_scale is None
    assert switched.scale_settings.manual.target_node_count == 0


def test_usages(house, cluster):
    usages = list(house.client.usages.list("northeurope"))
    by_name = {u.name.value: u for u in usages}
    assert by_name["Clusters"].current_value >= 1 and by_name["Clusters"].limit >= 20
    total = by_name["Total Cluster LowPriority Regional vCPUs"]
    assert total.current_value >= 1 and total.limit == os.cpu_count()
    assert by_name["Standard D Family Cluster LowPriority vCPUs"].current_value >= 1
    assert by_name["Standard NC Family Cluster Dedicated vCPUs"].current_value == 0


# -- jobs ------------------------------------------------------------------------------------------


def test_job_from_creation_to_deletion(house, cluster):
    done = house.run("job", cluster, "echo hi | tee $AZ_BATCHAI_OUTPUT_OUTPUTS/hi.txt")
    assert done.execution_state == "succeeded", house.explain("job")
    assert done.tool_type == "custom" and done.execution_info.exit_code == 0
    assert not done.execution_info.errors
    assert done.execution_info.end_time >= done.execution_info.start_time
    assert done.constraints.max_wall_clock_time.days == 7
    assert done.job_output_directory_path_segment.startswith(
        f"{house.yard.subscription_id}/{house.group}/workspaces/{house.workspace}"
        f"/experiments/{house.experiment}/jobs/job/"
    )
    house.expect("job", "stdouterr", {"execution.log": None, "stdout.txt": "hi\n", "stderr.txt": ""})
    house.expect("job", "OUTPUTS", {"hi.txt": "hi\n"})
    assert list(house.files("job")) == ["execution.log", "stderr.txt", "stdout.txt"]
    listed = house.client.jobs.list_by_experiment(house.group, house.workspace, house.experiment)
    assert "job" in [j.name for j in listed]
    house.client.jobs.begin_delete(house.group, house.workspace, house.experiment, "job").result()
    with pytest.raises(ResourceNotFoundError) as gone:
        house.job("job")
    assert gone.value.error.code == "JobNotFound"


def test_the_same_job_twice_is_one_and_another_is_refused(house, cluster):
    parameters = house.job_parameters(cluster, "true")
    house.submit("twice", parameters)
    first = house.wait_for_end("twice")
    again = house.submit("twice", parameters)
    assert again.job_output_directory_path_segment == first.job_output_directory_path_segment
    with pytest.raises(ResourceExistsError):
        house.submit("twice", house.job_parameters(cluster, "false"))


def test_running_job_termination(house, cluster):
    house.submit("longrunning", house.job_parameters(cluster, "sleep 600"))
    running = house.wait_for_state("longrunning", "running")
    assert running.execution_info.start_time and running.execution_info.end_time is None
    house.client.jobs.begin_terminate(
        house.group, house.workspace, house.experiment, "longrunning"
    ).result()
    ended = house.wait_for_end("longrunning")
    assert ended.execution_state == "failed" and errors_of(ended) == [TERMINATED]
    assert ended.execution_info.exit_code is None


def test_queued_job_termination(house):
    house.make_cluster("empty", 0)
    house.submit("queued", house.job_parameters("empty", "true"))
    waiting = house.job("queued")
    assert waiting.execution_state == "queued" and waiting.execution_info is None
    house.client.jobs.begin_terminate(house.group, house.workspace, house.experiment, "queued").result()
    ended = house.job("queued")
    assert ended.execution_state == "failed" and errors_of(ended) == [TERMINATED]
    assert ended.execution_info.exit_code is None
    assert ended.execution_info.start_time and ended.execution_info.end_time
    house.client.jobs.begin_delete(house.group, house.workspace, house.experiment, "queued").result()
    house.client.clusters.begin_delete(house.group, house.workspace, "empty").result()


def test_completed_job_termination_changes_nothing(house, cluster):
    done = house.run("completed", cluster, "true")
    assert done.execution_state == "succeeded"
    answer = house.yard.rest("POST", f"{house.job_path('completed')}/terminate")
    assert answer.status_code == 200 and answer.content == b""
    assert "Azure-AsyncOperation" not in answer.headers
    again = house.job("completed")
    assert again.execution_state == "succeeded" and again.execution_info.exit_code == 0


def test_running_job_deletion(house, cluster):
    house.submit("doomed", house.job_parameters(cluster, "sleep 600"))
    house.wait_for_state("doomed", "running")
    house.client.jobs.begin_delete(house.group, house.workspace, house.experiment, "doomed").result()
    with pytest.raises(ResourceNotFoundError):
        house.job("doomed")
    house.wait_for_nodes(cluster, 1)


def test_failed_job_reporting(house, cluster):
    failed = house.run("failed", cluster, "false")
    assert failed.execution_state == "failed" and failed.execution_info.exit_code == 1
    assert errors_of(failed) == [("JobFailed", "Job failed with non-zero exit code")]
    why = house.yard.rest("GET", f"{house.job_path('failed')}/why").json()["why"]
    assert "1" in why and "\n" not in why


# -- preparation -----------------------------------------------------------------------------------


def test_preparation_on_the_host_makes_the_input_directory(house, cluster):
    done = house.run(
        "prepared", cluster, "cat $AZ_BATCHAI_INPUT_INPUT/hi.txt",
        job_preparation=m.JobPreparation(
            command_line="mkdir -p $AZ_BATCHAI_INPUT_INPUT && echo hello > $AZ_BATCHAI_INPUT_INPUT/hi.txt"
            " && echo prepared"
        ),
    )
    assert done.execution_state == "succeeded", house.explain("prepared")
    house.expect("prepared", "stdouterr", {
        "stdout.txt": "hello\n", "stderr.txt": "", "stdout-job_prep.txt": "prepared\n",
        "stderr-job_prep.txt": "", "execution.log": None,
    })


def test_preparation_failure_on_the_host(house, cluster):
    failed = house.run(
        "unprepared", cluster, "echo never",
        job_preparation=m.JobPreparation(command_line="echo started; exit 3"),
    )
    assert failed.execution_state == "failed" and failed.execution_info.exit_code == 3
    assert errors_of(failed) == [
        ("JobPreparationFailed", "Job preparation task failed with non-zero exit code")
    ]
    seen = house.read("unprepared")
    assert seen["stdout-job_prep.txt"] == "started\n" and not seen.get("stdout.txt")


# -- containers ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def image():
    """A small image made of this machine's own busybox: nothing can be pulled here."""
    if not shutil.which("podman") or os.geteuid() != 0:
        pytest.skip("containers need podman and root")
    busybox = shutil.which("busybox")
    if not busybox:
        pytest.skip("busybox is not installed")
    name = "localhost/yard-sdk-test:3"
    if subprocess.run(["podman", "image", "exists", name]).returncode != 0:
        make_image(busybox, name)
    return name


def make_image(busybox, name):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for folder in ("bin", "tmp", "etc", "root", "usr", "usr/bin"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        tar.add(busybox, "bin/busybox")
        tar.add(os.path.realpath("/bin/bash"), "bin/bash")  # commands are bash's, as in the original
        needs = subprocess.run(["ldd", "/bin/bash"], check=True, capture_output=True, text=True).stdout
        for library in re.findall(r"(/lib\S+)", needs):
            tar.add(os.path.realpath(library), library.lstrip("/"))
        for applet in ("sh", "echo", "cat", "ls", "mkdir", "tee", "sleep", "env", "true", "false", "test",
                       "hostname", "id", "rm", "touch"):
            entry = tarfile.TarInfo(f"bin/{applet}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(entry)
    subprocess.run(["podman", "import", "-", name], input=made.getvalue(), check=True, capture_output=True)


def container_of(image):
    return m.ContainerSettings(image_source_registry=m.ImageSourceRegistry(image=image))


def test_job_in_a_container(house, cluster, image):
    done = house.run(
        "contained", cluster, "echo hi | tee $AZ_BATCHAI_OUTPUT_OUTPUTS/hi.txt",
        container_settings=container_of(image),
    )
    assert done.execution_state == "succeeded", house.explain("contained")
    house.expect("contained", "stdouterr", {"stdout.txt": "hi\n", "stderr.txt": ""})
    house.expect("contained", "OUTPUTS", {"hi.txt": "hi\n"})


def test_preparation_in_a_container_is_seen_by_the_job(house, cluster, image):
    done = house.run(
        "container-prepared", cluster, "cat /made-by-prep $AZ_BATCHAI_INPUT_INPUT/c.txt",
        container_settings=container_of(image),
        job_preparation=m.JobPreparation(
            command_line="echo inside > /made-by-prep; mkdir -p $AZ_BATCHAI_INPUT_INPUT;"
            " echo input > $AZ_BATCHAI_INPUT_INPUT/c.txt; echo done"
        ),
    )
    assert done.execution_state == "succeeded", house.explain("container-prepared")
    house.expect("container-prepared", "stdouterr", {
        "stdout.txt": "inside\ninput\n", "stdout-job_prep.txt": "done\n",
    })
    assert not os.path.exists("/made-by-prep")


def test_preparation_failure_in_a_container(house, cluster, image):
    failed = house.run(
        "container-unprepared", cluster, "echo never", container_settings=container_of(image),
        job_preparation=m.JobPreparation(command_line="exit 4"),
    )
    assert failed.execution_state == "failed" and failed.execution_info.exit_code == 4
    assert errors_of(failed)[0][0] == "JobPreparationFailed"


def test_an_image_that_cannot_be_had_is_a_cause(house, cluster, image):
    failed = house.run(
        "no-image", cluster, "true", container_settings=container_of("localhost/no-such-image:1")
    )
    assert failed.execution_state == "failed"
    assert errors_of(failed)[0][0] == "FailedStartingContainer"


def test_an_image_can_be_mapped_to_the_host(house, cluster):
    name = "tensorflow%2Ftensorflow:1.8.0-gpu"
    made = house.yard.rest("PUT", f"/yard/images/{name}", json={"target": "host"})
    assert made.status_code == 200 and made.json() == {
        "image": "tensorflow/tensorflow:1.8.0-gpu", "target": "host",
    }
    done = house.run(
        "mapped", cluster, "echo on the host",
        container_settings=container_of("tensorflow/tensorflow:1.8.0-gpu"),
    )
    assert done.execution_state == "succeeded", house.explain("mapped")
    house.expect("mapped", "stdouterr", {"stdout.txt": "on the host\n"})
    assert house.yard.rest("DELETE", f"/yard/images/{name}").status_code == 200
    assert house.yard.rest("GET", "/yard/images").json() == {"value": []}


# -- several nodes ---------------------------------------------------------------------------------


def needs_ssh(house, cluster):
    if not house.nodes(cluster):
        pytest.skip("the nodes of this yard are no hosts of their own (not root)")


def test_password_less_ssh_between_nodes(house, pair):
    needs_ssh(house, pair)
    done = house.run(
        "ssh", pair,
        'for host in $(echo $AZ_BATCH_HOST_LIST | tr "," " "); do ssh $host hostname; done; echo done',
        node_count=2,
    )
    assert done.execution_state == "succeeded", house.explain("ssh")
    *hosts, last = house.read("ssh")["stdout.txt"].split()
    assert last == "done" and sorted(hosts) == sorted(n.node_id for n in house.nodes(pair))
    logs = [name for name in house.files("ssh") if name.startswith("execution-")]
    assert len(logs) == 2


def test_remote_login_information_of_a_job(house, pair):
    needs_ssh(house, pair)
    house.submit("login", house.job_parameters(pair, "sleep 600", node_count=2))
    house.wait_for_state("login", "running")
    seen = list(house.client.jobs.list_remote_login_information(
        house.group, house.workspace, house.experiment, "login"
    ))
    assert sorted(n.node_id for n in seen) == sorted(n.node_id for n in house.nodes(pair))
    house.client.jobs.begin_terminate(house.group, house.workspace, house.experiment, "login").result()


# -- volumes ---------------------------------------------------------------------------------------


def test_job_level_mounting(house, cluster):
    house.shares.create_share("jobshare")
    house.blobs.create_container("jobcontainer")
    parameters = house.job_parameters(
        cluster,
        "echo afs > $AZ_BATCHAI_OUTPUT_OUTPUT1/job_afs.txt; echo bfs > $AZ_BATCHAI_OUTPUT_OUTPUT2/job_bfs.txt; "
        "mkdir $AZ_BATCHAI_OUTPUT_OUTPUT1/afs; echo afs > $AZ_BATCHAI_OUTPUT_OUTPUT1/afs/job_afs.txt; "
        "mkdir $AZ_BATCHAI_OUTPUT_OUTPUT2/bfs; echo bfs > $AZ_BATCHAI_OUTPUT_OUTPUT2/bfs/job_bfs.txt; echo done",
        input_directories=None,
        mount_volumes=m.MountVolumes(
            azure_file_shares=[house.share("jobshare", "job_afs")],
            azure_blob_file_systems=[house.container("jobcontainer", "job_bfs")],
        ),
        output_directories=[
            m.OutputDirectory(id="OUTPUT1", path_prefix="$AZ_BATCHAI_JOB_MOUNT_ROOT/job_afs"),
            m.OutputDirectory(id="OUTPUT2", path_prefix="$AZ_BATCHAI_JOB_MOUNT_ROOT/job_bfs"),
        ],
        job_preparation=m.JobPreparation(
            command_line="echo afs > $AZ_BATCHAI_OUTPUT_OUTPUT1/prep_afs.txt; "
            "echo bfs > $AZ_BATCHAI_OUTPUT_OUTPUT2/prep_bfs.txt; echo done"
        ),
    )
    house.submit("mounting", parameters)
    done = house.wait_for_end("mounting")
    assert done.execution_state == "succeeded", house.explain("mounting")
    house.expect("mounting", "stdouterr", {"stdout.txt": "done\n", "stdout-job_prep.txt": "done\n"})
    for directory, word in (("OUTPUT1", "afs"), ("OUTPUT2", "bfs")):
        house.expect("mounting", directory, {f"job_{word}.txt": f"{word}\n", f"prep_{word}.txt": f"{word}\n"})
        folder = house.files("mounting", directory)[word]
        assert folder.file_type == "directory" and folder.download_url is None
        inner = house.files("mounting", directory, word)
        assert list(inner) == [f"job_{word}.txt"]
        assert inner[f"job_{word}.txt"].content_length == 4
        assert fetch(inner[f"job_{word}.txt"].download_url) == f"{word}\n"
    # What was mounted for one job is not there for the next.
    checker = house.run("checker", cluster, 'echo job; df | grep -E "job_bfs|job_afs"')
    assert checker.execution_state == "failed" and checker.execution_info.exit_code == 1
    house.expect("checker", "stdouterr", {"stdout.txt": "job\n"})


def test_a_share_of_nobody_is_refused_at_once(house, cluster):
    parameters = house.job_parameters(cluster, "true", mount_volumes=m.MountVolumes(
        azure_file_shares=[house.share("jobshare", "x")]
    ))
    parameters.mount_volumes.azure_file_shares[0].account_name = "foreign"
    parameters.mount_volumes.azure_file_shares[0].azure_file_url = (
        "https://foreign.file.core.windows.net/data"
    )
    with pytest.raises(HttpResponseError) as refused:
        house.submit("foreign", parameters)
    assert refused.value.status_code == 400
    assert "foreign" in refused.value.message and "azureFileShares[0]" in refused.value.message


def test_an_nfs_file_server_is_shared_by_two_clusters(house):
    server = house.client.file_servers.begin_create(
        house.group, house.workspace, "nfs", m.FileServerCreateParameters(
            vm_size="STANDARD_D1",
            ssh_configuration=m.SshConfiguration(user_account_settings=m.UserAccountSettings(
                admin_user_name="demoUser", admin_user_password="Dem0Pa$$w0rd"
            )),
            data_disks=m.DataDisks(
                disk_size_in_gb=10, disk_count=2, storage_account_type="Standard_LRS",
                caching_type="none",
            ),
        ),
    ).result()
    assert server.mount_settings.mount_point == "/data" and server.subnet.id
    assert server.id.endswith("/fileservers/nfs") and server.provisioning_state == "succeeded"
    listed = house.client.file_servers.list_by_workspace(house.group, house.workspace)
    assert [s.name for s in listed] == ["nfs"]
    mount = [m.FileServerReference(
        file_server=m.ResourceId(id=server.id), relative_mount_path="nfs", mount_options="rw"
    )]
    for name in ("nfs1", "nfs2"):
        made = house.make_cluster(name, 1, file_servers=mount)
        assert made.subnet.id == server.subnet.id
    for name in ("nfs1", "nfs2"):
        house.wait_for_nodes(name, 1)
    house.run("host1", "nfs1", "echo hi from host1 > $AZ_BATCHAI_MOUNT_ROOT/nfs/shared.txt")
    done = house.run("host2", "nfs2", "cat $AZ_BATCHAI_MOUNT_ROOT/nfs/shared.txt")
    assert done.execution_state == "succeeded", house.explain("host2")
    house.expect("host2", "stdouterr", {"stdout.txt": "hi from host1\n"})
    for name in ("nfs1", "nfs2"):
        house.client.clusters.begin_delete(house.group, house.workspace, name).result()
    gone = house.yard.rest("DELETE", server.id)
    assert gone.status_code == 202
    until(lambda: house.yard.rest("GET", server.id).status_code == 404)


# -- environment -----------------------------------------------------------------------------------


def test_environment_variables_and_secrets(house, cluster):
    parameters = house.job_parameters(
        cluster, "echo $VARIABLE $SECRET_VARIABLE",
        environment_variables=[m.EnvironmentVariable(name="VARIABLE", value="Test")],
        secrets=[m.EnvironmentVariableWithSecretValue(name="SECRET_VARIABLE", value="Secret")],
    )
    house.submit("environment", parameters)
    done = house.wait_for_end("environment")
    assert done.execution_state == "succeeded"
    assert [(v.name, v.value) for v in done.environment_variables] == [("VARIABLE", "Test")]
    assert [(s.name, s.value) for s in done.secrets] == [("SECRET_VARIABLE", None)]
    house.expect("environment", "stdouterr", {"stdout.txt": "Test Secret\n"})


# -- output files ----------------------------------------------------------------------------------


def test_links_to_output_expire_take_ranges_and_read_one_file(house, cluster):
    house.run("linked", cluster, "printf 0123456789")
    url = house.files("linked", linkexpiryinminutes=5)["stdout.txt"].download_url
    assert fetch(url) == "0123456789"
    assert fetch(url, Range="bytes=4-") == "456789"
    assert requests.get(url, headers={"Range": "bytes=10-"}).status_code == 416
    assert requests.put(url, data=b"x").status_code == 403
    assert requests.get(url.replace("stdout.txt", "stderr.txt")).status_code == 403
    ends = requests.utils.unquote(url).split("se=")[1].split("&")[0]
    left = time.mktime(time.strptime(ends, "%Y-%m-%dT%H:%M:%SZ")) - time.mktime(time.gmtime())
    assert 240 < left <= 300


def test_output_is_listed_in_pages_and_while_it_is_written(house, cluster):
    house.submit("growing", house.job_parameters(
        cluster, "cd $AZ_BATCHAI_OUTPUT_OUTPUTS; for i in 1 2 3 4 5; do echo $i > f$i.txt; done;"
        " mkdir d; echo -n started; sleep 600",
    ))
    until(lambda: "f5.txt" in house.files("growing", "OUTPUTS"))
    until(lambda: house.files("growing")["stdout.txt"].content_length == 7)
    names = list(house.files("growing", "OUTPUTS", maxresults=2))
    assert names == ["d", "f1.txt", "f2.txt", "f3.txt", "f4.txt", "f5.txt"]
    house.client.jobs.begin_terminate(house.group, house.workspace, house.experiment, "growing").result()


def test_output_that_is_on_no_share_is_refused_with_the_known_words(house, cluster):
    house.run("nowhere", cluster, "true", std_out_err_path_prefix="$AZ_BATCHAI_JOB_TEMP_DIR",
              output_directories=None)
    with pytest.raises(HttpResponseError) as refused:
        house.files("nowhere")
    assert refused.value.status_code == 400
    assert "The specified outputDirectoryId stdouterr is not present on a mount root" in str(refused.value)


@pytest.mark.parametrize("path", ["..", "../..", "a/../..", "a/.."])
def test_nothing_beside_the_output_directory_can_be_listed(house, cluster, path):
    house.run(f"beside-{abs(hash(path))}", cluster, "true")
    with pytest.raises(HttpResponseError) as refused:
        house.files(f"beside-{abs(hash(path))}", "OUTPUTS", path)
    assert refused.value.status_code == 400

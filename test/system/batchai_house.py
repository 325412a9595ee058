# SPDX-License-Identifier: Apache-2.0
"""A yard with what a Batch AI user has before the first cluster, and the Azure SDK pointed at it.

Everything is made by the SDK as Debian ships it.  The waits are those of the SDK's own live tests:
ask again until it is so, with a limit that a slow machine keeps.
"""
import time

import requests
from azure.core.credentials import AccessToken
from azure.mgmt.batchai import BatchAI
from azure.mgmt.batchai import models as m
from azure.mgmt.resource import ResourceManagementClient
from azure.mgmt.storage import StorageManagementClient
from azure.storage.blob import BlobServiceClient
from azure.storage.fileshare import ShareServiceClient

LONG_S = 90  # a node with sshd under a sanitizer, on a machine with two busy cores
SIZE = "STANDARD_D1"
AFS = "azfiles"  # where the share is mounted
SHARE_ROOT = f"$AZ_BATCHAI_MOUNT_ROOT/{AFS}"


class StaticToken:
    """The simplest credential: a token that somebody wrote down."""

    def __init__(self, token):
        self.token = token

    def get_token(self, *scopes, **options):
        return AccessToken(self.token, int(time.time()) + 3600)


def until(question, seconds=LONG_S, what="it did not happen"):
    """Ask until the answer is something; gives it."""
    deadline = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(0.05)


class BatchAIHouse:
    def __init__(self, yard):
        self.yard = yard
        options = {"base_url": yard.api_url, "connection_verify": yard.ca_file, "retry_total": 0}
        credential = StaticToken(yard.token)
        self.resource = ResourceManagementClient(credential, yard.subscription_id, **options)
        self.storage = StorageManagementClient(credential, yard.subscription_id, **options)
        self.client = BatchAI(credential, yard.subscription_id, **options)
        self.group = f"group-{time.monotonic_ns()}"
        self.account = f"acct{time.monotonic_ns()}"[:24]
        self.workspace, self.experiment = "workspace", "experiment"
        self.resource.resource_groups.create_or_update(self.group, {"location": "northeurope"})
        self.storage.storage_accounts.begin_create(self.group, self.account, {
            "sku": {"name": "Standard_LRS"}, "kind": "StorageV2", "location": "northeurope",
        }).result()
        keys = self.storage.storage_accounts.list_keys(self.group, self.account)
        self.key = keys.keys[0].value
        self.shares = ShareServiceClient(f"{yard.file_url}/{self.account}", credential=self.key)
        self.blobs = BlobServiceClient(f"{yard.blob_url}/{self.account}", credential=self.key)
        self.shares.create_share("share")
        self.make_workspace(self.workspace)
        self.make_experiment(self.experiment)

    def make_workspace(self, name):
        self.client.workspaces.begin_create(
            self.group, name, m.WorkspaceCreateParameters(location="northeurope")
        ).result()

    def make_experiment(self, name, workspace=None):
        self.client.experiments.begin_create(self.group, workspace or self.workspace, name).result()

    # -- parameters -----------------------------------------------------------------------------

    def share(self, name="share", path=AFS):
        return m.AzureFileShareReference(
            account_name=self.account, relative_mount_path=path,
            azure_file_url=f"https://{self.account}.file.core.windows.net/{name}",
            credentials=m.AzureStorageCredentialsInfo(account_key=self.key),
        )

    def container(self, name, path):
        return m.AzureBlobFileSystemReference(
            account_name=self.account, container_name=name, relative_mount_path=path,
            credentials=m.AzureStorageCredentialsInfo(account_key=self.key),
        )

    def cluster_parameters(self, nodes=1, scale=None, setup_task=None, file_servers=None):
        return m.ClusterCreateParameters(
            vm_size=SIZE,
            vm_priority="lowpriority",
            scale_settings=scale or m.ScaleSettings(
                manual=m.ManualScaleSettings(target_node_count=nodes)
            ),
            user_account_settings=m.UserAccountSettings(
                admin_user_name="demoUser", admin_user_password="Dem0Pa$$w0rd"
            ),
            node_setup=m.NodeSetup(
                setup_task=setup_task,
                mount_volumes=m.MountVolumes(
                    azure_file_shares=[self.share()], file_servers=file_servers
                ),
            ),
        )

    def job_parameters(self, cluster, command, **more):
        """A custom toolkit job that logs to the share, as the live tests have it."""
        more.setdefault("node_count", 1)
        more.setdefault("std_out_err_path_prefix", SHARE_ROOT)
        more.setdefault("input_directories", [
            m.InputDirectory(id="INPUT", path=f"{SHARE_ROOT}/input")
        ])
        more.setdefault("output_directories", [
            m.OutputDirectory(id="OUTPUTS", path_prefix=f"{SHARE_ROOT}/", path_suffix="files")
        ])
        return m.JobCreateParameters(
            cluster=m.ResourceId(id=self.cluster_id(cluster)),
            custom_toolkit_settings=m.CustomToolkitSettings(command_line=command), **more,
        )

    def cluster_id(self, name, workspace=None):
        return f"{self.path(workspace)}/clusters/{name}"

    def path(self, workspace=None):
        return (
            f"{self.yard.subscription}/resourceGroups/{self.group}"
            f"/providers/Microsoft.BatchAI/workspaces/{workspace or self.workspace}"
        )

    def job_path(self, name, experiment=None, workspace=None):
        return f"{self.path(workspace)}/experiments/{experiment or self.experiment}/jobs/{name}"

    # -- clusters -------------------------------------------------------------------------------

    def make_cluster(self, name, *args, workspace=None, **more):
        return self.client.clusters.begin_create(
            self.group, workspace or self.workspace, name, self.cluster_parameters(*args, **more)
        ).result()

    def cluster(self, name, workspace=None):
        return self.client.clusters.get(self.group, workspace or self.workspace, name)

    def wait_for_nodes(self, name, count, workspace=None):
        """Until so many are idle and the cluster is steady."""

        def there():
            seen = self.cluster(name, workspace)
            assert not seen.errors, [(e.code, e.message) for e in seen.errors]
            return (
                seen.allocation_state == "steady" and seen.current_node_count == count
                and seen.node_state_counts.idle_node_count == count and seen
            )

        return until(there, what=lambda: str(self.cluster(name, workspace).as_dict()))

    def resize(self, name, nodes):
        return self.client.clusters.update(self.group, self.workspace, name, m.ClusterUpdateParameters(
            scale_settings=m.ScaleSettings(manual=m.ManualScaleSettings(target_node_count=nodes))
        ))

    def nodes(self, name):
        return list(
            self.client.clusters.list_remote_login_information(self.group, self.workspace, name)
        )

    # -- jobs -----------------------------------------------------------------------------------

    def submit(self, name, parameters, experiment=None, workspace=None):
        return self.client.jobs.begin_create(
            self.group, workspace or self.workspace, experiment or self.experiment, name, parameters
        ).result()

    def job(self, name, experiment=None, workspace=None):
        return self.client.jobs.get(
            self.group, workspace or self.workspace, experiment or self.experiment, name
        )

    def wait_for_state(self, name, *states, **where):
        def reached():
            seen = self.job(name, **where)
            if seen.execution_state in states:
                return seen
            assert seen.execution_state not in ("succeeded", "failed"), self.explain(name, **where)
            return None

        return until(reached, what=lambda: self.explain(name, **where))

    def wait_for_end(self, name, **where):
        return self.wait_for_state(name, "succeeded", "failed", **where)

    def explain(self, name, **where):
        why = self.yard.rest("GET", f"{self.job_path(name, **where)}/why").text
        return f"{self.job(name, **where).as_dict()}\n{why}"

    def run(self, name, cluster, command, **more):
        """Submit and wait; gives the job as it ended."""
        self.submit(name, self.job_parameters(cluster, command, **more))
        return self.wait_for_end(name)

    def files(self, job, directory="stdouterr", path=".", experiment=None, **options):
        """name -> File, in the order they are listed."""
        listed = self.client.jobs.list_output_files(
            self.group, self.workspace, experiment or self.experiment, job,
            m.JobsListOutputFilesOptions(outputdirectoryid=directory, directory=path, **options),
        )
        return {file.name: file for file in listed}

    def read(self, job, directory="stdouterr", path=".", experiment=None):
        """name -> text of every file that has a link."""
        return {
            name: fetch(file.download_url)
            for name, file in self.files(job, directory, path, experiment).items()
            if file.file_type == "file"
        }

    def expect(self, job, directory, files):
        """These files are there, with these texts; of None only that it is there."""
        seen = self.read(job, directory)
        for name, text in files.items():
            assert name in seen, sorted(seen)
            if text is not None:
                assert seen[name] == text, (name, seen[name])


def fetch(url, **headers):
    answer = requests.get(url, headers=headers, timeout=30)
    assert answer.status_code in (200, 206), (url, answer.status_code, answer.text[:500])
    return answer.text


def errors_of(job):
    return [(e.code, e.message) for e in job.execution_info.errors or []]

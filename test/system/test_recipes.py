# SPDX-License-Identifier: Apache-2.0
"""Recipes of Batch AI, as they are: accepted, and run with stand-ins for what they would train.

Each process tells what it was given.  Ranks, hosts, arguments, environment, folders, logs and the order
of the steps are held against what the recipe says and the service's documents promise (recipe_plan.py).

The recipes are those in test/golden/recipes, and the service's own where they are at hand: in the
folder that YARD_RECIPES names, else in ../shared/reference/batchai/recipes.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import urllib.parse

import pytest
import recipe_plan as plan
from conftest import ROOT
from job_house import JobHouse, is_root, moment

OWN = ROOT / "test" / "golden" / "recipes"
THEIRS = pathlib.Path(os.environ.get(
    "YARD_RECIPES", ROOT.parent / "shared" / "reference" / "batchai" / "recipes"
))
# The machines of recipes, with the cores that this one can lend and no GPUs.
SIZES = "STANDARD_NC6 2 4 0 NC,STANDARD_NC24R 2 4 0 NC"
LS_ROOT = "/mnt/batch/tasks/shared/LS_root"


def found(folder):
    return sorted(folder.glob("*/job*.json")) if folder.exists() else []


def named(path):
    return path.parent.name


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory):
    """A folder as the share `scripts` is to have it."""
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "stand_in.py").write_text(plan.SCRIPT)
    for recipe in [*found(OWN), *found(THEIRS)]:
        for place in plan.scripts(json.loads(recipe.read_text())["properties"]):
            file = folder / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(plan.PREPARE if place.endswith(".sh") else plan.SCRIPT)
    return folder


class RecipeHouse(JobHouse):
    def __init__(self, yard, stand_ins, nodes):
        super().__init__(yard, ("logs", "scripts", "external"))
        self.is_hosts = nodes != "processes"
        account = ["--account-name", self.account]
        yard.run("storage", "container", "create", "-n", "data", *account)
        yard.run("storage", "file", "upload-batch", "-s", stand_ins, "-d", "scripts", "--no-progress",
                 *account)
        self.install()
        self.node_names = {}
        for cluster, count, size in (("one", 1, "STANDARD_NC6"), ("two", 2, "STANDARD_NC6"),
                                     ("ib", 2, "STANDARD_NC24r")):
            self.make_cluster(cluster, count, size, nodeSetup=self.set_up())

    def install(self):
        """The programs, on the share that clusters mount."""
        folder = self.tree("external") / "programs"
        folder.mkdir()
        script = self.tree("scripts") / "stand_in.py"
        if self.is_hosts:
            script = f"{LS_ROOT}/mounts/external/programs/stand_in.py"
            shutil.copy(self.tree("scripts") / "stand_in.py", folder)
        for name, text in plan.programs(script).items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)

    def set_up(self):
        """As an operator would: each node brings the programs.  Its mounts are its own."""
        told = {"mountVolumes": {"azureFileShares": [self.share("external", "external")]}}
        if self.is_hosts:
            told["setupTask"] = {
                "commandLine": "mount -t tmpfs programs /usr/local/bin && "
                "cp -p $AZ_BATCHAI_MOUNT_ROOT/external/programs/* /usr/local/bin/ && "
                # What this machine's user has in there is not the recipes' business.
                "for rc in ~root/.bashrc; do [ ! -e $rc ] || mount --bind /dev/null $rc; done",
                "stdOutErrPathPrefix": "$AZ_BATCHAI_MOUNT_ROOT/external",
            }
        return told

    def map_image(self, properties):
        image = properties.get("containerSettings", {}).get("imageSourceRegistry", {}).get("image")
        if image:
            answer = self.yard.rest(
                "PUT", f"/yard/images/{urllib.parse.quote(image, safe='')}", json={"target": "host"}
            )
            assert answer.status_code == 200, answer.text

    def create(self, name, cluster, file):
        """By the command line, which fills in what the placeholders stand for."""
        self.yard.run(
            "batchai", "job", "create", "-n", name, "-c", cluster, "-g", self.group, "-w", self.workspace,
            "-e", self.experiment, "-f", file, "--storage-account-name", self.account,
        )

    def file_of(self, recipe, folder):
        """As it is; where nodes are no hosts nobody could install the programs, so PATH names them."""
        if self.is_hosts:
            return recipe
        body = json.loads(recipe.read_text())
        body["properties"].setdefault("environmentVariables", []).append({
            "name": "PATH",
            "value": "$AZ_BATCHAI_MOUNT_ROOT/external/programs:/usr/bin:/bin:/usr/sbin:/sbin",
        })
        changed = folder / "job.json"
        changed.write_text(json.dumps(body))
        return changed


@pytest.fixture(scope="module", params=["namespaces", "processes"])
def house(request, start_yard, stand_ins):
    if request.param == "namespaces" and not is_root():
        pytest.skip("nodes that are hosts need root")
    if not shutil.which("mpirun"):
        pytest.skip("mpirun is not installed")
    return RecipeHouse(start_yard("--nodes", request.param, "--vm-sizes", SIZES), stand_ins, request.param)


class Outcome:
    """A recipe that ran, and what its processes told."""

    def __init__(self, house, name, recipe, cluster):
        self.house, self.name, self.cluster = house, name, cluster
        self.given = json.loads(recipe.read_text())["properties"]
        self.job = house.job(name)
        prefix = self.given["stdOutErrPathPrefix"]
        self.share = "external" if "external" in prefix else "logs"
        self.folder = house.folder(name, self.share)
        self.reports = {
            file.stem: json.loads(file.read_text())
            for file in (self.folder / "reports").glob("[!.]*.json")
        }
        self.processes = plan.processes(self.given)
        self.nodes = self.find_nodes()

    def find_nodes(self):
        """Node ids in the order that the job has them."""
        count = self.given["nodeCount"]
        addresses = self.reports["0"]["env"]["AZ_BATCH_HOST_LIST"].split(",")
        assert len(addresses) == count
        if not self.house.is_hosts:
            assert addresses == ["127.0.0.1"] * count
            listed = sorted(file.name for file in (self.house.yard.home / "nodes").glob("tvm-*"))
            seen = [self.reports[p.who]["env"]["AZ_BATCH_NODE_ID"] for p in self.processes]
            assert set(seen) <= set(listed)
            return list(dict.fromkeys(n for _, n in sorted(zip([p.node for p in self.processes], seen))))
        by_address = {address: node for node, address in self.house.nodes(self.cluster).items()}
        return [by_address[address] for address in addresses]

    def logs(self):
        return {file.name: file.read_text() for file in (self.folder / "stdouterr").iterdir()}


@pytest.fixture(params=[*found(OWN), *found(THEIRS)], ids=named)
def outcome(request, house, tmp_path):
    recipe = request.param
    given = json.loads(recipe.read_text())["properties"]
    name = re.sub(r"\W", "-", ("own-" if OWN in recipe.parents else "") + named(recipe))
    cluster = "ib" if "Infiniband" in name else "two" if given["nodeCount"] == 2 else "one"
    house.map_image(given)
    house.create(name, cluster, house.file_of(recipe, tmp_path))
    ended = house.wait_for_end(name)
    assert ended["executionState"] == "succeeded", house.explain(name)
    return Outcome(house, name, recipe, cluster)


def test_recipes_of_the_service_are_at_hand():
    """Says so when they are not: then only our own stand for them."""
    if not found(THEIRS):
        pytest.skip(f"the service's own recipes are not in {THEIRS}")
    assert len(found(THEIRS)) >= 12


def test_recipe(outcome):
    """Accepted as it is, and run by the book."""
    check_processes(outcome)
    for process in outcome.processes:
        report = outcome.reports[process.who]
        check_place(outcome, process, report)
        check_arguments(outcome, process, report)
        check_environment(outcome, process, report["env"])
        check_hostfile(outcome, report)
    check_logs(outcome)
    check_steps(outcome)
    check_outputs(outcome)
    outcome.house.check(outcome.name)


def check_processes(outcome):
    assert sorted(outcome.reports) == sorted(p.who for p in outcome.processes)
    name, settings = plan.settings_of(outcome.given)
    shown = outcome.job[name]
    assert outcome.job["toolType"] == {
        "customToolkitSettings": "custom", "customMpiSettings": "custommpi", "horovodSettings": "horovod",
        "cntkSettings": "cntk", "tensorFlowSettings": "tensorflow", "pyTorchSettings": "pytorch",
        "caffeSettings": "caffe", "caffe2Settings": "caffe2", "chainerSettings": "chainer",
    }[name]
    # The service fills in how many there will be.
    if name not in ("customToolkitSettings", "tensorFlowSettings", "caffe2Settings"):
        assert shown["processCount"] == settings.get("processCount", outcome.given["nodeCount"])
    if plan.is_mpi(name, settings) and len(outcome.processes) > 1:
        for process in outcome.processes:
            env = outcome.reports[process.who]["env"]
            assert env["OMPI_COMM_WORLD_RANK"] == process.who
            assert env["OMPI_COMM_WORLD_SIZE"] == str(len(outcome.processes))


def check_place(outcome, process, report):
    env, node = report["env"], outcome.nodes[process.node]
    assert env["AZ_BATCH_NODE_ID"] == node
    assert report["cwd"] == os.path.realpath(env["AZ_BATCHAI_JOB_WORK_DIR"])
    if outcome.house.is_hosts:
        assert report["host"] == node
        assert report["address"] == outcome.house.nodes(outcome.cluster)[node]
        assert env["AZ_BATCHAI_ROOT"] == LS_ROOT


def check_arguments(outcome, process, report):
    env = report["env"]
    script, arguments = plan.command(outcome.given)
    for row in outcome.given.get("inputDirectories", ()):
        assert env[f"AZ_BATCHAI_INPUT_{row['id']}"] == plan.expand(row["path"], env)
    if script is None:
        assert report["program"] == plan.settings_of(outcome.given)[0].removesuffix("Settings")
    else:
        assert report["argv"][0] == plan.expand(script, env)
    if arguments is None:
        assert report["argv"][1:] == plan.words(process.arguments, env)
    else:
        assert report["argv"][1:] == [plan.expand(word, env) for word in arguments]


def check_environment(outcome, process, env):
    root, segment = env["AZ_BATCHAI_ROOT"], outcome.job["jobOutputDirectoryPathSegment"]
    house, given = outcome.house, outcome.given
    job = f"{root}/jobs/{house.workspace}/{house.experiment}/{outcome.name}"
    hosts = env["AZ_BATCH_HOST_LIST"].split(",")
    wanted = {
        "AZ_BATCHAI_MOUNT_ROOT": f"{root}/mounts",
        "AZ_BATCHAI_JOB_TEMP_DIR": f"{root}/jobs",
        "AZ_BATCHAI_JOB_TEMP": job,
        "AZ_BATCHAI_JOB_WORK_DIR": f"{job}/wd",
        "AZ_BATCHAI_SHARED_JOB_TEMP": f"{job}/shared",
        "AZ_BATCHAI_JOB_MOUNT_ROOT": f"{job}/mounts",
        "AZ_BATCHAI_MPI_HOST_FILE": f"{job}/hostfile",
        "AZ_BATCHAI_STDOUTERR_DIR":
            f"{plan.expand(given['stdOutErrPathPrefix'], env)}/{segment}/stdouterr",
        "AZ_BATCHAI_NUM_GPUS": "0",
        "AZ_BATCHAI_NUM_GPUS_PER_NODE": "0",
        "AZ_BATCHAI_CLUSTER_NAME": outcome.cluster,
        "AZ_BATCHAI_JOB_MASTER_NODE_IP": hosts[0],
        "AZ_BATCH_MASTER_NODE": f"{hosts[0]}:6000",
        "AZ_BATCH_IS_CURRENT_NODE_MASTER": "true" if process.node == 0 else "false",
    }
    for row in given.get("outputDirectories", ()):
        suffix = f"/{row['pathSuffix']}" if "pathSuffix" in row else ""
        wanted[f"AZ_BATCHAI_OUTPUT_{row['id']}"] = (
            f"{plan.expand(row['pathPrefix'], env)}/{segment}/outputs{suffix}"
        )
        wanted[f"AZ_BATCHAI_PREV_OUTPUT_{row['id']}"] = ""
    for row in given.get("environmentVariables", ()):
        wanted[row["name"]] = plan.expand(row["value"], env)
    wanted.update(tool_environment(outcome, process, env, hosts))
    assert {name: env.get(name) for name in wanted} == wanted


def tool_environment(outcome, process, env, hosts):
    name, settings = plan.settings_of(outcome.given)
    if name == "cntkSettings":
        return {"KERAS_BACKEND": "cntk"}
    if name == "pyTorchSettings":
        wanted = {"AZ_BATCHAI_TASK_INDEX": process.who}
        if not plan.is_mpi(name, settings):
            shared = env["AZ_BATCHAI_SHARED_JOB_TEMP"]
            assert re.fullmatch(f"file://{shared}/[-\\w]+", env["AZ_BATCHAI_PYTORCH_INIT_METHOD"])
            wanted["AZ_BATCHAI_PYTORCH_BACKEND"] = settings["communicationBackend"].lower()
        return wanted
    if name == "caffe2Settings":
        return {"AZ_BATCHAI_TASK_INDEX": process.who}
    if name == "tensorFlowSettings":
        return tensorflow_environment(outcome, process, env, hosts)
    return {}


def tensorflow_hosts(outcome, hosts, first):
    """Ports of a host are counted upwards: servers first, then workers."""
    used = {}

    def take(process):
        host = hosts[process.node]
        used[host] = used.get(host, first - 1) + 1
        return f"{host}:{used[host]}"

    servers = [take(p) for p in outcome.processes if p.task[0] == "ps"]
    return servers, [take(p) for p in outcome.processes if p.task[0] != "ps"]


def tensorflow_environment(outcome, process, env, hosts):
    kind, index = process.task
    first = 2222
    if not outcome.house.is_hosts:  # jobs that share a host have ports of their own
        listed = f"{env['AZ_BATCHAI_PS_HOSTS']},{env['AZ_BATCHAI_WORKER_HOSTS']}"
        first = min(int(port) for port in re.findall(r":(\d+)", listed))
    servers, workers = tensorflow_hosts(outcome, hosts, first)
    wanted = {
        "KERAS_BACKEND": "tensorflow", "AZ_BATCHAI_TASK_INDEX": str(index), "AZ_BATCHAI_TASK_TYPE": kind,
        "AZ_BATCHAI_PS_HOSTS": ",".join(servers), "AZ_BATCHAI_WORKER_HOSTS": ",".join(workers),
    }
    if len(outcome.processes) == 1:
        assert "TF_CONFIG" not in env
        return wanted
    assert json.loads(env["TF_CONFIG"]) == {
        "cluster": {"ps": servers, "worker": workers}, "task": {"type": kind, "index": index},
        "environment": "cloud",
    }
    return wanted


def check_hostfile(outcome, report):
    name, settings = plan.settings_of(outcome.given)
    nodes = outcome.given["nodeCount"]
    count = settings.get("processCount", nodes) if "processCount" in outcome.job[name] else nodes
    slots = -(-count // nodes)
    hosts = report["env"]["AZ_BATCH_HOST_LIST"].split(",")
    form = re.compile(r"(\S+) slots=(\d+) max-slots=(\d+)")
    lines = [form.fullmatch(row) for row in report["hostfile"].splitlines()]
    if outcome.house.is_hosts:
        assert [(row[1], int(row[2])) for row in lines] == [(host, slots) for host in hosts]
    else:
        assert [(row[1], int(row[2])) for row in lines] == [("localhost", slots * len(hosts))]
    assert all(int(row[3]) >= int(row[2]) for row in lines)


# What others say on a good day: ssh of a host that it meets first, and mpirun when its ssh was quicker
# than it (both name the child's process group, and the second is told "permission denied").
HARMLESS = re.compile(r"known hosts|plm:rsh: Warning: setpgid\(")


def check_logs(outcome):
    logs, several = outcome.logs(), outcome.given["nodeCount"] > 1
    wanted = {f"{std}{p.log}.txt" for p in outcome.processes for std in ("stdout", "stderr")}
    suffixes = [f"-{node}" for node in outcome.nodes] if several else [""]
    if not outcome.house.is_hosts and several:  # a node without a process told nothing of itself
        suffixes = [f"-{n}" for n in re.findall(r"execution-(\S+?)\.log", " ".join(logs))]
        assert len(suffixes) == outcome.given["nodeCount"]
    wanted |= {f"execution{suffix}.log" for suffix in suffixes}
    if "jobPreparation" in outcome.given:
        wanted |= {f"{std}-job_prep{suffix}.txt" for std in ("stdout", "stderr") for suffix in suffixes}
        for suffix in suffixes:
            assert "prepared" in logs[f"stdout-job_prep{suffix}.txt"]
    assert set(logs) == wanted
    for process in outcome.processes:
        assert f"out of {process.who}\n" in logs[f"stdout{process.log}.txt"]
        assert f"err of {process.who}\n" in logs[f"stderr{process.log}.txt"]
    # And nothing else: no shell complains, no prompt, no warning.
    for log in {p.log for p in outcome.processes}:
        said = [line for line in logs[f"stderr{log}.txt"].splitlines() if not line.startswith("err of")]
        assert [line for line in said if not HARMLESS.search(line)] == []


def check_steps(outcome):
    """execution.log of each node has the steps in their order."""
    mounts = outcome.given.get("mountVolumes", {})
    count = sum(len(rows) for rows in mounts.values())
    for name, text in outcome.logs().items():
        if not name.startswith("execution"):
            continue
        rows = [re.fullmatch(r"(\d{4}-\d\d-\d\dT[\d:.]+Z) (.+)", row) for row in text.splitlines()]
        assert all(rows), text
        times = [moment(row[1]) for row in rows]
        assert times == sorted(times), text
        steps = [row[2] for row in rows]
        assert [s.split()[0] for s in steps[:count]] == ["mount"] * count, steps
        assert steps[count].startswith("job environment preparation on "), steps
        rest = steps[count + 1:]
        kinds = ["prep" if s.startswith("task prep-") else "task" for s in rest if s.startswith("task ")]
        assert kinds == sorted(kinds), steps  # every preparation before every task
        assert ("prep" in kinds) == ("jobPreparation" in outcome.given), steps
        assert rest[-1] == "job: exit code 0", steps
    prepared = [file.stat().st_mtime for file in (outcome.folder / "stdouterr").glob("stdout-job_prep*")]
    begun = min(report["begun"] for report in outcome.reports.values())
    assert not prepared or max(prepared) <= begun + 0.01


def check_outputs(outcome):
    for row in outcome.given.get("outputDirectories", ()):
        share = "external" if "external" in row["pathPrefix"] else "logs"
        folder = outcome.house.folder(outcome.name, share) / "outputs" / row.get("pathSuffix", "")
        assert folder.is_dir(), folder
        listed = outcome.house.call(
            "POST", f"{outcome.house.job_path(outcome.name)}/listOutputFiles?outputdirectoryid={row['id']}"
        )
        assert listed.status_code == 200, listed.text
        names = [file["name"] for file in listed.json()["value"]]
        assert names == sorted(file.name for file in folder.iterdir())
    if "customToolkitSettings" in outcome.given:
        assert (folder / "count.txt").read_text() == "counted\n"


def test_nothing_of_the_programs_reached_this_machine(house):
    """The set-up task's mounts are the node's own."""
    mounts = pathlib.Path("/proc/self/mounts").read_text()
    assert "programs /usr/local/bin" not in mounts
    assert not subprocess.run(["pgrep", "-f", "stand_in.py"], capture_output=True).stdout

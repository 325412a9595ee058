# SPDX-License-Identifier: Apache-2.0
"""Real distributed programs on two nodes: MPI in C, and PyTorch over gloo."""
import re
import shutil
import subprocess

import pytest
from conftest import ROOT
from job_house import MOUNTS, JobHouse, is_root

MESSAGE_BYTES = 8 << 20  # of ring.c: what an all-reduce moves at the least
ROW = re.compile(r"rank (\d+) of (\d+) on (\S+) as (\S+): sum (\S+) ring (\d+) sent (-?\d+)")


@pytest.fixture(scope="module", params=["namespaces", "processes"])
def house(request, start_yard):
    if request.param == "namespaces" and not is_root():
        pytest.skip("nodes that are hosts need root")
    house = JobHouse(start_yard("--nodes", request.param))
    house.is_hosts = request.param == "namespaces"
    house.make_cluster("two", 2)
    return house


@pytest.fixture(scope="module")
def ring(house):
    """The program, compiled for this machine, on the share."""
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        pytest.skip("Open MPI is not installed")
    source = ROOT / "test" / "system" / "ring.c"
    subprocess.run(["mpicc", "-O1", "-o", house.tree() / "ring", source], check=True)
    return f"{MOUNTS}/logs/ring"


def rows_of(house, job):
    rows = {int(r[0]): r for r in ROW.findall(house.log(job))}
    return [rows[rank] for rank in sorted(rows)]


def check_ring(house, job, count, names):
    rows = rows_of(house, job)
    assert [int(r[0]) for r in rows] == list(range(count)), house.log(job)
    total = count * (count + 1) // 2
    for _, size, host, node, total_seen, round_seen, sent in rows:
        assert int(size) == count and float(total_seen) == total
        if house.is_hosts:
            assert host == node and int(sent) > MESSAGE_BYTES
    # rank 0 has the message back; each other saw it on its way
    assert [int(r[5]) for r in rows] == [total, *(n * (n + 1) // 2 for n in range(2, count + 1))]
    by_node = [row[3] for row in rows]
    assert by_node == sorted(by_node, key=by_node.index) and len(set(by_node)) == 2
    if house.is_hosts:
        assert set(by_node) == set(names)


@pytest.mark.parametrize("count", [2, 4])
def test_mpi_program_over_two_nodes(house, ring, count):
    """customMpi: the yard's mpirun, ranks spread evenly, TCP between the nodes' eth0."""
    name = f"mpi-{count}"
    done = house.run(
        name, "two", nodeCount=2, customToolkitSettings=None,
        customMpiSettings={"commandLine": ring, "processCount": count},
    )
    assert done["executionState"] == "succeeded", house.explain(name)
    check_ring(house, name, count, house.nodes("two"))
    house.check(name)


def test_mpi_program_with_an_mpirun_of_its_own(house, ring):
    """custom: the command finds its nodes in the host file, as before the toolkits knew MPI."""
    done = house.run(
        "own-mpirun", "two", "mpirun -np 2 --map-by node --oversubscribe --hostfile $AZ_BATCHAI_MPI_HOST_FILE"
        f" -x AZ_BATCH_NODE_ID=by-hand --mca btl_tcp_if_exclude lo,docker0 {ring}", nodeCount=2,
    )
    assert done["executionState"] == "succeeded", house.explain("own-mpirun")
    rows = rows_of(house, "own-mpirun")
    assert len(rows) == 2
    if house.is_hosts:
        assert {row[2] for row in rows} == set(house.nodes("two"))
    house.check("own-mpirun")


def test_a_rank_that_fails_fails_the_job_with_its_code(house, ring):
    done = house.run(
        "mpi-failing", "two", nodeCount=2, customToolkitSettings=None,
        customMpiSettings={"commandLine": f"{ring} 37", "processCount": 2},
    )
    assert done["executionState"] == "failed" and done["executionInfo"]["exitCode"] == 37
    house.check("mpi-failing")


TORCH = '''\
import os, sys, torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank, world = int(os.environ["AZ_BATCHAI_TASK_INDEX"]), int(os.environ["WORLD_SIZE"])
method = sys.argv[1]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=method, rank=rank, world_size=world)
tensor = torch.full((1000,), float(rank + 1))
dist.all_reduce(tensor)
assert bool((tensor == world * (world + 1) / 2).all()), tensor

# y = 3 x + 1 from data of which each worker has its own part
torch.manual_seed(rank)
model = DistributedDataParallel(torch.nn.Linear(1, 1))
optimiser = torch.optim.SGD(model.parameters(), lr=0.2)
for _ in range(200):
    x = torch.rand(32, 1) * 2 - 1
    loss = ((model(x) - (3 * x + 1)) ** 2).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
weight, bias = (p.item() for p in model.parameters())
print(f"rank {rank} of {world} on {os.uname().nodename}: sum {tensor[0].item():g}"
      f" weight {weight:.6f} bias {bias:.6f} loss {loss.item():.2g}", flush=True)
dist.destroy_process_group()
'''


@pytest.mark.parametrize("method", ["$AZ_BATCHAI_PYTORCH_INIT_METHOD", "env://"])
def test_pytorch_trains_over_gloo_on_two_workers(house, method):
    found = subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True)
    if found.returncode != 0:
        pytest.skip("python3-torch is not installed")
    (house.tree() / "train.py").write_text(TORCH)
    name = f"torch-{'env' if method == 'env://' else 'file'}"
    done = house.run(
        name, "two", nodeCount=2, customToolkitSettings=None, pyTorchSettings={
            "pythonScriptFilePath": f"{MOUNTS}/logs/train.py", "pythonInterpreterPath": "/usr/bin/python3",
            "commandLineArgs": method, "communicationBackend": "gloo",
        },
    )
    assert done["executionState"] == "succeeded", house.explain(name)
    said = [house.log(name, f"stdout-{i}.txt") for i in range(2)]
    form = re.compile(r"rank (\d) of 2 on (\S+): sum 3 weight (\S+) bias (\S+) loss \S+\n")
    seen = [form.fullmatch(text) for text in said]
    assert all(seen), said
    assert [m[1] for m in seen] == ["0", "1"]
    if house.is_hosts:
        assert sorted(m[2] for m in seen) == sorted(house.nodes("two"))
    # Gradients were averaged: both have the same model, and it is the right one.
    assert seen[0][3] == seen[1][3] and seen[0][4] == seen[1][4]
    assert abs(float(seen[0][3]) - 3) < 0.05 and abs(float(seen[0][4]) - 1) < 0.05
    house.check(name)


def test_one_worker_that_fails_ends_the_others(house):
    """And the verdict names the first that failed."""
    (house.tree() / "half.py").write_text(
        "import os, sys, time\n"
        "if os.environ['AZ_BATCHAI_TASK_INDEX'] == '1':\n"
        "    print('no data on this node', file=sys.stderr); sys.exit(9)\n"
        "time.sleep(600)\n"
    )
    done = house.run(
        "half", "two", nodeCount=2, customToolkitSettings=None,
        pyTorchSettings={"pythonScriptFilePath": f"{MOUNTS}/logs/half.py", "communicationBackend": "gloo"},
    )
    assert done["executionState"] == "failed" and done["executionInfo"]["exitCode"] == 9
    why = house.why("half")
    assert "rank 1" in why and "9" in why and "no data on this node" in why, why
    house.check("half")

# SPDX-License-Identifier: Apache-2.0
"""Which processors jobs have: those of their nodes, no more, and no other's while there are enough."""
import os
import re

import pytest
from job_house import JobHouse, is_root, until

HERE = len(os.sched_getaffinity(0))
SEES = ("echo sees $(nproc) $(/usr/bin/python3 -c 'import os; print(len(os.sched_getaffinity(0)))') on "
        "$(grep Cpus_allowed_list /proc/self/status | cut -f2)")

pytestmark = pytest.mark.skipif(HERE < 2, reason="one processor cannot be shared out")


@pytest.fixture(params=["namespaces", "processes"])
def nodes(request):
    if request.param == "namespaces" and not is_root():
        pytest.skip("nodes that are hosts need root")
    return request.param


def run_everywhere(house, name, cluster, count):
    """A job's preparation on each node says what it sees; gives [(nproc, affinity, list)]."""
    done = house.run(name, cluster, "true", nodeCount=count, jobPreparation={"commandLine": SEES})
    assert done["executionState"] == "succeeded", house.explain(name)
    told = [file.read_text() for file in house.logs(name) if file.name.startswith("stdout-job_prep-")]
    return [re.fullmatch(r"sees (\d+) (\d+) on (\S+)\n", text).groups() for text in told]


def test_nodes_have_processors_of_their_own(start_yard, nodes):
    """Without oversubscription there are no more nodes than processors, and none has another's."""
    house = JobHouse(start_yard("--nodes", nodes, "--oversubscribe", "no", "--vm-sizes", "tiny 1 1 0"))
    house.put(house.cluster_path("c"), {"properties": {
        "vmSize": "tiny", "userAccountSettings": {"adminUserName": "me"},
        "scaleSettings": {"manual": {"targetNodeCount": HERE + 1}}}})
    until(lambda: house.cluster("c")["nodeStateCounts"]["idleNodeCount"] == HERE)
    (error,) = house.cluster("c")["errors"]
    assert error["code"] == "CoreQuotaReached", error
    seen = run_everywhere(house, "all", "c", HERE)
    assert len(seen) == HERE and len({cpus for _, _, cpus in seen}) == HERE, seen
    assert all((count, affinity) == ("1", "1") for count, affinity, _ in seen), seen


def test_a_node_larger_than_the_machine_is_told(start_yard, nodes):
    house = JobHouse(start_yard("--nodes", nodes, "--oversubscribe", "no", "--vm-sizes", f"big {HERE + 1} 1 0"))
    house.put(house.cluster_path("c"), {"properties": {
        "vmSize": "big", "userAccountSettings": {"adminUserName": "me"},
        "scaleSettings": {"manual": {"targetNodeCount": 1}}}})
    house.submit("j", "c", "true")
    assert f"a node takes {HERE + 1} cores, and there are {HERE}" in until(lambda: house.why("j"))


def test_too_many_nodes_share_evenly(start_yard, nodes):
    """With oversubscription a node has as many as its size says, and none is shared by two more than another."""
    house = JobHouse(start_yard("--nodes", nodes, "--vm-sizes", f"tiny 1 1 0, big {HERE + 1} 1 0"))
    house.make_cluster("c", HERE + 1, "tiny")
    seen = run_everywhere(house, "all", "c", HERE + 1)
    lists = [cpus for _, _, cpus in seen]
    assert len(lists) == HERE + 1 and sorted(map(lists.count, set(lists))) == [1] * (HERE - 1) + [2], seen
    house.make_cluster("b", 1, "big")
    done = house.run("big", "b", SEES)
    assert done["executionState"] == "succeeded"
    assert house.log("big").startswith(f"sees {HERE} {HERE} on ")
    assert (f"note: the size of the node has {HERE + 1} cores, this machine has {HERE}"
            in house.log("big", "execution.log"))

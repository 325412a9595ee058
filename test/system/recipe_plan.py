# SPDX-License-Identifier: Apache-2.0
"""What Batch AI makes of a job: its processes, where each runs, with which arguments, into which log.

Worked out from the recipe alone, by the rules of the service as its documents have them, so that a test
can hold it against what really ran.  And the stand-ins that a recipe runs instead of its toolkit.
"""
import re
import shlex

PYTHON_TOOLS = {
    "horovodSettings": "mpi", "chainerSettings": "mpi", "cntkSettings": "mpi", "caffeSettings": "mpi",
    "caffe2Settings": "tasks", "pyTorchSettings": "tasks",
}

# In place of every script: tells what it was given, and where it is.
SCRIPT = '''\
import fcntl, json, os, socket, struct, sys, time

def address():
    try:
        probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        return socket.inet_ntoa(fcntl.ioctl(probe, 0x8915, struct.pack("256s", b"eth0"))[20:24])
    except OSError:
        return None

env = dict(os.environ)
rank = env.get("OMPI_COMM_WORLD_RANK", env.get("AZ_BATCHAI_TASK_INDEX", "0"))
who = {"ps": "ps-"}.get(env.get("AZ_BATCHAI_TASK_TYPE"), "") + rank
with open(env["AZ_BATCHAI_MPI_HOST_FILE"]) as file:
    hostfile = file.read()
folder = os.path.join(os.path.dirname(env["AZ_BATCHAI_STDOUTERR_DIR"]), "reports")
os.makedirs(folder, exist_ok=True)
told = {
    "who": who, "argv": sys.argv, "program": env.get("STAND_IN"), "env": env, "cwd": os.getcwd(),
    "host": socket.gethostname(), "address": address(), "hostfile": hostfile, "begun": time.time(),
}
with open(os.path.join(folder, ".new-" + who), "w") as file:
    json.dump(told, file)
os.rename(file.name, os.path.join(folder, who + ".json"))
os.write(1, f"out of {who}\\n".encode())  # at one go: ranks share the log
os.write(2, f"err of {who}\\n".encode())
if env.get("AZ_BATCHAI_TASK_TYPE") == "ps":
    time.sleep(3600)  # a parameter server does not end by itself
if env.get("AZ_BATCHAI_TASK_TYPE") == "master" and "TF_CONFIG" in env:
    count = sum(map(len, json.loads(env["TF_CONFIG"])["cluster"].values()))
    while len([name for name in os.listdir(folder) if name.endswith(".json")]) < count:
        time.sleep(0.05)
'''

# In place of scripts that prepare; the benchmark's own is fetched by its preparation.
PREPARE = '''\
echo "prepared on $AZ_BATCH_NODE_ID"
target=$AZ_BATCHAI_JOB_TEMP/benchmarks/scripts/tf_cnn_benchmarks
mkdir -p "$target" && cp "$AZ_BATCHAI_JOB_MOUNT_ROOT/scripts/stand_in.py" "$target/tf_cnn_benchmarks.py"
'''


def programs(script):
    """In place of what is installed on nodes and in images."""
    told = "#!/bin/sh\nSTAND_IN={0} exec /usr/bin/python3 {1} \"$@\"\n"
    return {
        "python": '#!/bin/sh\nexec /usr/bin/python3 "$@"\n',
        "cntk": told.format("cntk", script), "caffe": told.format("caffe", script),
        "apt": "#!/bin/sh\necho prepared with apt \"$@\"\n",
        "pip": "#!/bin/sh\necho prepared with pip \"$@\"\n",
    }


def settings_of(properties):
    (name,) = [key for key in properties if key.endswith("Settings") and key != "containerSettings"]
    return name, properties[name]


class Process:
    def __init__(self, who, node, log, arguments="", task=None):
        self.who = who  # what the stand-in calls itself
        self.node = node  # index of its node
        self.log = log  # suffix of its log files
        self.arguments = arguments
        self.task = task  # TensorFlow: type and index


def spread(count, nodes):
    """The node of each of so many: evenly, one after the other."""
    each = -(-count // nodes)
    return [i // each for i in range(count)]


def tensorflow(settings, nodes):
    workers = settings.get("workerCount", 0 if "parameterServerCount" not in settings else nodes) or 1
    servers = settings.get("parameterServerCount", 0)
    made = []
    for i, node in enumerate(spread(workers, nodes)):
        kind = "master" if i == 0 else "worker"
        made.append(Process(str(i), node, f"-wk-{i}", settings.get(f"{kind}CommandLineArgs", ""), (kind, i)))
    for i in range(servers):
        arguments = settings.get("parameterServerCommandLineArgs", "")
        made.append(Process(f"ps-{i}", i, f"-ps-{i}", arguments, ("ps", i)))
    return made


def is_mpi(name, settings):
    if name == "customMpiSettings":
        return True
    if name == "pyTorchSettings":
        return settings.get("communicationBackend", "").lower() == "mpi"
    return PYTHON_TOOLS.get(name) == "mpi"


def processes(properties):
    """All that run, parameter servers too."""
    name, settings = settings_of(properties)
    nodes = properties["nodeCount"]
    if name == "tensorFlowSettings":
        return tensorflow(settings, nodes)
    if name == "customToolkitSettings":
        return [Process("0", 0, "")]
    count = nodes if name == "caffe2Settings" else settings.get("processCount", nodes)
    arguments = settings.get("commandLineArgs", "")
    if is_mpi(name, settings):
        return [Process(str(i), node, "", arguments) for i, node in enumerate(spread(count, nodes))]
    return [Process(str(i), node, f"-{i}", arguments) for i, node in enumerate(spread(count, nodes))]


def expand(text, env):
    return re.sub(r"\$(\w+)", lambda match: env.get(match[1], ""), text)


def words(text, env):
    return [expand(word, env) for word in shlex.split(text)]


def command(properties):
    """-> program or script, and the arguments of a process that has none of its own."""
    name, settings = settings_of(properties)
    if "pythonScriptFilePath" in settings:
        return settings["pythonScriptFilePath"], None
    if "configFilePath" in settings:
        first = {"cntkSettings": "configFile=", "caffeSettings": "--solver="}[name]
        before = ["train"] if name == "caffeSettings" else []
        return None, [*before, first + settings["configFilePath"], *shlex.split(settings["commandLineArgs"])]
    said = [word for word in shlex.split(settings["commandLine"].split(";")[0]) if word != "-u"]
    return said[1], said[2:]


def scripts(properties):
    """Where scripts lie that the recipe runs: (share, path)."""
    places = []
    inputs = {f"$AZ_BATCHAI_INPUT_{row['id']}": row["path"] for row in properties.get("inputDirectories", ())}
    texts = [command(properties)[0] or ""]
    texts += properties.get("jobPreparation", {}).get("commandLine", "").split()
    for text in texts:
        for name, path in inputs.items():
            text = text.replace(name, path)
        if found := re.match(r"\$AZ_BATCHAI_JOB_MOUNT_ROOT/scripts/(.+)", text):
            places.append(found[1])
    return places

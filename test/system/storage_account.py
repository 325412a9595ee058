# SPDX-License-Identifier: Apache-2.0
"""A storage account of a yard, as each real client wants to be told about it."""
import hashlib
import os
import pathlib
import random
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
GROUP = "storage"


class Account:
    def __init__(self, yard, name, endpoints, key):
        self.yard, self.name, self.key = yard, name, key
        self.blob = endpoints["blob"].rstrip("/")
        self.file = endpoints["file"].rstrip("/")

    @staticmethod
    def secure(url):
        """The same address over TLS: one port serves both."""
        return "https" + url[url.index(":"):]

    def connection_string(self, secure=False):
        blob, file = (self.secure(u) if secure else u for u in (self.blob, self.file))
        return (
            f"DefaultEndpointsProtocol={'https' if secure else 'http'};AccountName={self.name};"
            f"AccountKey={self.key};BlobEndpoint={blob};FileEndpoint={file};"
        )

    @property
    def folder(self):
        """Where the account's data is on the disk."""
        return self.yard.home / "storage" / self.name

    def sas(self, permissions="rwdlacup", services="bf", resources="sco", **more):
        """An account SAS from the yard's own command line."""
        words = [word for name, value in more.items() for word in (f"--{name}", value)]
        return self.yard.run(
            "storage", "account", "generate-sas", "--account-name", self.name, "--expiry",
            "2099-01-01T00:00Z", "--services", services, "--resource-types", resources,
            "--permissions", permissions, "-o", "tsv", *words,
        ).stdout.strip()


def make_account(yard, name):
    group = f"{yard.subscription}/resourceGroups/{GROUP}"
    path = f"{group}/providers/Microsoft.Storage/storageAccounts/{name}"
    assert yard.rest("PUT", group, json={"location": "eastus"}).status_code in (200, 201)
    body = {"location": "eastus", "sku": {"name": "Standard_LRS"}, "kind": "StorageV2"}
    made = yard.rest("PUT", path, json=body)
    assert made.status_code in (200, 201, 202), made.text
    endpoints = yard.rest("GET", path).json()["properties"]["primaryEndpoints"]
    keys = yard.rest("POST", path + "/listKeys").json()["keys"]
    return Account(yard, name, endpoints, keys[0]["value"])


def make_tree(folder, seed, big=0):
    """A small tree with what trees of real people have in them: gives {relative name: bytes}."""
    rng = random.Random(seed)
    names = [
        "a.txt", "empty", "train/0001.jpg", "train/0002.jpg", "train/deep/er/still/x.bin",
        "with space/a b.txt", "ünï/čödé 漢字.txt", "percent%20/100%.txt", "plus+/a+b.txt", "hash#/#1.txt",
        ".hidden/.dot", "semi;colon/a;b=c&d.txt", "[brackets]/{x}.txt", "quote'/it's.txt",
    ]
    made = {}
    for name in names:
        size = 0 if name == "empty" else rng.randrange(1, 40_000)
        made[name] = rng.randbytes(size)
    if big:
        made["big/model.bin"] = rng.randbytes(big)
    for name, data in made.items():
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        # Clients that compare times would take a file of this very second for a changed one.
        os.utime(path, times=(1.6e9, 1.6e9))
    return made


def read_tree(folder):
    return {
        str(pathlib.Path(parent, name).relative_to(folder)): pathlib.Path(parent, name).read_bytes()
        for parent, _, names in os.walk(folder)
        for name in names
    }


def assert_same(got, wanted):
    """Compare two trees, folders or {name: bytes}, in words that a person can read."""
    got, wanted = (
        {name: f"{len(data)} bytes, MD5 {hashlib.md5(data).hexdigest()}" for name, data in tree.items()}
        for tree in (t if isinstance(t, dict) else read_tree(t) for t in (got, wanted))
    )
    assert got == wanted, f"only got {got.items() - wanted.items()}, only wanted {wanted.items() - got.items()}"


def with_hosts(names, command, folder):
    """The command in a mount namespace of its own, where these names are this machine; None when
    the kernel does not let us make one."""
    hosts = pathlib.Path(folder, "hosts")
    hosts.write_text("127.0.0.1 localhost " + " ".join(names) + "\n")
    inside = ["unshare", "--map-root-user", "--mount", "sh", "-c",
              'mount --bind "$0" /etc/hosts && exec "$@"',
              str(hosts)]
    if subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
        return None
    return [*inside, *map(str, command)]

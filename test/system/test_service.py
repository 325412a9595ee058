# SPDX-License-Identifier: Apache-2.0
"""The daemon as a service: sockets that systemd opened, and the system calls its unit allows."""
import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
import requests

PACKAGING = pathlib.Path(__file__).resolve().parents[2] / "packaging"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(question, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (answer := question()) is not None:
            return answer
        time.sleep(0.02)
    raise AssertionError("waited in vain")


@pytest.mark.skipif(not shutil.which("systemd-socket-activate"), reason="no systemd")
def test_sockets_of_systemd_are_used_by_their_names(fresh_yard):
    yard = fresh_yard(start=False)
    http, https = free_port(), free_port()
    info_file = yard.home / "run" / "yardd.json"
    log = open(yard.log_file, "ab")
    # In the other order than the daemon opens its own: the names count.
    manager = subprocess.Popen(
        ["systemd-socket-activate", "-l", f"127.0.0.1:{http}", "-l", f"127.0.0.1:{https}",
         "--fdname=http:https", str(yard.programs / "yardd"), "--home", str(yard.home)],
        env=yard.env(), stderr=log, start_new_session=True,
    )
    try:
        def answer():
            try:
                return requests.get(f"http://127.0.0.1:{http}/healthz", timeout=20)
            except requests.ConnectionError:
                return None

        # The first connection starts the daemon, which must then answer it.
        assert wait_for(answer).status_code == 200
        wait_for(lambda: True if info_file.exists() else None)
        info = json.loads(info_file.read_text())
        # socket-activate became the daemon.
        assert info["pid"] == manager.pid
        assert info["apiUrl"].endswith(f":{https}")
        assert info["httpUrl"].endswith(f":{http}")
        secure = requests.get(
            f"https://127.0.0.1:{https}/healthz", verify=info["caFile"], timeout=20
        )
        assert secure.status_code == 200
    finally:
        manager.send_signal(signal.SIGTERM)
        status = manager.wait(30)
    assert status == 0, yard.log_tail()


def allowed_calls():
    """The names that SystemCallFilter= of the unit comes to."""
    text = subprocess.run(
        ["systemd-analyze", "syscall-filter"], capture_output=True, text=True, check=True
    ).stdout
    sets, current = {}, None
    for line in text.splitlines():
        word = line.split("#")[0].strip()
        if line.startswith("@"):
            current = sets.setdefault(word, [])
        elif word and current is not None:
            current.append(word)

    def names(item):
        return set().union(*map(names, sets[item])) if item.startswith("@") else {item}

    allowed = names("@default")
    unit = (PACKAGING / "yardd.service").read_text()
    for rule in re.findall(r"(?m)^SystemCallFilter=(.*)$", unit):
        listed = set().union(*map(names, rule.lstrip("~").split()))
        allowed = allowed - listed if rule.startswith("~") else allowed | listed
    return allowed


def is_sanitized(program):
    return b"__asan_init" in program.read_bytes()


@pytest.mark.skipif(
    not (shutil.which("strace") and shutil.which("systemd-analyze")), reason="no strace or systemd"
)
def test_the_unit_allows_every_system_call_that_is_made(fresh_yard):
    yard = fresh_yard(start=False)
    if is_sanitized(yard.programs / "yardd"):
        pytest.skip("a sanitizer makes calls of its own")
    counts = yard.folder / "calls"
    traced = subprocess.Popen(
        ["strace", "-f", "-c", "-o", str(counts), *yard.command()],
        env=yard.env(), stderr=open(yard.log_file, "ab"), start_new_session=True,
    )
    info_file = yard.home / "run" / "yardd.json"
    wait_for(lambda: True if info_file.exists() else None)
    yard.info = json.loads(info_file.read_text())
    yard.run("group", "create", "-n", "g", "-l", "eastus", "-o", "none")
    yard.run("storage", "account", "create", "-n", "traced", "-g", "g", "-o", "none")
    yard.run("batchai", "workspace", "create", "-n", "w", "-g", "g", "-o", "none")
    yard.run("backup", yard.folder / "copy")
    yard.run("doctor")
    yard.run("group", "delete", "-n", "g", "--yes")
    subprocess.run(["kill", "-TERM", str(yard.info["pid"])], check=True)
    assert traced.wait(60) == 0, yard.log_tail()
    made = {m[1] for m in re.finditer(r"(?m)^ *[\d.]+ .* (\w+)$", counts.read_text())} - {"total"}
    assert len(made) > 20
    # SQLite gives new files their folder's owner, when it runs as root only; the service does not.
    assert made - allowed_calls() - {"fchown"} == set()

# SPDX-License-Identifier: Apache-2.0
"""A small image made of this machine's own programs, and a registry that wants a password for it:
nothing need be pulled from anywhere.
"""
import base64
import http.server
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import threading

import pytest

PROGRAMS = ("/bin/bash", "/usr/bin/ssh")  # with their libraries; the rest is busybox
APPLETS = ("sh", "echo", "cat", "ls", "mkdir", "tee", "sleep", "env", "true", "false", "test", "hostname",
           "id", "rm", "touch", "df", "tr", "dd", "grep", "mount", "ps")
NAME = "localhost/yard-job-test:1"


def run(*words, **options):
    return subprocess.run(words, check=True, capture_output=True, **options)


def need_containers():
    if os.geteuid() != 0 or not shutil.which("podman"):
        pytest.skip("containers need podman and root")
    if not shutil.which("busybox"):
        pytest.skip("busybox is not installed")


def make_image(name=NAME):
    """Once on a machine; gives its name."""
    need_containers()
    if subprocess.run(["podman", "image", "exists", name]).returncode != 0:
        run("podman", "import", "-", name, input=make_tree())
    return name


def make_tree():
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for folder in ("bin", "tmp", "etc", "etc/ssh", "root", "usr", "usr/bin"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        tar.add(shutil.which("busybox"), "bin/busybox")
        known = set()
        for program in PROGRAMS:
            tar.add(os.path.realpath(program), f"bin/{os.path.basename(program)}")
            needs = run("ldd", program, text=True).stdout
            known |= set(re.findall(r"(/lib\S+)", needs))
        for library in sorted(known):
            tar.add(os.path.realpath(library), library.lstrip("/"))
        for applet in APPLETS:
            entry = tarfile.TarInfo(f"bin/{applet}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(entry)
        for name, text in {"passwd": "root:x:0:0:root:/root:/bin/bash\n", "group": "root:x:0:\n"}.items():
            entry = tarfile.TarInfo(f"etc/{name}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


class Registry:
    """Serves one image as `lab/tool:1` to who knows the password."""

    def __init__(self, folder, image, user, password):
        self.folder = pathlib.Path(folder) / "image"
        run("podman", "save", "--format", "oci-dir", "-o", str(self.folder), image)
        self.expected = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        self.asked = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"127.0.0.1:{self.server.server_port}"
        self.config = pathlib.Path(folder) / "registries.conf"
        self.config.write_text(f'[[registry]]\nlocation = "{self.address}"\ninsecure = true\n')

    def stop(self):
        self.server.shutdown()

    def find(self, path):
        """-> bytes and their type, or None."""
        (manifest,) = json.loads((self.folder / "index.json").read_text())["manifests"]
        if path == "/v2/lab/tool/manifests/1":
            path = f"/v2/lab/tool/manifests/{manifest['digest']}"
        kind, _, digest = path.removeprefix("/v2/lab/tool/").partition("/sha256:")
        file = self.folder / "blobs" / "sha256" / digest
        if not digest or "/" in digest or not file.exists():
            return None
        return file.read_bytes(), manifest["mediaType"] if kind == "manifests" else "application/octet-stream"

    def handler(self):
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self, status, body=b"", **headers):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def do_GET(self):
                registry.asked.append(self.path)
                if self.headers.get("Authorization") != registry.expected:
                    self.answer(401, WWW_Authenticate='Basic realm="lab"')
                    return
                found = registry.find(self.path)
                if self.path == "/v2/":
                    self.answer(200)
                elif found:
                    self.answer(200, found[0], Content_Type=found[1])
                else:
                    self.answer(404, b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}',
                                Content_Type="application/json")

            do_HEAD = do_GET

            def log_message(self, *_):
                pass

        return Handler

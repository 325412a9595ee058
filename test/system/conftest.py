# SPDX-License-Identifier: Apache-2.0
"""A real daemon for the system tests.

`yard` is a running daemon with a data folder of its own, shared by the tests of one file.
`fresh_yard()` starts another one, for tests that kill, restart or spoil it.  At the end each is
stopped with SIGTERM and must exit with 0 and without a sanitizer's report.

YARD_BIN names the folder of the programs; without it, the first build that has them is taken.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import pytest
import requests

ROOT = pathlib.Path(__file__).resolve().parents[2]
SANITIZER = re.compile(
    r"ERROR: (Address|Leak|Thread)Sanitizer|WARNING: ThreadSanitizer|runtime error:"
)
START_S = 20  # a sanitized daemon on a busy machine; a release one takes some 50 ms
STOP_S = 30
# Each listener's option, and where the daemon says what it got.
PORTS = {
    "--https-port": "apiUrl", "--http-port": "httpUrl",
    "--blob-port": "blobUrl", "--file-port": "fileUrl",
}
OURS = object()  # "the yard's own token", where None means no token at all


def find_programs():
    named = os.environ.get("YARD_BIN")
    folders = [named] if named else [ROOT / "build" / b / "bin" for b in ("asan", "dev", "release")]
    for folder in (pathlib.Path(f).resolve() for f in folders):
        if (folder / "yardd").exists():
            return folder
    return None


class Yard:
    """One daemon, its data folder, and ways to talk to it."""

    def __init__(self, programs, folder, options=()):
        self.programs = programs
        self.folder = pathlib.Path(folder)
        self.home = self.folder / "home"
        self.log_file = self.folder / "yardd.log"
        self.options = list(options)
        self.process = None
        self.info = None
        self._ports = dict.fromkeys(PORTS, 0)
        self._local = threading.local()

    # -- life ---------------------------------------------------------------------------------

    def env(self, extra=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith("YARD_")}
        env.update(YARD_HOME=str(self.home), HOME=str(self.folder), NO_PROXY="*", LC_ALL="C.UTF-8")
        env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        env.update(extra or {})
        return env

    def command(self, *options):
        ports = [word for option, port in self._ports.items() for word in (option, str(port))]
        return [
            str(self.programs / "yardd"), "--home", str(self.home), *ports, *self.options, *options,
        ]

    def start(self, *options, env=None):
        """Start the daemon and wait until it answers; gives the seconds that took."""
        assert self.process is None, "the daemon runs already"
        begun = time.monotonic()
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(
                self.command(*options), env=self.env(env), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
            )
        self._wait_until(self._read_info, begun, "did not write run/yardd.json")
        self._wait_until(self._is_healthy, begun, "did not answer /healthz")
        # After a restart clients must find it where it was.
        self._ports = {option: self._port(self.info[name]) for option, name in PORTS.items()}
        return time.monotonic() - begun

    def _wait_until(self, question, begun, complaint):
        while not question():
            status = self.process.poll()
            if status is not None:
                self.process = None
                raise AssertionError(f"yardd exited with {status} at start\n{self.log_tail()}")
            if time.monotonic() - begun > START_S:
                self.kill9()
                raise AssertionError(f"yardd {complaint} in {START_S} s\n{self.log_tail()}")
            time.sleep(0.005)

    def _read_info(self):
        try:
            info = json.loads((self.home / "run" / "yardd.json").read_text())
        except (OSError, ValueError):
            return False
        # One that a killed daemon left behind is not ours.
        if info.get("pid") != self.process.pid:
            return False
        self.info = info
        return True

    def _is_healthy(self):
        try:
            return requests.get(self.http_url + "/healthz", timeout=5).status_code == 200
        except requests.RequestException:
            return False

    def kill9(self):
        """As a power cut for the process: nothing is flushed, nothing is said."""
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self):
        """Ask it to go; a daemon that went well exits with 0."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill9()
            raise AssertionError(f"yardd did not stop in {STOP_S} s\n{self.log_tail()}") from None
        self.process = None
        assert status == 0, f"yardd exited with {status}\n{self.log_tail()}"

    def clear_nodes(self, seconds=60):
        """Jobs and nodes outlive a daemon: have this one take down what it made."""
        folder = self.home / "nodes"
        if self.process is None or not any(folder.glob("tvm-*")):
            return
        groups = self.rest("GET", f"{self.subscription}/resourceGroups?api-version=2021-04-01").json()
        for group in groups["value"]:
            self.rest("DELETE", f"{group['id']}?api-version=2021-04-01")
        deadline = time.monotonic() + seconds
        while any(folder.glob("tvm-*")):
            assert time.monotonic() < deadline, f"nodes remain: {list(folder.iterdir())}\n{self.log_tail()}"
            time.sleep(0.05)

    def kill_leftovers(self):
        """Of a test that failed halfway: shims and keepers name the data folder."""
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if str(self.home).encode() in (process / "cmdline").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)
            except (OSError, ProcessLookupError):
                continue

    def restart(self, *options, env=None):
        self.stop()
        return self.start(*options, env=env)

    def log(self):
        try:
            return self.log_file.read_text(errors="replace")
        except OSError:
            return ""

    def log_tail(self, lines=60):
        return "\n".join(self.log().splitlines()[-lines:])

    def assert_no_sanitizer_report(self):
        log = self.log()
        if match := SANITIZER.search(log):
            raise AssertionError("a sanitizer reports:\n" + log[match.start() :][:6000])

    # -- what it said about itself --------------------------------------------------------------

    @staticmethod
    def _port(url):
        return int(url.rstrip("/").rsplit(":", 1)[1])

    @property
    def pid(self):
        return self.process.pid

    @property
    def api_url(self):
        return self.info["apiUrl"].rstrip("/")

    @property
    def http_url(self):
        return self.info["httpUrl"].rstrip("/")

    @property
    def blob_url(self):
        return self.info["blobUrl"].rstrip("/")

    @property
    def file_url(self):
        return self.info["fileUrl"].rstrip("/")

    @property
    def http_host(self):
        return self.http_url.split("//")[1].rsplit(":", 1)[0]

    @property
    def http_port(self):
        return self._port(self.http_url)

    @property
    def https_port(self):
        return self._port(self.api_url)

    @property
    def ca_file(self):
        return self.info["caFile"]

    @property
    def token(self):
        return pathlib.Path(self.info["tokenFile"]).read_text().strip()

    @property
    def subscription_id(self):
        return self.info["subscriptionId"]

    @property
    def tenant_id(self):
        return self.info["tenantId"]

    @property
    def subscription(self):
        """The path that ARM resources begin with."""
        return f"/subscriptions/{self.subscription_id}"

    # -- talking to it --------------------------------------------------------------------------

    def run(self, *args, check=True, input=None, env=None, timeout=60):
        """Run the command line against this yard."""
        done = subprocess.run(
            [str(self.programs / "yard"), *map(str, args)], input=input, env=self.env(env),
            capture_output=True, text=True, timeout=timeout, cwd=self.folder,
        )
        assert not SANITIZER.search(done.stderr), f"a sanitizer reports:\n{done.stderr[:6000]}"
        if check and done.returncode != 0:
            raise AssertionError(
                f"yard {' '.join(map(str, args))} exited with {done.returncode}\n"
                f"stdout: {done.stdout}\nstderr: {done.stderr}"
            )
        return done

    @property
    def session(self):
        """One kept connection for each thread."""
        if not hasattr(self._local, "session"):
            self._local.session = requests.Session()
            self._local.session.trust_env = False
        return self._local.session

    def rest(self, method, path, json=None, token=OURS, headers=None, **options):
        """A request to the API over TLS, with the yard's token unless told otherwise."""
        sent = dict(headers or {})
        secret = self.token if token is OURS else token
        if secret is not None:
            sent.setdefault("Authorization", f"Bearer {secret}")
        url = path if path.startswith("http") else self.api_url + path
        options.setdefault("timeout", 30)
        options.setdefault("allow_redirects", False)
        return self.session.request(
            method, url, json=json, headers=sent, verify=self.ca_file, **options
        )


@pytest.fixture(scope="session")
def programs():
    found = find_programs()
    if found is None and "YARD_BIN" in os.environ:
        pytest.fail(f"there is no yardd in {os.environ['YARD_BIN']}")
    if found is None:
        pytest.skip("yardd is not built")
    return found


class Places:
    """Starts yards and sees every one of them to its end."""

    def __init__(self, programs):
        self.programs = programs
        self.yards = []

    def new(self, *options, start=True, env=None):
        # Not pytest's own folder: its names are too long for a Unix socket.
        yard = Yard(self.programs, tempfile.mkdtemp(prefix="yard-"), options)
        self.yards.append(yard)
        if start:
            yard.start(env=env)
        return yard

    def end(self):
        problems = []
        for yard in self.yards:
            try:
                yard.clear_nodes()
                yard.stop()
                yard.assert_no_sanitizer_report()
            except AssertionError as problem:
                problems.append(str(problem))
            yard.kill_leftovers()
            shutil.rmtree(yard.folder, ignore_errors=True)
        assert not problems, "\n".join(problems)


@pytest.fixture(scope="module")
def start_yard(programs):
    """start_yard(*options): for a file whose yard is not the usual one."""
    places = Places(programs)
    try:
        yield places.new
    finally:
        places.end()


@pytest.fixture(scope="module")
def yard(start_yard):
    return start_yard()


@pytest.fixture
def fresh_yard(programs):
    """fresh_yard(*options, start=True, env=None) -> Yard"""
    places = Places(programs)
    try:
        yield places.new
    finally:
        places.end()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """Show what the daemon said when a test fails."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        fresh = item.funcargs.get("fresh_yard")
        for shown in [item.funcargs.get("yard"), *(fresh.__self__.yards if fresh else [])]:
            if isinstance(shown, Yard):
                report.sections.append(("yardd log", shown.log_tail()))


def pytest_sessionfinish(session, exitstatus):
    """A file in which every test was skipped is a skipped test to CTest (77)."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    stats = reporter.stats if reporter else {}
    ran = [k for k in ("passed", "failed", "error", "xfailed", "xpassed") if stats.get(k)]
    if exitstatus == 0 and not ran and stats.get("skipped"):
        session.exitstatus = 77

# SPDX-License-Identifier: Apache-2.0
"""The storage protocol by hand: raw requests, signed here and not by any client's code.

`Storage` talks to one account; `account_sas` and `service_sas` make tokens; `open_account` makes
an account in a yard and says where it is served.
"""
import base64
import datetime
import hashlib
import hmac
import http.client
import socket
import urllib.parse
import xml.etree.ElementTree as ElementTree

VERSION = "2021-12-02"
SIGNED = (
    "content-encoding", "content-language", "content-length", "content-md5", "content-type", "date",
    "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range",
)


def http_date(when=None):
    when = when or datetime.datetime.now(datetime.timezone.utc)
    return when.strftime("%a, %d %b %Y %H:%M:%S GMT")


def iso(hours=1, form="%Y-%m-%dT%H:%M:%SZ"):
    now = datetime.datetime.now(datetime.timezone.utc)
    return (now + datetime.timedelta(hours=hours)).strftime(form)


def sign(key, text):
    digest = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def md5(data):
    return base64.b64encode(hashlib.md5(data).digest()).decode()


def crc64(data):
    """Bit by bit, so that it shares nothing with the tables of the service."""
    crc = 0xFFFFFFFFFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x9A6C9329AC4BC9B5 if crc & 1 else 0)
    return base64.b64encode((crc ^ 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")).decode()


def canonical_query(query, lite=False):
    pairs = {}
    for name, value in urllib.parse.parse_qsl(query, keep_blank_values=True):
        pairs.setdefault(name.lower(), []).append(value)
    if lite:
        return f"?comp={pairs['comp'][0]}" if "comp" in pairs else ""
    return "".join(f"\n{name}:{','.join(sorted(pairs[name]))}" for name in sorted(pairs))


def authorization(account, key, method, path, query, headers, lite=False):
    """The Authorization header of a request; headers as they are sent."""
    have = {name.lower(): str(value).strip() for name, value in headers.items()}
    if have.get("content-length") == "0":
        del have["content-length"]
    names = ("content-md5", "content-type", "date") if lite else SIGNED
    lines = [method] + ["" if n == "date" and "x-ms-date" in have else have.get(n, "") for n in names]
    lines += [f"{name}:{have[name]}" for name in sorted(have) if name.startswith("x-ms-")]
    text = "\n".join(lines) + f"\n/{account}{path}{canonical_query(query, lite)}"
    return f"{'SharedKeyLite' if lite else 'SharedKey'} {account}:{sign(key, text)}"


def account_sas(account, key, sp="rwdlactp", ss="bf", srt="sco", sv=VERSION, **more):
    """The query of an account SAS; more: st, se, sip, spr, ses."""
    p = {"sv": sv, "ss": ss, "srt": srt, "sp": sp, "se": iso(), **more}
    names = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"] + (["ses"] if sv >= "2020-12-06" else [])
    text = account + "\n" + "".join(p.get(n, "") + "\n" for n in names)
    p["sig"] = sign(key, text)
    return urllib.parse.urlencode(p, quote_via=urllib.parse.quote)


def service_sas(account, key, container, blob=None, sp="r", sr=None, sv=VERSION, service="blob", **more):
    """The query of a SAS of one resource; more: st, se, si, sip, spr, snapshot, rscc ... rsct."""
    sr = sr or ("b" if blob else "c")
    p = {"sv": sv, "sr": sr, "sp": sp, "se": iso(), **more}
    p = {name: value for name, value in p.items() if value is not None}
    resource = f"/{service}/{account}/{container}" + (f"/{blob}" if blob else "")
    lines = [p.get("sp", ""), p.get("st", ""), p.get("se", ""), resource, p.get("si", ""),
             p.get("sip", ""), p.get("spr", ""), sv]
    if service == "blob" and sv >= "2018-11-09":
        lines += [sr, p.get("snapshot", "") if sr == "bs" else ""]
    if service == "blob" and sv >= "2020-12-06":
        lines += [p.get("ses", "")]
    lines += [p.get(name, "") for name in ("rscc", "rscd", "rsce", "rscl", "rsct")]
    p["sig"] = sign(key, "\n".join(lines))
    return urllib.parse.urlencode(p, quote_via=urllib.parse.quote)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def __getitem__(self, name):
        return self.headers.get(name)

    @property
    def code(self):
        """The word of an error; header and body must agree."""
        word = self["x-ms-error-code"]
        if self.body and word:
            assert self["Content-Type"] == "application/xml"
            root = ElementTree.fromstring(self.body)
            assert root.tag == "Error" and root.findtext("Code") == word
            assert f"RequestId:{self['x-ms-request-id']}" in root.findtext("Message")
        return word

    @property
    def xml(self):
        assert self["Content-Type"] == "application/xml", self.body
        return ElementTree.fromstring(self.body)

    @property
    def etag(self):
        return self["ETag"]

    def __repr__(self):
        return f"<{self.status} {dict(self.headers.items())} {self.body[:600]!r}>"


class Storage:
    """One account of a storage service."""

    def __init__(self, endpoint, account, key):
        url = urllib.parse.urlsplit(endpoint)
        self.netloc, self.base = url.netloc, url.path.rstrip("/")
        self.endpoint = endpoint.rstrip("/")
        self.account, self.key = account, key
        self._connection = None

    def url(self, path, query=""):
        return f"http://{self.netloc}{self.base}{path}" + (f"?{query}" if query else "")

    def connection(self):
        if self._connection is None:
            self._connection = http.client.HTTPConnection(self.netloc, timeout=60)
            self._connection.connect()
            self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._connection

    def call(self, method, path="/", query="", headers=None, data=b"", *, sas=None, auth="key",
             lite=False, base=None, host=None):
        """One request.  auth: "key", None, or the Authorization header itself; sas: a query."""
        raw_path = (self.base if base is None else base) + path
        sent = {"x-ms-version": VERSION, "x-ms-date": http_date(), "Content-Length": str(len(data))}
        if method in ("GET", "HEAD", "OPTIONS") and not data:
            del sent["Content-Length"]
        for name, value in (headers or {}).items():
            sent.pop(next((n for n in sent if n.lower() == name.lower()), None), None)
            if value is not None:
                sent[name] = value
        if auth == "key" and sas is None:
            sent["Authorization"] = authorization(
                self.account, self.key, method, raw_path, query, sent, lite)
        elif auth not in ("key", None):
            sent["Authorization"] = auth
        full = "&".join(part for part in (query, sas) if part)
        target = raw_path + (f"?{full}" if full else "")
        for attempt in (1, 2):
            connection = self.connection()
            try:
                connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
                connection.putheader("Host", host or self.netloc)
                for name, value in sent.items():
                    connection.putheader(name, value.encode() if isinstance(value, str) else value)
                connection.endheaders(data or None)
                answer = Answer(connection.getresponse())
                break
            except (ConnectionError, http.client.RemoteDisconnected, http.client.CannotSendRequest):
                self.close()
                if attempt == 2:
                    raise
        if (answer["Connection"] or "").lower() == "close":
            self.close()
        return answer

    def close(self):
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- the most usual ones ---------------------------------------------------------------------

    def make_container(self, name, **options):
        answer = self.call("PUT", f"/{name}", "restype=container", **options)
        assert answer.status == 201, answer
        return f"/{name}"

    def put(self, path, data=b"", headers=None, **options):
        answer = self.call("PUT", path, "", {"x-ms-blob-type": "BlockBlob", **(headers or {})}, data,
                           **options)
        assert answer.status == 201, answer
        return answer


def open_account(yard, name):
    """Make a storage account in the yard's group "storage"; gives the account's blob service."""
    group = f"{yard.subscription}/resourceGroups/storage"
    path = f"{group}/providers/Microsoft.Storage/storageAccounts/{name}"
    assert yard.rest("PUT", group, json={"location": "eastus"}).status_code in (200, 201)
    body = {"location": "eastus", "sku": {"name": "Standard_LRS"}, "kind": "StorageV2"}
    answer = yard.rest("PUT", path, json=body)
    assert answer.status_code in (200, 201, 202), answer.text
    endpoints = yard.rest("GET", path).json()["properties"]["primaryEndpoints"]
    keys = yard.rest("POST", path + "/listKeys").json()["keys"]
    return Storage(endpoints["blob"], name, keys[0]["value"])

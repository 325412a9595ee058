# SPDX-License-Identifier: Apache-2.0
"""Malformed requests, byte for byte, against a running daemon: each is refused and its connection closed.

The first fourteen are the classic ones that HTTP servers are compared by.  Whatever follows a refused request
on its connection must not be answered: that is how requests are smuggled.  Each kind of malformed request
has a well-formed neighbour further down, which must pass, so that nothing is refused for the wrong reason.
"""
import re
import socket

import pytest

GET = b"GET /healthz HTTP/1.1\r\n"
POST = b"POST /healthz HTTP/1.1\r\n"
HOST = b"Host: localhost\r\n"
END = b"\r\n"
CL5 = b"Content-Length: 5\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
# A second request, to be seen unanswered behind a refused one.
SMUGGLED = GET + HOST + END


def chunks(body):
    """To the one place that reads a body before it knows who sends it."""
    return b"POST /common/oauth2/v2.0/token HTTP/1.1\r\n" + HOST + CHUNKED + END + body


CLASSIC = {
    "content-length-and-transfer-encoding": POST + HOST + CL5 + CHUNKED + END + b"0\r\n\r\n",
    "content-length-twice-differing": POST + HOST + CL5 + b"Content-Length: 6\r\n" + END + b"hello!",
    "content-length-twice-identical": POST + HOST + CL5 + CL5 + END + b"hello",
    "content-length-signed": POST + HOST + b"Content-Length: +5\r\n" + END + b"hello",
    "transfer-encoding-unknown": POST + HOST + b"Transfer-Encoding: xchunked\r\n" + END + b"0\r\n\r\n",
    "transfer-encoding-in-http-1.0": b"POST / HTTP/1.0\r\n" + HOST + CHUNKED + END + b"0\r\n\r\n",
    "space-before-colon": GET + b"Host : localhost\r\n" + END,
    "folded-header": GET + HOST + b"X: a\r\n b\r\n" + END,
    "bare-lf": b"GET /healthz HTTP/1.1\nHost: localhost\n\n",
    "bare-cr-in-value": GET + HOST + b"X: a\rY: b\r\n" + END,
    "nul-in-value": GET + HOST + b"X: a\0b\r\n" + END,
    "host-missing": GET + END,
    "host-twice": GET + HOST + HOST + END,
    "chunk-size-malformed": chunks(b"0x5\r\nhello\r\n0\r\n\r\n"),
}

REQUEST_LINE = {
    "no-method": b" /healthz HTTP/1.1\r\n" + HOST + END,
    "method-unknown": b"GRAB /healthz HTTP/1.1\r\n" + HOST + END,
    "method-lower-case": b"get /healthz HTTP/1.1\r\n" + HOST + END,
    "method-no-token": b"G(T /healthz HTTP/1.1\r\n" + HOST + END,
    "method-nul": b"G\0T /healthz HTTP/1.1\r\n" + HOST + END,
    "two-spaces": b"GET  /healthz HTTP/1.1\r\n" + HOST + END,
    "tab-for-space": b"GET\t/healthz HTTP/1.1\r\n" + HOST + END,
    "trailing-space": b"GET /healthz HTTP/1.1 \r\n" + HOST + END,
    "no-version": b"GET /healthz\r\n" + HOST + END,
    "version-0.9": b"GET /healthz HTTP/0.9\r\n" + HOST + END,
    "version-1.2": b"GET /healthz HTTP/1.2\r\n" + HOST + END,
    "version-2.0": b"GET /healthz HTTP/2.0\r\n" + HOST + END,
    "version-lower-case": b"GET /healthz http/1.1\r\n" + HOST + END,
    "version-long": b"GET /healthz HTTP/1.10\r\n" + HOST + END,
    "http2-preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "absolute-form": b"GET http://localhost/healthz HTTP/1.1\r\n" + HOST + END,
    "authority-form": b"CONNECT localhost:80 HTTP/1.1\r\n" + HOST + END,
    "asterisk-for-get": b"GET * HTTP/1.1\r\n" + HOST + END,
    "relative-target": b"GET healthz HTTP/1.1\r\n" + HOST + END,
    "fragment": b"GET /healthz#x HTTP/1.1\r\n" + HOST + END,
    "raw-utf8-in-target": "GET /é HTTP/1.1\r\n".encode() + HOST + END,
    "control-in-target": b"GET /\x01 HTTP/1.1\r\n" + HOST + END,
    "nul-in-target": b"GET /\0 HTTP/1.1\r\n" + HOST + END,
    "cr-in-target": b"GET /a\rb HTTP/1.1\r\n" + HOST + END,
    "two-empty-lines-first": END + END + GET + HOST + END,
    "bare-lf-first": b"\n" + GET + HOST + END,
    "bare-lf-after-request-line": b"GET /healthz HTTP/1.1\n" + HOST + END,
    "cr-cr-lf": b"GET /healthz HTTP/1.1\r\r\n" + HOST + END,
    "tls-client-hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "request-line-too-long": b"GET /" + b"a" * 17000 + b" HTTP/1.1\r\n" + HOST + END,
}

HEADERS = {
    "blank-before-first-header": GET + b" Host: localhost\r\n" + END,
    "tab-fold": GET + HOST + b"X: a\r\n\tb\r\n" + END,
    "empty-fold": GET + HOST + b" \r\n" + END,
    "no-colon": GET + HOST + b"X\r\n" + END,
    "no-name": GET + HOST + b": a\r\n" + END,
    "tab-before-colon": GET + HOST + b"X\t: a\r\n" + END,
    "space-in-name": GET + HOST + b"X Y: a\r\n" + END,
    "slash-in-name": GET + HOST + b"X/Y: a\r\n" + END,
    "nul-in-name": GET + HOST + b"X\0: a\r\n" + END,
    "high-byte-in-name": GET + HOST + b"X\xff: a\r\n" + END,
    "escape-in-value": GET + HOST + b"X: \x1b[2J\r\n" + END,
    "del-in-value": GET + HOST + b"X: \x7f\r\n" + END,
    "bare-lf-after-header": GET + b"Host: localhost\n" + END,
    "bare-lf-at-end": GET + HOST + b"\n",
    "only-crs": b"GET /healthz HTTP/1.1\rHost: localhost\r\r",
    "header-too-long": GET + HOST + b"X: " + b"a" * 17000 + END + END,
    "head-too-long": GET + HOST + (b"X: " + b"a" * 7000 + END) * 5 + END,
    "too-many-headers": GET + HOST + b"X: a\r\n" * 200 + END,
    "expectation-unknown": GET + HOST + b"Expect: coffee\r\n" + END,
}

HOSTS = {
    "host-empty": GET + b"Host:\r\n" + END,
    "host-blank": GET + b"Host: \t\r\n" + END,
    "host-with-path": GET + b"Host: localhost/x\r\n" + END,
    "host-with-user": GET + b"Host: a@localhost\r\n" + END,
    "host-list": GET + b"Host: localhost, evil\r\n" + END,
    "host-with-space": GET + b"Host: local host\r\n" + END,
    "host-port-empty": GET + b"Host: localhost:\r\n" + END,
    "host-port-word": GET + b"Host: localhost:http\r\n" + END,
    "host-bracket-open": GET + b"Host: [::1\r\n" + END,
    "host-twice-differing": GET + HOST + b"host: evil.example\r\n" + END,
}


def length(value):
    return POST + HOST + b"Content-Length:" + value + END + END + b"hello"


def coding(value):
    return POST + HOST + b"Transfer-Encoding:" + value + END + END + b"0\r\n\r\n"


LENGTHS = {
    "length-negative": length(b" -1"),
    "length-empty": length(b""),
    "length-hex": length(b" 0x5"),
    "length-list": length(b" 5, 5"),
    "length-blank-inside": length(b" 5 5"),
    "length-decimal": length(b" 5.0"),
    "length-exponent": length(b" 5e0"),
    "length-overflow": length(b" 18446744073709551621"),
    "length-beyond-signed": length(b" 9223372036854775808"),
    "length-thousand-digits": length(b" " + b"0" * 1000 + b"5"),
}

CODINGS = {
    "coding-identity": coding(b" identity"),
    "coding-gzip-chunked": coding(b" gzip, chunked"),
    "coding-chunked-identity": coding(b" chunked, identity"),
    "coding-chunked-chunked": coding(b" chunked, chunked"),
    "coding-twice": POST + HOST + CHUNKED + CHUNKED + END + b"0\r\n\r\n",
    "coding-quoted": coding(b' "chunked"'),
    "coding-parameter": coding(b" chunked;q=1"),
    "coding-vertical-tab": coding(b" \x0bchunked"),
    "coding-empty": coding(b""),
    "coding-then-length": POST + HOST + CHUNKED + CL5 + END + b"0\r\n\r\n",
}

CHUNKS = {
    "chunk-size-missing": chunks(b"\r\nhello\r\n0\r\n\r\n"),
    "chunk-size-signed": chunks(b"+5\r\nhello\r\n0\r\n\r\n"),
    "chunk-size-negative": chunks(b"-5\r\nhello\r\n0\r\n\r\n"),
    "chunk-size-leading-space": chunks(b" 5\r\nhello\r\n0\r\n\r\n"),
    "chunk-size-trailing-space": chunks(b"5 \r\nhello\r\n0\r\n\r\n"),
    "chunk-size-no-hex": chunks(b"g\r\nhello\r\n0\r\n\r\n"),
    "chunk-size-overflow": chunks(b"10000000000000005\r\nhello\r\n0\r\n\r\n"),
    "chunk-size-bare-lf": chunks(b"5\nhello\r\n0\r\n\r\n"),
    "chunk-size-bare-cr": chunks(b"5\rhello\r\n0\r\n\r\n"),
    "chunk-data-too-long": chunks(b"5\r\nhello!\r\n0\r\n\r\n"),
    "chunk-data-bare-lf": chunks(b"5\r\nhello\n0\r\n\r\n"),
    "chunk-data-no-end": chunks(b"5\r\nhello0\r\n\r\n"),
    "chunk-extension-bare-lf": chunks(b"5;a\nb\r\nhello\r\n0\r\n\r\n"),
    "chunk-extension-nul": chunks(b"5;\0\r\nhello\r\n0\r\n\r\n"),
    "chunk-extension-endless": chunks(b"5;" + b"a" * 20000 + b"\r\nhello\r\n0\r\n\r\n"),
    "last-chunk-bare-lf": chunks(b"0\n\n"),
    "end-bare-lf": chunks(b"0\r\n\n"),
    "trailer-no-colon": chunks(b"0\r\nX\r\n\r\n"),
    "trailer-folded": chunks(b"0\r\nX: a\r\n b\r\n\r\n"),
    "trailer-content-length": chunks(b"0\r\nContent-Length: 5\r\n\r\n"),
    "trailer-endless": chunks(b"0\r\nX: " + b"a" * 20000 + b"\r\n\r\n"),
}

# Sizes and expectations have statuses of their own; everything else is a bad request.
STATUS = {
    "request-line-too-long": 414,
    "header-too-long": 431,
    "head-too-long": 431,
    "too-many-headers": 431,
    "expectation-unknown": 417,
}

WELL_FORMED = {
    "plain": GET + HOST + END,
    "one-empty-line-first": END + GET + HOST + END,
    "host-with-port": GET + b"Host: localhost:80\r\n" + END,
    "host-without-blank": GET + b"Host:localhost\r\n" + END,
    "host-padded": GET + b"hOsT: \t localhost \t\r\n" + END,
    "empty-value": GET + HOST + b"X:\r\n" + END,
    "high-bytes-in-value": GET + HOST + "X: é\r\n".encode() + END,
    "tab-in-value": GET + HOST + b"X: a\tb\r\n" + END,
    "header-repeated": GET + HOST + b"X: a\r\nX: b\r\n" + END,
    "hundred-headers": GET + HOST + b"X: a\r\n" * 99 + END,
    "header-long": GET + HOST + b"X: " + b"a" * 8000 + END + END,
    "query": b"GET /healthz?a=%20b&c HTTP/1.1\r\n" + HOST + END,
    "length-zero": GET + HOST + b"Content-Length: 0\r\n" + END,
    "length": GET + HOST + b"Content-Length:  5 \r\n" + END + b"hello",
    "length-leading-zeros": GET + HOST + b"Content-Length: 005\r\n" + END + b"hello",
}
# Read to their end, so that the next request is found; that they make no sense as tokens is another matter.
WELL_FORMED_CHUNKS = {
    "chunks": chunks(b"5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n"),
    "chunk-hex": chunks(b"a\r\nhellohello\r\nA\r\nhellohello\r\n0\r\n\r\n"),
    "chunk-leading-zeros": chunks(b"0005\r\nhello\r\n000\r\n\r\n"),
    "chunk-extension": chunks(b"5;a=b;c\r\nhello\r\n0;d\r\n\r\n"),
    "chunk-of-framing": chunks(b"7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n"),
    "no-chunks": chunks(b"0\r\n\r\n"),
    "trailers": chunks(b"0\r\nX: a\r\nY:\r\n\r\n"),
}
# A body that nobody reads, whose end is unknown: answered, but the connection ends.
WELL_FORMED_LAST = {
    "http-1.0": b"GET /healthz HTTP/1.0\r\n" + HOST + END,
    "close": GET + HOST + b"Connection: close\r\n" + END,
    "chunked": GET + HOST + CHUNKED + END + b"5\r\nhello\r\n0\r\n\r\n",
    "chunked-any-case": GET + HOST + b"transfer-encoding: CHUNKED\r\n" + END + b"0\r\n\r\n",
    "chunked-with-extension": GET + HOST + CHUNKED + END + b"5;a=b\r\nhello\r\n0;c\r\n\r\n",
    "chunked-with-trailer": GET + HOST + CHUNKED + END + b"0\r\nX: a\r\n\r\n",
}

MALFORMED = {
    name: data
    for group in (CLASSIC, REQUEST_LINE, HEADERS, HOSTS, LENGTHS, CODINGS, CHUNKS)
    for name, data in group.items()
}


def connect(yard):
    s = socket.create_connection((yard.http_host, yard.http_port), timeout=20)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def send(s, data, step):
    """All at once or in pieces; a server that has already closed is its right."""
    try:
        for i in range(0, len(data), step):
            s.sendall(data[i : i + step])
    except (BrokenPipeError, ConnectionResetError):
        pass


def read_to_end(s):
    got = b""
    try:
        while part := s.recv(65536):
            got += part
    except ConnectionResetError:
        pass
    return got


def statuses(data):
    """The status of each reply in the bytes of a connection."""
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", data)]


def test_the_set_is_as_large_as_promised():
    assert len(CLASSIC) == 14
    assert len(MALFORMED) >= 60


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_is_refused_and_nothing_after_it_is_answered(yard, name):
    with connect(yard) as s:
        send(s, MALFORMED[name] + SMUGGLED, 1 << 20)
        got = read_to_end(s)
    assert statuses(got) == [STATUS.get(name, 400)]
    if MALFORMED[name].startswith(chunks(b"")):  # and not for its content
        assert b"chunk" in got


@pytest.mark.parametrize("name", CLASSIC)
def test_the_classic_ones_are_refused_however_they_are_cut(yard, name):
    with connect(yard) as s:
        send(s, CLASSIC[name] + SMUGGLED, 3)
        assert statuses(read_to_end(s)) == [400]


@pytest.mark.parametrize("name", WELL_FORMED)
def test_well_formed_is_answered_and_so_is_the_next(yard, name):
    last = GET + HOST + b"Connection: close\r\n" + END
    with connect(yard) as s:
        send(s, WELL_FORMED[name] + last, 1 << 20)
        assert statuses(read_to_end(s)) == [200, 200]


@pytest.mark.parametrize("name", WELL_FORMED_CHUNKS)
def test_well_formed_chunks_are_read_to_their_end(yard, name):
    with connect(yard) as s:
        send(s, WELL_FORMED_CHUNKS[name] + GET + HOST + b"Connection: close\r\n" + END, 1 << 20)
        got = read_to_end(s)
    assert len(statuses(got)) == 2 and statuses(got)[1] == 200
    assert b"malformed chunk" not in got


@pytest.mark.parametrize("name", WELL_FORMED_LAST)
def test_well_formed_is_answered(yard, name):
    with connect(yard) as s:
        send(s, WELL_FORMED_LAST[name], 1 << 20)
        s.shutdown(socket.SHUT_WR)
        assert statuses(read_to_end(s)) == [200]


def test_the_daemon_is_well_afterwards(yard):
    with connect(yard) as s:
        send(s, GET + HOST + b"Connection: close\r\n" + END, 1)
        assert statuses(read_to_end(s)) == [200]

"""What the tests of twp-origin and twp-loadgen share: programs that are started, waited for and ended by id."""
import contextlib
import json
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

BIN = os.environ.get("TWP_BIN_DIR") or os.path.join(os.path.dirname(__file__), "../../build/dev/bin")
DEADLINE = 60.0


def program(name):
    return os.path.join(BIN, name)


class Origin:
    """A running twp-origin; `urls` are the ones it listens on."""

    def __init__(self, *args, listen=("http://127.0.0.1:0",)):
        read_end, write_end = os.pipe()
        argv = [program("twp-origin"), "--ready-fd", str(write_end)]
        for url in listen:
            argv += ["--listen", url]
        self.process = subprocess.Popen(argv + list(args), pass_fds=(write_end,), stderr=subprocess.PIPE)
        os.close(write_end)
        with os.fdopen(read_end) as pipe:
            line = pipe.readline()
        if not line:
            raise RuntimeError("twp-origin did not start: " + self.process.stderr.read().decode())
        self.ready = json.loads(line)
        self.urls = self.ready["listen"]
        self.port = int(self.urls[0].rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stderr.close()


class RawServer:
    """A server that answers each request head with `answer(number)`: bytes, or None to close at once. Threads, because it
    is there to be wrong and not to be fast."""

    def __init__(self, answer, close=False):
        self.answer, self.close_after = answer, close
        self.requests = 0
        self.heads = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, contextlib.suppress(OSError):
            data = b""
            while True:
                while b"\r\n\r\n" not in data:
                    piece = connection.recv(65536)
                    if not piece:
                        return
                    data += piece
                head, data = data.split(b"\r\n\r\n", 1)
                self.requests += 1
                self.heads.append(head)
                answer = self.answer(self.requests)
                if answer is None:
                    return
                connection.sendall(answer)
                if self.close_after:
                    return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # close() alone leaves a thread that waits in accept(2), and with it the socket: one more connection would come in.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join(DEADLINE)
        self.listener.close()


def read_all(sock):
    """Everything up to the end; a reset counts as the end. (octets, was it a reset)"""
    out = b""
    while True:
        try:
            piece = sock.recv(65536)
        except ConnectionResetError:
            return out, True
        if not piece:
            return out, False
        out += piece


def read_exactly(sock, n):
    out = b""
    while len(out) < n:
        piece = sock.recv(n - len(out))
        if not piece:
            raise EOFError(f"{len(out)} of {n} octets")
        out += piece
    return out


def read_head(sock):
    out = b""
    while not out.endswith(b"\r\n\r\n"):
        out += read_exactly(sock, 1)
    return out


def ws_frame(opcode, payload, fin=True, mask=b"\x01\x02\x03\x04"):
    first = (0x80 if fin else 0) | opcode
    if len(payload) < 126:
        head = struct.pack("!BB", first, 0x80 | len(payload))
    elif len(payload) < 65536:
        head = struct.pack("!BBH", first, 0x80 | 126, len(payload))
    else:
        head = struct.pack("!BBQ", first, 0x80 | 127, len(payload))
    return head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(payload))


def ws_read(sock):
    """(first octet, payload) of the next frame from a server."""
    first, length = read_exactly(sock, 2)
    if length == 126:
        length = struct.unpack("!H", read_exactly(sock, 2))[0]
    elif length == 127:
        length = struct.unpack("!Q", read_exactly(sock, 8))[0]
    return first, read_exactly(sock, length)


def loadgen(*args, timeout=DEADLINE):
    return subprocess.run([program("twp-loadgen"), *map(str, args)], capture_output=True, text=True, timeout=timeout, check=False)


def needed(name, *folders):
    """The path of a foreign program. Not having one is a failure and no reason to skip: scripts/setup --dev brings them."""
    path = os.pathsep.join([*folders, os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    found = shutil.which(name, path=path)
    if not found:
        raise AssertionError(f"{name} is not there: run scripts/setup --dev")
    return found


def deps_dir():
    """Where scripts/setup puts what it fetches; the rule is in scripts/lib/common.sh."""
    repo = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
    command = 'source "$1/scripts/lib/common.sh"; twp_deps_dir'
    return subprocess.run(["bash", "-euc", command, "_", repo], capture_output=True, text=True, check=True).stdout.strip()


class Certificates:
    """A CA and one leaf for localhost and 127.0.0.1 in a folder of their own."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="twp-tls-")
        certgen, at = program("twp-certgen"), self.folder.name
        for args in (["ca", "--out", at], ["leaf", "--ca", at, "--host", "localhost", "127.0.0.1", "--out", at + "/leaf"]):
            subprocess.run([certgen, *args], check=True, capture_output=True, timeout=DEADLINE)
        self.ca, self.cert, self.key = at + "/ca.pem", at + "/leaf.pem", at + "/leaf-key.pem"

    def close(self):
        self.folder.cleanup()

    def server(self, *alpn):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, self.key)
        context.set_alpn_protocols(list(alpn))
        return context

    def client(self, *alpn):
        context = ssl.create_default_context(cafile=self.ca)
        context.set_alpn_protocols(list(alpn))
        return context


class OriginCase(unittest.TestCase):
    """Certificates and one twp-origin for the whole class: cleartext at port `http`, TLS at port `https`."""

    @classmethod
    def setUpClass(cls):
        cls.tls = Certificates()
        cls.addClassCleanup(cls.tls.close)
        cls.origin = Origin("--cert", cls.tls.cert, "--key", cls.tls.key, listen=("http://127.0.0.1:0", "https://127.0.0.1:0"))
        cls.addClassCleanup(cls.origin.__exit__)
        cls.http, cls.https = (int(u.rsplit(":", 1)[1]) for u in cls.origin.urls)


class Proxy:
    """A running twp-proxy reverse; `http` and `https` are the ports of its two listeners."""

    def __init__(self, to, tls, *args):
        read_end, write_end = os.pipe()
        argv = [program("twp-proxy"), "reverse", "--listen", "http://127.0.0.1:0", "--listen", "https://127.0.0.1:0",
                "--cert", tls.cert, "--key", tls.key, "--to", to, "--workers", "1", *args, "--ready-fd", str(write_end)]
        if to.startswith("https"):
            argv += ["--origin-ca", tls.ca]
        self.stderr = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(argv, pass_fds=(write_end,), stderr=self.stderr, stdin=subprocess.DEVNULL)
        os.close(write_end)
        with os.fdopen(read_end) as pipe:
            line = pipe.readline()
        if not line:
            raise RuntimeError("twp-proxy did not start: " + self.errors())
        self.http, self.https = (int(u.rsplit(":", 1)[1]) for u in json.loads(line)["listen"])

    def errors(self):
        self.stderr.seek(0)
        return self.stderr.read()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.stderr.close()


# How twp-proxy is told to speak each wire to an origin.
ORIGIN_WIRES = {"h1c": ("http", ()), "h1": ("https", ("--origin-http", "h1")), "h2c": ("h2c", ()), "h2": ("https", ("--origin-http", "h2"))}


def proxy_to(wire, port, tls, *args):
    scheme, more = ORIGIN_WIRES[wire]
    return Proxy(f"{scheme}://127.0.0.1:{port}", tls, *more, *args)


if __name__ == "__main__":
    sys.exit("this file is only imported")

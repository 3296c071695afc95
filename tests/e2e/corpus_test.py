"""Real bugs of such proxies that need whole processes to show: rows of the corpus by number. Those that one process can
show are in tests/regress."""
import json
import os
import select
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time
import unittest

import cli_test
import tools
from cli_test import DEADLINE, wait_for


def connect(port):
    return socket.create_connection(("127.0.0.1", port), DEADLINE)


def exchange(port, octets):
    with connect(port) as s:
        s.sendall(octets)
        return tools.read_all(s)[0]


class Corpus(cli_test.Case):
    def test_a23_nothing_forges_a_log_line(self):
        log = self.path("access.log")
        origin = tools.Origin()
        self.addCleanup(origin.__exit__)
        proxy = self.reverse(origin.urls[0], "--access-log", log, "--workers", "1")

        def lines():
            with open(log, "rb") as f:
                return f.read().split(b"\n")[:-1]

        target, agent = b"GET %s HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a.test\r\nUser-Agent: %s\r\nConnection: close\r\n\r\n"
        high = bytes(range(0x80, 0x100))
        cases = [(target % b"/%0d%0aFAKE%20200", 404, "path", "/%0d%0aFAKE%20200"),
                 (target % b'/"\\', 404, "path", '/"\\'),
                 (target % (b"/" + high), 404, "path", "/" + high.decode("latin-1")),
                 (agent % b'a"b\\c\\n', 200, "user_agent", 'a"b\\c\\n'),
                 (agent % high, 200, "user_agent", high.decode("latin-1")),
                 (agent % b"x\ty", 200, "user_agent", "x\ty"),
                 (target % b"/\r\nFAKE", 400, None, None),
                 (agent % b"\x1b[31mred", 400, None, None),
                 (agent % b"del\x7f", 400, None, None),
                 (agent % b"nul\x00", 400, None, None),
                 (agent % b"cr\rlf", 400, None, None)]
        for n, (octets, status, key, value) in enumerate(cases, 1):
            with self.subTest(octets):
                answer = exchange(proxy.port, octets)
                self.assertTrue(answer.startswith(b"HTTP/1.1 %d " % status), answer)
                wait_for("the line", lambda: len(lines()) >= n)
                self.assertEqual(len(lines()), n)
                line = lines()[-1]
                self.assertRegex(line, rb"\A[\x20-\x7e]+\Z")
                seen = json.loads(line)
                self.assertEqual(seen["status"], status)
                if key:
                    self.assertEqual(seen[key], value)
        self.assertRegex(proxy.errors().encode(), rb"\A[\x20-\x7e\n]*\Z")

    def test_a72_a_long_upload_that_goes_on_is_not_cut(self):
        # Longer than every timeout there is; none of them may count from the beginning.
        with tools.Origin() as origin:
            proxy = self.reverse(origin.urls[0], *(a for key in ("head", "keep_alive", "stream_idle") for a in ("--set", f"timeouts.{key}=1500ms")))
            begin, sent = time.monotonic(), 0
            with connect(proxy.port) as s:
                s.sendall(b"POST /echo HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
                back = b""
                while time.monotonic() < begin + 5:
                    s.sendall(b"400\r\n" + b"x" * 1024 + b"\r\n")
                    sent += 1024
                    # The next piece a tenth of a second later; what comes back meanwhile is read.
                    end = time.monotonic() + 0.1
                    while (left := end - time.monotonic()) > 0:
                        if select.select([s], [], [], left)[0]:
                            piece = s.recv(65536)
                            self.assertTrue(piece, f"cut after {time.monotonic() - begin:.1f} s: {back[:200]}")
                            back += piece
                s.sendall(b"0\r\n\r\n")
                back += tools.read_all(s)[0]
        self.assertTrue(back.startswith(b"HTTP/1.1 200 "), back[:200])
        self.assertTrue(back.endswith(b"\r\n0\r\n\r\n"))
        self.assertEqual(back.split(b"\r\n\r\n", 1)[1].count(b"x"), sent)

    def test_a73_out_of_descriptors_neither_spins_nor_ends(self):
        proxy = self.running("reverse", "--listen", "http://127.0.0.1:0", "--to", self.origin().url, "--workers", "2",
                             "--set", "cluster.idle_timeout=1s",
                             launcher=("sh", "-c", 'ulimit -n 64 && exec "$@"', "sh"))
        folder = f"/proc/{proxy.process.pid}/fd"

        def cpu():
            with open(f"/proc/{proxy.process.pid}/stat", encoding="ascii") as f:
                fields = f.read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        before = len(os.listdir(folder))
        clients = []
        try:
            for _ in range(200):
                clients.append(connect(proxy.port))
            wait_for("the shortage", lambda: "not accepting for now" in proxy.errors())
            began, used = time.monotonic(), cpu()
            select.select([], [], [], 1)
            busy = (cpu() - used) / (time.monotonic() - began)
            self.assertLess(busy, 0.2, "CPU while there is nothing to do but to wait")
            # Clients do not get them all: those who were accepted need connections to origins.
            self.assertGreater(len(os.listdir(folder)), 32)
            self.assertLess(len(os.listdir(folder)), 56)
            self.assertLessEqual(proxy.errors().count("not accepting for now"), 2)  # once for each worker
            # As clients go, those behind them come in: nobody is forgotten.
            statuses = {}
            for c in clients:
                c.settimeout(DEADLINE)
                c.sendall(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
            for c in clients:
                answer, _ = tools.read_all(c)
                statuses[answer[9:12]] = statuses.get(answer[9:12], 0) + 1
                c.close()
        finally:
            for c in clients:
                c.close()
        self.assertEqual(statuses, {b"200": 200})
        wait_for("the descriptors", lambda: len(os.listdir(folder)) <= before)
        self.assertEqual(proxy.get(), (200, "hello"))

    def test_a74_a_resolver_that_fails_and_a_record_that_changes(self):
        one, two = cli_test.Origin("one", "127.0.0.2"), None
        self.addCleanup(one.close)
        port = one.server.server_port
        two = cli_test.Origin("two", "127.0.0.3", port)
        self.addCleanup(two.close)
        with NameServer("127.0.0.2") as dns:
            proxy = self.reverse(f"http://o.test:{port}", "--workers", "1", "--set", f"dns.servers=127.0.0.1:{dns.port}",
                                 "--set", "dns.timeout=100ms", "--set", "dns.tries=1", "--set", "cluster.max_idle=0")
            self.assertEqual(proxy.get(), (200, "one"))
            # Down, and the record (1 s) has run out: the last good address serves.
            dns.address = None
            asked = dns.asked
            wait_for("a question that nobody answers", lambda: proxy.get() == (200, "one") and dns.asked > asked)
            for _ in range(20):
                self.assertEqual(proxy.get(), (200, "one"))
            # Up again with another record: it is taken without a restart.
            dns.address = "127.0.0.3"
            wait_for("the new record", lambda: proxy.get() == (200, "two"))
            # A name that never had an answer is an error at once, and no crash.
            self.assertEqual(proxy.errors().count("error:"), 0, proxy.errors())
            dns.address = None
            unknown = self.reverse(f"http://unknown.test:{port}", "--set", f"dns.servers=127.0.0.1:{dns.port}",
                                   "--set", "dns.timeout=100ms", "--set", "dns.tries=1")
            self.assertIn(unknown.get()[0], (502, 503))
            dns.address = "127.0.0.2"
            wait_for("the resolver's return", lambda: unknown.get() == (200, "one"))

    def test_a57_no_serial_comes_twice(self):
        ca = self.path("ca")
        subprocess.run([cli_test.CERTGEN, "ca", "--out", ca], check=True, capture_output=True)
        context = ssl.create_default_context(cafile=os.path.join(ca, "ca.pem"))
        seen = []

        def look(proxy):
            with connect(proxy.port) as s, context.wrap_socket(s, server_hostname="localhost") as tls:
                peer = tls.getpeercert()
                seen.append((peer["issuer"], int(peer["serialNumber"], 16)))

        for _ in range(3):  # across restarts and reloads
            proxy = self.running("reverse", "--listen", "https://127.0.0.1:0", "--ca", ca, "--to", "http://127.0.0.1:1")
            look(proxy)
            proxy.signal(signal.SIGHUP)
            wait_for("the reload", lambda: "reloaded" in proxy.errors())
            look(proxy)
            proxy.close()
        self.assertEqual(len({issuer for issuer, _ in seen}), 1)
        self.assertEqual(len({serial for _, serial in seen}), len(seen), seen)
        for _, serial in seen:
            self.assertGreater(serial.bit_length(), 64)
            self.assertLessEqual(serial.bit_length(), 159)  # 20 octets, positive (RFC 5280 §4.1.2.2)


class NameServer:
    """Answers every question for an A record with `address`, for one second; says nothing while that is None."""

    def __init__(self, address):
        self.address, self.asked = address, 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            query, client = self.socket.recvfrom(4096)
            if not query:
                return
            self.asked += 1
            if self.address is None:
                continue
            end = query.index(b"\0", 12) + 5  # RFC 1035 §4.1.2: name, type, class
            is_a = query[end - 4:end - 2] == b"\0\1"
            record = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 1, 4) + socket.inet_aton(self.address)
            self.socket.sendto(query[:2] + struct.pack("!HHHHH", 0x8180, 1, is_a, 0, 0) + query[12:end] + (record if is_a else b""), client)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b"", ("127.0.0.1", self.port))
        self.thread.join(DEADLINE)
        self.socket.close()


if __name__ == "__main__":
    unittest.main()

"""Real bugs of such proxies that need whole processes to show: rows of the corpus by number. Those that one process can
show are in tests/regress."""
import json
import os
import select
import socket
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
        proxy = self.running("reverse", "--listen", "http://127.0.0.1:0", "--to", self.origin().url, "--workers", "1",
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
            self.assertGreater(len(os.listdir(folder)), 50)
            self.assertEqual(proxy.errors().count("not accepting for now"), 1)
            # As clients go, those behind them come in: nobody is forgotten.
            statuses = {}
            for c in clients:
                c.settimeout(DEADLINE)
                c.sendall(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
                answer, _ = tools.read_all(c)
                statuses[answer[9:12]] = statuses.get(answer[9:12], 0) + 1
                c.close()
        finally:
            for c in clients:
                c.close()
        # Without a descriptor for the origin 503 is the answer; with one it is the page.
        self.assertLessEqual(set(statuses), {b"200", b"503"})
        self.assertEqual(sum(statuses.values()), 200)
        self.assertGreater(statuses[b"200"], 100)
        wait_for("the descriptors", lambda: len(os.listdir(folder)) <= before + 1)  # the origin's connection is kept
        self.assertEqual(proxy.get(), (200, "hello"))


if __name__ == "__main__":
    unittest.main()

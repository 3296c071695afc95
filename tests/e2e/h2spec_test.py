"""h2spec, the conformance suite of HTTP/2, strict: every case against twp-origin and twp-proxy, cleartext and TLS."""
import os
import re
import socket
import subprocess
import unittest

import tools
from tools import Origin, OriginCase, needed, proxy_to

CASES = 146  # of h2spec 2.2.1: fewer would mean that something was left out
# All but "Sends invalid connection preface", after which no octet but of frames may come. A port that speaks HTTP/1.1 as well takes
# what is not the preface for a request of that, and answers a malformed one with 400.
NOT_PREFACE = ("generic", "http2/3.5/1", "http2/4", "http2/5", "http2/6", "http2/7", "http2/8", "hpack")


class H2spec(OriginCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.alone = Origin("--http", "h2", "--cert", cls.tls.cert, "--key", cls.tls.key, listen=("http://127.0.0.1:0", "https://127.0.0.1:0"))
        cls.addClassCleanup(cls.alone.__exit__)
        cls.h2spec = needed("h2spec", os.path.join(tools.deps_dir(), "bin"))

    def check(self, port, *args, cases=CASES):
        """Every case passes, and none is left out."""
        done = subprocess.run([self.h2spec, "-h", "127.0.0.1", "-p", str(port), "--strict", "--timeout", "5", *args],
                              capture_output=True, text=True, timeout=tools.DEADLINE * 2, check=False)
        found = re.search(r"^(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed", done.stdout, re.M)
        self.assertIsNotNone(found, done.stdout[-2000:] + done.stderr)
        print(f"h2spec {' '.join(args)} port {port}: {found.group(0)}", flush=True)
        self.assertEqual(found.groups(), (str(cases), str(cases), "0", "0"), done.stdout.partition("Failures:")[2])

    def check_shared(self, port):
        """Cleartext together with HTTP/1.1."""
        self.check(port, *NOT_PREFACE, cases=CASES - 1)
        with socket.create_connection(("127.0.0.1", port), tools.DEADLINE) as sock:
            sock.sendall(b"INVALID CONNECTION PREFACE\r\n\r\n")
            answer, _ = tools.read_all(sock)
        self.assertTrue(answer.startswith(b"HTTP/1.1 400 "), answer)

    def test_origin(self):
        for origin in (self.alone, self.origin):
            http, https = (int(u.rsplit(":", 1)[1]) for u in origin.urls)
            with self.subTest("TLS"):
                self.check(https, "-t", "-k")
            with self.subTest("cleartext"):
                (self.check if origin is self.alone else self.check_shared)(http)

    def test_proxy(self):
        for wire, port in (("h1c", self.http), ("h2c", self.http), ("h2", self.https)):
            for args in (("--set", "listener.http1=false"), ()):
                proxy = proxy_to(wire, port, self.tls, *args)
                self.addCleanup(proxy.close)
                with self.subTest(f"cleartext, to {wire}", args=args):
                    (self.check if args else self.check_shared)(proxy.http)
                with self.subTest(f"TLS, to {wire}", args=args):
                    self.check(proxy.https, "-t", "-k")


if __name__ == "__main__":
    unittest.main()

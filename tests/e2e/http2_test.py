"""HTTP/2 on both legs of twp-proxy, asked by curl: which version is chosen, by whom, and what turns it off."""
import re
import shutil
import signal
import subprocess
import unittest

from cli_test import CERTGEN, DEADLINE, Case, wait_for

CURL = shutil.which("curl")
HAS_HTTP2 = CURL is not None and "HTTP2" in subprocess.run([CURL, "--version"], capture_output=True, text=True).stdout


@unittest.skipUnless(HAS_HTTP2, "curl with HTTP/2 is not installed")
class Http2(Case):
    def setUp(self):
        super().setUp()
        for args in (("ca", "--out", self.path("ca")),
                     ("leaf", "--ca", self.path("ca"), "--host", "localhost", "127.0.0.1", "--out", self.path("server"))):
            subprocess.run([CERTGEN, *args], check=True, capture_output=True, timeout=DEADLINE)
        self.identity = ("--cert", self.path("server.pem"), "--key", self.path("server-key.pem"))

    def curl(self, url, *args):
        """Version and status of one answer, and what it says. One transfer each: curl 7.88 mistakes an open connection with
        prior knowledge for HTTP/1."""
        result = subprocess.run([CURL, "-sS", "-m", str(DEADLINE), "--cacert", self.path("ca/ca.pem"), "-w", "\n%{http_version} %{response_code}",
                                 *args, url], capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(result.returncode, 0, result.stderr)
        body, _, last = result.stdout.rpartition("\n")
        return last, body

    def both(self, to, *args):
        """A proxy on cleartext and TLS; its two URLs."""
        proxy = self.running("reverse", "--listen", "http://127.0.0.1:0", "--listen", "https://127.0.0.1:0", *self.identity, "--to", to,
                             "--workers", "1", *args)
        return proxy, *[url + "/" for url in proxy.ready["listen"]]

    def test_each_client_gets_what_it_speaks(self):
        _, clear, tls = self.both(self.origin().url)
        for url, flag, version in ((clear, "--http1.1", "1.1"), (clear, "-0", "1.1"), (clear, "--http2-prior-knowledge", "2"),
                                   (tls, "--http2", "2"), (tls, "--http1.1", "1.1"), (tls, "-0", "1.1")):
            with self.subTest(url=url, flag=flag):
                self.assertEqual(self.curl(url, flag), (version + " 200", "hello"))

    def test_each_origin_gets_what_was_asked_for(self):
        _, clear, tls = self.both(self.origin().url)
        ca = ("--origin-ca", self.path("ca/ca.pem"))
        for to, args, via in ((clear, (), "1.1"), (clear.replace("http", "h2c"), (), "2"), (clear, ("--origin-http", "h2"), "2"),
                              (clear, ("--origin-http", "auto"), "1.1"), (tls, ca, "1.1"), (tls, (*ca, "--origin-http", "h2"), "2"),
                              (tls, (*ca, "--origin-http", "auto"), "2")):
            with self.subTest(to=to, args=args):
                _, outer, _ = self.both(to.rstrip("/"), *args)
                status, body = self.curl(outer, "-i")
                self.assertTrue(body.endswith("hello"), body)
                # The inner proxy's Via came with its version, the outer one's with that of the leg between them.
                versions = [v.split(".")[0] for v in re.findall(r"(?im)^via: (\S+) twp-", body)]
                self.assertEqual(versions, ["1", via.split(".")[0]], body)

    def test_an_origin_without_http2_is_an_error_and_the_log_says_which_key(self):
        inner = self.write("inner.toml", f"""
[[listener]]
url = "https://127.0.0.1:0"
http2 = false
tls.cert = "{self.path('server.pem')}"
tls.key = "{self.path('server-key.pem')}"
[[cluster]]
name = "a"
origin = [{{url = "{self.origin().url}"}}]
[[route]]
cluster = "a"
""")
        old = self.running("run", "-c", inner)
        ca = ("--origin-ca", self.path("ca/ca.pem"))
        proxy, clear, _ = self.both(old.ready["listen"][0], *ca, "--origin-http", "h2")
        self.assertEqual(self.curl(clear)[0], "1.1 502")
        self.assertIn('cluster.http is "h2"', proxy.errors())
        _, clear, _ = self.both(old.ready["listen"][0], *ca, "--origin-http", "auto")
        self.assertEqual(self.curl(clear), ("1.1 200", "hello"))

    def test_a_reload_turns_it_off_on_a_listener_that_stays(self):
        def text(on):
            return f"""
[[listener]]
url = "https://127.0.0.1:0"
http2 = {on}
tls.cert = "{self.path('server.pem')}"
tls.key = "{self.path('server-key.pem')}"
[[listener]]
url = "http://127.0.0.1:0"
http2 = {on}
[[cluster]]
name = "a"
origin = [{{url = "{origin.url}"}}]
[[route]]
cluster = "a"
"""
        origin = self.origin()
        file = self.write("twp.toml", text("true"))
        proxy = self.running("run", "-c", file)
        tls, clear = (url + "/" for url in proxy.ready["listen"])
        self.assertEqual(self.curl(tls, "--http2")[0], "2 200")
        self.assertEqual(self.curl(clear, "--http2-prior-knowledge")[0], "2 200")
        self.write("twp.toml", text("false"))
        proxy.signal(signal.SIGHUP)
        wait_for("TLS without HTTP/2", lambda: self.curl(tls, "--http2")[0] == "1.1 200")
        self.assertEqual(self.curl(clear)[0], "1.1 200")
        refused = subprocess.run([CURL, "-sS", "-m", "10", "--http2-prior-knowledge", clear], capture_output=True, timeout=DEADLINE)
        self.assertNotEqual(refused.returncode, 0)


if __name__ == "__main__":
    unittest.main()

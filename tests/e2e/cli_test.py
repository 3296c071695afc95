"""twp-proxy as a person or a script uses it: flags, exit statuses, messages, signals, admin, access log."""
import contextlib
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

BIN = os.environ.get("TWP_BIN_DIR", os.path.join(os.path.dirname(__file__), "../../build/dev/bin"))
PROXY = os.path.join(BIN, "twp-proxy")
CERTGEN = os.path.join(BIN, "twp-certgen")
DEADLINE = 60  # seconds; only a broken program gets near it


def wait_for(what, condition):
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"not within {DEADLINE} s: {what}")


def command(*args, **kwargs):
    return subprocess.run([PROXY, *args], capture_output=True, text=True, timeout=DEADLINE, **kwargs)


class Origin:
    """Answers GET with its name. GET /wait answers when `gate` is set."""

    def __init__(self, name, host="127.0.0.1", port=0):
        self.gate = threading.Event()
        self.waiting = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                if self.path == "/wait":
                    outer.waiting.set()
                    outer.gate.wait(DEADLINE)
                body = name.encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer((host, port), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *args: None  # a proxy that stops hangs up
        self.url = "http://%s:%d" % (host, self.server.server_port)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self):
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()


class Running:
    """A twp-proxy that has said it is ready. `launcher` is a command that ends in running the one behind it."""

    def __init__(self, *args, launcher=()):
        read, write = os.pipe()
        self.stderr = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([*launcher, PROXY, *args, "--ready-fd", str(write)], pass_fds=(write,), stderr=self.stderr,
                                        stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        os.close(write)
        with os.fdopen(read) as pipe:
            line = pipe.readline()
        if not line:
            self.process.wait(DEADLINE)
            raise AssertionError("not ready: " + self.errors())
        self.ready = json.loads(line)
        self.port = int(self.ready["listen"][0].rsplit(":", 1)[1])
        self.admin_port = int(self.ready["admin"].rsplit(":", 1)[1]) if self.ready["admin"] else None

    def errors(self):
        self.stderr.seek(0)
        return self.stderr.read()

    def get(self, path="/", port=None, headers={}, method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=DEADLINE)
        with contextlib.closing(connection):
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read().decode()

    def admin(self, path, **kwargs):
        return self.get(path, self.admin_port, **kwargs)

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self):
        return self.process.wait(DEADLINE)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.stderr.close()


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="twp-cli-")
        self.addCleanup(shutil.rmtree, self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def origin(self, name="hello"):
        origin = Origin(name)
        self.addCleanup(origin.close)
        return origin

    def running(self, *args, launcher=()):
        proxy = Running(*args, launcher=launcher)
        self.addCleanup(proxy.close)
        return proxy

    def reverse(self, to, *args):
        return self.running("reverse", "--listen", "http://127.0.0.1:0", "--to", to, *args)

    def assert_fails(self, result, status, *parts):
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(result.stdout, "")
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        for part in parts:
            self.assertIn(part, lines[0])


MINIMAL = """[[listener]]
url = "http://127.0.0.1:0"
[[cluster]]
name = "a"
origin = [{{url = "{0}"}}]
[[route]]
cluster = "a"
"""


class Usage(Case):
    def test_help_and_version(self):
        result = command("--help")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for word in ("reverse", "run", "check", "config", "reload", "Examples:", "Exit status"):
            self.assertIn(word, result.stdout)
        for sub in ("reverse", "run", "check", "reload"):
            self.assertEqual(command(sub, "--help").returncode, 0)
        result = command("--version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"^twp-proxy \d+\.\d+\.\d+ \(")
        self.assertIn("event", result.stdout)

    def test_bad_usage(self):
        self.assert_fails(command("nonsense"), 2, "twp-proxy: there is no command 'nonsense'; see twp-proxy --help")
        for args in ([], ["reverse"], ["reverse", "--listen", "http://127.0.0.1:0"], ["run"], ["reload"],
                     ["reverse", "--listen", "http://127.0.0.1:0", "--to", "http://127.0.0.1:1", "--nonsense"],
                     ["reverse", "--listen", "http://127.0.0.1:0", "--to", "http://127.0.0.1:1", "--ready-fd", "99"]):
            self.assert_fails(command(*args), 2, "twp-proxy: ")

    def test_a_wrong_word_is_named_though_others_are_missing(self):
        origin, loadgen = os.path.join(BIN, "twp-origin"), os.path.join(BIN, "twp-loadgen")
        for argv, line in (
                ([PROXY, "revers", "--listen", "x"], "twp-proxy: there is no command 'revers'; did you mean 'reverse'? see twp-proxy --help"),
                ([PROXY, "reverse", "--lisen", "http://127.0.0.1:0"],
                 "twp-proxy: there is no option '--lisen'; did you mean '--listen'? see twp-proxy reverse --help"),
                ([PROXY, "reverse", "--listen", "--to", "--ot=x"], "twp-proxy: there is no option '--ot'; did you mean '--to'? see twp-proxy reverse --help"),
                ([PROXY, "config", "run", "--frobnicate"], "twp-proxy: there is no option '--frobnicate'; see twp-proxy config run --help"),
                ([PROXY, "config", "rum"], "twp-proxy: there is no command 'rum'; did you mean 'run'? see twp-proxy config --help"),
                ([CERTGEN, "leaf", "--hots", "x"], "twp-certgen: there is no option '--hots'; did you mean '--host'? see twp-certgen leaf --help"),
                ([origin, "--listn", "x"], "twp-origin: there is no option '--listn'; did you mean '--listen'? see twp-origin --help"),
                ([loadgen, "runn", "http://a/"], "twp-loadgen: there is no command 'runn'; did you mean 'run'? see twp-loadgen --help"),
                ([loadgen, "run", "http://a/", "-c64", "-H", "-x: y", "-z"], "twp-loadgen: there is no option '-z'; see twp-loadgen run --help")):
            done = subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE)
            self.assert_fails(done, 2, line)
        # What is only missing is said to be missing, and where the help is.
        self.assert_fails(command("reverse", "--listen", "http://127.0.0.1:0"), 2, "--to is required; see twp-proxy reverse --help")

    def test_bad_values(self):
        base = ["--listen", "http://127.0.0.1:0", "--to", "http://127.0.0.1:1"]
        for args, part in (
                (["--listen", "127.0.0.1:80", "--to", "http://a"], "listener[0].url: '127.0.0.1:80': expected a URL"),
                (["--listen", "http://127.0.0.1:0", "--to", "http://a/x"], "cluster[0].origin[0].url: 'http://a/x': an origin has no path"),
                (["--listen", "https://127.0.0.1:0", "--to", "http://a"], "an https listener needs a certificate"),
                (base + ["--workers", "x"], "workers: expected an integer from 0 to 1024, found 'x'"),
                (base + ["--set", "limits.max_heat=1"], "did you mean 'limits.max_head'?"),
                (base + ["--set", "limits.max_head=1"], "limits.max_head: expected a size from 256 to 16MiB"),
                (base + ["--drain-timeout", "5"], "timeouts.drain: expected a duration"),
                (base + ["--admin", "http://0.0.0.0:0"], "the admin listener must be on a loopback address"),
                (base + ["--origin-http", "h9"], "cluster.http: expected one of h1, h2, auto, found 'h9'"),
                (base + ["--origin-ca", "/nonexistent"], "cluster[0].ca: '/nonexistent': cannot read: No such file"),
                (base + ["--tcp-congestion", "nonsense"], "tcp.congestion: unknown congestion control 'nonsense' (this kernel "),
                (base + ["--access-log", "/nonexistent/log"], "access_log.file: '/nonexistent/log'")):
            self.assert_fails(command("reverse", *args), 2, part)

    def test_certificates(self):
        ca = self.path("ca")
        subprocess.run([CERTGEN, "ca", "--out", ca], check=True, capture_output=True)
        for name in ("a", "b"):
            subprocess.run([CERTGEN, "leaf", "--ca", ca, "--host", name + ".test", "--out", self.path(name)], check=True, capture_output=True)
        a, b = self.path("a.pem"), self.path("b-key.pem")
        base = ["reverse", "--listen", "https://127.0.0.1:0", "--to", "http://127.0.0.1:1"]
        self.assert_fails(command(*base, "--cert", a, "--key", b), 2, a)
        self.assert_fails(command(*base, "--cert", a), 2, "expected one key for each certificate: 1 cert, 0 key")
        self.assert_fails(command(*base, "--cert", a, "--key", self.path("none")), 2, "none", "No such file")
        self.assert_fails(command(*base, "--ca", self.path("empty")), 2, "empty/ca.pem")
        text = self.write("text", "no certificate\n")
        self.assert_fails(command(*base, "--cert", text, "--key", b), 2, text)
        self.assert_fails(command("reverse", "--listen", "http://127.0.0.1:0", "--to", "https://127.0.0.1:1", "--origin-ca", text), 2,
                          "cluster[0].ca", text)

    def test_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            url = "http://127.0.0.1:%d" % port
            self.assert_fails(command("reverse", "--listen", url, "--to", "http://127.0.0.1:1"), 1,
                              "127.0.0.1:%d: Address already in use" % port)
            self.assert_fails(command("reverse", "--listen", "http://127.0.0.1:0", "--to", "http://127.0.0.1:1", "--admin", url,
                                      "--set", "log_level=error"), 1, "admin", "Address already in use")


    def test_port_in_use_by_another_of_us(self):
        # Workers share a port with SO_REUSEPORT; another process of the same user must not.
        first = self.running("reverse", "--listen", "http://127.0.0.1:0", "--to", "http://127.0.0.1:1", "--workers", "2")
        url = "http://127.0.0.1:%d" % first.port
        for workers in ("1", "2"):
            self.assert_fails(command("reverse", "--listen", url, "--to", "http://127.0.0.1:1", "--workers", workers), 1,
                              "twp-proxy: cannot listen on 127.0.0.1:%d: Address already in use" % first.port)
        self.assert_fails(command("reverse", "--listen", url.replace("127.0.0.1", "0.0.0.0"), "--to", "http://127.0.0.1:1"), 1,
                          "0.0.0.0:%d: Address already in use" % first.port)
        # Of our own, two may meet on a port, at start and by a reload.
        file = self.write("twp.toml", MINIMAL.format(self.origin().url))
        proxy = self.running("run", "-c", file)
        more = '[[listener]]\nurl = "http://127.0.0.2:%d"\n' % proxy.port
        self.write("twp.toml", MINIMAL.format(self.origin().url) + more)
        proxy.signal(signal.SIGHUP)
        wait_for("the reload", lambda: proxy.errors().count("reloaded") == 1)
        with socket.create_connection(("127.0.0.2", proxy.port), DEADLINE):
            pass
        self.write("twp.toml", MINIMAL.format(self.origin().url) + '[[listener]]\nurl = "%s"\n' % url)
        proxy.signal(signal.SIGHUP)
        wait_for("the refusal", lambda: "127.0.0.1:%d: Address already in use; the old configuration stays" % first.port in proxy.errors())


class Files(Case):
    def test_bad_file_says_where(self):
        bad = self.write("bad.toml", MINIMAL.format("http://127.0.0.1:1") + "[limits]\nmax_head = 1\nnonsense = 2\n")
        for args in (["check", "-c", bad], ["run", "-c", bad], ["config", "run", "-c", bad]):
            result = command(*args)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertEqual(result.stderr.splitlines(), [
                f"twp-proxy: {bad}:9:12: limits.max_head: expected a size from 256 to 16MiB such as \"64KiB\", found 1",
                f"twp-proxy: {bad}:10:1: limits.nonsense: unknown key"])
        self.assert_fails(command("check", "-c", self.path("none.toml")), 2, "none.toml: cannot read: No such file")

    def test_bad_tls_options_are_found_before_anything_listens(self):
        ca = self.path("ca")
        subprocess.run([CERTGEN, "ca", "--out", ca], check=True, capture_output=True)
        head = '[[listener]]\nurl = "https://127.0.0.1:0"\n[listener.tls]\nca = "%s"\n' % ca
        tail = MINIMAL.format("http://127.0.0.1:1").split("\n", 2)[2]
        for line, says in (
                ('ciphers = "ECDHE-RSA-AES128-GCM-SHA256:NONSENSE"', "ciphers: 'NONSENSE': there is no such TLS 1.2 cipher"),
                ('ciphers = "!ALL"', "ciphers: '!ALL': leaves no TLS 1.2 cipher"),
                ('ciphersuites = "TLS_AES_128_GCM_SHA256:TLS_NONSENSE"', "ciphersuites: 'TLS_NONSENSE': there is no such TLS 1.3 cipher suite"),
                ('groups = "X25519:P-255"', "groups: 'X25519:P-255': there is no such group"),
                ('min_version = "1.1"', "min_version: expected one of 1.2, 1.3, found '1.1'")):
            bad = self.write("bad.toml", head + line + "\n" + tail)
            column = line.index('"') + 1
            for command_line in (["check", "-c", bad], ["run", "-c", bad], ["config", "run", "-c", bad]):
                self.assert_fails(command(*command_line), 2, f"twp-proxy: {bad}:5:{column}: listener[0].tls.{says}")
        good = self.write("good.toml", head + 'ciphers = "ECDHE+AESGCM:!aNULL:@STRENGTH"\nciphersuites = "TLS_AES_128_GCM_SHA256"\n'
                          'groups = "X25519MLKEM768:X25519:P-256"\nmin_version = "1.3"\n' + tail)
        self.assertEqual(command("check", "-c", good).returncode, 0)
        flags = ["reverse", "--listen", "https://127.0.0.1:0", "--ca", ca, "--to", "http://127.0.0.1:1", "--set"]
        self.assert_fails(command(*flags, "listener.tls.groups=nonsense"), 2, "listener[0].tls.groups: 'nonsense': there is no such group")

    def test_what_files_and_the_kernel_say_has_a_place_too(self):
        ca = self.path("ca")
        subprocess.run([CERTGEN, "ca", "--out", ca], check=True, capture_output=True)
        for name in ("a", "b"):
            subprocess.run([CERTGEN, "leaf", "--ca", ca, "--host", name + ".test", "--out", self.path(name)], check=True, capture_output=True)
        junk = self.write("junk", "no certificate\n")
        a, a_key, b_key = self.path("a.pem"), self.path("a-key.pem"), self.path("b-key.pem")
        head = '[[listener]]\nurl = "https://127.0.0.1:0"\n[listener.tls]\ncert = "%s"\nkey = "%s"\n'
        cluster = '[[cluster]]\nname = "a"\norigin = [{url = "https://127.0.0.1:1"}]\n%s\n[[route]]\ncluster = "a"\n'
        for text, place, says in (
                (head % (a, b_key) + cluster % "", "5:7", f"listener[0].tls.key: key {b_key} does not match certificate {a}"),
                (head % (junk, a_key) + cluster % "", "4:8", f"listener[0].tls.cert: {junk}"),
                (head % (a, junk) + cluster % "", "5:7", f"listener[0].tls.key: no private key in {junk}"),
                (head % (a, a_key) + f'client_ca = "{junk}"\n' + cluster % "", "6:13", f"listener[0].tls.client_ca: {junk}"),
                (head % (a, a_key) + cluster % f'ca = "{junk}"', "9:6", f"cluster[0].ca: {junk}"),
                (head % (a, a_key) + cluster % f'cert = "{a}"\nkey = "{b_key}"', "10:7", f"cluster[0].key: key {b_key} does not match"),
                (head % (a, a_key) + cluster % "" + '[tcp]\ncongestion = "nonsense"\n', "13:14",
                 "tcp.congestion: unknown congestion control 'nonsense' (this kernel "),
                (head % (a, a_key) + cluster % "" + '[forwarding]\nvia = "a\\nb\\u001b[31m"\n', "13:7", "forwarding.via: 'a b?[31m': expected a word"),
                (head % (a, a_key) + cluster.replace("127.0.0.1:1", "a" * 64 + ".test") % "", "8:18", "cluster[0].origin[0].url: "),
                (head % (a, a_key) + cluster % "" + 'hosts = ["%s.test"]\n' % ("a" * 64), "12:9", "route[0].hosts: ")):
            with self.subTest(says):
                file = self.write("bad.toml", text)
                for args in (["check", "-c", file], ["run", "-c", file]):
                    self.assert_fails(command(*args), 2, f"twp-proxy: {file}:{place}: {says}")
        good = self.write("good.toml", head % (a, a_key) + cluster.replace("127.0.0.1:1", "a" * 63 + ".test") % "")
        self.assertEqual(command("check", "-c", good).returncode, 0)

    @unittest.skipUnless(shutil.which("strace"), "needs strace")
    def test_bad_file_opens_no_socket(self):
        bad = self.write("bad.toml", MINIMAL.format("ftp://127.0.0.1:1"))
        good = self.write("good.toml", MINIMAL.format("http://127.0.0.1:1"))
        for args, status in ((["run", "-c", bad], 2), (["check", "-c", bad], 2), (["check", "-c", good], 0)):
            trace = self.path("trace")
            # The leak check cannot work in a process that is traced.
            env = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
            result = subprocess.run(["strace", "-f", "-o", trace, "-e", "trace=execve,socket,bind,listen", PROXY, *args],
                                    capture_output=True, timeout=DEADLINE, env=env)
            with open(trace) as f:
                text = f.read()
            if "execve(" not in text:
                self.skipTest("strace may not trace here")
            self.assertEqual(result.returncode, status)
            for call in ("socket(", "bind(", "listen("):
                self.assertNotIn(call, text)

    def test_check(self):
        good = self.write("good.toml", MINIMAL.format("http://127.0.0.1:1"))
        result = command("check", "-c", good)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, good + ": ok\n", ""))

    def test_config_prints_what_run_takes(self):
        origin = self.origin("from a file")
        result = command("config", "reverse", "--listen", "http://127.0.0.1:0", "--to", origin.url, "--workers", "1",
                         "--set", "limits.max_head=32KiB", "--set", "forwarding.trusted=10.0.0.0/8,::1")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn('max_head = "32KiB"', result.stdout)
        self.assertIn('trusted = ["10.0.0.0/8", "::1"]', result.stdout)
        file = self.write("twp.toml", result.stdout)
        self.assertEqual(command("config", "run", "-c", file).stdout, result.stdout)
        self.assertEqual(self.running("run", "-c", file).get(), (200, "from a file"))


class Serving(Case):
    def test_ready_line(self):
        origin = self.origin()
        process = subprocess.Popen([PROXY, "reverse", "--listen", "http://127.0.0.1:0", "--listen", "http://127.0.0.1:0", "--to", origin.url,
                                    "--print-listen"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            ready = json.loads(process.stdout.readline())
            self.assertEqual(sorted(ready), ["admin", "listen", "pid", "program", "ready"])
            self.assertEqual((ready["ready"], ready["admin"], ready["pid"]), (True, None, process.pid))
            self.assertEqual(len(set(ready["listen"])), 2)
            for url in ready["listen"]:
                socket.create_connection(("127.0.0.1", int(url.rsplit(":", 1)[1])), DEADLINE).close()
        finally:
            process.terminate()
            _, errors = process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, 0)
        self.assertRegex(errors, r"(?m)^twp-proxy: info: listening on http://127\.0\.0\.1:\d+ http://127\.0\.0\.1:\d+, \d+ workers?, to ")

    def test_https_with_a_certificate_issued_at_start(self):
        ca = self.path("ca")
        subprocess.run([CERTGEN, "ca", "--out", ca], check=True, capture_output=True)
        origin = self.origin("secret")
        proxy = self.running("reverse", "--listen", "https://127.0.0.1:0", "--ca", ca, "--to", origin.url)
        self.assertTrue(proxy.ready["listen"][0].startswith("https://127.0.0.1:"))
        context = ssl.create_default_context(cafile=os.path.join(ca, "ca.pem"))
        for name in ("127.0.0.1", "localhost"):
            with contextlib.closing(http.client.HTTPSConnection(name, proxy.port, context=context, timeout=DEADLINE)) as c:
                c.request("GET", "/")
                self.assertEqual(c.getresponse().read(), b"secret")
        # Certificates issued again by a reload are trusted too.
        proxy.signal(signal.SIGHUP)
        wait_for("the reload", lambda: "reloaded" in proxy.errors())
        with contextlib.closing(http.client.HTTPSConnection("127.0.0.1", proxy.port, context=context, timeout=DEADLINE)) as c:
            c.request("GET", "/")
            self.assertEqual(c.getresponse().status, 200)

    def test_admin(self):
        origin = self.origin()
        proxy = self.reverse(origin.url, "--workers", "2", "--admin", "http://127.0.0.1:0")
        for _ in range(5):
            self.assertEqual(proxy.get()[0], 200)
        self.assertEqual(proxy.admin("/healthz"), (200, "ok\n"))
        self.assertEqual(proxy.admin("/nothing")[0], 404)
        self.assertEqual(proxy.admin("/metrics", method="POST")[0], 405)
        self.assertEqual(proxy.admin("/metrics", method="HEAD"), (200, ""))
        self.assertEqual(proxy.admin("/metrics", headers={"Host": "rebound.example"})[0], 421)

        status, text = proxy.admin("/metrics")
        self.assertEqual(status, 200)
        values, types = {}, {}
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                types[line.split()[2]] = line.split()[3]
            elif not line.startswith("# HELP "):
                m = re.fullmatch(r'([a-z_]+)(\{[a-z]+="[^"]*"(?:,[a-z]+="[^"]*")*\})? ([0-9.]+)', line)
                self.assertIsNotNone(m, line)
                self.assertIn(m[1], types, "a sample before its TYPE")
                values[m[1] + (m[2] or "")] = float(m[3])
        for name, kind in types.items():
            self.assertEqual(kind == "counter", name.endswith("_total"), name)
        self.assertEqual(values["twp_workers"], 2)
        self.assertEqual(values["twp_requests_total"], 5)
        self.assertEqual(values['twp_responses_total{class="2xx"}'], 5)
        self.assertEqual(values['twp_exchange_ends_total{fault="ok"}'], 5)
        self.assertEqual(values["twp_response_body_bytes_total"], 25)
        self.assertEqual(values["twp_exchanges_active"], 0)
        self.assertGreater(values["process_open_fds"], 5)
        self.assertAlmostEqual(values["process_start_time_seconds"], time.time(), delta=DEADLINE)

        memory = json.loads(proxy.admin("/memory")[1])
        self.assertEqual(len(memory["workers"]), 2)
        self.assertGreater(memory["rss_bytes"], 0)
        self.assertGreater(sum(w["arena_live_bytes"] + w["arena_free_bytes"] for w in memory["workers"]), 0)
        self.assertGreater(sum(w["slab_free_bytes"] for w in memory["workers"]), 0)

    def test_abort_on_close(self):
        origin = self.origin()
        log = self.path("access.log")
        proxy = self.reverse(origin.url, "--set", "tcp.abort_on_close=true", "--access-log", log)
        with socket.create_connection(("127.0.0.1", proxy.port), DEADLINE) as s:
            s.sendall(b"GET /wait HTTP/1.1\r\nHost: a.test\r\n\r\n")
            self.assertTrue(origin.waiting.wait(DEADLINE))
            s.shutdown(socket.SHUT_WR)

            def line():
                with open(log, "rb") as f:
                    return f.read()

            self.assertEqual(json.loads(wait_for("the line", line))["fault"], "client-closed")

    def test_an_origin_that_is_not_trusted_names_the_option(self):
        ca = self.path("ca")
        subprocess.run([CERTGEN, "ca", "--out", ca], check=True, capture_output=True)
        origin = self.running("reverse", "--listen", "https://127.0.0.1:0", "--ca", ca, "--to", "http://127.0.0.1:1")
        proxy = self.reverse("https://localhost:%d" % origin.port)
        self.assertEqual(proxy.get()[0], 502)
        wait_for("the warning", lambda: re.search(r"(?m)^twp-proxy: warning: origin .*tls-verify.* \(trust its CA with --origin-ca or cluster\.ca\)$", proxy.errors()))

    def test_access_log(self):
        origin = self.origin()
        log = self.path("access.log")
        proxy = self.reverse(origin.url, "--access-log", log)

        def lines(file, n):
            def read():
                with open(file, "rb") as f:
                    all_lines = f.read().splitlines()
                return all_lines if len(all_lines) >= n else None
            return wait_for(f"{n} lines in the access log", read)

        with socket.create_connection(("127.0.0.1", proxy.port), DEADLINE) as s:
            s.sendall(b"GET /%0d%0aFAKE%20200\"\\ HTTP/1.1\r\nHost: a.test\r\nUser-Agent: q\"uote\\ \xe9\r\nReferer: r\r\nConnection: close\r\n\r\n")
            while s.recv(65536):
                pass
        lines(log, 1)  # workers write on their own: only now is the order certain
        with socket.create_connection(("127.0.0.1", proxy.port), DEADLINE) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: a.test\r\nBad\x1bName: x\r\n\r\n")
            while s.recv(65536):
                pass
        got = lines(log, 2)
        self.assertEqual(len(got), 2)
        for line in got:
            self.assertRegex(line, rb"\A[\x20-\x7e]+\Z")
        first, second = map(json.loads, got)
        self.assertEqual((first["path"], first["host"], first["status"]), ('/%0d%0aFAKE%20200"\\', "a.test", 200))
        self.assertEqual((first["user_agent"], first["referer"], first["fault"]), ('q"uote\\ \xe9', "r", "ok"))
        self.assertEqual((second["status"], second["fault"]), (400, "bad-header"))

        os.rename(log, log + ".1")
        proxy.signal(signal.SIGHUP)
        wait_for("the new file", lambda: os.path.exists(log))
        self.assertEqual(proxy.get("/after")[0], 200)
        self.assertEqual(json.loads(lines(log, 1)[0])["path"], "/after")
        self.assertEqual(len(lines(log + ".1", 2)), 2)


class Signals(Case):
    def test_reload_swaps_and_drops_nothing(self):
        one, two = self.origin("one"), self.origin("two")
        file = self.write("twp.toml", "workers = 2\n" + MINIMAL.format(one.url))
        pid_file = self.path("pid")
        proxy = self.running("run", "-c", file, "--pid-file", pid_file)
        with open(pid_file) as f:
            self.assertEqual(int(f.read()), proxy.process.pid)
        answers, failures, stop = [], [], threading.Event()

        def ask():
            connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=DEADLINE)
            try:
                while not stop.is_set():
                    connection.request("GET", "/")
                    response = connection.getresponse()
                    answers.append(response.read())
                    if response.status != 200:
                        failures.append(response.status)
            except Exception as e:  # reported by the main thread
                failures.append(repr(e))
            connection.close()

        clients = [threading.Thread(target=ask) for _ in range(4)]
        for c in clients:
            c.start()
        try:
            for i in range(20):
                seen = len(answers)
                self.write("twp.toml", "workers = 2\n" + MINIMAL.format((one, two)[i % 2 == 0].url))
                if i % 2 == 0:
                    proxy.signal(signal.SIGHUP)
                else:
                    self.assertEqual(command("reload", "--pid-file", pid_file).returncode, 0)
                wait_for("the reload", lambda: proxy.errors().count("reloaded") == i + 1)
                wait_for("answers after the reload", lambda: failures or len(answers) > seen + 8)
        finally:
            stop.set()
            for c in clients:
                c.join()
        self.assertEqual(failures, [])
        self.assertEqual(set(answers), {b"one", b"two"})
        self.assertEqual(proxy.get(), (200, "one"))

        # Errors keep what there is and say where they are.
        self.write("twp.toml", "workers = 2\nnonsense = 1\n" + MINIMAL.format(two.url))
        self.assertEqual(command("reload", str(proxy.process.pid)).returncode, 0)
        wait_for("the complaint", lambda: f"{file}:2:1: nonsense: unknown key" in proxy.errors())
        wait_for("the decision", lambda: "the old configuration stays" in proxy.errors())
        self.assertEqual(proxy.get(), (200, "one"))

        # Some keys need a restart: the rest is taken, and a warning says so.
        self.write("twp.toml", "workers = 1\n" + MINIMAL.format(two.url))
        proxy.signal(signal.SIGHUP)
        wait_for("the warning", lambda: "needs a restart to change: workers" in proxy.errors())
        wait_for("the reload", lambda: proxy.errors().count("reloaded") == 21)
        self.assertEqual(proxy.get(), (200, "two"))

        proxy.signal(signal.SIGTERM)
        self.assertEqual(proxy.wait(), 0)
        self.assertFalse(os.path.exists(pid_file))

    @unittest.skipUnless(shutil.which("curl"), "needs curl")
    def test_curl_with_http_1_0_over_tls(self):
        ca = self.path("ca")
        subprocess.run([CERTGEN, "ca", "--out", ca], check=True, capture_output=True)
        proxy = self.running("reverse", "--listen", "https://127.0.0.1:0", "--ca", ca, "--to", self.origin("old").url)
        done = subprocess.run(["curl", "-0", "-sS", "--cacert", os.path.join(ca, "ca.pem"), "https://127.0.0.1:%d/" % proxy.port],
                              capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual((done.returncode, done.stdout), (0, "old"), done.stderr)

    def test_refused_handshakes_are_in_the_log(self):
        ca = self.path("ca")
        subprocess.run([CERTGEN, "ca", "--out", ca], check=True, capture_output=True)
        proxy = self.running("reverse", "--listen", "https://127.0.0.1:0", "--ca", ca, "--to", "http://127.0.0.1:1",
                             "--set", "listener.tls.client_ca=" + os.path.join(ca, "ca.pem"), "--set", "listener.tls.client_cert_required=true")
        context = ssl.create_default_context(cafile=os.path.join(ca, "ca.pem"))
        context.maximum_version = ssl.TLSVersion.TLSv1_2  # here the refusal comes within the handshake
        with socket.create_connection(("127.0.0.1", proxy.port), DEADLINE) as s, self.assertRaises(OSError):
            context.wrap_socket(s, server_hostname="localhost")
        wait_for("the line", lambda: re.search(r"(?m)^twp-proxy: warning: TLS from 127\.0\.0\.1:\d+ for localhost: the client sent no certificate$", proxy.errors()))
        context.set_alpn_protocols(["nonsense"])
        with socket.create_connection(("127.0.0.1", proxy.port), DEADLINE) as s, self.assertRaises(OSError):
            context.wrap_socket(s, server_hostname="localhost")
        wait_for("the line", lambda: re.search(r"(?m)^twp-proxy: info: TLS from 127\.0\.0\.1:\d+ for localhost: no application protocol", proxy.errors()))
        # Who only looks whether the port is open is no line.
        with socket.create_connection(("127.0.0.1", proxy.port), DEADLINE):
            pass
        self.assertNotIn("closed during", proxy.errors())

    def test_reload_of_the_same_configuration_warns_of_nothing(self):
        # workers = 0, the default, means as many as there are cores.
        proxy = self.reverse(self.origin().url)
        proxy.signal(signal.SIGHUP)
        wait_for("the reload", lambda: "reloaded" in proxy.errors())
        self.assertNotIn("needs a restart", proxy.errors())

    def test_reload_hits_nothing_else(self):
        self.assert_fails(command("reload", str(os.getpid())), 1, "not twp-proxy")
        for word in ("abc", "0", "99999999999", "1x"):
            self.assert_fails(command("reload", word), 2, f"twp-proxy: reload '{word}': expected a process id")
        self.assert_fails(command("reload", "--pid-file", self.path("none")), 1, "none")
        self.assert_fails(command("reload", "--pid-file", self.write("pid", "x\n")), 2, "pid:1:1: expected a process id")
        with subprocess.Popen(["true"]) as gone:
            gone.wait()
        self.assert_fails(command("reload", str(gone.pid)), 1, "there is no such process")

    def in_flight(self, *args):
        """A proxy with a request that the origin has and has not answered."""
        origin = self.origin("late")
        proxy = self.reverse(origin.url, "--admin", "http://127.0.0.1:0", *args)
        result = []

        def ask():
            try:
                result.append(proxy.get("/wait"))
            except Exception as e:
                result.append(e)

        client = threading.Thread(target=ask)
        client.start()
        self.addCleanup(client.join)
        self.addCleanup(origin.gate.set)
        self.assertTrue(origin.waiting.wait(DEADLINE))
        return origin, proxy, client, result

    def test_drain_finishes_what_is_in_flight(self):
        origin, proxy, client, result = self.in_flight()
        proxy.signal(signal.SIGTERM)
        self.assertEqual(wait_for("healthz to change", lambda: (lambda r: r if r[0] != 200 else None)(proxy.admin("/healthz"))),
                         (503, "draining\n"))

        def refused():
            try:
                socket.create_connection(("127.0.0.1", proxy.port), DEADLINE).close()
                return False
            except ConnectionRefusedError:
                return True

        wait_for("the listener to close", refused)
        self.assertIsNone(proxy.process.poll())
        origin.gate.set()
        client.join(DEADLINE)
        self.assertEqual(result, [(200, "late")])
        self.assertEqual(proxy.wait(), 0)

    def test_second_signal_stops_at_once(self):
        _, proxy, client, result = self.in_flight("--drain-timeout", "1h")
        proxy.signal(signal.SIGINT)
        wait_for("the drain", lambda: "draining" in proxy.errors())
        proxy.signal(signal.SIGINT)
        self.assertEqual(proxy.wait(), 0)
        client.join(DEADLINE)
        self.assertNotEqual(result, [(200, "late")])

    def test_a_part_of_a_head_does_not_hold_a_drain(self):
        proxy = self.reverse(self.origin().url, "--drain-timeout", "1h")
        with socket.create_connection(("127.0.0.1", proxy.port), DEADLINE) as s:
            s.sendall(b"G")
            self.assertEqual(proxy.get()[0], 200)  # the octet is there, for it came first
            proxy.signal(signal.SIGTERM)
            self.assertEqual(proxy.wait(), 0)
            self.assertEqual(s.recv(1), b"")

    def test_drain_is_bounded(self):
        _, proxy, client, result = self.in_flight("--drain-timeout", "200ms")
        proxy.signal(signal.SIGTERM)
        self.assertEqual(proxy.wait(), 0)
        self.assertIn("draining for at most 200ms;", proxy.errors())
        self.assertIn("drain timeout", proxy.errors())
        client.join(DEADLINE)
        self.assertNotEqual(result, [(200, "late")])


class Completions(Case):
    """scripts/completions/PROGRAM.bash offers every flag and subcommand that the program has, and no other."""

    FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/completions")

    def help(self, program, *subcommand):
        return subprocess.run([os.path.join(BIN, program), *subcommand, "--help"], capture_output=True, text=True, check=True).stdout

    def flags(self, text):
        options = text.split("\nExamples:")[0]
        names = re.findall(r"(?m)^ {1,4}((?:-\w,)?--[a-z0-9-]+(?:,--[a-z0-9-]+)*)", options)
        return {flag for group in names for flag in group.split(",") if flag.startswith("--")}

    def subcommands(self, text):
        part = re.search(r"(?is)\nSubcommands:\n(.*?)(\n\n|\Z)", text)
        return set(re.findall(r"(?m)^ {2}([a-z]+)\b", part[1])) if part else set()

    def complete(self, program, *words):
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _%s "$1" "${@: -1}" "${@: -2:1}"; printf "%%s\\n" "${COMPREPLY[@]}"'
                  % program.replace("-", "_"))
        out = subprocess.run(["bash", "-c", script, "bash", os.path.join(self.FOLDER, program + ".bash"), program, *words],
                             capture_output=True, text=True, check=True)
        self.assertEqual(out.stderr, "")
        return set(out.stdout.split())

    def check(self, program):
        top = self.help(program)
        self.assertEqual({c for c in self.complete(program, "--")}, self.flags(top), program)
        subcommands = self.subcommands(top)
        if subcommands:
            self.assertEqual(self.complete(program, ""), subcommands | self.flags(top))
        for sub in subcommands:
            text = self.help(program, sub)
            inner = self.subcommands(text)
            self.assertEqual(self.complete(program, sub, "--"), self.flags(text), f"{program} {sub}")
            for deeper in inner:
                self.assertEqual(self.complete(program, sub, deeper, "--"), self.flags(self.help(program, sub, deeper)), f"{program} {sub} {deeper}")

    def test_every_flag_is_offered(self):
        scripts = sorted(os.listdir(self.FOLDER))
        self.assertIn("twp-proxy.bash", scripts)
        for script in scripts:
            program = script.removesuffix(".bash")
            with self.subTest(program):
                self.check(program)


if __name__ == "__main__":
    unittest.main()

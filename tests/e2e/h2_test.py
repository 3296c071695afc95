"""HTTP/2 with foreign clients and origins: curl, nghttp, h2load, Python's h2, Node.js; nginx as an HTTP/1.1 origin."""
import contextlib
import hashlib
import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import h2.errors
import h2.settings

import h2_peer
import tools
from tools import DEADLINE, OriginCase, needed, proxy_to

WIRES = tuple(tools.ORIGIN_WIRES)
BIG = bytes(range(256)) * 4096  # 1 MiB


class Rig(OriginCase):
    """One twp-origin and a proxy in front of it on each wire, all of them for the whole class."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.proxies = {}
        for wire in WIRES:
            cls.proxies[wire] = proxy_to(wire, cls.https if tools.ORIGIN_WIRES[wire][0] == "https" else cls.http, cls.tls)
            cls.addClassCleanup(cls.proxies[wire].close)

    def ports(self):
        """(name, cleartext port, TLS port) of the origin itself and of each proxy."""
        return [("origin", self.http, self.https), *((f"proxy to {w}", p.http, p.https) for w, p in self.proxies.items())]

    def client(self, port, encrypted, **kwargs):
        client = h2_peer.Client(port, self.tls.client("h2") if encrypted else None, **kwargs)
        self.addCleanup(client.__exit__)
        return client

    def both(self):
        for name, clear, encrypted in self.ports():
            yield name + ", h2c", clear, False
            yield name + ", h2", encrypted, True


class Curl(Rig):
    def curl(self, port, encrypted, path, *args, data=None):
        """(status, HTTP version, body)"""
        url = f"{'https' if encrypted else 'http'}://localhost:{port}{path}"
        argv = [needed("curl"), "-sS", "--noproxy", "*", "--cacert", self.tls.ca, "--max-time", str(DEADLINE), "-w", "%{stderr}%{http_code} %{http_version}",
                "--http2" if encrypted else "--http2-prior-knowledge", *args, url]
        done = subprocess.run(argv, input=data, capture_output=True, timeout=DEADLINE, check=False)
        self.assertEqual(done.returncode, 0, (url, done.stderr))
        status, version = done.stderr.decode().split()
        return int(status), version, done.stdout

    def test_pages(self):
        for name, port, encrypted in self.both():
            with self.subTest(name):
                self.assertEqual(self.curl(port, encrypted, "/")[:2], (200, "2"))
                self.assertEqual(self.curl(port, encrypted, "/status/404")[0], 404)
                self.assertEqual(self.curl(port, encrypted, "/status/204"), (204, "2", b""))
                self.assertEqual(self.curl(port, encrypted, "/bytes/1000", "-I")[0], 200)
                body = self.curl(port, encrypted, "/bytes/3000000")[2]
                self.assertEqual(len(body), 3_000_000)
                self.assertEqual(hashlib.sha256(self.curl(port, encrypted, "/chunked/3000000")[2]).digest(), hashlib.sha256(body).digest())
                self.assertEqual(self.curl(port, encrypted, "/echo", "--data-binary", "@-", data=BIG)[2], BIG)
                self.assertEqual(self.curl(port, encrypted, "/interim")[:2], (200, "2"))

    def test_the_head_that_the_origin_sees(self):
        for wire, proxy in self.proxies.items():
            for port, encrypted in ((proxy.http, False), (proxy.https, True)):
                seen = json.loads(self.curl(port, encrypted, "/headers", "-H", "X-Mixed-Case: yes", "-H", "Cookie: a=1; b=2")[2])
                self.assertEqual(seen["version"], "2.0" if wire.startswith("h2") else "1.1")
                self.assertEqual(seen["authority"], f"localhost:{port}")
                self.assertEqual(seen["path"], "/headers")
                headers = {k.lower(): v for k, v in seen["headers"]}
                self.assertEqual((headers["x-mixed-case"], headers["cookie"]), ("yes", "a=1; b=2"))

    def test_http1_is_still_spoken(self):
        for _, clear, encrypted in self.ports():
            for url in (f"http://localhost:{clear}/", f"https://localhost:{encrypted}/"):
                done = subprocess.run([needed("curl"), "-sS", "--noproxy", "*", "--http1.1", "--cacert", self.tls.ca, "-w", " %{http_version}", url],
                                      capture_output=True, text=True, timeout=DEADLINE, check=False)
                self.assertTrue(done.stdout.endswith(" 1.1"), done)

    def test_without_alpn_https_is_http1(self):
        for _, _, port in self.ports():
            done = subprocess.run([needed("curl"), "-sS", "--noproxy", "*", "--no-alpn", "--cacert", self.tls.ca, "-w", " %{http_version}",
                                   f"https://localhost:{port}/"], capture_output=True, text=True, timeout=DEADLINE, check=False)
            self.assertTrue(done.stdout.endswith(" 1.1"), done)


class Nghttp2(Rig):
    def test_nghttp(self):
        for name, port, encrypted in self.both():
            with self.subTest(name):
                url = f"{'https' if encrypted else 'http'}://localhost:{port}"
                done = subprocess.run([needed("nghttp"), "-nv", "--no-verify-peer", *(url + p for p in ("/", "/bytes/100000", "/status/404", "/trailers"))],
                                      capture_output=True, text=True, timeout=DEADLINE, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(sorted(re.findall(r":status: (\d+)", done.stdout)), ["200", "200", "200", "404"], done.stdout)
                self.assertIn("x-twp-trailer: after the body", done.stdout)

    def test_goaway_with_close(self):
        # Not with Python's h2, which takes nothing any more of a connection that has said GOAWAY.
        done = subprocess.run([needed("nghttp"), "-nv", "--no-verify-peer", f"http://localhost:{self.http}/close"], capture_output=True,
                              text=True, timeout=DEADLINE, check=False)
        self.assertRegex(done.stdout, r"recv GOAWAY frame[^\n]*\n\s*\(last_stream_id=\d+, error_code=NO_ERROR")
        self.assertIn(":status: 200", done.stdout)

    def test_h2load(self):
        for name, port, encrypted in self.both():
            with self.subTest(name):
                url = f"{'https' if encrypted else 'http'}://localhost:{port}"
                for args in (("-n", "2000", "-c", "4", "-m", "10", url + "/"), ("-n", "40", "-c", "2", "-m", "10", url + "/bytes/1000000")):
                    done = subprocess.run([needed("h2load"), *args], capture_output=True, text=True, timeout=DEADLINE, check=False)
                    self.assertRegex(done.stdout, rf"{args[1]} succeeded, 0 failed, 0 errored, 0 timeout", done.stdout)
                    self.assertRegex(done.stdout, rf"{args[1]} 2xx, 0 3xx, 0 4xx, 0 5xx")


class PythonClient(Rig):
    def test_many_streams_at_once(self):
        for name, port, encrypted in self.both():
            with self.subTest(name):
                c = self.client(port, encrypted)
                wanted = {c.open(f"/bytes/{n * 1000}"): n * 1000 for n in range(50)}
                for stream, octets in wanted.items():
                    r = c.wait(stream)
                    self.assertEqual((r.status, len(r.body), r.reset), (200, octets, None))

    def test_uploads_interleaved(self):
        for name, port, encrypted in self.both():
            with self.subTest(name):
                c = self.client(port, encrypted)
                streams = [c.open("/echo", "POST", end=False) for _ in range(4)]
                for at in range(0, len(BIG), 65536):
                    for s in streams:
                        c.send(s, BIG[at:at + 65536], at + 65536 >= len(BIG))
                for s in streams:
                    self.assertEqual(hashlib.sha256(c.wait(s).body).digest(), hashlib.sha256(BIG).digest())

    def test_trailers_both_ways(self):
        for name, port, encrypted in self.both():
            with self.subTest(name):
                c = self.client(port, encrypted)
                r = c.get("/trailers", headers=[("te", "trailers")])
                self.assertEqual(r.trailers, {"x-twp-trailer": "after the body", "x-twp-octets": "21"})
                s = c.open("/echo", "POST", [("te", "trailers")], b"body", end=False)
                c.conn.send_headers(s, [("x-sum", "42")], end_stream=True)
                c.flush()
                r = c.wait(s)
                self.assertEqual((r.body, r.trailers), (b"body", {"x-sum": "42"}))

    def test_interim_heads(self):
        for name, port, encrypted in self.both():
            with self.subTest(name):
                r = self.client(port, encrypted).get("/interim")
                self.assertIn(("103", "</style.css>; rel=preload; as=style"), [(i[":status"], i.get("link")) for i in r.interims])
                self.assertEqual(r.status, 200)

    def test_a_small_window_is_kept(self):
        for name, port, encrypted in self.both():
            with self.subTest(name):
                c = self.client(port, encrypted, credit=False, settings={h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 1000})
                s = c.open("/bytes/5000")
                r = c.responses[s]
                for octets in range(1000, 5001, 1000):
                    c.until(lambda want=octets: len(r.body) >= want)
                    self.assertEqual(len(r.body), octets)  # h2 itself fails on more than the window
                    c.give(s, 1000)
                self.assertTrue(c.wait(s).ended)

    def test_one_slow_stream_does_not_hold_the_others(self):
        for name, port, encrypted in self.both():
            with self.subTest(name):
                c = self.client(port, encrypted, credit=False, settings={h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 16384})
                slow = c.open("/bytes/10000000")
                c.until(lambda: len(c.responses[slow].body) == 16384)
                for _ in range(3):
                    s = c.open("/bytes/10000")
                    r = c.wait(s)
                    self.assertEqual((r.status, len(r.body)), (200, 10000))
                    c.give(s, 10000)
                c.conn.reset_stream(slow, h2.errors.ErrorCodes.CANCEL)
                c.flush()

    def test_early_answer(self):
        for name, port, encrypted in self.both():
            with self.subTest(name):
                c = self.client(port, encrypted)
                s = c.open("/early", "POST", end=False)
                c.send(s, b"x" * 20000)
                c.until(lambda: c.responses[s].status is not None)
                self.assertEqual(c.responses[s].status, 200)

    def test_reset_in_the_middle(self):
        for name, port, encrypted in self.both():
            with self.subTest(name):
                c = self.client(port, encrypted)
                r = c.get("/reset")
                self.assertIsNotNone(r.reset)
                self.assertLessEqual(len(r.body), 1000)
                self.assertEqual(c.get("/").status, 200)  # the connection lives

    def test_malformed_requests_harm_their_stream_alone(self):
        bad = ([("Upper", "x")], [("connection", "close")], [("transfer-encoding", "chunked")], [("te", "gzip")], [("x", "a\r\nb")],
               [("host", "other.test")], [("content-length", "5")])
        for name, port, encrypted in self.both():
            for extra in bad:
                with self.subTest(name, extra=extra):
                    c = self.client(port, encrypted)
                    c.conn.config.validate_outbound_headers = c.conn.config.normalize_outbound_headers = False
                    r = c.get("/", headers=extra)
                    self.assertTrue(r.reset is not None or r.status == 400, vars(r))
                    self.assertEqual(c.get("/").status, 200)


class PythonOrigin(Rig):
    """A foreign origin over h2c and h2 behind the proxy."""

    def through(self, server, encrypted, *args):
        proxy = proxy_to("h2" if encrypted else "h2c", server.port, self.tls, *args)
        self.addCleanup(proxy.close)
        return proxy

    def server(self, encrypted, **kwargs):
        server = h2_peer.Server(self.tls.server("h2") if encrypted else None, **kwargs)
        self.addCleanup(server.close)
        return server

    def test_echo_from_every_client_wire(self):
        for encrypted in (False, True):
            server = self.server(encrypted)
            proxy = self.through(server, encrypted)
            for port, tls in ((proxy.http, False), (proxy.https, True)):
                r = self.client(port, tls).get("/x?y", method="POST", body=BIG, headers=[("x-a", "1")])
                self.assertEqual((r.status, r.body == BIG), (200, True))
                head = server.calls[-1].headers
                self.assertEqual((head[":method"], head[":path"], head["x-a"]), ("POST", "/x?y", "1"))
                self.assertNotIn("connection", head)
                self.assertNotIn("host", head)
                done = subprocess.run([needed("curl"), "-sS", "--noproxy", "*", "--http1.1", "--cacert", self.tls.ca, "-d", "hello",
                                       f"{'https' if tls else 'http'}://localhost:{port}/"], capture_output=True, timeout=DEADLINE, check=False)
                self.assertEqual(done.stdout, b"hello", done.stderr)

    def test_a_refused_stream_is_sent_again(self):
        def handle(call):
            if len(server.calls) == 1:
                call.refuse(h2.errors.ErrorCodes.REFUSED_STREAM)

        server = self.server(False, handle=handle, on_end=lambda call: call.answer(200, b"second"))
        r = self.client(self.through(server, False).http, False).get("/")
        self.assertEqual((r.status, r.body, len(server.calls)), (200, b"second", 2))

    def test_another_reset_is_not_sent_again(self):
        server = self.server(False, handle=lambda call: call.refuse(h2.errors.ErrorCodes.INTERNAL_ERROR))
        r = self.client(self.through(server, False).http, False).get("/")
        self.assertEqual((r.status, len(server.calls)), (502, 1))

    def test_what_a_goaway_has_not_reached_is_sent_again(self):
        def on_end(call):
            if server.connections == 1:
                # Nothing has been processed: RFC 9113 §6.8.
                call.conn.close_connection(last_stream_id=0)
                call.served.flush()
                call.served.open = False
            else:
                call.answer(200, b"elsewhere")

        server = self.server(False, on_end=on_end)
        r = self.client(self.through(server, False).http, False).get("/")
        self.assertEqual((r.status, r.body, server.connections), (200, b"elsewhere", 2))

    def test_cancelling_reaches_the_origin(self):
        server = self.server(False, on_end=lambda call: None)
        c = self.client(self.through(server, False).http, False)
        s = c.open("/never")
        wait_for(self, lambda: server.calls)
        c.conn.reset_stream(s, h2.errors.ErrorCodes.CANCEL)
        c.flush()
        self.assertTrue(server.calls[0].was_reset.wait(DEADLINE))
        self.assertEqual(server.calls[0].reset, h2.errors.ErrorCodes.CANCEL)

    def test_the_origins_stream_limit_is_kept(self):
        # From the first request of the first connection on: what exceeds the limit ends the connection of this origin.
        for most in (1, 2):
            for args in ((), ("--set", "cluster.max_connections=1")):
                with self.subTest(most=most, args=args):
                    server = self.server(False, on_end=lambda call: call.answer(200, b"ok"),
                                         settings={h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: most})
                    c = self.client(self.through(server, False, *args).http, False)
                    streams = [c.open("/") for _ in range(50)]
                    self.assertEqual({c.wait(s).status for s in streams}, {200})
                    self.assertEqual(len(server.calls), 50)  # none was sent twice
                    self.assertLessEqual(server.connections, 1 if args else 50 // most)

    def test_a_burst_is_not_kept_from_sharing_a_connection(self):
        server = self.server(False, on_end=lambda call: call.answer(200, b"ok"))
        c = self.client(self.through(server, False).http, False)
        streams = [c.open("/") for _ in range(50)]
        self.assertEqual({c.wait(s).status for s in streams}, {200})
        self.assertEqual(server.connections, 1)

    def test_an_origin_that_never_says_its_settings(self):
        def accept():
            with contextlib.suppress(OSError):
                while True:
                    connections.append(mute.accept()[0])

        connections = []
        mute = socket.create_server(("127.0.0.1", 0))
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            proxy = proxy_to("h2c", mute.getsockname()[1], self.tls, "--set", "cluster.queue_timeout=200ms")
            self.addCleanup(proxy.close)
            c = self.client(proxy.http, False)
            streams = [c.open("/") for _ in range(10)]
            self.assertEqual([c.wait(s).status for s in streams[1:]], [503] * 9)
            self.assertEqual(len(connections), 1)
            self.assertEqual(c.wait(streams[0]).status, 504)
        finally:
            mute.shutdown(socket.SHUT_RDWR)
            thread.join(DEADLINE)
            for s in (mute, *connections):
                s.close()

    def test_trailers_and_interim_heads_of_the_origin(self):
        def on_end(call):
            call.head(103, [("link", "</a>")])
            call.answer(200, b"x", trailers=[("x-t", "1")])

        server = self.server(True, on_end=on_end)
        r = self.client(self.through(server, True).https, True).get("/")
        self.assertEqual(([i[":status"] for i in r.interims], r.body, r.trailers), (["103"], b"x", {"x-t": "1"}))


def wait_for(case, condition):
    end = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > end:
            case.fail("did not happen")
        time.sleep(0.01)


class Loadgen(Rig):
    """What the load generator makes of an origin that refuses."""

    def measured(self, status=0, **kwargs):
        with h2_peer.Server(**kwargs) as server:
            done = tools.loadgen("run", f"h2c://127.0.0.1:{server.port}/", "-c", "4", "-m", "2", "-d", "500ms", "--warmup", "0s", "--json", "-")
            self.assertEqual(done.returncode, status, done.stderr)
            out = json.loads(done.stdout)
            self.assertGreater(out["requests"], 10)
            return out, out["detail"]["errors_by_kind"]

    def test_right_answers(self):
        out, _ = self.measured(on_end=lambda call: call.answer(200, b"x" * 1000))
        self.assertEqual((out["errors"], out["connections"]), (0, 2))

    def test_a_server_that_takes_fewer_streams_than_asked_for_is_said_once(self):
        for workload in ("get", "ws"):
            with self.subTest(workload), tools.Origin() as origin:
                proxy = proxy_to("h1c", origin.port, self.tls, "--set", "limits.h2_max_streams=3")
                self.addCleanup(proxy.close)
                more = ("--workload", "ws") if workload == "ws" else ()
                done = tools.loadgen("ramp", f"h2c://127.0.0.1:{proxy.http}/{'ws' if more else ''}", "--concurrency", "3,20,30", "-m", "10",
                                     "--duration", "300ms", "--warmup", "0s", *more)
                self.assertEqual(done.returncode, 0, done.stderr)
                warnings = [line for line in done.stderr.splitlines() if "SETTINGS" in line]
                self.assertEqual(warnings, ["warning: the server takes 3 requests at a time on a connection (SETTINGS_MAX_CONCURRENT_STREAMS) "
                                            "and 10 were to be: at most 6 of 20 were in flight (-m 3 opens enough connections)"])

    def test_refused_streams(self):
        def handle(call):
            if call.stream % 4 == 3:
                call.refuse(h2.errors.ErrorCodes.REFUSED_STREAM)
        out, kinds = self.measured(handle=handle, on_end=lambda call: call.answer(200, b"x"))
        self.assertEqual(kinds["refused"], out["errors"])
        self.assertAlmostEqual(out["error_rate"], 0.5, delta=0.1)
        self.assertIn("REFUSED_STREAM", out["detail"]["first_error"])

    def test_reset_streams(self):
        out, kinds = self.measured(status=1, handle=lambda call: call.refuse(h2.errors.ErrorCodes.INTERNAL_ERROR))
        self.assertEqual((kinds["reset"], out["errors"], out["rps"]), (out["requests"], out["requests"], 0))
        self.assertEqual(out["detail"]["connect"]["count"], 2)

    def test_goaway(self):
        def on_end(call):
            if call.stream < 21:
                call.answer(200, b"x")
                return
            call.conn.close_connection(last_stream_id=call.stream - 2)
            call.served.flush()
            call.served.open = False
        out, kinds = self.measured(on_end=on_end)
        self.assertGreater(kinds["refused"], 0)
        self.assertGreater(out["requests"], out["errors"])
        self.assertGreater(out["detail"]["connect"]["count"], 2)


NODE_SERVER = r"""
const http2 = require('http2'), fs = require('fs');
const on = (stream, headers) => {
  const chunks = [];
  stream.on('error', () => {});
  stream.on('data', (c) => chunks.push(c));
  stream.on('end', () => {
    const body = Buffer.concat(chunks);
    stream.respond({':status': 200, 'x-path': headers[':path'], 'x-octets': String(body.length)}, {waitForTrailers: true});
    stream.on('wantTrailers', () => stream.sendTrailers({'x-node': 'trailer'}));
    stream.end(body);
  });
};
const [, cert, key] = process.argv;
const s = cert ? http2.createSecureServer({cert: fs.readFileSync(cert), key: fs.readFileSync(key)}) : http2.createServer();
s.on('stream', on);
s.listen(0, '127.0.0.1', () => console.log(s.address().port));
"""
NODE_CLIENT = r"""
const http2 = require('http2'), fs = require('fs');
const [, url, ca, count] = process.argv;
const session = http2.connect(url, {ca: fs.readFileSync(ca)});
session.on('error', (e) => { console.error('session', e); process.exit(1); });
let left = Number(count);
const sent = Buffer.alloc(100000, 'n');
for (let i = 0; i < Number(count); ++i) {
  const r = session.request({':method': 'POST', ':path': '/echo?' + i, 'te': 'trailers'});
  let status = 0;
  const got = [];
  r.on('response', (h) => { status = h[':status']; });
  r.on('data', (c) => got.push(c));
  r.on('error', (e) => { console.error('stream', e); process.exit(1); });
  r.on('end', () => {
    if (status !== 200 || Buffer.compare(Buffer.concat(got), sent) !== 0) { console.error('wrong answer', status); process.exit(1); }
    if (--left === 0) { console.log('all right'); session.close(); }
  });
  r.end(sent);
}
"""


class Node(Rig):
    def script(self, text):
        folder = tempfile.TemporaryDirectory(prefix="twp-node-")
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "script.js")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace("process.argv;", "process.argv.slice(1);"))
        return path

    def test_client(self):
        path = self.script(NODE_CLIENT)
        for name, port, encrypted in self.both():
            with self.subTest(name):
                done = subprocess.run([needed("node"), path, f"{'https' if encrypted else 'http'}://localhost:{port}", self.tls.ca, "20"],
                                      capture_output=True, text=True, timeout=DEADLINE, check=False)
                self.assertEqual((done.returncode, done.stdout), (0, "all right\n"), done.stderr)

    def test_origin(self):
        path = self.script(NODE_SERVER)
        for encrypted in (False, True):
            process = subprocess.Popen([needed("node"), path, *((self.tls.cert, self.tls.key) if encrypted else ())],
                                       stdout=subprocess.PIPE, text=True)
            try:
                proxy = proxy_to("h2" if encrypted else "h2c", int(process.stdout.readline()), self.tls)
                self.addCleanup(proxy.close)
                for port, tls in ((proxy.http, False), (proxy.https, True)):
                    r = self.client(port, tls).get("/p", method="POST", body=BIG)
                    self.assertEqual((r.status, r.headers["x-path"], r.body == BIG, r.trailers), (200, "/p", True, {"x-node": "trailer"}))
            finally:
                process.kill()
                process.wait()
                process.stdout.close()


class Nginx(Rig):
    def test_http1_origin(self):
        folder = tempfile.TemporaryDirectory(prefix="twp-nginx-")
        self.addCleanup(folder.cleanup)
        at = folder.name
        os.chmod(at, 0o755)
        with open(at + "/page", "wb") as f:
            f.write(BIG)
        port = free_port()
        temp = "\n".join(f"  {k}_temp_path {at}/{k};" for k in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        with open(at + "/nginx.conf", "w", encoding="utf-8") as f:
            f.write(f"daemon off; pid {at}/pid; error_log stderr error; worker_processes 1; {'user root;' if os.geteuid() == 0 else ''}\n"
                    f"events {{}}\nhttp {{\n{temp}\n  access_log off;\n  server {{ listen 127.0.0.1:{port}; root {at}; }}\n}}\n")
        nginx = subprocess.Popen([needed("nginx"), "-c", at + "/nginx.conf", "-e", "stderr"], stderr=subprocess.DEVNULL)
        try:
            wait_for(self, lambda: connects(port))
            proxy = proxy_to("h1c", port, self.tls)
            self.addCleanup(proxy.close)
            for listener, encrypted in ((proxy.http, False), (proxy.https, True)):
                c = self.client(listener, encrypted)
                streams = [c.open("/page") for _ in range(10)]
                for s in streams:
                    self.assertEqual(hashlib.sha256(c.wait(s).body).digest(), hashlib.sha256(BIG).digest())
                self.assertEqual(c.get("/nothing").status, 404)
                self.assertEqual(c.get("/page", headers=[("range", "bytes=10-19")]).body, BIG[10:20])
        finally:
            nginx.terminate()
            nginx.wait(DEADLINE)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def connects(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


if __name__ == "__main__":
    unittest.main()

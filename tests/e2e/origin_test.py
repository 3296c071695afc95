"""twp-origin's pages, asked by Python's http.client and by raw sockets."""
import base64
import hashlib
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

import tools
from tools import Origin

JSON = b'{"service":"twp-origin","status":"ok","id":"0123456789"}'


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.origin = Origin("--threads", "2")
        cls.addClassCleanup(cls.origin.__exit__)

    def setUp(self):
        self.connection = http.client.HTTPConnection("127.0.0.1", self.origin.port, timeout=tools.DEADLINE)
        self.addCleanup(self.connection.close)

    def get(self, path, method="GET", body=None, headers=None):
        self.connection.request(method, path, body=body, headers=headers or {})
        response = self.connection.getresponse()
        return response, response.read()

    def raw(self, request):
        sock = socket.create_connection(("127.0.0.1", self.origin.port), timeout=tools.DEADLINE)
        self.addCleanup(sock.close)
        sock.sendall(request)
        return sock

    def test_root(self):
        response, body = self.get("/")
        self.assertEqual((response.status, body, len(body)), (200, JSON, 56))
        self.assertEqual(response.headers["content-type"], "application/json")
        self.assertIn("GMT", response.headers["date"])

    def test_one_connection_serves_many(self):
        self.connection.connect()
        port = self.connection.sock.getsockname()
        for path in ("/", "/bytes/70000", "/chunked/70000", "/status/204", "/trailers", "/headers", "/nothing"):
            self.get(path)
            self.assertEqual(self.connection.sock.getsockname(), port, path)

    def test_post_is_read_and_answered(self):
        response, body = self.get("/", "POST", b"x" * 1_000_000)
        self.assertEqual((response.status, body), (200, JSON))
        response, body = self.get("/status/201", "PUT", iter([b"a" * 1000] * 50))  # chunked
        self.assertEqual(response.status, 201)

    def test_bytes_and_chunked_hold_the_same_octets(self):
        for n in (0, 1, 511, 512, 16384, 1048575, 1048577, 5_000_000):
            _, exact = self.get(f"/bytes/{n}")
            response, chunked = self.get(f"/chunked/{n}")
            self.assertEqual(len(exact), n)
            self.assertEqual(exact, chunked)
            self.assertEqual(response.headers["transfer-encoding"], "chunked")

    def test_a_tebibyte_starts(self):
        self.connection.request("GET", f"/bytes/{1 << 40}")
        response = self.connection.getresponse()
        self.assertEqual(response.headers["content-length"], str(1 << 40))
        self.assertEqual(len(response.read(3_000_000)), 3_000_000)

    def test_head(self):
        for path in ("/", "/bytes/1000", "/chunked/1000", "/headers", "/trailers", "/stream", "/nothing", "/status/500"):
            response, body = self.get(path, "HEAD")
            self.assertEqual(body, b"", path)
        response, _ = self.get("/bytes/1000", "HEAD")
        self.assertEqual(response.headers["content-length"], "1000")

    def test_stream(self):
        response, body = self.get("/stream?chunks=5&size=3000&interval=2")
        self.assertEqual((response.status, len(body)), (200, 15000))
        self.assertEqual(self.get("/stream?chunks=0")[1], b"")
        self.assertEqual(self.get("/stream?chunks=x")[0].status, 400)

    def test_delay(self):
        self.assertEqual(self.get("/delay/30")[1], JSON)

    def test_status(self):
        for status in (200, 201, 301, 404, 418, 500, 503, 599):
            response, _ = self.get(f"/status/{status}")
            self.assertEqual(response.status, status)
        for status in (204, 304):
            response, body = self.get(f"/status/{status}")
            self.assertEqual((response.status, body, response.headers["content-length"]), (status, b"", None))
        response, body = self.get("/status/205")
        self.assertEqual((response.status, body, response.headers["content-length"]), (205, b"", "0"))
        self.assertEqual(self.get("/status/99")[0].status, 400)

    def test_headers(self):
        _, body = self.get("/headers?a=1", headers={"X-Test": "a \"quoted\" \\ value", "Accept": "*/*"})
        seen = json.loads(body)
        self.assertEqual((seen["method"], seen["path"], seen["version"]), ("GET", "/headers?a=1", "1.1"))
        self.assertEqual(seen["authority"], f"127.0.0.1:{self.origin.port}")
        self.assertIn(["X-Test", "a \"quoted\" \\ value"], seen["headers"])

    def test_headers_keep_their_octets(self):
        sock = self.raw(b"GET /headers HTTP/1.1\r\nHost: a.test\r\nX-Odd: \xe9\x80 \t z\r\nConnection: close\r\n\r\n")
        answer, _ = tools.read_all(sock)
        seen = json.loads(answer.split(b"\r\n\r\n", 1)[1])
        self.assertIn(["X-Odd", "\xe9\x80 \t z"], seen["headers"])

    def test_echo(self):
        data = os.urandom(3_000_000)
        response, body = self.get("/echo", "POST", data, {"Content-Type": "a/b"})
        self.assertEqual((response.status, body == data, response.headers["content-type"]), (200, True, "a/b"))
        response, body = self.get("/echo", "POST", iter([data[:100_000], data[100_000:100_001]]))
        self.assertEqual(body, data[:100_001])
        self.assertEqual(self.get("/echo")[1], b"")

    def test_echo_streams(self):
        sock = self.raw(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
        head = tools.read_head(sock)
        self.assertTrue(head.startswith(b"HTTP/1.1 200 "))
        self.assertEqual(tools.read_exactly(sock, 5), b"hello")
        sock.sendall(b"world")
        self.assertEqual(tools.read_exactly(sock, 5), b"world")

    def test_early(self):
        sock = self.raw(b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + b"x" * 8192)
        head = tools.read_head(sock)
        self.assertTrue(head.startswith(b"HTTP/1.1 200 "))
        self.assertEqual(tools.read_exactly(sock, 56), JSON)
        sock.sendall(b"x" * (100000 - 8192) + b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        self.assertTrue(tools.read_head(sock).startswith(b"HTTP/1.1 200 "))
        self.assertEqual(tools.read_exactly(sock, 56), JSON)

    def test_trailers(self):
        sock = self.raw(b"GET /trailers HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer, _ = tools.read_all(sock)
        self.assertTrue(answer.endswith(b"0\r\nx-twp-trailer: after the body\r\nx-twp-octets: 21\r\n\r\n"), answer)

    def test_interim(self):
        sock = self.raw(b"GET /interim HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer, _ = tools.read_all(sock)
        heads = [part.split(b"\r\n")[0] for part in answer.split(b"\r\n\r\n")]
        self.assertEqual(heads[0], b"HTTP/1.1 100 Continue")
        self.assertEqual(heads[1], b"HTTP/1.1 103 Early Hints")
        self.assertEqual(heads[2], b"HTTP/1.1 200 OK")

    def test_expect_continue(self):
        sock = self.raw(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        self.assertEqual(tools.read_head(sock), b"HTTP/1.1 100 Continue\r\n\r\n")
        sock.sendall(b"abc")
        self.assertTrue(tools.read_head(sock).startswith(b"HTTP/1.1 200 "))
        sock = self.raw(b"POST /nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        self.assertTrue(tools.read_head(sock).startswith(b"HTTP/1.1 404 "))

    def test_close(self):
        sock = self.raw(b"GET /close HTTP/1.1\r\nHost: a\r\n\r\n")
        answer, reset = tools.read_all(sock)
        self.assertFalse(reset)
        self.assertIn(b"\r\nConnection: close\r\n", answer)
        self.assertTrue(answer.endswith(JSON))

    def test_reset(self):
        sock = self.raw(b"GET /reset HTTP/1.1\r\nHost: a\r\n\r\n")
        answer, reset = tools.read_all(sock)
        self.assertTrue(reset)
        self.assertIn(b"content-length: 1048576\r\n", answer)
        self.assertLess(len(answer), 2000)

    def test_unknown(self):
        self.assertEqual(self.get("/nothing")[0].status, 404)
        self.assertEqual(self.get("/bytes/x")[0].status, 400)
        self.assertEqual(self.get("/ws")[0].status, 426)

    def test_http_1_0(self):
        sock = self.raw(b"GET /chunked/1000 HTTP/1.0\r\n\r\n")
        answer, _ = tools.read_all(sock)
        head, body = answer.split(b"\r\n\r\n", 1)
        self.assertNotIn(b"chunked", head)
        self.assertEqual(len(body), 1000)

    def test_pipelining(self):
        sock = self.raw(b"GET /bytes/3 HTTP/1.1\r\nHost: a\r\n\r\n" * 5 + b"GET /close HTTP/1.1\r\nHost: a\r\n\r\n")
        answer, _ = tools.read_all(sock)
        self.assertEqual(answer.count(b"HTTP/1.1 200 OK\r\n"), 6)

    # --- WebSocket ---

    def websocket(self):
        key = base64.b64encode(os.urandom(16)).decode()
        sock = self.raw(f"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                        f"Sec-WebSocket-Key: {key}\r\n\r\n".encode())
        head = tools.read_head(sock).decode()
        wanted = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        self.assertTrue(head.startswith("HTTP/1.1 101 "), head)
        self.assertEqual(head.lower().count("sec-websocket-accept: " + wanted.lower()), 1, head)
        return sock

    def test_websocket_messages(self):
        sock = self.websocket()
        for n in (0, 1, 125, 126, 65535, 65536, 200_000):
            sock.sendall(tools.ws_frame(2, b"z" * n))
            self.assertEqual(tools.ws_read(sock), (0x82, b"z" * n))
        sock.sendall(tools.ws_frame(1, b"a", fin=False) + tools.ws_frame(9, b"p") + tools.ws_frame(0, "é".encode()))
        self.assertEqual([tools.ws_read(sock) for _ in range(3)], [(0x01, b"a"), (0x8a, b"p"), (0x80, "é".encode())])
        sock.sendall(tools.ws_frame(8, b"\x03\xe8bye"))
        self.assertEqual(tools.ws_read(sock), (0x88, b"\x03\xe8"))
        sock.shutdown(socket.SHUT_WR)
        self.assertEqual(tools.read_all(sock), (b"", False))

    def test_websocket_large_message(self):
        sock = self.websocket()
        data = os.urandom(4_000_000)
        sender = threading.Thread(target=sock.sendall, args=(tools.ws_frame(2, data),))
        sender.start()
        first, back = tools.ws_read(sock)
        sender.join()
        self.assertEqual((first, back == data), (0x82, True))

    def test_websocket_failures(self):
        for frame, code in ((b"\x81\x01x", 1002), (tools.ws_frame(3, b""), 1002), (tools.ws_frame(1, b"\xff"), 1007),
                            (tools.ws_frame(0, b"x"), 1002), (tools.ws_frame(8, b"x"), 1002)):
            sock = self.websocket()
            sock.sendall(frame)
            self.assertEqual(tools.ws_read(sock), (0x88, code.to_bytes(2, "big")))
            sock.shutdown(socket.SHUT_WR)
            tools.read_all(sock)


class Program(unittest.TestCase):
    def run_origin(self, *args):
        return subprocess.run([tools.program("twp-origin"), *args], capture_output=True, text=True, timeout=tools.DEADLINE, check=False)

    def test_usage(self):
        self.assertEqual(self.run_origin("--version").returncode, 0)
        self.assertIn("Examples:", self.run_origin("--help").stdout)
        for args in (["--nothing"], ["--listen", "ftp://x"], ["--listen", "https://127.0.0.1:0"], ["--listen", "h3://127.0.0.1:0"],
                     ["--drain-timeout", "x"], ["--threads", "0"], ["--cert", "a.pem"]):
            done = self.run_origin(*args)
            self.assertEqual(done.returncode, 2, args)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            done = self.run_origin("--listen", f"http://127.0.0.1:{taken.getsockname()[1]}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Address already in use", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        # Threads share a port with SO_REUSEPORT; another origin of the same user must not.
        with Origin("--threads", "2") as first:
            done = self.run_origin("--listen", first.urls[0], "--threads", "2")
        self.assertEqual((done.returncode, done.stderr),
                         (1, f"twp-origin: cannot listen on 127.0.0.1:{first.port}: Address already in use\n"))

    def test_values_that_there_are_not(self):
        done = self.run_origin("--congestion", "foo")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"^twp-origin: --congestion: unknown congestion control 'foo' \(this kernel (has|allows): [a-z _]*reno[a-z _]*\)\n$")
        done = self.run_origin("--http", "h3")
        self.assertEqual((done.returncode, done.stderr), (2, "twp-origin: --http 'h3': expected one of h1, h2, auto\n"))

    def test_one_version_of_http(self):
        with Origin("--http", "h1") as origin, socket.create_connection(("127.0.0.1", origin.port), tools.DEADLINE) as sock:
            sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            self.assertTrue(tools.read_all(sock)[0].startswith(b"HTTP/1.1 505 "))
        with Origin("--http", "h2") as origin, socket.create_connection(("127.0.0.1", origin.port), tools.DEADLINE) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            answer, reset = tools.read_all(sock)
            self.assertFalse(reset)
            # SETTINGS first, GOAWAY with PROTOCOL_ERROR last.
            self.assertEqual((answer[3:9], answer[-17:-8], answer[-4:]), (b"\4\0\0\0\0\0", b"\0\0\x08\7\0\0\0\0\0", b"\0\0\0\1"))

    def test_tls_by_ca(self):
        with tempfile.TemporaryDirectory() as folder:
            with Origin("--ca", folder + "/ca", listen=("http://127.0.0.1:0", "https://127.0.0.1:0")) as origin:
                self.assertEqual([u.split(":")[0] for u in origin.urls], ["http", "https"])
                context = ssl.create_default_context(cafile=folder + "/ca/ca.pem")
                for host in ("127.0.0.1", "localhost"):
                    port = int(origin.urls[1].rsplit(":", 1)[1])
                    with socket.create_connection(("127.0.0.1", port), timeout=tools.DEADLINE) as plain:
                        with context.wrap_socket(plain, server_hostname=host) as sock:
                            sock.sendall(b"GET /close HTTP/1.1\r\nHost: a\r\n\r\n")
                            self.assertTrue(tools.read_all(sock)[0].endswith(JSON))

    def test_drain_finishes_what_is_in_flight(self):
        with Origin() as origin:
            with socket.create_connection(("127.0.0.1", origin.port), timeout=tools.DEADLINE) as sock:
                sock.sendall(b"GET /stream?chunks=20&size=10&interval=20 HTTP/1.1\r\nHost: a\r\n\r\n")
                tools.read_head(sock)
                origin.process.send_signal(signal.SIGTERM)
                answer, reset = tools.read_all(sock)
                self.assertFalse(reset)
                self.assertTrue(answer.endswith(b"0\r\n\r\n"))
            self.assertEqual(origin.process.wait(tools.DEADLINE), 0)

    def test_second_signal_ends_at_once(self):
        with Origin("--threads", "2", "--drain-timeout", "1h") as origin:
            with socket.create_connection(("127.0.0.1", origin.port), timeout=tools.DEADLINE) as sock:
                sock.sendall(b"GET /delay/600000 HTTP/1.1\r\nHost: a\r\n\r\n")
                origin.process.send_signal(signal.SIGINT)
                # The first one has been taken when nobody is accepted any more.
                while True:
                    try:
                        socket.create_connection(("127.0.0.1", origin.port), timeout=tools.DEADLINE).close()
                    except (ConnectionRefusedError, ConnectionResetError):
                        break
                self.assertIsNone(origin.process.poll())
                origin.process.send_signal(signal.SIGINT)
                self.assertEqual(origin.process.wait(tools.DEADLINE), 0)

    def test_a_signal_right_after_the_ready_line_drains(self):
        # Who reads the line may signal at once, while the threads still start.
        for _ in range(20):
            with Origin("--threads", "4") as origin:
                origin.process.send_signal(signal.SIGTERM)
                self.assertEqual(origin.process.wait(tools.DEADLINE), 0)

    def test_drain_timeout_is_kept(self):
        with Origin("--drain-timeout", "200ms") as origin:
            with socket.create_connection(("127.0.0.1", origin.port), timeout=tools.DEADLINE) as sock:
                sock.sendall(b"GET /stream?chunks=100000&size=10&interval=10 HTTP/1.1\r\nHost: a\r\n\r\n")
                tools.read_head(sock)
                origin.process.send_signal(signal.SIGTERM)
                self.assertEqual(origin.process.wait(tools.DEADLINE), 0)


if __name__ == "__main__":
    unittest.main()

"""WebSocket with a foreign client and server (Python's websockets) over HTTP/1.1, and with extended CONNECT over HTTP/2
(Python's h2), through every pair of wires."""
import asyncio
import contextlib
import os
import threading
import time
import unittest

import h2.settings
import websockets.asyncio.client
import websockets.asyncio.server
import websockets.exceptions

import h2_peer
import tools
from tools import DEADLINE, OriginCase, proxy_to, ws_frame

BIG = os.urandom(1024 * 1024)


# One event loop, on a thread of its own, for both foreign ends. Not websockets.sync: that reads on one thread and writes on another, while
# Python 3.11's ssl.SSLSocket is not safe for that: a message written while a TLS 1.3 session ticket is read is lost now and then.
LOOP = asyncio.new_event_loop()


def setUpModule():
    thread = threading.Thread(target=LOOP.run_forever, daemon=True)
    thread.start()
    unittest.addModuleCleanup(LOOP.close)
    unittest.addModuleCleanup(thread.join, DEADLINE)
    unittest.addModuleCleanup(LOOP.call_soon_threadsafe, LOOP.stop)


def run(function, *args, timeout=DEADLINE, **kwargs):
    """What function() gives when it is called and awaited on the loop."""
    async def call():
        return await function(*args, **kwargs)

    future = asyncio.run_coroutine_threadsafe(call(), LOOP)
    try:
        return future.result(timeout)
    finally:
        future.cancel()  # nothing, unless the time is up


class Client:
    """websockets' own client, for a test that is no coroutine."""

    def __init__(self, url, **kwargs):
        self.connection = run(websockets.asyncio.client.connect, url, proxy=None, max_size=None, **kwargs)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def subprotocol(self):
        return self.connection.subprotocol

    @property
    def extensions(self):
        return [e.name for e in self.connection.protocol.extensions]

    @property
    def close_code(self):
        """The one received; 1006 if there was none."""
        return self.connection.close_code

    def send(self, message):
        run(self.connection.send, message)

    def recv(self, timeout):
        return run(self.connection.recv, timeout=timeout)

    def ping(self, timeout):
        """Waits for the pong, and says whether it came."""
        async def ping():
            await (await self.connection.ping())
            return True

        try:
            return run(ping, timeout=timeout)
        except TimeoutError:
            return False

    def close(self, *args):
        run(self.connection.close, *args)

    def vanish(self):
        """Closes the socket, without a close frame."""
        LOOP.call_soon_threadsafe(self.connection.transport.abort)


class Server:
    """websockets' own server: echoes, and closes with 4321 when told."""

    def __init__(self, tls=None):
        self.closed = []
        self.server = run(websockets.asyncio.server.serve, self.handle, "127.0.0.1", 0, ssl=tls, max_size=None,
                          subprotocols=["chat", "echo"], select_subprotocol=self.choose)
        self.port = self.server.sockets[0].getsockname()[1]

    @staticmethod
    def choose(_, offered):
        return next((s for s in offered if s in ("chat", "echo")), None)

    async def handle(self, connection):
        with contextlib.suppress(websockets.exceptions.ConnectionClosed):
            async for message in connection:
                if message == "close":
                    await connection.close(4321, "as told")
                else:
                    await connection.send(message)
        self.closed.append((connection.close_code, connection.close_reason))

    def close(self):
        LOOP.call_soon_threadsafe(self.server.close)
        run(self.server.wait_closed)


class Stream:
    """The octets of one extended CONNECT stream, as a socket that tools.ws_read() takes."""

    def __init__(self, client, stream):
        self.client, self.stream, self.at = client, stream, 0

    @property
    def response(self):
        return self.client.responses[self.stream]

    def sendall(self, octets):
        self.client.send(self.stream, octets)

    def recv(self, n):
        r = self.response
        self.client.until(lambda: len(r.body) > self.at or r.ended or r.reset is not None)
        piece = r.body[self.at:self.at + n]
        self.at += len(piece)
        return piece


class Rig(OriginCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server, cls.tls_server = Server(), Server(cls.tls.server("http/1.1"))
        cls.addClassCleanup(cls.server.close)
        cls.addClassCleanup(cls.tls_server.close)
        cls.proxies = {}
        for wire in tools.ORIGIN_WIRES:
            cls.proxies["twp-origin", wire] = proxy_to(wire, cls.https if wire in ("h1", "h2") else cls.http, cls.tls)
        cls.proxies["websockets", "h1c"] = proxy_to("h1c", cls.server.port, cls.tls)
        cls.proxies["websockets", "h1"] = proxy_to("h1", cls.tls_server.port, cls.tls)
        for proxy in cls.proxies.values():
            cls.addClassCleanup(proxy.close)

    def targets(self, who=("twp-origin", "websockets")):
        """(cleartext port, TLS port): servers themselves, and proxies to them."""
        own = {"twp-origin": (self.http, self.https), "websockets": (self.server.port, self.tls_server.port)}
        for name in who:
            self.now = name
            yield own[name]
        for (name, wire), proxy in self.proxies.items():
            if name in who:
                self.now = f"proxy to {name} over {wire}"
                yield proxy.http, proxy.https

    now = ""  # which of them; part of every message

    def _formatMessage(self, msg, standardMsg):
        return f"[{self.now}] " + super()._formatMessage(msg, standardMsg)


class Http1(Rig):
    def connect(self, port, encrypted, **kwargs):
        context = self.tls.client("http/1.1") if encrypted else None
        return Client(f"{'wss' if encrypted else 'ws'}://localhost:{port}/ws", ssl=context, **kwargs)

    def both(self, **kwargs):
        for clear, encrypted in self.targets(**kwargs):
            yield clear, False
            self.now += ", TLS"
            yield encrypted, True

    def test_messages(self):
        for port, encrypted in self.both():
            with self.connect(port, encrypted) as ws:
                for message in ("hello", "", "ünïcode \U0001f600", b"", b"\x00\xff", BIG):
                    ws.send(message)
                    self.assertEqual(ws.recv(DEADLINE), message)
                ws.send(["in ", "three ", "pieces"])
                self.assertEqual(ws.recv(DEADLINE), "in three pieces")
                self.assertTrue(ws.ping(DEADLINE))
                ws.close(4000, "bye")
                self.assertEqual(ws.close_code, 4000)

    def test_many_without_waiting(self):
        for port, encrypted in self.both():
            with self.connect(port, encrypted, compression=None) as ws:
                messages = [os.urandom(n * 37 % 3000) for n in range(300)]
                sender = threading.Thread(target=lambda ws=ws, m=messages: [ws.send(x) for x in m])
                sender.start()
                self.assertEqual([ws.recv(DEADLINE) for _ in messages], messages)
                sender.join(DEADLINE)

    def test_subprotocols_and_compression_are_between_the_ends(self):
        for port, encrypted in self.both(who=("websockets",)):
            with self.connect(port, encrypted, subprotocols=["other", "echo"]) as ws:
                self.assertEqual(ws.subprotocol, "echo")
                self.assertEqual(ws.extensions, ["permessage-deflate"])
                ws.send("a" * 100_000)
                self.assertEqual(ws.recv(DEADLINE), "a" * 100_000)

    def test_the_servers_close_reaches_the_client(self):
        for port, encrypted in self.both(who=("websockets",)):
            with self.connect(port, encrypted) as ws:
                ws.send("close")
                with self.assertRaises(websockets.exceptions.ConnectionClosed) as caught:
                    ws.recv(DEADLINE)
                self.assertEqual((caught.exception.rcvd.code, caught.exception.rcvd.reason), (4321, "as told"))

    def test_a_client_that_vanishes(self):
        for port, encrypted in self.both(who=("websockets",)):
            seen = len(self.server.closed) + len(self.tls_server.closed)
            ws = self.connect(port, encrypted)
            ws.send("x")
            ws.recv(DEADLINE)
            ws.vanish()
            end = time.monotonic() + DEADLINE
            while len(self.server.closed) + len(self.tls_server.closed) == seen:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)
            self.assertEqual((self.server.closed + self.tls_server.closed)[-1][0] in (1005, 1006), True)

    def test_a_refusal_is_passed_on(self):
        for clear, _ in self.targets(who=("twp-origin",)):
            with self.assertRaises(websockets.exceptions.InvalidStatus) as caught:
                Client(f"ws://localhost:{clear}/status/403")
            self.assertIn(caught.exception.response.status_code, (403, 404))


class Http2(Rig):
    def client(self, port, encrypted):
        client = h2_peer.Client(port, self.tls.client("h2") if encrypted else None)
        self.addCleanup(client.__exit__)
        client.until(lambda: client.got_settings)
        return client

    def both(self, who=("twp-origin",)):
        for name, wire in [(None, None), *self.proxies]:
            if name is None:
                pairs = [("twp-origin", self.http, False), ("twp-origin", self.https, True)]
            elif name in who or (name == "websockets" and "websockets" in who):
                proxy = self.proxies[name, wire]
                pairs = [(f"proxy to {name} over {wire}", proxy.http, False), (f"proxy to {name} over {wire}", proxy.https, True)]
            else:
                continue
            for text, port, encrypted in pairs:
                self.now = text + (", TLS" if encrypted else "")
                yield self.client(port, encrypted)

    def connect(self, client, path="/ws", *headers):
        stream = client.open(path, "CONNECT", [(":protocol", "websocket"), ("sec-websocket-version", "13"), *headers], end=False)
        client.until(lambda: client.responses[stream].status is not None or client.responses[stream].reset is not None)
        return Stream(client, stream)

    def test_it_is_announced(self):
        for client in self.both(who=("twp-origin", "websockets")):
            self.assertEqual(client.conn.remote_settings.get(h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL), 1)

    def test_messages(self):
        for client in self.both(who=("twp-origin", "websockets")):
            ws = self.connect(client)
            self.assertEqual(ws.response.status, 200)
            for name in ("sec-websocket-accept", "connection", "upgrade"):
                self.assertNotIn(name, ws.response.headers)
            ws.sendall(ws_frame(1, b"hello"))
            self.assertEqual(tools.ws_read(ws), (0x81, b"hello"))
            ws.sendall(ws_frame(9, b"ping"))
            self.assertEqual(tools.ws_read(ws), (0x8A, b"ping"))
            big = BIG[:100_000]
            ws.sendall(ws_frame(2, big))
            self.assertEqual(tools.ws_read(ws)[1], big)
            ws.sendall(ws_frame(8, b"\x03\xe8"))
            self.assertEqual(tools.ws_read(ws), (0x88, b"\x03\xe8"))
            client.conn.end_stream(ws.stream)
            client.flush()
            client.until(lambda r=ws.response: r.ended or r.reset is not None)

    def test_several_on_one_connection_beside_requests(self):
        for client in self.both():
            sockets = [self.connect(client) for _ in range(5)]
            for n, ws in enumerate(sockets):
                ws.sendall(ws_frame(1, b"%d" % n))
            self.assertEqual(client.get("/").status, 200)
            for n, ws in enumerate(sockets):
                self.assertEqual(tools.ws_read(ws), (0x81, b"%d" % n))
            client.conn.reset_stream(sockets[0].stream, 8)
            client.flush()
            sockets[1].sendall(ws_frame(1, b"still here"))
            self.assertEqual(tools.ws_read(sockets[1]), (0x81, b"still here"))

    def test_other_protocols_are_refused(self):
        for client in self.both():
            stream = client.open("/ws", "CONNECT", [(":protocol", "nothing-known")], end=False)
            r = client.responses[stream]
            client.until(lambda r=r: r.status is not None or r.reset is not None)
            self.assertTrue(r.reset is not None or r.status >= 400, vars(r))
            self.assertEqual(client.get("/").status, 200)

    def test_a_page_that_is_no_websocket(self):
        for client in self.both():
            self.assertGreaterEqual(self.connect(client, "/status/403").response.status, 400)


class Loadgen(Rig):
    def test_over_every_pair(self):
        for (name, wire), proxy in self.proxies.items():
            for url in (f"http://127.0.0.1:{proxy.http}/ws", f"h2c://127.0.0.1:{proxy.http}/ws", f"https://127.0.0.1:{proxy.https}/ws --http h1",
                        f"https://127.0.0.1:{proxy.https}/ws --http h2"):
                with self.subTest(url, to=(name, wire)):
                    done = tools.loadgen("run", *url.split(), "--ca", self.tls.ca, "--workload", "ws", "-c", "4", "-d", "1s", "--warmup", "0s")
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    self.assertNotIn("errors:", done.stdout)


if __name__ == "__main__":
    unittest.main()

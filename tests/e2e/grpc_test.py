"""gRPC with a foreign client and server (grpcio): straight at twp-origin, and through twp-proxy to both."""
import concurrent.futures
import contextlib
import socket
import threading
import unittest

import grpc

import tools
from tools import DEADLINE, OriginCase, proxy_to

HEALTH = "/grpc.health.v1.Health/Check"


class Service(grpc.GenericRpcHandler):
    """Every kind of call. What a call does says its name."""

    def __init__(self):
        self.waiting, self.cancelled = threading.Event(), threading.Event()
        self.metadata = None

    def service(self, details):
        name = details.method.rsplit("/", 1)[1]
        kinds = {"Unary": grpc.unary_unary_rpc_method_handler, "Wait": grpc.unary_unary_rpc_method_handler,
                 "Fail": grpc.unary_unary_rpc_method_handler, "ServerStream": grpc.unary_stream_rpc_method_handler,
                 "ClientStream": grpc.stream_unary_rpc_method_handler, "BidiStream": grpc.stream_stream_rpc_method_handler}
        return kinds[name](getattr(self, name.lower())) if name in kinds else None

    def unary(self, request, context):
        self.metadata = dict(context.invocation_metadata())
        context.send_initial_metadata((("x-initial", "first"),))
        context.set_trailing_metadata((("x-trailing", "last"), ("x-octets-bin", bytes(range(256)))))
        return request

    def wait(self, request, context):
        gone = threading.Event()
        context.add_callback(lambda: (gone.set(), self.cancelled.set()))
        self.waiting.set()
        gone.wait(DEADLINE)
        return request

    def fail(self, request, context):
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not ready: 100% sure, ünïcode")

    def serverstream(self, request, context):
        for n in range(100):
            yield request + str(n).encode()

    def clientstream(self, requests, context):
        return b"".join(requests)

    def bidistream(self, requests, context):
        yield from requests


class Grpc(OriginCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(cls.tls.ca, "rb") as f:
            cls.ca = f.read()
        cls.service = Service()
        cls.server = grpc.server(concurrent.futures.ThreadPoolExecutor(16), handlers=(cls.service,),
                                 options=[("grpc.max_receive_message_length", -1)])
        cls.addClassCleanup(lambda: cls.server.stop(None).wait(DEADLINE))
        with open(cls.tls.key, "rb") as key, open(cls.tls.cert, "rb") as cert:
            credentials = grpc.ssl_server_credentials([(key.read(), cert.read())])
        cls.clear, cls.encrypted = cls.server.add_insecure_port("127.0.0.1:0"), cls.server.add_secure_port("127.0.0.1:0", credentials)
        cls.server.start()
        cls.proxies = {"h2c": proxy_to("h2c", cls.clear, cls.tls), "h2": proxy_to("h2", cls.encrypted, cls.tls)}
        for proxy in cls.proxies.values():
            cls.addClassCleanup(proxy.close)

    def channel(self, port, encrypted=False):
        options = [("grpc.max_receive_message_length", -1), ("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
        where = f"localhost:{port}"
        made = grpc.secure_channel(where, grpc.ssl_channel_credentials(self.ca), options) if encrypted else grpc.insecure_channel(where, options)
        self.addCleanup(made.close)
        return made

    def through_proxies(self):
        for name, proxy in self.proxies.items():
            for port, encrypted in ((proxy.http, False), (proxy.https, True)):
                self.now = f"{'h2' if encrypted else 'h2c'}->{name}"
                yield self.channel(port, encrypted)

    now = ""  # which of them; part of every message

    def _formatMessage(self, msg, standardMsg):
        return f"[{self.now}] " + super()._formatMessage(msg, standardMsg)

    # --- twp-origin's own service ----------------------------------------------------------------------

    def test_the_origins_echo(self):
        proxies = [proxy_to("h2c", self.http, self.tls), proxy_to("h2", self.https, self.tls), proxy_to("h1c", self.http, self.tls)]
        for proxy in proxies:
            self.addCleanup(proxy.close)
        for port, encrypted in ((self.http, False), (self.https, True), *((p.http, False) for p in proxies), *((p.https, True) for p in proxies)):
            with self.subTest(port=port, encrypted=encrypted):
                channel = self.channel(port, encrypted)
                self.assertEqual(channel.unary_unary("/twp.Echo/Unary")(b"hello", timeout=DEADLINE), b"hello")
                self.assertEqual(channel.unary_unary("/twp.Echo/Unary")(b"", timeout=DEADLINE), b"")
                big = bytes(3 * 1024 * 1024)
                self.assertEqual(channel.unary_unary("/twp.Echo/Unary")(big, timeout=DEADLINE), big)
                self.assertEqual(list(channel.unary_stream("/twp.Echo/ServerStream")(b"x", timeout=DEADLINE)), [b"x"] * 10)
                self.assertEqual(channel.stream_unary("/twp.Echo/ClientStream")(iter([b"a", b"b", b"c"]), timeout=DEADLINE), b"abc")
                self.assertEqual(list(channel.stream_stream("/twp.Echo/BidiStream")(iter([b"1", b"", b"3"]), timeout=DEADLINE)), [b"1", b"", b"3"])

    def test_the_origins_health(self):
        call = self.channel(self.http).unary_unary(HEALTH)
        self.assertEqual(call(b"", timeout=DEADLINE), b"\x08\x01")
        self.assertEqual(call(b"\x0a\x08twp.Echo", timeout=DEADLINE), b"\x08\x01")
        with self.assertRaises(grpc.RpcError) as caught:
            call(b"\x0a\x05other", timeout=DEADLINE)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_the_origins_refusals(self):
        for port in (self.http, self.proxies_to_origin()):
            channel = self.channel(port)
            for method, message, code in (("/twp.Echo/Nothing", b"", grpc.StatusCode.UNIMPLEMENTED), ("/twp.Nothing/X", b"", grpc.StatusCode.UNIMPLEMENTED),
                                          ("/twp.Echo/Unary", bytes(5 * 1024 * 1024), grpc.StatusCode.RESOURCE_EXHAUSTED)):
                with self.assertRaises(grpc.RpcError) as caught:
                    channel.unary_unary(method)(message, timeout=DEADLINE)
                self.assertEqual(caught.exception.code(), code, caught.exception)

    def proxies_to_origin(self):
        proxy = proxy_to("h2c", self.http, self.tls)
        self.addCleanup(proxy.close)
        return proxy.http

    # --- a foreign server behind the proxy --------------------------------------------------------------

    def test_every_kind_of_call(self):
        for channel in self.through_proxies():
            self.assertEqual(channel.unary_unary("/x.Y/Unary")(b"hello", timeout=DEADLINE), b"hello")
            self.assertEqual(list(channel.unary_stream("/x.Y/ServerStream")(b"n", timeout=DEADLINE)), [b"n%d" % n for n in range(100)])
            parts = [bytes([n]) * 1000 for n in range(200)]
            self.assertEqual(channel.stream_unary("/x.Y/ClientStream")(iter(parts), timeout=DEADLINE), b"".join(parts))
            self.assertEqual(list(channel.stream_stream("/x.Y/BidiStream")(iter(parts), timeout=DEADLINE)), parts)

    def test_bidi_is_a_conversation(self):
        for channel in self.through_proxies():
            answered = threading.Event()

            def talk(event=answered):
                for n in range(20):
                    yield b"%d" % n
                    # The next message only when the answer to the last one is there: nobody may hold one back.
                    if not event.wait(DEADLINE):
                        return
                    event.clear()
            got = []
            for message in channel.stream_stream("/x.Y/BidiStream")(talk(), timeout=DEADLINE):
                got.append(message)
                answered.set()
            self.assertEqual(got, [b"%d" % n for n in range(20)])

    def test_large_messages(self):
        big = bytes(range(256)) * 65536  # 16 MiB
        for channel in self.through_proxies():
            self.assertEqual(channel.unary_unary("/x.Y/Unary")(big, timeout=DEADLINE), big)

    def test_metadata(self):
        for channel in self.through_proxies():
            octets = bytes(range(256))
            answer, call = channel.unary_unary("/x.Y/Unary").with_call(b"", timeout=DEADLINE, metadata=(("x-mine", "a, b"), ("x-octets-bin", octets)))
            self.assertEqual(answer, b"")
            self.assertEqual((self.service.metadata["x-mine"], self.service.metadata["x-octets-bin"]), ("a, b", octets))
            self.assertEqual(dict(call.initial_metadata())["x-initial"], "first")
            trailing = dict(call.trailing_metadata())
            self.assertEqual((trailing["x-trailing"], trailing["x-octets-bin"]), ("last", octets))

    def test_statuses_with_their_message(self):
        for channel in self.through_proxies():
            with self.assertRaises(grpc.RpcError) as caught:
                channel.unary_unary("/x.Y/Fail")(b"", timeout=DEADLINE)
            self.assertEqual((caught.exception.code(), caught.exception.details()),
                             (grpc.StatusCode.FAILED_PRECONDITION, "not ready: 100% sure, ünïcode"))

    def test_deadlines_reach_the_server(self):
        for channel in self.through_proxies():
            self.service.waiting.clear()
            self.service.cancelled.clear()
            with self.assertRaises(grpc.RpcError) as caught:
                channel.unary_unary("/x.Y/Wait")(b"", timeout=0.3)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
            self.assertTrue(self.service.waiting.wait(DEADLINE))
            self.assertTrue(self.service.cancelled.wait(DEADLINE))

    def test_cancelling_reaches_the_server(self):
        for channel in self.through_proxies():
            self.service.waiting.clear()
            self.service.cancelled.clear()
            call = channel.unary_unary("/x.Y/Wait").future(b"", timeout=DEADLINE)
            self.assertTrue(self.service.waiting.wait(DEADLINE))
            call.cancel()
            self.assertTrue(self.service.cancelled.wait(DEADLINE / 2))

    def test_many_at_once(self):
        for channel in self.through_proxies():
            call = channel.unary_unary("/x.Y/Unary")
            futures = [call.future(b"%d" % n, timeout=DEADLINE) for n in range(500)]
            self.assertEqual([f.result() for f in futures], [b"%d" % n for n in range(500)])

    def test_an_origin_that_is_down_is_unavailable(self):
        with contextlib.closing(socket.socket()) as held:  # bound and not listening: the port refuses
            held.bind(("127.0.0.1", 0))
            proxy = proxy_to("h2c", held.getsockname()[1], self.tls)
            self.addCleanup(proxy.close)
            for port, encrypted in ((proxy.http, False), (proxy.https, True)):
                with self.assertRaises(grpc.RpcError) as caught:
                    self.channel(port, encrypted).unary_unary("/x.Y/Unary")(b"", timeout=DEADLINE)
                self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE, caught.exception)


if __name__ == "__main__":
    unittest.main()

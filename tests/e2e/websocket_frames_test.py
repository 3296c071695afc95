"""RFC 6455 frame by frame against the echo of twp-origin, straight and through the proxy, over HTTP/1.1 and as a stream of
HTTP/2: framing, control frames, reserved bits, opcodes, fragments, UTF-8, closing, large messages."""
import base64
import os
import socket
import struct
import threading
import unittest

import h2_peer
import tools
from tools import DEADLINE, Certificates, Origin, proxy_to, ws_frame

TEXT, BINARY, CONTINUATION, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10
PROTOCOL, DATA = 1002, 1007  # close codes


def echo(*frames):
    """These frames as sent, and the same ones back."""
    return b"".join(ws_frame(o, p, fin) for o, p, fin in frames), [((0x80 if fin else 0) | o, p) for o, p, fin in frames]


def closes(octets, code, before=()):
    """The server answers with `before`, then fails the connection with `code`."""
    return octets, [*before, (0x80 | CLOSE, struct.pack("!H", code))]


def raw(first, payload=b"", mask=True, length=None):
    """A frame with any first octet; `length`: that octet and what belongs to it instead of the right one."""
    key = b"\x01\x02\x03\x04" if mask else b""
    body = bytes(b ^ key[i % 4] for i, b in enumerate(payload)) if mask else payload
    return bytes([first]) + (length or bytes([(0x80 if mask else 0) | len(payload)])) + key + body


def framing():
    for opcode, letter in ((TEXT, b"*"), (BINARY, b"\xfe")):
        for n in (0, 1, 125, 126, 127, 128, 65535, 65536, 200_000):
            yield f"opcode {opcode}, {n} octets", echo((opcode, letter * n, True))
    yield "1000 messages in one write", echo(*[(BINARY, b"%d" % n, True) for n in range(1000)])
    yield "not masked", closes(raw(0x81, b"x", mask=False), PROTOCOL)
    yield "16 bits for a short length", closes(raw(0x82, b"x", length=b"\xfe\x00\x01"), PROTOCOL)
    yield "64 bits for a short length", closes(raw(0x82, b"x", length=b"\xff" + struct.pack("!Q", 1)), PROTOCOL)
    yield "length with the top bit", closes(raw(0x82, b"", length=b"\xff" + struct.pack("!Q", 1 << 63)), PROTOCOL)


def control():
    for n in (0, 1, 125):
        yield f"ping of {n}", (ws_frame(PING, b"p" * n), [(0x80 | PONG, b"p" * n)])
    yield "binary ping", (ws_frame(PING, b"\x00\xff\xfe\xfd"), [(0x80 | PONG, b"\x00\xff\xfe\xfd")])
    yield "ping of 126", closes(ws_frame(PING, b"p" * 126), PROTOCOL)
    yield "fragmented ping", closes(ws_frame(PING, b"p", fin=False), PROTOCOL)
    yield "a pong that nobody asked for", (ws_frame(PONG, b"x") + ws_frame(PING, b"y"), [(0x80 | PONG, b"y")])
    yield "ten pings", (b"".join(ws_frame(PING, b"%d" % n) for n in range(10)), [(0x80 | PONG, b"%d" % n) for n in range(10)])
    for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15):
        yield f"opcode {opcode}", closes(ws_frame(opcode, b""), PROTOCOL)
        yield f"opcode {opcode} behind a message", closes(ws_frame(TEXT, b"ok") + ws_frame(opcode, b"x"), PROTOCOL, [(0x81, b"ok")])
    for bits in range(1, 8):
        for opcode in (TEXT, BINARY, PING, CLOSE):
            yield f"reserved bits {bits}, opcode {opcode}", closes(raw(0x80 | bits << 4 | opcode, b""), PROTOCOL)


def fragments():
    yield "two", echo((TEXT, b"frag", False), (CONTINUATION, b"ment", True))
    yield "many", echo((BINARY, b"a", False), *[(CONTINUATION, b"b" * n, False) for n in range(50)], (CONTINUATION, b"", True))
    yield "all empty", echo((TEXT, b"", False), (CONTINUATION, b"", False), (CONTINUATION, b"", True))
    sent, back = echo((TEXT, b"one", False))
    yield "ping in between", (sent + ws_frame(PING, b"now") + ws_frame(CONTINUATION, b"two"), [*back, (0x80 | PONG, b"now"), (0x80, b"two")])
    yield "continuation of nothing", closes(ws_frame(CONTINUATION, b"x"), PROTOCOL)
    yield "continuation behind a whole message", closes(ws_frame(TEXT, b"ok") + ws_frame(CONTINUATION, b"x"), PROTOCOL, [(0x81, b"ok")])
    yield "a message in a message", closes(sent + ws_frame(TEXT, b"x"), PROTOCOL, back)
    yield "character cut in two", echo((TEXT, b"\xce", False), (CONTINUATION, b"\xba", True))


GOOD_UTF8 = ("κόσμε", "\u0080\u07ff\u0800\ud7ff\ue000\ufffd\uffff", "\U00010000\U0010ffff", "\x00\x7f", "Hello-µ@ßöäüàá-UTF-8!!", "\ufeff")
BAD_UTF8 = (b"\x80", b"\xbf", b"\x80\xbf", b"\xc0", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\xaf", b"\xe0\x9f\xbf", b"\xf0\x80\x80\xaf", b"\xf0\x8f\xbf\xbf",
            b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xed\xa0\x80\xed\xb0\x80", b"\xf4\x90\x80\x80", b"\xf5", b"\xf8\x88\x80\x80\x80", b"\xfc\x84\x80\x80\x80\x80",
            b"\xfe", b"\xff", b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited", b"ok\xe2\x28", b"\xe2\x82")


def utf8():
    for text in GOOD_UTF8:
        yield f"good {ascii(text)}", echo((TEXT, text.encode(), True))
        octets = text.encode()
        yield f"good {ascii(text)}, an octet a frame", echo((TEXT, b"", False), *[(CONTINUATION, octets[i:i + 1], False) for i in range(len(octets))],
                                                           (CONTINUATION, b"", True))
    for octets in BAD_UTF8:
        yield f"bad {octets!r}", closes(ws_frame(TEXT, octets), DATA)
        yield f"binary may be {octets!r}", echo((BINARY, octets, True))
    yield "bad in a continuation", closes(ws_frame(TEXT, b"ok", fin=False) + ws_frame(CONTINUATION, b"\xff"), DATA, [(0x01, b"ok")])
    yield "ends inside a character", closes(ws_frame(TEXT, b"\xe2\x82", fin=False) + ws_frame(CONTINUATION, b""), DATA, [(0x01, b"\xe2\x82")])


def closing():
    yield "without a code", (ws_frame(CLOSE, b""), [(0x88, b"")])
    for code in (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999):
        yield f"code {code}", (ws_frame(CLOSE, struct.pack("!H", code)), [(0x88, struct.pack("!H", code))])
    for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535):
        yield f"code {code}", closes(ws_frame(CLOSE, struct.pack("!H", code)), PROTOCOL)
    yield "reason of 123", (ws_frame(CLOSE, b"\x03\xe8" + b"*" * 123), [(0x88, b"\x03\xe8")])
    yield "reason of 124", closes(ws_frame(CLOSE, b"\x03\xe8" + b"*" * 124), PROTOCOL)
    yield "bad UTF-8 in the reason", closes(ws_frame(CLOSE, b"\x03\xe8\xff"), DATA)
    yield "one octet", closes(ws_frame(CLOSE, b"x"), PROTOCOL)
    yield "what follows a close is not answered", (ws_frame(CLOSE, b"\x03\xe8") + ws_frame(TEXT, b"x") + ws_frame(PING, b""), [(0x88, b"\x03\xe8")])
    yield "close inside a message", (ws_frame(TEXT, b"a", fin=False) + ws_frame(CLOSE, b"\x03\xe8"), [(0x01, b"a"), (0x88, b"\x03\xe8")])


def large():
    for n in (1 << 20, 4 << 20):
        yield f"{n} octets", echo((BINARY, os.urandom(n), True))
        yield f"{n} octets in 4 KiB", echo((BINARY, b"", False), *[(CONTINUATION, b"x" * 4096, False) for _ in range(n // 4096)], (CONTINUATION, b"", True))


class Tunnel:
    """A WebSocket's octets over HTTP/1.1."""

    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), DEADLINE)
        self.sock.sendall(b"GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                          b"Sec-WebSocket-Key: " + base64.b64encode(os.urandom(16)) + b"\r\n\r\n")
        head = tools.read_head(self.sock)
        if not head.startswith(b"HTTP/1.1 101 "):
            raise AssertionError(head)
        self.sendall, self.recv, self.close = self.sock.sendall, self.sock.recv, self.sock.close

    def finish(self):
        self.sock.shutdown(socket.SHUT_WR)


class Stream:
    """The same over HTTP/2."""

    def __init__(self, port):
        self.client, self.at = h2_peer.Client(port), 0
        self.client.until(lambda: self.client.got_settings)
        self.stream = self.client.open("/ws", "CONNECT", [(":protocol", "websocket"), ("sec-websocket-version", "13")], end=False)
        self.response = self.client.responses[self.stream]
        self.client.until(lambda: self.response.status is not None)
        if self.response.status != 200:
            raise AssertionError(vars(self.response))

    def sendall(self, octets):
        self.client.send(self.stream, octets)

    def recv(self, n):
        r = self.response
        self.client.until(lambda: len(r.body) > self.at or r.ended or r.reset is not None)
        piece = r.body[self.at:self.at + n]
        self.at += len(piece)
        return piece

    def finish(self):
        if self.response.reset is None:
            self.client.conn.end_stream(self.stream)
            self.client.flush()

    def close(self):
        self.client.sock.close()


class Frames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tls = Certificates()
        cls.addClassCleanup(cls.tls.close)
        cls.origin = Origin()
        cls.addClassCleanup(cls.origin.__exit__)
        cls.ways = [("origin", Tunnel, cls.origin.port), ("origin, HTTP/2", Stream, cls.origin.port)]
        for wire in ("h1c", "h2c"):
            proxy = proxy_to(wire, cls.origin.port, cls.tls)
            cls.addClassCleanup(proxy.close)
            cls.ways += [(f"proxy to {wire}", Tunnel, proxy.http), (f"proxy to {wire}, HTTP/2", Stream, proxy.http)]

    def check(self, cases):
        cases = list(cases)
        for way, make, port in self.ways:
            for name, (octets, back) in cases:
                with self.subTest(name, way=way):
                    ws = make(port)
                    try:
                        self.one(ws, octets, back)
                    finally:
                        ws.close()

    def one(self, ws, octets, back):
        if isinstance(ws, Tunnel) and len(octets) > 100_000:
            # More than fits on the way: it is written while the echo is read. A Stream reads while it writes by itself.
            sender = threading.Thread(target=ws.sendall, args=(octets,))
            sender.start()
            self.addCleanup(sender.join, DEADLINE)
        else:
            ws.sendall(octets)
        for wanted in back:
            self.assertEqual(tools.ws_read(ws), wanted)
        if back and back[-1][0] == 0x88:
            ws.finish()
            self.assertEqual(ws.recv(1), b"")
        else:
            ws.sendall(ws_frame(PING, b"still there"))
            self.assertEqual(tools.ws_read(ws), (0x8A, b"still there"))

    def test_framing(self):
        self.check(framing())

    def test_control_frames_opcodes_and_reserved_bits(self):
        self.check(control())

    def test_fragments(self):
        self.check(fragments())

    def test_utf8(self):
        self.check(utf8())

    def test_closing(self):
        self.check(closing())

    def test_large_messages(self):
        self.check(large())


if __name__ == "__main__":
    unittest.main()

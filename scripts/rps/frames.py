"""Raw HTTP/2 frames (RFC 9113 §4) for checks that do what no client library would."""
import struct

from .paths import Trouble

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
ACK, END_STREAM, END_HEADERS = 0x1, 0x1, 0x4
CANCEL = 8
INITIAL_WINDOW_SIZE = 4


def frame(kind, stream=0, payload=b"", flags=0):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def settings(*pairs):
    return frame(SETTINGS, payload=b"".join(struct.pack(">HI", key, value) for key, value in pairs))


def literal(name, value, indexed=False):
    """A field line in literals, with a new name (RFC 7541 §6.2); `indexed` adds it to the table."""
    return bytes([0x40 if indexed else 0x00]) + _string(name) + _string(value)


def _string(octets):
    if len(octets) < 127:
        return bytes([len(octets)]) + octets
    rest, size = len(octets) - 127, b"\x7f"
    while rest >= 128:
        size += bytes([rest % 128 + 128])
        rest //= 128
    return size + bytes([rest]) + octets


def request(method=b"GET", path=b"/", fields=b""):
    """The field section of a request, the same octets each time: nothing of it is put into the table."""
    known = {b"GET": b"\x82", b"POST": b"\x83"}[method]
    return known + b"\x86" + b"\x04" + _string(path) + b"\x01" + _string(b"localhost") + fields


def headers(stream, section, flags=END_HEADERS | END_STREAM):
    return frame(HEADERS, stream, section, flags)


class Client:
    """One connection that asks for one thing after the other. Its windows are open once and for all: 2 GiB for each response and
    for all of them together."""

    def __init__(self, sock):
        self.sock, self.octets, self.next, self.acknowledged = sock, b"", 1, False
        self.sock.sendall(PREFACE + settings((INITIAL_WINDOW_SIZE, 2**31 - 1)) + frame(WINDOW_UPDATE, 0, struct.pack(">I", 2**31 - 65536)))

    def get(self, path=b"/"):
        """Octets of the response, which must be 200."""
        stream, body, ended = self.next, 0, False
        self.next += 2
        self.sock.sendall(headers(stream, request(path=path)))
        while not ended:
            kind, flags, of, payload = self.read()
            if of != stream:
                continue
            if kind == HEADERS and payload[:1] != b"\x88":  # :status 200 in the static table
                raise Trouble(f"stream {stream} was not answered with 200")
            if kind == RST_STREAM:
                raise Trouble(f"stream {stream} was reset")
            body += len(payload) if kind == DATA else 0
            ended = kind in (HEADERS, DATA) and flags & END_STREAM != 0
        return body

    def settle(self):
        """Until the other side has taken our SETTINGS."""
        while not self.acknowledged:
            self.read()

    def read(self):
        """The next frame: type, flags, stream, payload."""
        self._fill(9)
        size = int.from_bytes(self.octets[:3], "big")
        self._fill(9 + size)
        kind, flags, stream = struct.unpack(">BBI", self.octets[3:9])
        payload, self.octets = self.octets[9:9 + size], self.octets[9 + size:]
        if kind == SETTINGS and flags & ACK:
            self.acknowledged = True
        elif kind in (SETTINGS, PING) and not flags & ACK:
            self.sock.sendall(frame(kind, 0, payload if kind == PING else b"", ACK))
        elif kind == GOAWAY:
            raise Trouble(f"GOAWAY with error {int.from_bytes(payload[4:8], 'big')}")
        return kind, flags, stream, payload

    def _fill(self, octets):
        while len(self.octets) < octets:
            part = self.sock.recv(65536)
            if not part:
                raise Trouble("the HTTP/2 connection was closed")
            self.octets += part

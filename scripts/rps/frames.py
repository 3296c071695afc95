"""Raw HTTP/2 frames (RFC 9113 §4) for checks that do what no client library would."""
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS = 0x1, 0x4
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

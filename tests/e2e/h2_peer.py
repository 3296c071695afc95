"""A client and a server of HTTP/2 made with the Python library h2: foreign to twp, and as strict as that library is."""
import contextlib
import select
import socket
import threading
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

from tools import DEADLINE


class Response:
    def __init__(self):
        self.status, self.headers, self.body, self.trailers = None, {}, b"", None
        self.interims, self.ended, self.reset = [], False, None


def fields(pairs):
    return {k.decode(): v.decode("latin-1") for k, v in pairs}


class Client:
    """One connection; `tls` is an SSLContext that offers h2, or None for prior knowledge. Flow control is manual with
    `credit=False`: nothing is given back but by give()."""

    def __init__(self, port, tls=None, credit=True, settings=None, host="127.0.0.1"):
        self.sock = socket.create_connection((host, port), DEADLINE)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.sock = tls.wrap_socket(self.sock, server_hostname="localhost")
            if self.sock.selected_alpn_protocol() != "h2":
                raise AssertionError(f"ALPN chose {self.sock.selected_alpn_protocol()}")
        self.scheme, self.credit = "https" if tls else "http", credit
        self.conn = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding=None))
        if settings:
            self.conn.local_settings = h2.settings.Settings(client=True, initial_values=settings)
        self.conn.initiate_connection()
        self.responses, self.goaway, self.closed, self.got_settings = {}, None, False, False
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def flush(self):
        self.sock.sendall(self.conn.data_to_send())

    def open(self, path="/", method="GET", headers=(), body=None, authority="localhost", end=None):
        """Sends a request; a body is sent as the window allows, answering events meanwhile. The stream's number."""
        stream = self.conn.get_next_available_stream_id()
        head = [(":method", method), (":scheme", self.scheme), (":authority", authority), (":path", path), *headers]
        self.responses[stream] = Response()
        self.conn.send_headers(stream, head, end_stream=body is None if end is None else end)
        self.flush()
        if body is not None:
            self.send(stream, body, True if end is None else end)
        return stream

    def send(self, stream, body, end=False):
        view = memoryview(body)
        while len(view) and not self.responses[stream].reset:
            room = min(self.conn.local_flow_control_window(stream), self.conn.max_outbound_frame_size, len(view))
            if room == 0:
                self.turn()
                continue
            self.conn.send_data(stream, view[:room].tobytes())
            view = view[room:]
            self.flush()
        if end and not self.responses[stream].reset:
            self.conn.end_stream(stream)
            self.flush()

    def give(self, stream, octets):
        self.conn.acknowledge_received_data(octets, stream)
        self.flush()

    def turn(self):
        """Reads once and acts on what came; False at the end of the connection."""
        data = self.sock.recv(65536)
        if not data:
            self.closed = True
            return False
        for event in self.conn.receive_data(data):
            self.on(event)
        self.flush()
        return True

    def on(self, event):
        r = self.responses.get(getattr(event, "stream_id", None))
        if isinstance(event, h2.events.InformationalResponseReceived):
            r.interims.append(fields(event.headers))
        elif isinstance(event, h2.events.ResponseReceived):
            r.headers = fields(event.headers)
            r.status = int(r.headers.pop(":status"))
        elif isinstance(event, h2.events.DataReceived):
            r.body += event.data
            if self.credit and event.flow_controlled_length:
                self.conn.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.TrailersReceived):
            r.trailers = fields(event.headers)
        elif isinstance(event, h2.events.StreamEnded):
            r.ended = True
        elif isinstance(event, h2.events.StreamReset) and r:
            r.reset = event.error_code
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.goaway = event.error_code
        elif isinstance(event, h2.events.RemoteSettingsChanged):
            self.got_settings = True

    def until(self, condition):
        end = time.monotonic() + DEADLINE
        while not condition():
            if self.closed or time.monotonic() > end:
                raise AssertionError(f"did not happen: {[vars(r) for r in self.responses.values()]}, GOAWAY {self.goaway}")
            self.turn()

    def wait(self, stream):
        """The response, once it is complete or reset."""
        r = self.responses[stream]
        self.until(lambda: r.ended or r.reset is not None)
        return r

    def get(self, path="/", **kwargs):
        return self.wait(self.open(path, **kwargs))


class Server:
    """Threads, one for each connection. `handle(call)` runs on the connection's thread once a request's head is there;
    `on_end(call)` when it is complete (default: answers 200 with the request body)."""

    def __init__(self, tls=None, handle=None, on_end=None, settings=None):
        self.tls, self.handle, self.on_end, self.settings = tls, handle, on_end or (lambda call: call.answer(200, call.body)), settings
        self.calls, self.connections = [], 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join(DEADLINE)
        self.listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        with contextlib.suppress(OSError, h2.exceptions.ProtocolError):
            if self.tls:
                sock = self.tls.wrap_socket(sock, server_side=True)
            with sock:
                Served(self, sock).run()


class Served:
    """One connection of a Server. A stream more than its settings allow ends it, also when the client cannot have seen them."""

    def __init__(self, server, sock):
        self.server, self.sock, self.calls = server, sock, {}
        self.lock = threading.RLock()
        self.conn = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding=None))
        if server.settings:
            self.conn.local_settings = h2.settings.Settings(client=False, initial_values=server.settings)
        self.conn.initiate_connection()
        self.open = True

    def flush(self):
        with self.lock:
            self.sock.sendall(self.conn.data_to_send())

    def run(self):
        self.flush()
        while self.open:
            data = self.sock.recv(65536)
            if not data:
                return
            with self.lock:
                events = self.conn.receive_data(data)
            for event in events:
                self.on(event)
            self.flush()

    def on(self, event):
        call = self.calls.get(getattr(event, "stream_id", None))
        if isinstance(event, h2.events.RequestReceived):
            call = self.calls[event.stream_id] = Call(self, event.stream_id, fields(event.headers))
            self.server.calls.append(call)
            if self.server.handle:
                self.server.handle(call)
        elif isinstance(event, h2.events.DataReceived):
            if call:
                call.body += event.data
            with self.lock:
                self.conn.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.TrailersReceived):
            call.trailers = fields(event.headers)
        elif isinstance(event, h2.events.StreamEnded):
            call.ended.set()
            if not call.done:
                self.server.on_end(call)
        elif isinstance(event, h2.events.StreamReset) and call:
            call.reset = event.error_code
            call.was_reset.set()
        for c in list(self.calls.values()):
            c.pump()


class Call:
    def __init__(self, served, stream, headers):
        self.served, self.conn, self.stream, self.headers = served, served.conn, stream, headers
        self.body, self.trailers, self.reset, self.done = b"", None, None, False
        self.ended, self.was_reset = threading.Event(), threading.Event()
        self.left, self.last, self.finished, self.refused = b"", (), False, False

    def head(self, status, headers=(), end=False):
        self.conn.send_headers(self.stream, [(":status", str(status)), *headers], end_stream=end)

    def answer(self, status=200, body=b"", headers=(), trailers=()):
        self.done = True
        self.head(status, headers)
        self.left, self.last = bytes(body), trailers
        self.pump()

    def pump(self):
        """Sends as much of the body as the windows allow, and the end behind it."""
        if not self.done or self.finished or self.reset is not None:
            return
        with contextlib.suppress(h2.exceptions.StreamClosedError):
            while self.left:
                room = min(self.conn.local_flow_control_window(self.stream), self.conn.max_outbound_frame_size, len(self.left))
                if room <= 0:
                    return
                self.conn.send_data(self.stream, self.left[:room])
                self.left = self.left[room:]
            self.finished = True
            if self.last:
                self.conn.send_headers(self.stream, list(self.last), end_stream=True)
            else:
                self.conn.end_stream(self.stream)

    def refuse(self, code):
        self.done = self.finished = self.refused = True
        self.conn.reset_stream(self.stream, code)


def readable(sock, seconds):
    return bool(select.select([sock], [], [], seconds)[0])

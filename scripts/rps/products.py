"""The proxies that are compared. A product is a class with `name` and the methods of Product; add it to PRODUCTS.

Equal terms for all: one worker or thread, keep-alive to the origin, no access log, limits above the load, TLS 1.3 with
AES-128-GCM and the same P-256 certificate, the origin's certificate verified. Beyond that each runs with its defaults.
"""
import dataclasses
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess

from . import arms
from .paths import Trouble, peers_dir, program, version_of
from .procs import wait_until

_SUITE = "TLS_AES_128_GCM_SHA256"


@dataclasses.dataclass(frozen=True)
class Tls:
    """Files of the run: the CA and one leaf for localhost and 127.0.0.1, made by twp-certgen."""
    ca: str
    cert: str
    key: str


@dataclasses.dataclass
class Running:
    proc: object  # procs.Proc
    url: str      # where the clients go


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Product:
    """How to find, describe and start one proxy."""
    name = ""

    def version(self):
        """Its version, or None when it is not on this machine."""
        raise NotImplementedError

    def possible(self, arm, load=arms.GET):
        """Whether it can carry this load over this pair of wires at all."""
        return {arm.client, arm.origin} <= set(arms.WIRES)

    def start(self, stage, arm, origin_url, tls, cpus):
        """Starts it between `arm.client` and `origin_url`; returns Running once it listens."""
        raise NotImplementedError


class Twp(Product):
    name = "twp"

    def version(self):
        return version_of(program("twp-proxy"))[0]

    def arguments(self, arm, origin_url, tls):
        argv = [program("twp-proxy"), "reverse", "--listen", f"{arms.SCHEME[arm.client]}://127.0.0.1:0",
                "--to", origin_url, "--workers", "1"]
        if arm.client in arms.TLS_WIRES:
            argv += ["--cert", tls.cert, "--key", tls.key]
        if arm.origin in arms.TLS_WIRES:
            argv += ["--origin-ca", tls.ca, "--origin-http", arms.HTTP[arm.origin]]
        return argv

    def start(self, stage, arm, origin_url, tls, cpus):
        proc = stage.start("twp-proxy", self.arguments(arm, origin_url, tls), cpus, ready=True)
        return Running(proc, proc.urls()[0])


class Peer(Product):
    """A foreign proxy: from the peers' root if it is there, else the system's own."""
    program_name = ""
    version_argument = "-v"
    environment = {}  # beside our own

    def _command(self):
        """(argv prefix, folder of files as we see it or None for any, the same folder as the program sees it)"""
        root = peers_dir()
        if root and os.geteuid() == 0:
            for folder in ("usr/sbin", "usr/bin", "usr/local/bin"):
                if (root / folder / self.program_name).exists():
                    shared = root / "run" / "twp"
                    shared.mkdir(parents=True, exist_ok=True)
                    chroot = shutil.which("chroot", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
                    return [chroot, str(root), f"/{folder}/{self.program_name}"], shared, "/run/twp"
        found = shutil.which(self.program_name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin:/sbin")
        return ([found], None, None) if found else (None, None, None)

    def version(self):
        argv, _, _ = self._command()
        if not argv:
            return None
        out = subprocess.run(argv + [self.version_argument], capture_output=True, text=True, timeout=20, check=False)
        found = re.search(r"[0-9]+\.[0-9]+(\.[0-9]+)*", out.stdout + out.stderr)
        return found.group(0) if found else None

    def release(self):
        """Its version as numbers that compare."""
        return tuple(map(int, (self.version() or "0").split(".")))

    def arguments(self, config):
        raise NotImplementedError

    def config(self, arm, port, origin_url, files):
        raise NotImplementedError

    def start(self, stage, arm, origin_url, tls, cpus):
        argv, shared, inside = self._command()
        work = stage.make_dir(f"{self.name}-", parent=shared)
        os.chmod(work, 0o755)  # workers that give up root still read their files
        seen = f"{inside}/{os.path.basename(work)}" if inside else work
        for name, path in (("cert.pem", tls.cert), ("key.pem", tls.key), ("ca.pem", tls.ca)):
            shutil.copyfile(path, os.path.join(work, name))
        both = pathlib.Path(tls.cert).read_bytes() + pathlib.Path(tls.key).read_bytes()
        pathlib.Path(work, "both.pem").write_bytes(both)
        trouble = None
        for _ in range(3):  # somebody may take the port between our look and its bind
            port = free_port()
            pathlib.Path(work, "config").write_text(self.config(arm, port, origin_url, seen), encoding="utf-8")
            proc = stage.start(self.name, argv + self.arguments(f"{seen}/config"), cpus,
                               env=dict(os.environ, **self.environment) if self.environment else None)
            try:
                _wait_listening(proc, port)
                return Running(proc, f"{arms.SCHEME[arm.client]}://127.0.0.1:{port}")
            except Trouble as e:
                trouble = e
                stage.stop(proc)
        raise trouble


def _host_and_port(url):
    host, _, port = _origin_of(url).rpartition(":")
    return host, int(port)


def _wait_listening(proc, port):
    def listening():
        if not proc.alive():
            raise Trouble(f"{proc.name} ended instead of listening:\n{proc.tail()}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        except OSError:
            return False
    wait_until(listening, 10, f"{proc.name} to listen on port {port}")


def _origin_of(url):
    return url.split("://", 1)[1].rstrip("/")


class Nginx(Peer):
    name = program_name = "nginx"

    def possible(self, arm, load=arms.GET):
        """HTTP/2 to origins since 1.29.4; both HTTP/1.1 and HTTP/2 at a cleartext port since 1.25.1; WebSocket over
        HTTP/1.1 alone."""
        if load is arms.WS:
            return not {arm.client, arm.origin} & arms.HTTP2_WIRES
        least = (1, 29, 4) if arm.origin in arms.HTTP2_WIRES else (1, 25, 1) if arm.client in arms.HTTP2_WIRES else ()
        return not self.version() or self.release() >= least

    def arguments(self, config):
        return ["-c", config, "-e", "stderr"]

    def config(self, arm, port, origin_url, files):
        listen_tls = origin_tls = ""
        to_origin = 'proxy_http_version 1.1;\n      proxy_set_header Connection $upgrade_or_nothing;\n' \
                    '      proxy_set_header Upgrade $http_upgrade;'
        if arm.origin in arms.HTTP2_WIRES:
            to_origin = "proxy_http_version 2;\n      proxy_pass_trailers on;\n      proxy_set_header TE trailers;"
        if arm.client in arms.TLS_WIRES:
            listen_tls = f"""
    ssl_certificate {files}/cert.pem;
    ssl_certificate_key {files}/key.pem;
    ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites {_SUITE};"""
        if arm.origin in arms.TLS_WIRES:
            origin_tls = f"""
      proxy_ssl_protocols TLSv1.3;
      proxy_ssl_conf_command Ciphersuites {_SUITE};
      proxy_ssl_verify on;
      proxy_ssl_trusted_certificate {files}/ca.pem;
      proxy_ssl_name localhost;
      proxy_ssl_server_name on;"""
        paths = "\n".join(f"  {k}_temp_path {files}/{k};" for k in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        return f"""daemon off;
worker_processes 1;
worker_rlimit_nofile 65536;
pid {files}/pid;
error_log stderr error;
{"user root;" if os.geteuid() == 0 else ""}
events {{ worker_connections 16384; }}
http {{
  access_log off;
{paths}
  keepalive_requests 1000000000;
  map $http_upgrade $upgrade_or_nothing {{
    default upgrade;
    "" "";
  }}
  upstream origin {{
    server {_origin_of(origin_url)};
    keepalive 256;
    keepalive_requests 1000000000;
  }}
  server {{
    listen 127.0.0.1:{port} backlog=4096{" ssl" if arm.client in arms.TLS_WIRES else ""};{listen_tls}
    {"http2 on;" if arm.client in arms.HTTP2_WIRES else ""}
    location / {{
      proxy_pass {arms.SCHEME[arm.origin]}://origin;
      {to_origin}{origin_tls}
    }}
  }}
}}
"""


class Haproxy(Peer):
    name = program_name = "haproxy"

    def arguments(self, config):
        return ["-db", "-f", config]

    def config(self, arm, port, origin_url, files):
        bind, server = "", " proto h2" if arm.origin in arms.HTTP2_WIRES else ""
        if arm.client in arms.TLS_WIRES:
            bind = f" ssl crt {files}/both.pem alpn {'h2,' if arm.client == 'h2' else ''}http/1.1"
        if arm.origin in arms.TLS_WIRES:
            server += (f" ssl verify required ca-file {files}/ca.pem sni str(localhost) verifyhost localhost "
                       f"alpn {'h2' if arm.origin == 'h2' else 'http/1.1'}")
        return f"""global
  nbthread 1
  maxconn 8192
  ssl-default-bind-options ssl-min-ver TLSv1.3
  ssl-default-bind-ciphersuites {_SUITE}
  ssl-default-server-options ssl-min-ver TLSv1.3
  ssl-default-server-ciphersuites {_SUITE}
defaults
  mode http
  http-reuse always
  timeout connect 5s
  timeout client 75s
  timeout server 75s
  timeout http-keep-alive 75s
frontend f
  bind 127.0.0.1:{port} backlog 4096{bind}
  default_backend b
backend b
  server o {_origin_of(origin_url)}{server}
"""


class Nghttpx(Peer):
    name = program_name = "nghttpx"
    version_argument = "--version"

    def possible(self, arm, load=arms.GET):
        return True

    def arguments(self, config):
        return [f"--conf={config}"]

    def config(self, arm, port, origin_url, files):
        host, origin_port = _host_and_port(origin_url)
        backend = ";proto=h2" if arm.origin in arms.HTTP2_WIRES else ""
        if arm.origin in arms.TLS_WIRES:
            backend += ";tls;sni=localhost"
        lines = ["workers=1", "errorlog-file=/dev/stderr", "log-level=ERROR",
                 f"frontend=127.0.0.1,{port}{'' if arm.client in arms.TLS_WIRES else ';no-tls'}",
                 f"backend={host},{origin_port};{backend}", "backlog=4096", f"cacert={files}/ca.pem",
                 f"private-key-file={files}/key.pem", f"certificate-file={files}/cert.pem",
                 "tls-min-proto-version=TLSv1.3", f"tls13-ciphers={_SUITE}", f"tls13-client-ciphers={_SUITE}"]
        return "\n".join(lines) + "\n"


class Caddy(Peer):
    name = program_name = "caddy"
    version_argument = "version"
    environment = {"GOMAXPROCS": "1", "XDG_DATA_HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"}

    def possible(self, arm, load=arms.GET):
        """WebSocket: towards origins over HTTP/1.1 alone, and from clients over HTTP/2 only when Go is told to."""
        return load is not arms.WS or not {arm.client, arm.origin} & arms.HTTP2_WIRES

    def arguments(self, config):
        return ["run", "--config", config, "--adapter", "caddyfile"]

    def config(self, arm, port, origin_url, files):
        tls = f"tls {files}/cert.pem {files}/key.pem {{\n    protocols tls1.3\n  }}" if arm.client in arms.TLS_WIRES else ""
        # h2c there means HTTP/2 and nothing else; the versions of an https upstream are those of its ALPN.
        upstream = f"{arms.SCHEME[arm.origin]}://{_origin_of(origin_url)}"
        transport = ["keepalive_idle_conns 256", "keepalive_idle_conns_per_host 256", "compression off"]
        transport.append({"h1c": "versions 1.1", "h1": "versions 1.1", "h2c": "versions h2c 2", "h2": "versions 2"}[arm.origin])
        if arm.origin in arms.TLS_WIRES:
            transport += [f"tls_trust_pool file {files}/ca.pem", "tls_server_name localhost"]
        inner = "\n        ".join(transport)
        return f"""{{
  admin off
  auto_https off
  persist_config off
  log {{
    level ERROR
  }}
  servers {{
    protocols h1 h2 h2c
  }}
}}
{arms.SCHEME[arm.client]}://:{port} {{
  bind 127.0.0.1
  {tls}
  reverse_proxy {upstream} {{
      transport http {{
        {inner}
      }}
  }}
}}
"""


class Envoy(Peer):
    name = program_name = "envoy"
    version_argument = "--version"

    def possible(self, arm, load=arms.GET):
        """A WebSocket of an HTTP/2 client reaches an HTTP/1.1 origin without Sec-WebSocket-Key: Envoy makes none."""
        return load is not arms.WS or arm.client not in arms.HTTP2_WIRES or arm.origin in arms.HTTP2_WIRES

    def arguments(self, config):
        return ["-c", config, "--concurrency", "1", "--use-dynamic-base-id", "--disable-hot-restart", "-l", "error"]

    def version(self):
        argv, _, _ = self._command()
        if not argv:
            return None
        out = subprocess.run(argv + ["--version"], capture_output=True, text=True, timeout=20, check=False)
        found = re.search(r"/([0-9]+\.[0-9]+\.[0-9]+)", out.stdout)
        return found.group(1) if found else None

    @staticmethod
    def _tls(side, files, http, origin):
        common = {"tls_params": {"tls_minimum_protocol_version": "TLSv1_3", "tls_maximum_protocol_version": "TLSv1_3"},
                  "alpn_protocols": ["http/1.1"] if http == "h1" else ["h2"] if origin else ["h2", "http/1.1"]}
        made = {"@type": f"type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.{side}TlsContext",
                "common_tls_context": common}
        if origin:
            made["sni"] = "localhost"
            common["validation_context"] = {
                "trusted_ca": {"filename": f"{files}/ca.pem"},
                "match_typed_subject_alt_names": [{"san_type": "DNS", "matcher": {"exact": "localhost"}}]}
        else:
            common["tls_certificates"] = [{"certificate_chain": {"filename": f"{files}/cert.pem"},
                                           "private_key": {"filename": f"{files}/key.pem"}}]
        return {"name": "envoy.transport_sockets.tls", "typed_config": made}

    def config(self, arm, port, origin_url, files):
        def address(host, number):
            return {"socket_address": {"address": host, "port_value": number}}
        kinds = "type.googleapis.com/envoy.extensions"
        connect = {"allow_connect": True}
        manager = {
            "@type": f"{kinds}.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": "in", "codec_type": "AUTO", "http2_protocol_options": connect,
            "upgrade_configs": [{"upgrade_type": "websocket"}],
            "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
                {"match": {"prefix": "/"}, "route": {"cluster": "origin", "timeout": "0s"}}]}]},
            "http_filters": [{"name": "envoy.filters.http.router",
                              "typed_config": {"@type": f"{kinds}.filters.http.router.v3.Router"}}]}
        chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
        if arm.client in arms.TLS_WIRES:
            chain["transport_socket"] = self._tls("Downstream", files, arms.HTTP[arm.client], False)
        speaks = {"http2_protocol_options": connect} if arm.origin in arms.HTTP2_WIRES else {"http_protocol_options": {}}
        host, origin_port = _host_and_port(origin_url)
        limits = {f"max_{what}": 16384 for what in ("connections", "pending_requests", "requests", "connection_pools")}
        cluster = {
            "name": "origin", "type": "STATIC", "connect_timeout": "5s", "circuit_breakers": {"thresholds": [limits]},
            "typed_extension_protocol_options": {
                "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                    "@type": f"{kinds}.upstreams.http.v3.HttpProtocolOptions", "explicit_http_config": speaks}},
            "load_assignment": {"cluster_name": "origin", "endpoints": [
                {"lb_endpoints": [{"endpoint": {"address": address(host, origin_port)}}]}]}}
        if arm.origin in arms.TLS_WIRES:
            cluster["transport_socket"] = self._tls("Upstream", files, arms.HTTP[arm.origin], True)
        return json.dumps({"static_resources": {
            "listeners": [{"name": "in", "address": address("127.0.0.1", port), "tcp_backlog_size": 4096,
                           "filter_chains": [chain]}],
            "clusters": [cluster]}}, indent=1)


PRODUCTS = {p.name: p for p in (Twp(), Nginx(), Haproxy(), Envoy(), Nghttpx(), Caddy())}


def named(names):
    chosen = []
    for name in names.split(","):
        if name.strip() not in PRODUCTS:
            raise Trouble(f"unknown product '{name}'; there are: {', '.join(PRODUCTS)}")
        chosen.append(PRODUCTS[name.strip()])
    return chosen

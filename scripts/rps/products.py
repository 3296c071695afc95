"""The proxies that are compared. A product is a class with `name` and the methods of Product; add it to PRODUCTS.

Equal terms for all: one worker or thread, keep-alive to the origin, no access log, TLS 1.3 with AES-128-GCM and the
same P-256 certificate, the origin's certificate verified. Beyond that each runs with its defaults.
"""
import dataclasses
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

    def possible(self, arm):
        """Whether it can carry this pair of wires at all."""
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
            argv += ["--origin-ca", tls.ca]
        return argv

    def start(self, stage, arm, origin_url, tls, cpus):
        proc = stage.start("twp-proxy", self.arguments(arm, origin_url, tls), cpus, ready=True)
        return Running(proc, proc.urls()[0])


class Peer(Product):
    """A foreign proxy: from the peers' root if it is there, else the system's own."""
    program_name = ""
    version_argument = "-v"

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
            proc = stage.start(self.name, argv + self.arguments(f"{seen}/config"), cpus)
            try:
                _wait_listening(proc, port)
                return Running(proc, f"{arms.SCHEME[arm.client]}://127.0.0.1:{port}")
            except Trouble as e:
                trouble = e
                stage.stop(proc)
        raise trouble


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

    def arguments(self, config):
        return ["-c", config, "-e", "stderr"]

    def config(self, arm, port, origin_url, files):
        listen_tls = origin_tls = ""
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
  upstream origin {{
    server {_origin_of(origin_url)};
    keepalive 256;
    keepalive_requests 1000000000;
  }}
  server {{
    listen 127.0.0.1:{port} backlog=4096{" ssl" if arm.client in arms.TLS_WIRES else ""};{listen_tls}
    location / {{
      proxy_pass {arms.SCHEME[arm.origin]}://origin;
      proxy_http_version 1.1;
      proxy_set_header Connection "";{origin_tls}
    }}
  }}
}}
"""


class Haproxy(Peer):
    name = program_name = "haproxy"

    def arguments(self, config):
        return ["-db", "-f", config]

    def config(self, arm, port, origin_url, files):
        bind = f" ssl crt {files}/both.pem" if arm.client in arms.TLS_WIRES else ""
        server = ""
        if arm.origin in arms.TLS_WIRES:
            server = f" ssl verify required ca-file {files}/ca.pem sni str(localhost) verifyhost localhost"
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


PRODUCTS = {p.name: p for p in (Twp(), Nginx(), Haproxy())}


def named(names):
    chosen = []
    for name in names.split(","):
        if name.strip() not in PRODUCTS:
            raise Trouble(f"unknown product '{name}'; there are: {', '.join(PRODUCTS)}")
        chosen.append(PRODUCTS[name.strip()])
    return chosen

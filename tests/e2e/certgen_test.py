#!/usr/bin/env python3
"""twp-certgen as people and scripts use it; TWP_BIN_DIR names the folder of the programs.

The machine's own trust stores are never touched: every test names scratch stores in the environment.
"""
import contextlib
import os
import pathlib
import re
import shutil
import socket
import ssl
import stat
import subprocess
import tempfile
import threading
import time
import unittest

BIN = pathlib.Path(os.environ.get("TWP_BIN_DIR", "build/dev/bin")).resolve() / "twp-certgen"
OPENSSL = shutil.which("openssl")


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class CertgenCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="twp-certgen-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        (self.dir / "home").mkdir()
        (self.dir / "anchors").mkdir()
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(self.dir / "home"), "LANG": "C.UTF-8",
            "TWP_SYSTEM_ANCHORS": str(self.dir / "anchors"), "TWP_SYSTEM_UPDATE": "",
            "TWP_NSS_DBS": str(self.dir / "nss"), "TWP_JAVA_CACERTS": str(self.dir / "cacerts"),
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LD_LIBRARY_PATH", "JAVA_HOME"):
            if name in os.environ:
                self.env[name] = os.environ[name]

    def certgen(self, *args, status=0, env=None, text=True):
        r = subprocess.run([str(BIN), *map(str, args)], capture_output=True, text=text, cwd=self.dir, timeout=60,
                           stdin=subprocess.DEVNULL, env={**self.env, **(env or {})})
        self.assertEqual(r.returncode, status, f"{args}: {r.stdout!r} {r.stderr!r}")
        return r

    def fails(self, *args, status, says, env=None):
        """Exit status, nothing on standard output, one line on standard error."""
        r = self.certgen(*args, status=status, env=env)
        self.assertEqual(r.stdout, "")
        self.assertRegex(r.stderr, r"\Atwp-certgen: [^\n]+\n\Z")
        self.assertIn(says, r.stderr)
        return r.stderr

    def make(self, *hosts, out="server", extra=()):
        if not (self.dir / "ca").exists():
            self.certgen("ca", "--out", "ca")
        self.certgen("leaf", "--ca", "ca", "--out", out, *extra, "--host", *hosts)

    def openssl(self, *args, status=0, **kw):
        if not OPENSSL:
            self.skipTest("openssl is not installed")
        r = subprocess.run([OPENSSL, *map(str, args)], capture_output=True, text=True, cwd=self.dir, timeout=60,
                           stdin=subprocess.DEVNULL, **kw)
        self.assertEqual(r.returncode, status, f"{args}: {r.stdout} {r.stderr}")
        return r.stdout + r.stderr


class UsageTest(CertgenCase):
    def test_help_has_examples_and_version_has_libraries(self):
        self.assertIn("Examples:\n  twp-certgen ca", self.certgen("--help").stdout)
        for command in ("ca", "leaf", "trust", "untrust", "show", "export"):
            self.assertIn("--ca" if command != "ca" else "--out", self.certgen(command, "--help").stdout)
        out = self.certgen("--version").stdout
        self.assertRegex(out, r"\Atwp-certgen \d+\.\d+\.\d+ \([0-9a-f]+|unknown")
        self.assertRegex(out, r"crypto 3\.\d+")

    def test_bad_usage_is_2(self):
        self.certgen("ca", "--out", "ca")
        for args, says in (
            ([], "subcommand is required"),
            (["frobnicate"], "there is no command 'frobnicate'; see"),
            (["leaf", "--ca", "ca"], "--host is required"),
            (["leaf", "--ca", "ca", "--host"], "--host"),
            (["leaf", "--ca", "ca", "--host", "a.test", "--days", "x"], "--days: expected a number, found 'x'; see"),
            (["leaf", "--ca", "ca", "--host", "-a.test"], "may not begin or end with '-'"),
            (["leaf", "--ca", "ca", "--host", "a" * 64 + ".test"], "a label of 64 characters; 63 are allowed"),
            (["leaf", "--ca", "ca", "--host", "a.test", "--days", "198"], "1 to 197 days"),
            (["leaf", "--ca", "ca", "--host", "1.2.3.400"], "not a valid IPv4 address"),
            (["leaf", "--ca", "ca", "--host", "a.test:443"], "without a port"),
            (["leaf", "--ca", "ca", "--host", "fi\ufb01.test"], "xn--"),
            (["leaf", "--ca", "nowhere", "--host", "a.test"], "nowhere: no CA here; make one with"),
            (["ca", "--out", "x", "--key", "dsa"], "use ecdsa-p256"),
            (["ca", "--out", "x", "--days", "0"], "1 to 36500 days"),
            (["ca", "--out", "x", "--name", "n" * 65], "64 are allowed"),
            (["trust", "--ca", "ca", "--store", "windows"], "use system, nss or java"),
            (["export", "--ca", "ca"], "--p12"),
            (["export", "--ca", "ca", "--p12", "--der"], "--p12"),
            (["export", "--p12", "--key", "x"], "--key needs --cert"),
            (["show", "ca/ca-key.pem"], "no certificate found (it holds a private key)"),
        ):
            with self.subTest(args=args):
                self.fails(*args, status=2, says=says)
        self.assertFalse((self.dir / "x").exists())

    def test_failures_are_1(self):
        self.certgen("ca", "--out", "ca")
        self.fails("show", "none.pem", status=1, says="none.pem: No such file or directory")
        self.fails("leaf", "--ca", "ca", "--host", "a.test", "--out", "no/such", status=1, says="no/such-key.pem: No such file")
        self.fails("ca", "--out", "ca/ca.pem", status=1, says="ca/ca.pem: Not a directory")

    def test_full_disk_is_1(self):
        self.certgen("ca", "--out", "ca")
        with open("/dev/full", "w") as full:
            r = subprocess.run([str(BIN), "show", "ca"], stdout=full, stderr=subprocess.PIPE, text=True, cwd=self.dir, env=self.env)
        self.assertEqual((r.returncode, r.stderr), (1, "twp-certgen: cannot write to standard output\n"))


class CaTest(CertgenCase):
    def test_where_it_lands_and_who_may_read_it(self):
        out = self.certgen("ca").stdout
        home = self.dir / "home/.local/share/twp"
        self.assertIn(str(home / "ca.pem"), out)
        self.assertIn("twp-certgen trust --ca", out)
        self.assertEqual((mode(home), mode(home / "ca-key.pem"), mode(home / "ca.pem")), (0o700, 0o600, 0o644))
        self.certgen("ca", env={"XDG_DATA_HOME": str(self.dir / "data")})
        self.assertTrue((self.dir / "data/twp/ca.pem").exists())

    def test_never_overwritten_without_force(self):
        self.certgen("ca", "--out", "ca")
        before = [(self.dir / "ca" / n).read_bytes() for n in ("ca.pem", "ca-key.pem")]
        self.fails("ca", "--out", "ca", status=1, says="there is a CA already")
        self.assertEqual(before, [(self.dir / "ca" / n).read_bytes() for n in ("ca.pem", "ca-key.pem")])
        self.certgen("ca", "--out", "ca", "--force")
        self.assertNotEqual(before[0], (self.dir / "ca/ca.pem").read_bytes())
        self.assertEqual(sorted(os.listdir(self.dir / "ca")), ["ca-key.pem", "ca.pem"])

    def test_many_at_once_make_one(self):
        runs = [subprocess.Popen([str(BIN), "ca", "--out", "ca"], cwd=self.dir, env=self.env, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL) for _ in range(8)]
        self.assertEqual(sorted(p.wait() for p in runs), [0] + [1] * 7)
        self.make("a.test")
        self.openssl("verify", "-x509_strict", "-CAfile", "ca/ca.pem", "server.pem")

    def test_key_types(self):
        for kind, says in (("ecdsa-p256", "ECDSA P-256"), ("rsa-2048", "RSA 2048"), ("rsa-4096", "RSA 4096")):
            with self.subTest(kind=kind):
                self.certgen("ca", "--out", kind, "--key", kind, "--name", "My CA")
                shown = self.certgen("show", kind).stdout
                self.assertIn(f"Key:          {says}\n", shown)
                self.assertIn("Subject:      CN=My CA,O=twp\n", shown)
                self.assertIn("CA:           yes\n", shown)
                self.certgen("leaf", "--ca", kind, "--host", "a.test", "--out", f"{kind}-leaf")
                self.openssl("verify", "-x509_strict", "-CAfile", f"{kind}/ca.pem", f"{kind}-leaf.pem")

    def test_ca_extensions(self):
        self.certgen("ca", "--out", "ca")
        text = self.openssl("x509", "-in", "ca/ca.pem", "-noout", "-text")
        self.assertRegex(text, r"Basic Constraints: critical\s+CA:TRUE, pathlen:0")
        self.assertRegex(text, r"Key Usage: critical\s+Certificate Sign, CRL Sign")
        self.assertIn("Subject Key Identifier", text)

    def test_an_exposed_key_is_pointed_out(self):
        self.certgen("ca", "--out", "ca")
        os.chmod(self.dir / "ca/ca-key.pem", 0o644)
        r = self.certgen("leaf", "--ca", "ca", "--host", "a.test")
        self.assertIn("warning: ca/ca-key.pem: other users can read the CA's key", r.stderr)


class LeafTest(CertgenCase):
    HOSTS = ("a.test", "*.w.test", "127.0.0.1", "::1", "bücher.test", "localhost")

    def test_files_names_and_strict_verification(self):
        self.make(*self.HOSTS)
        self.assertEqual((mode(self.dir / "server.pem"), mode(self.dir / "server-key.pem")), (0o644, 0o600))
        self.assertEqual((self.dir / "server.pem").read_text().count("BEGIN CERTIFICATE"), 2)
        self.assertTrue((self.dir / "server.pem").read_text().endswith((self.dir / "ca/ca.pem").read_text()))
        self.assertIn("DNS:a.test, DNS:*.w.test, IP:127.0.0.1, IP:::1, DNS:xn--bcher-kva.test, DNS:localhost",
                      self.certgen("show", "server.pem").stdout)
        strict = ["verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", "ca/ca.pem"]
        for name in ("a.test", "x.w.test", "xn--bcher-kva.test"):
            self.assertIn("OK", self.openssl(*strict, "-verify_hostname", name, "server.pem"))
        for ip in ("127.0.0.1", "::1"):
            self.assertIn("OK", self.openssl(*strict, "-verify_ip", ip, "server.pem"))
        for name in ("b.test", "x.y.w.test", "w.test"):
            self.openssl(*strict, "-verify_hostname", name, "server.pem", status=2)

    def test_life(self):
        self.make("a.test", extra=("--days", "197"))
        text = self.openssl("x509", "-in", "server.pem", "-noout", "-startdate", "-enddate")
        start, end = (ssl.cert_time_to_seconds(t) for t in re.findall(r"=(.*GMT)", text))
        self.assertEqual(end - start, 198 * 86400)
        self.assertAlmostEqual(start, time.time() - 86400, delta=60)

    def test_long_names(self):
        host = "a" * 50 + "." + "b" * 17 + ".a.test"
        self.make(host)
        text = self.openssl("x509", "-in", "server.pem", "-noout", "-subject", "-ext", "subjectAltName")
        self.assertRegex(text, r"subject=\s*\n")
        self.assertIn("DNS:" + host, text)
        self.openssl("verify", "-x509_strict", "-CAfile", "ca/ca.pem", "-verify_hostname", host, "server.pem")

    def test_authority_key_identifier_is_the_ski_of_the_ca(self):
        self.make("a.test")
        ski = self.openssl("x509", "-in", "ca/ca.pem", "-noout", "-ext", "subjectKeyIdentifier").split()[-1]
        aki = self.openssl("x509", "-in", "server.pem", "-noout", "-ext", "authorityKeyIdentifier").split()[-1]
        self.assertEqual(aki.removeprefix("keyid:"), ski)

    def test_serials_differ(self):
        serials = set()
        for i in range(5):
            self.make("a.test", out=f"s{i}")
            serials.add(self.openssl("x509", "-in", f"s{i}.pem", "-noout", "-serial").strip())
        self.assertEqual(len(serials), 5)
        self.assertTrue(all(re.fullmatch(r"serial=[4-7][0-9A-F]{31}", s) for s in serials), serials)

    def test_existing_files_stay_without_force(self):
        self.make("a.test")
        before = (self.dir / "server.pem").read_bytes(), (self.dir / "server-key.pem").read_bytes()
        self.fails("leaf", "--ca", "ca", "--host", "b.test", "--out", "server", status=1, says="server-key.pem: already exists")
        self.assertEqual(before, ((self.dir / "server.pem").read_bytes(), (self.dir / "server-key.pem").read_bytes()))
        self.make("b.test", extra=("--force",))
        self.assertIn("DNS:b.test", self.certgen("show", "server.pem").stdout)

    def test_default_file_names(self):
        self.certgen("ca", "--out", "ca")
        for host, prefix in (("a.test", "a.test"), ("*.a.test", "_wildcard.a.test"), ("::1", "__1"), ("BÜCHER.test", "xn--bcher-kva.test")):
            self.certgen("leaf", "--ca", "ca", "--host", host)
            self.assertTrue((self.dir / f"{prefix}-key.pem").exists(), prefix)

    def test_client_certificates(self):
        self.make("alice", out="alice", extra=("--client",))
        self.openssl("verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", "ca/ca.pem", "alice.pem")
        self.openssl("verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", "ca/ca.pem", "alice.pem", status=2)


class HandshakeTest(CertgenCase):
    @contextlib.contextmanager
    def s_server(self, *args):
        if not OPENSSL:
            self.skipTest("openssl is not installed")
        port = free_port()
        server = subprocess.Popen([OPENSSL, "s_server", "-accept", f"127.0.0.1:{port}", "-cert", "server.pem", "-cert_chain",
                                   "server.pem", "-key", "server-key.pem", "-www", "-quiet", *args], cwd=self.dir,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(200):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.02)
            yield port
        finally:
            server.kill()
            server.wait()

    def test_openssl_by_name_and_by_address(self):
        self.make("a.test", "127.0.0.1")
        client = ["s_client", "-CAfile", "ca/ca.pem", "-x509_strict", "-verify_return_error", "-connect"]
        with self.s_server() as port:
            for check in (["-verify_hostname", "a.test", "-servername", "a.test"], ["-verify_ip", "127.0.0.1", "-noservername"]):
                self.assertIn("Verify return code: 0 (ok)", self.openssl(*client, f"127.0.0.1:{port}", *check))
            self.openssl(*client, f"127.0.0.1:{port}", "-verify_hostname", "b.test", status=1)

    def handshake(self, name, cert="server", client=None):
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(self.dir / f"{cert}.pem", self.dir / f"{cert}-key.pem")
        context = ssl.create_default_context(cafile=str(self.dir / "ca/ca.pem"))
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        if client:
            server.verify_mode = ssl.CERT_REQUIRED
            server.load_verify_locations(self.dir / "ca/ca.pem")
            context.load_cert_chain(self.dir / f"{client}.pem", self.dir / f"{client}-key.pem")
        a, b = socket.socketpair()
        a.settimeout(10), b.settimeout(10)
        seen = {}

        def serve():
            with contextlib.suppress(OSError), server.wrap_socket(a, server_side=True) as s:
                seen["peer"] = s.getpeercert()
                s.sendall(b"hello")
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with context.wrap_socket(b, server_hostname=name) as s:
                self.assertEqual(s.recv(5), b"hello")
        finally:
            b.close()
            thread.join()
        return seen["peer"]

    def test_python_by_name_and_by_address(self):
        self.make("a.test", "*.w.test", "192.0.2.1", "2001:db8::1", "xn--bcher-kva.test")
        for name in ("a.test", "x.w.test", "192.0.2.1", "2001:db8::1", "bücher.test"):
            with self.subTest(name=name):
                self.handshake(name)
        for name in ("b.test", "x.y.w.test", "192.0.2.2"):
            with self.subTest(name=name), self.assertRaises(ssl.SSLCertVerificationError):
                self.handshake(name)

    def test_mutual_tls(self):
        self.make("a.test")
        self.make("alice", out="alice", extra=("--client",))
        peer = self.handshake("a.test", client="alice")
        self.assertEqual(peer["subject"], ((("commonName", "alice"),),))


class ShowAndExportTest(CertgenCase):
    def test_show_agrees_with_openssl(self):
        self.make("a.test")
        shown = self.certgen("show", "server.pem").stdout
        self.assertEqual(shown.count("Subject:"), 2)
        fingerprint = self.openssl("x509", "-in", "server.pem", "-noout", "-fingerprint", "-sha256").split("=")[1].strip()
        serial = self.openssl("x509", "-in", "server.pem", "-noout", "-serial").split("=")[1].strip()
        self.assertIn(fingerprint, shown)
        self.assertIn(serial, shown)
        self.assertIn("CA:           no\n", shown)

    def test_der(self):
        self.make("a.test")
        self.certgen("export", "--ca", "ca", "--der", "--out", "ca.crt")
        self.openssl("verify", "-x509_strict", "-CAfile", "ca/ca.pem", "server.pem")
        self.assertIn("CN", self.openssl("x509", "-inform", "der", "-in", "ca.crt", "-noout", "-subject"))
        self.assertEqual(self.certgen("show", "ca.crt").stdout, self.certgen("show", "ca").stdout)
        raw = self.certgen("export", "--ca", "ca", "--der", "--out", "-", text=False).stdout
        self.assertEqual(raw, (self.dir / "ca.crt").read_bytes())
        self.fails("export", "--ca", "ca", "--der", "--out", "ca.crt", status=1, says="ca.crt: already exists")

    def test_p12_with_key(self):
        self.make("a.test")
        args = ["export", "--p12", "--cert", "server.pem", "--key", "server-key.pem"]
        self.certgen(*args, "--password", "pw")
        self.certgen(*args, "--legacy", "--out", "old.p12", env={"TWP_P12_PASSWORD": "pw"})
        for name in ("server.p12", "old.p12"):
            self.assertEqual(mode(self.dir / name), 0o600)
            out = self.openssl("pkcs12", "-in", name, "-passin", "pass:pw", "-nodes")
            self.assertEqual((out.count("BEGIN CERTIFICATE"), out.count("BEGIN PRIVATE KEY")), (2, 1))
            self.openssl("pkcs12", "-in", name, "-passin", "pass:wrong", "-nodes", status=1)
        self.fails(*args[:-1], "ca/ca-key.pem", "--out", "x.p12", status=2, says="ca/ca-key.pem does not belong to server.pem")

    def test_p12_of_the_ca_has_no_key(self):
        self.certgen("ca", "--out", "ca")
        self.assertIn("(certificate only)", self.certgen("export", "--ca", "ca", "--p12").stdout)
        out = self.openssl("pkcs12", "-in", "ca.p12", "-passin", "pass:", "-nodes")
        self.assertEqual((out.count("BEGIN CERTIFICATE"), out.count("PRIVATE KEY")), (1, 0))


class TrustTest(CertgenCase):
    def setUp(self):
        super().setUp()
        self.make("a.test")

    def trust(self, store, command="trust", status=0, ca="ca"):
        return self.certgen(command, "--ca", ca, "--store", store, status=status)

    def test_system_folder(self):
        self.assertIn(": installed\n", self.trust("system").stdout)
        self.assertIn(": already there\n", self.trust("system").stdout)
        (anchor,) = (self.dir / "anchors").iterdir()
        self.assertRegex(anchor.name, r"\Atwp-[0-9a-f]{16}\.crt\Z")
        self.assertEqual(anchor.read_bytes(), (self.dir / "ca/ca.pem").read_bytes())
        self.assertIn(": removed\n", self.trust("system", "untrust").stdout)
        self.assertIn(": not there\n", self.trust("system", "untrust").stdout)
        self.assertEqual(os.listdir(self.dir / "anchors"), [])

    @unittest.skipUnless(os.path.exists("/usr/sbin/update-ca-certificates") and OPENSSL, "Debian's update-ca-certificates is not installed")
    def test_debian_tool_on_a_scratch_store(self):
        (self.dir / "etc").mkdir()
        script = self.dir / "update"
        script.write_text(f"#!/bin/sh\nexec /usr/sbin/update-ca-certificates --localcertsdir {self.dir}/anchors "
                          f"--etccertsdir {self.dir}/etc --hooksdir {self.dir}/none \"$@\"\n")
        script.chmod(0o755)
        self.env["TWP_SYSTEM_UPDATE"] = str(script)
        subprocess.run([str(script)], check=True, capture_output=True)
        before = sorted(os.listdir(self.dir / "etc")), (self.dir / "etc/ca-certificates.crt").read_bytes()
        check = ["verify", "-no-CAfile", "-no-CAstore", "-CApath", "etc", "server.pem"]
        self.openssl(*check, status=2)
        self.trust("system")
        self.assertIn("OK", self.openssl(*check))
        self.trust("system", "untrust")
        self.openssl(*check, status=2)
        self.assertEqual(before, (sorted(os.listdir(self.dir / "etc")), (self.dir / "etc/ca-certificates.crt").read_bytes()))

    def test_only_the_named_ca_is_removed(self):
        self.certgen("ca", "--out", "ca2", "--name", "Same")
        self.certgen("ca", "--out", "ca3", "--name", "Same")
        for ca in ("ca2", "ca3"):
            self.trust("system", ca=ca)
        self.trust("system", "untrust", ca="ca2")
        (left,) = (self.dir / "anchors").iterdir()
        self.assertEqual(left.read_bytes(), (self.dir / "ca3/ca.pem").read_bytes())

    def test_a_leaf_cannot_be_trusted(self):
        (self.dir / "odd").mkdir()
        shutil.copy(self.dir / "server.pem", self.dir / "odd/ca.pem")
        self.fails("trust", "--ca", "odd", "--store", "system", status=2, says="not a CA certificate")

    def test_missing_stores_are_named(self):
        self.env["TWP_SYSTEM_ANCHORS"] = str(self.dir / "nowhere")
        self.fails("trust", "--ca", "ca", "--store", "system", status=1, says="nowhere: no such folder")
        self.env["PATH"] = str(self.dir)
        for store, tool, advice in (("nss", "certutil", "libnss3-tools"), ("java", "keytool", "Java runtime")):
            if any(os.path.exists(f"{d}/{tool}") for d in ("/usr/sbin", "/sbin")):
                continue
            self.fails("trust", "--ca", "ca", "--store", store, status=1, says=advice)

    def test_every_store_that_exists_by_default(self):
        out = self.certgen("trust", "--ca", "ca", env={"PATH": str(self.dir)}).stdout
        self.assertIn("system: ", out)
        self.assertIn("nss: ", out)
        self.assertIn("java: ", out)
        self.certgen("untrust", "--ca", "ca", env={"PATH": str(self.dir)})
        self.assertEqual(os.listdir(self.dir / "anchors"), [])

    @unittest.skipUnless(shutil.which("certutil"), "certutil is not installed")
    def test_nss_database(self):
        (self.dir / "nss").mkdir()
        db = ["-d", f"sql:{self.dir}/nss"]
        subprocess.run(["certutil", "-N", *db, "--empty-password"], check=True)
        listing = lambda: subprocess.run(["certutil", "-L", *db], check=True, capture_output=True, text=True).stdout
        before = listing()
        self.assertIn("nss: installed\n", self.trust("nss").stdout)
        self.assertRegex(listing(), r"twp-[0-9a-f]{16} +C,,")
        self.assertIn("already there", self.trust("nss").stdout)
        self.trust("nss", "untrust")
        self.assertEqual(listing(), before)
        self.assertIn("not there", self.trust("nss", "untrust").stdout)

    @unittest.skipUnless(shutil.which("certutil"), "certutil is not installed")
    def test_nss_without_database(self):
        self.fails("trust", "--ca", "ca", "--store", "nss", status=1, says="no NSS database")

    @unittest.skipUnless(shutil.which("keytool"), "keytool is not installed")
    def test_java_key_store(self):
        self.assertIn("cacerts: installed\n", self.trust("java").stdout)
        keytool = ["keytool", "-list", "-keystore", str(self.dir / "cacerts"), "-storepass", "changeit"]
        listing = lambda: subprocess.run(keytool, check=True, capture_output=True, text=True).stdout
        self.assertRegex(listing(), r"twp-[0-9a-f]{16}, .*trustedCertEntry")
        self.assertIn("already there", self.trust("java").stdout)
        self.trust("java", "untrust")
        self.assertNotIn("twp-", listing())
        self.assertIn("not there", self.trust("java", "untrust").stdout)
        self.env["TWP_JAVA_STOREPASS"] = "not-this-one"
        self.assertIn("keytool error", self.trust("java", status=1).stderr)


if __name__ == "__main__":
    unittest.main()

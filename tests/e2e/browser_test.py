"""A browser (headless Chromium) loads a page with a hundred resources through the proxy over HTTP/2."""
import base64
import hashlib
import re
import subprocess
import tempfile
import unittest

import h2_peer
import tools
from tools import Certificates, needed, proxy_to

RESOURCES = 100
# The page counts what has been loaded, and says by which protocol each thing came.
PAGE = "<!doctype html><title>x</title><body>" + "".join(f'<script src="/r/{n}.js"></script>' for n in range(RESOURCES)) + """
<script>addEventListener('load', () => {
  const seen = performance.getEntriesByType('resource').filter(e => e.name.includes('/r/'));
  document.body.innerHTML = `<p id=result>${window.sum} of ${seen.length} by ${[...new Set(seen.map(e => e.nextHopProtocol))]}</p>`;
});</script>"""


def serve(call):
    path = call.headers[":path"]
    if path == "/":
        call.answer(200, PAGE.encode(), [("content-type", "text/html")])
    elif path.startswith("/r/"):
        n = int(path[3:-3])
        call.answer(200, f"window.sum = (window.sum || 0) + {n};".encode() + b" " * (n * 500), [("content-type", "text/javascript")])
    else:
        call.answer(404)


class Browser(unittest.TestCase):
    def setUp(self):
        self.tls = Certificates()
        self.addCleanup(self.tls.close)

    def pin(self):
        """What makes Chromium take our certificate and no other: the hash of its public key."""
        openssl = needed("openssl")
        key = subprocess.run([openssl, "x509", "-in", self.tls.cert, "-noout", "-pubkey"], capture_output=True, check=True).stdout
        der = subprocess.run([openssl, "pkey", "-pubin", "-outform", "der"], input=key, capture_output=True, check=True).stdout
        return base64.b64encode(hashlib.sha256(der).digest()).decode()

    def test_a_page_with_a_hundred_resources(self):
        with h2_peer.Server(self.tls.server("h2"), on_end=serve) as server, \
                tempfile.TemporaryDirectory(prefix="twp-chromium-", ignore_cleanup_errors=True) as profile:
            proxy = proxy_to("h2", server.port, self.tls)
            self.addCleanup(proxy.close)
            done = subprocess.run(
                [needed("chromium"), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--no-proxy-server", f"--user-data-dir={profile}",
                 f"--ignore-certificate-errors-spki-list={self.pin()}", "--dump-dom", f"https://localhost:{proxy.https}/"],
                capture_output=True, text=True, timeout=tools.DEADLINE * 2, check=False)
            found = re.search(r'<p id="result">([^<]*)</p>', done.stdout)
            self.assertIsNotNone(found, (done.returncode, done.stdout[-1000:], done.stderr[-1000:]))
            self.assertEqual(found.group(1), f"{sum(range(RESOURCES))} of {RESOURCES} by h2")
            self.assertGreaterEqual(len(server.calls), RESOURCES + 1)


if __name__ == "__main__":
    unittest.main()

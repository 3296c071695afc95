"""`cmake --install` into a scratch folder, and a small project that finds the package there and links the library."""
import os
import shutil
import subprocess
import tempfile
import unittest

BIN = os.environ.get("TWP_BIN_DIR", os.path.join(os.path.dirname(__file__), "../../build/dev/bin"))
BUILD = os.path.dirname(os.path.abspath(BIN))

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(user CXX)
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
find_package(twp 0.1 REQUIRED)
add_executable(user main.cc)
target_link_libraries(user PRIVATE twp::proxy twp::certs)
"""

MAIN = """#include <cstdio>

#include "certs/name.h"
#include "proxy/shard.h"

int main() {
  twp::config::Config config;
  config.listeners.push_back({"http://127.0.0.1:0", {}});
  twp::config::Cluster cluster;
  cluster.name = "a";
  cluster.origins.push_back({"http://127.0.0.1:1", 1});
  config.clusters.push_back(cluster);
  config.routes.emplace_back().cluster = "a";
  auto snapshot = twp::Snapshot::prepare(config, twp::ProcessSecrets::random());
  if (!snapshot || !twp::certs::parse_name("a.test")) return 1;
  twp::Worker worker;
  auto shard = twp::Shard::open(worker, *snapshot, nullptr, nullptr);
  if (!shard) return 2;
  std::printf("listening on port %s\\n", (*shard)->addresses().at(0).port() != 0 ? "some" : "none");
  return 0;
}
"""


def cached(name):
    with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as f:
        for line in f:
            if line.startswith(name + ":"):
                return line.split("=", 1)[1].strip()
    return ""


@unittest.skipUnless(shutil.which("cmake"), "needs cmake")
@unittest.skipUnless(os.path.exists(os.path.join(BUILD, "CMakeCache.txt")), "not in a build tree")
class Install(unittest.TestCase):
    def setUp(self):
        if cached("TWP_SANITIZE"):
            self.skipTest("a project would need the sanitizer as well")
        if cached("TWP_INSTALL") == "OFF":
            self.skipTest("configured without the install target")
        self.dir = tempfile.mkdtemp(prefix="twp-install-")
        self.addCleanup(shutil.rmtree, self.dir)

    def run_ok(self, *argv):
        # A variable that finds our libraries must not help the project to find them.
        env = {k: v for k, v in os.environ.items() if k not in ("TWP_DEPS_DIR", "CMAKE_PREFIX_PATH", "DESTDIR")}
        done = subprocess.run(argv, capture_output=True, text=True, timeout=150, cwd=self.dir, env=env)
        self.assertEqual(done.returncode, 0, f"{argv}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return done.stdout

    def test_programs_and_library(self):
        prefix = os.path.join(self.dir, "prefix")
        self.run_ok("cmake", "--install", BUILD, "--prefix", prefix)
        for name in ("twp-proxy", "twp-certgen", "twp-origin", "twp-loadgen"):
            self.assertIn(name, self.run_ok(os.path.join(prefix, "bin", name), "--version"))
        self.assertTrue(os.path.exists(os.path.join(prefix, "share/bash-completion/completions/twp-proxy.bash")))
        source = os.path.join(self.dir, "source")
        os.mkdir(source)
        for name, text in (("CMakeLists.txt", PROJECT), ("main.cc", MAIN)):
            with open(os.path.join(source, name), "w", encoding="utf-8") as f:
                f.write(text)
        build = os.path.join(self.dir, "build")
        self.run_ok("cmake", "-S", source, "-B", build, "-DCMAKE_PREFIX_PATH=" + prefix, "-DCMAKE_BUILD_TYPE=Debug",
                    "-DCMAKE_CXX_COMPILER=" + cached("CMAKE_CXX_COMPILER"))
        self.run_ok("cmake", "--build", build)
        self.assertEqual(self.run_ok(os.path.join(build, "user")), "listening on port some\n")


if __name__ == "__main__":
    unittest.main()

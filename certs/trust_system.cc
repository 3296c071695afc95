// The system's own store: a folder for additional CAs and a program that rebuilds the bundle from it.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "certs/file.h"
#include "certs/trust_store.h"

namespace twp::certs {
namespace {

struct Layout {
  const char* anchors;
  const char* tool;
  const char* install_argument;
  const char* remove_argument;
};

// The first whose folder exists is this system's. update-ca-certificates of Debian leaves dangling links to a removed
// file unless told --fresh.
constexpr std::array kLayouts = std::to_array<Layout>({
    {"/etc/pki/ca-trust/source/anchors", "update-ca-trust", "extract", "extract"},       // Fedora, RHEL
    {"/etc/pki/trust/anchors", "update-ca-certificates", "", ""},                        // openSUSE
    {"/etc/ca-certificates/trust-source/anchors", "update-ca-trust", "", ""},            // Arch
    {"/usr/local/share/ca-certificates", "update-ca-certificates", "", "--fresh"},       // Debian, Alpine
});

constexpr const char* kDebianJavaStore = "/etc/ssl/certs/java/cacerts";

struct SystemStore {
  std::string anchors;
  std::string tool;       ///< path; empty: nothing to run
  std::string tool_name;  ///< what was looked for
  std::string install_argument;
  std::string remove_argument;
  bool real = true;       ///< not given by the environment
};

SystemStore find_store() {
  SystemStore store;
  for (const Layout& layout : kLayouts) {
    if (::access(layout.anchors, F_OK) != 0) continue;
    store = {layout.anchors,          find_program(layout.tool), layout.tool,
             layout.install_argument, layout.remove_argument,    true};
    break;
  }
  if (const std::string given = env_or("TWP_SYSTEM_ANCHORS", ""); !given.empty()) {
    store.anchors = given;
    store.real = false;
    // The real update program must not run for somebody else's folder.
    store.tool = store.tool_name = env_or("TWP_SYSTEM_UPDATE", "");
  } else if (std::getenv("TWP_SYSTEM_UPDATE") != nullptr) {
    store.tool = store.tool_name = env_or("TWP_SYSTEM_UPDATE", "");
  }
  return store;
}

std::string file_of(const SystemStore& store, const Anchor& anchor) {
  return join(store.anchors, anchor.name + ".crt");
}

std::vector<StoreReport> report(Outcome outcome, std::string what) {
  return {{Store::system, outcome, std::move(what)}};
}

/// Why the store cannot be used; empty when it can.
std::vector<StoreReport> obstacle(const SystemStore& store) {
  if (store.anchors.empty()) {
    return report(Outcome::absent,
                  "no store found: install the package ca-certificates, or name its folder in TWP_SYSTEM_ANCHORS");
  }
  if (store.tool.empty() && !store.tool_name.empty()) {
    return report(Outcome::absent, store.tool_name + " is not installed: install the package ca-certificates");
  }
  if (::access(store.anchors.c_str(), F_OK) != 0) {
    return report(Outcome::absent, store.anchors + ": no such folder");
  }
  if (::access(store.anchors.c_str(), W_OK) != 0) {
    return report(Outcome::failed, store.anchors + ": no permission: run this as root (sudo), naming the CA with --ca");
  }
  return {};
}

std::string update(const SystemStore& store, const std::string& argument) {
  if (store.tool.empty()) return "";
  std::vector<std::string> argv{store.tool};
  if (!argument.empty()) argv.push_back(argument);
  const std::string said = complaint(run(argv));
  return said.empty() ? "" : store.tool + ": " + said;
}

/// Debian copies the system's CAs into Java's store, but never takes one out of it again.
void forget_in_debian_java(const SystemStore& store, const Anchor& anchor) {
  const std::string keytool = find_keytool();
  if (!store.real || keytool.empty() || ::access(kDebianJavaStore, W_OK) != 0) return;
  delete_alias(keytool, {"-keystore", kDebianJavaStore}, "debian:" + anchor.name + ".pem", kDebianJavaStore);
}

}  // namespace

std::vector<StoreReport> trust_system(const Anchor& anchor) {
  const SystemStore store = find_store();
  if (auto stop = obstacle(store); !stop.empty()) return stop;
  const std::string path = file_of(store, anchor);
  if (auto there = read_file(path); there && *there == anchor.pem) {
    return report(Outcome::already, path + ": already there");
  }
  if (auto r = write_file(path, anchor.pem, 0644, Overwrite::yes); !r) return report(Outcome::failed, r.error().what);
  if (const std::string said = update(store, store.install_argument); !said.empty()) {
    ::unlink(path.c_str());  // half installed would look installed to the next run
    return report(Outcome::failed, said);
  }
  return report(Outcome::done, path + ": installed");
}

std::vector<StoreReport> untrust_system(const Anchor& anchor) {
  const SystemStore store = find_store();
  const std::string path = file_of(store, anchor);
  if (!store.anchors.empty() && !exists(path)) return report(Outcome::already, path + ": not there");
  if (auto stop = obstacle(store); !stop.empty()) return stop;
  if (::unlink(path.c_str()) != 0) return report(Outcome::failed, path + ": " + errno_text(errno));
  const std::string said = update(store, store.remove_argument);
  forget_in_debian_java(store, anchor);
  if (!said.empty()) return report(Outcome::failed, said);
  return report(Outcome::done, path + ": removed");
}

}  // namespace twp::certs

// Java's key store of trusted CAs.
#include <unistd.h>

#include <cstdlib>

#include "certs/file.h"
#include "certs/trust_store.h"

namespace twp::certs {
namespace {

constexpr const char* kNoTool =
    "keytool is not installed: install a Java runtime (Debian: default-jre-headless), or set JAVA_HOME";

using Arguments = std::vector<std::string>;

Arguments java_store() {
  const std::string given = env_or("TWP_JAVA_CACERTS", "");
  return given.empty() ? Arguments{"-cacerts"} : Arguments{"-keystore", given};
}

std::string shown(const Arguments& store) { return store.size() > 1 ? store[1] : "Java's cacerts"; }

Result<CommandOutput> keytool_run(const std::string& keytool, const char* action, const Arguments& store,
                                  const std::string& alias, const Arguments& more = {}) {
  // -J: messages in English and quickly. A password in the environment stays out of the process list.
  Arguments argv{keytool, "-J-Duser.language=en", "-J-XX:TieredStopAtLevel=1", action, "-alias", alias};
  argv.insert(argv.end(), store.begin(), store.end());
  if (std::getenv("TWP_JAVA_STOREPASS") != nullptr) {
    argv.insert(argv.end(), {"-storepass:env", "TWP_JAVA_STOREPASS"});
  } else {
    argv.insert(argv.end(), {"-storepass", "changeit"});
  }
  argv.insert(argv.end(), more.begin(), more.end());
  return run(argv);
}

StoreReport report(Outcome outcome, std::string what) { return {Store::java, outcome, std::move(what)}; }

/// keytool exits with 1 for "no such alias" as for everything else; only its words differ.
bool says_no_such_alias(const Result<CommandOutput>& ran) {
  return ran && ran->text.find("does not exist") != std::string::npos && ran->text.find("Alias") != std::string::npos;
}

}  // namespace

std::string find_keytool() {
  if (const std::string home = env_or("JAVA_HOME", ""); !home.empty()) {
    const std::string path = join(home, "bin/keytool");
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return find_program("keytool");
}

StoreReport delete_alias(const std::string& keytool, const Arguments& store, const std::string& alias,
                         const std::string& shown_store) {
  const auto ran = keytool_run(keytool, "-delete", store, alias);
  if (says_no_such_alias(ran)) return report(Outcome::already, shown_store + ": not there");
  const std::string said = complaint(ran);
  if (!said.empty()) return report(Outcome::failed, shown_store + ": " + said);
  return report(Outcome::done, shown_store + ": removed");
}

std::vector<StoreReport> trust_java(const Anchor& anchor) {
  const std::string keytool = find_keytool();
  if (keytool.empty()) return {report(Outcome::absent, kNoTool)};
  const Arguments store = java_store();
  if (complaint(keytool_run(keytool, "-list", store, anchor.name)).empty()) {
    return {report(Outcome::already, shown(store) + ": already there")};
  }
  const TemporaryPem pem(anchor.pem);
  if (!pem.good()) return {report(Outcome::failed, "cannot write a temporary file")};
  const std::string said =
      complaint(keytool_run(keytool, "-importcert", store, anchor.name, {"-noprompt", "-file", pem.path()}));
  if (!said.empty()) return {report(Outcome::failed, shown(store) + ": " + said)};
  return {report(Outcome::done, shown(store) + ": installed")};
}

std::vector<StoreReport> untrust_java(const Anchor& anchor) {
  const std::string keytool = find_keytool();
  if (keytool.empty()) return {report(Outcome::absent, kNoTool)};
  const Arguments store = java_store();
  // keytool -delete would make an empty store at a path that has none.
  if (store.size() > 1 && !exists(store[1])) return {report(Outcome::already, shown(store) + ": no such key store")};
  return {delete_alias(keytool, store, anchor.name, shown(store))};
}

}  // namespace twp::certs

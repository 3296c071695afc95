// NSS databases: Firefox and Thunderbird profiles, and the one Chrome and Chromium share on Linux.
#include <algorithm>
#include <filesystem>

#include "certs/file.h"
#include "certs/trust_store.h"

namespace twp::certs {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNoTool =
    "certutil is not installed: install libnss3-tools (Debian, Ubuntu), nss-tools (Fedora, Alpine), "
    "mozilla-nss-tools (openSUSE) or nss (Arch)";
constexpr const char* kNoDatabase =
    "no NSS database found: start Firefox or Chrome once, or make one with "
    "certutil -N -d sql:$HOME/.pki/nssdb --empty-password";

bool is_database(const std::string& dir) { return exists(join(dir, "cert9.db")); }

void add_profiles(std::vector<std::string>& out, const std::string& parent) {
  std::error_code ec;
  for (fs::directory_iterator it(parent, ec), end; !ec && it != end; it.increment(ec)) {
    if (is_database(it->path().string())) out.push_back(it->path().string());
  }
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t colon = std::min(list.find(':', at), list.size());
    if (colon > at) out.push_back(list.substr(at, colon - at));
    at = colon + 1;
  }
  return out;
}

std::vector<std::string> find_databases() {
  if (const std::string given = env_or("TWP_NSS_DBS", ""); !given.empty()) return split(given);
  const std::string home = env_or("HOME", "");
  std::vector<std::string> out;
  if (home.empty()) return out;
  for (const char* single : {".pki/nssdb", "snap/chromium/current/.pki/nssdb"}) {
    if (is_database(join(home, single))) out.push_back(join(home, single));
  }
  for (const char* parent :
       {".mozilla/firefox", ".config/mozilla/firefox", "snap/firefox/common/.mozilla/firefox",
        ".var/app/org.mozilla.firefox/.mozilla/firefox", ".thunderbird"}) {
    add_profiles(out, join(home, parent));
  }
  std::ranges::sort(out);
  return out;
}

Result<CommandOutput> certutil(const std::string& tool, const std::string& db, std::vector<std::string> arguments) {
  std::vector<std::string> argv{tool, "-d", "sql:" + db};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return run(argv);
}

bool has_entry(const std::string& tool, const std::string& db, const Anchor& anchor) {
  return complaint(certutil(tool, db, {"-L", "-n", anchor.name})).empty();
}

StoreReport report(Outcome outcome, std::string what) { return {Store::nss, outcome, std::move(what)}; }

StoreReport install(const std::string& tool, const std::string& db, const Anchor& anchor, const std::string& pem_path) {
  if (!is_database(db)) return report(Outcome::absent, db + ": no NSS database (cert9.db) here");
  if (has_entry(tool, db, anchor)) return report(Outcome::already, db + ": already there");
  // "C,,": a trusted CA for TLS servers and for nothing else.
  const std::string said =
      complaint(certutil(tool, db, {"-A", "-n", anchor.name, "-t", "C,,", "-i", pem_path}));
  if (!said.empty()) return report(Outcome::failed, db + ": " + said);
  // NSS keeps the name a certificate is already filed under, without a word.
  if (!has_entry(tool, db, anchor)) {
    return report(Outcome::failed, db + ": this CA is already there under another name; remove that entry first");
  }
  return report(Outcome::done, db + ": installed");
}

StoreReport remove(const std::string& tool, const std::string& db, const Anchor& anchor) {
  if (!is_database(db)) return report(Outcome::absent, db + ": no NSS database (cert9.db) here");
  if (!has_entry(tool, db, anchor)) return report(Outcome::already, db + ": not there");
  const std::string said = complaint(certutil(tool, db, {"-D", "-n", anchor.name}));
  if (!said.empty()) return report(Outcome::failed, db + ": " + said);
  return report(Outcome::done, db + ": removed");
}

}  // namespace

std::vector<StoreReport> trust_nss(const Anchor& anchor) {
  const std::string tool = find_program("certutil");
  if (tool.empty()) return {report(Outcome::absent, kNoTool)};
  const TemporaryPem pem(anchor.pem);
  if (!pem.good()) return {report(Outcome::failed, "cannot write a temporary file")};
  std::vector<StoreReport> out;
  for (const std::string& db : find_databases()) out.push_back(install(tool, db, anchor, pem.path()));
  if (out.empty()) out.push_back(report(Outcome::absent, kNoDatabase));
  return out;
}

std::vector<StoreReport> untrust_nss(const Anchor& anchor) {
  const std::string tool = find_program("certutil");
  if (tool.empty()) return {report(Outcome::absent, kNoTool)};
  std::vector<StoreReport> out;
  for (const std::string& db : find_databases()) out.push_back(remove(tool, db, anchor));
  if (out.empty()) out.push_back(report(Outcome::absent, kNoDatabase));
  return out;
}

}  // namespace twp::certs

#include "certs/trust.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/write_all.h"
#include "certs/describe.h"
#include "certs/file.h"
#include "certs/pem.h"
#include "certs/trust_store.h"

namespace twp::certs {
namespace {

using StoreFunction = std::vector<StoreReport> (*)(const Anchor&);

std::vector<StoreReport> with_anchor(X509* ca, Store store, StoreFunction act) {
  auto pem = to_pem(ca);
  if (!pem) return {{store, Outcome::failed, pem.error().what}};
  return act({entry_name(ca), std::move(*pem)});
}

}  // namespace

Result<Store> parse_store(std::string_view text) {
  for (const Store store : {Store::system, Store::nss, Store::java}) {
    if (text == to_string(store)) return store;
  }
  return fail(Fault::bad_config, "store \"" + std::string(text) + "\": use system, nss or java");
}

std::string_view to_string(Store store) noexcept {
  switch (store) {
    case Store::system: return "system";
    case Store::nss: return "nss";
    case Store::java: return "java";
  }
  return "unknown";
}

std::string entry_name(X509* ca) { return "twp-" + fingerprint(ca).substr(0, 16); }

std::vector<StoreReport> trust(X509* ca, Store store) {
  switch (store) {
    case Store::system: return with_anchor(ca, store, trust_system);
    case Store::nss: return with_anchor(ca, store, trust_nss);
    case Store::java: return with_anchor(ca, store, trust_java);
  }
  return {};
}

std::vector<StoreReport> untrust(X509* ca, Store store) {
  switch (store) {
    case Store::system: return with_anchor(ca, store, untrust_system);
    case Store::nss: return with_anchor(ca, store, untrust_nss);
    case Store::java: return with_anchor(ca, store, untrust_java);
  }
  return {};
}

std::string env_or(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

std::string complaint(const Result<CommandOutput>& ran) {
  if (!ran) return ran.error().what;
  if (ran->status == 0) return "";
  return ran->last_line() + " (exit status " + std::to_string(ran->status) + ")";
}

TemporaryPem::TemporaryPem(const std::string& pem) {
  std::string path = join(env_or("TMPDIR", "/tmp"), "twp-ca-XXXXXX");
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) return;
  const int err = write_all(fd, pem);
  ::close(fd);
  if (err == 0) {
    path_ = path;
  } else {
    ::unlink(path.c_str());
  }
}

TemporaryPem::~TemporaryPem() {
  if (good()) ::unlink(path_.c_str());
}

}  // namespace twp::certs

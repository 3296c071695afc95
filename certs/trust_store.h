// The three kinds of store behind trust.h. Internal to certs/.
#pragma once

#include <string>
#include <vector>

#include "certs/command.h"
#include "certs/trust.h"

namespace twp::certs {

struct Anchor {
  std::string name;  ///< entry_name
  std::string pem;
};

std::vector<StoreReport> trust_system(const Anchor&);
std::vector<StoreReport> untrust_system(const Anchor&);
std::vector<StoreReport> trust_nss(const Anchor&);
std::vector<StoreReport> untrust_nss(const Anchor&);
std::vector<StoreReport> trust_java(const Anchor&);
std::vector<StoreReport> untrust_java(const Anchor&);

/// The path of keytool; empty when there is none.
std::string find_keytool();

/// Removes `alias` from a key store file: done, already (no such entry), or failed.
StoreReport delete_alias(const std::string& keytool, const std::vector<std::string>& store_args,
                         const std::string& alias, const std::string& shown);

/// The value of an environment variable; `otherwise` when it is unset.
std::string env_or(const char* name, const std::string& otherwise);

/// Empty when the tool ran and succeeded, else what it said.
std::string complaint(const Result<CommandOutput>&);

/// A file with `pem` that lives as long as this, for tools that read from a path.
class TemporaryPem {
 public:
  explicit TemporaryPem(const std::string& pem);
  ~TemporaryPem();
  TemporaryPem(const TemporaryPem&) = delete;
  TemporaryPem& operator=(const TemporaryPem&) = delete;
  const std::string& path() const noexcept { return path_; }
  bool good() const noexcept { return !path_.empty(); }

 private:
  std::string path_;
};

}  // namespace twp::certs

// Puts a CA into the trust stores of this machine and takes it out again.
//
// Environment, for unusual installations and for tests (which must never touch the real stores):
//   TWP_SYSTEM_ANCHORS   folder for the system's additional CAs
//   TWP_SYSTEM_UPDATE    program to run after that folder changed; empty: none
//   TWP_NSS_DBS          NSS database folders, separated by ':'
//   TWP_JAVA_CACERTS     Java key store; TWP_JAVA_STOREPASS its password (default: changeit)
//   JAVA_HOME            where to look for keytool besides PATH
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "certs/openssl_ptr.h"

namespace twp::certs {

enum class Store : std::uint8_t { system, nss, java };

/// "system", "nss" or "java"; anything else is Fault::bad_config.
Result<Store> parse_store(std::string_view text);
std::string_view to_string(Store) noexcept;

enum class Outcome : std::uint8_t {
  done,      ///< installed or removed
  already,   ///< nothing to do: it was there, or it was not
  absent,    ///< the store or its tool does not exist here
  failed,    ///< it exists, and refused
};

struct StoreReport {
  Store store = Store::system;
  Outcome outcome = Outcome::failed;
  std::string what;  ///< one line: which file or database, what happened, what to install or to do
};

/// Makes `ca` trusted for TLS servers in one store. One report for each database (NSS has many). Idempotent.
/// Runs other programs and waits for them: never on an event loop.
std::vector<StoreReport> trust(X509* ca, Store);

/// Takes out exactly `ca`: entries are named after its SHA-256 fingerprint, so no other certificate, even
/// one with the same subject, is touched.
std::vector<StoreReport> untrust(X509* ca, Store);

/// How the entry of `ca` is called in every store: "twp-" + the first 16 hex digits of its fingerprint.
std::string entry_name(X509* ca);

}  // namespace twp::certs

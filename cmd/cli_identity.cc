#include "cmd/cli_identity.h"

#include "certs/key.h"
#include "certs/leaf.h"
#include "certs/name.h"
#include "certs/pem.h"

namespace twp::cli {

Result<std::shared_ptr<const TlsIdentity>> issue_identity(const certs::Authority& ca,
                                                          const std::vector<std::string>& names,
                                                          const std::string& dir) {
  auto issuer = certs::Issuer::create(ca);
  if (!issuer) return std::unexpected(issuer.error());
  const auto parsed = certs::parse_names(names);
  if (!parsed) return std::unexpected(parsed.error());
  auto leaf = issuer->issue(*parsed);
  if (!leaf) return std::unexpected(leaf.error());
  auto leaf_pem = certs::to_pem(leaf->get());
  auto chain_pem = certs::to_pem(issuer->chain());
  auto key_pem = certs::key_to_pem(issuer->leaf_key());
  if (!leaf_pem || !chain_pem || !key_pem)
    return fail(Fault::internal, dir + ": cannot encode a certificate");
  return TlsIdentity::from_pem(*leaf_pem + *chain_pem, *key_pem, "the certificate issued by " + dir);
}

}  // namespace twp::cli

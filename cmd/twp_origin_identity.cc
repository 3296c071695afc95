#include "cmd/twp_origin_identity.h"

#include <unistd.h>

#include "certs/authority.h"
#include "certs/key.h"
#include "certs/leaf.h"
#include "certs/pem.h"

namespace twp::origin_cli {
namespace {

std::vector<std::string> host_names(const std::vector<config::Url>& listen) {
  std::vector<std::string> names{"localhost", "127.0.0.1", "::1"};
  for (const config::Url& url : listen)
    if (url.host != "0.0.0.0" && url.host != "::") names.push_back(url.host);
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) == 0 && host[0] != '\0') names.emplace_back(host);
  return names;
}

}  // namespace

Result<std::shared_ptr<const TlsIdentity>> identity_from_ca(const std::string& dir, const std::vector<config::Url>& listen) {
  auto ca = certs::Authority::load_or_create(dir, {});
  if (!ca) return std::unexpected(ca.error());
  auto issuer = certs::Issuer::create(*ca);
  if (!issuer) return std::unexpected(issuer.error());
  auto names = certs::parse_names(host_names(listen));
  if (!names) return std::unexpected(names.error());
  auto leaf = issuer->issue(*names);
  if (!leaf) return std::unexpected(leaf.error());
  auto leaf_pem = certs::to_pem(leaf->get());
  auto chain_pem = certs::to_pem(issuer->chain());
  auto key_pem = certs::key_to_pem(issuer->leaf_key());
  if (!leaf_pem || !chain_pem || !key_pem) return fail(Fault::internal, "cannot write the certificate as PEM");
  return TlsIdentity::from_pem(*leaf_pem + *chain_pem, *key_pem, "the certificate issued by " + dir);
}

}  // namespace twp::origin_cli

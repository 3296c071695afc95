#include "cmd/twp_origin_identity.h"

#include <unistd.h>

#include "certs/authority.h"
#include "cmd/cli_identity.h"

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
  return cli::issue_identity(*ca, host_names(listen), dir);
}

}  // namespace twp::origin_cli

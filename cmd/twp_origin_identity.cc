#include "cmd/twp_origin_identity.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "certs/authority.h"
#include "certs/key.h"
#include "certs/leaf.h"
#include "certs/pem.h"

namespace twp::origin_cli {
namespace {

// A directory of our own, mode 0700, gone with the object.
class ScratchDir {
 public:
  ScratchDir() {
    std::string path = (std::filesystem::temp_directory_path() / "twp-origin-XXXXXX").string();
    if (::mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;
  ~ScratchDir() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

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
  const ScratchDir scratch;
  if (scratch.path().empty()) return fail(Fault::io_error, "cannot make a temporary directory: " + errno_text(errno));
  const std::string cert = scratch.path() + "/leaf.pem";
  const std::string key = scratch.path() + "/leaf-key.pem";
  std::ofstream(cert) << *leaf_pem << *chain_pem;
  std::ofstream(key) << *key_pem;
  return TlsIdentity::load(cert, key);
}

}  // namespace twp::origin_cli

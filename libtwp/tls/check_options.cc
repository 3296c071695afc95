// The strings of TLS options, asked of OpenSSL before anything listens (declared in tls_context.h).
#include <algorithm>

#include "base/ascii.h"
#include "tls/openssl_ptr.h"
#include "tls/tls_context.h"

namespace twp {
namespace {

using tls_detail::SslCtxPtr;

/// Calls `f(element)` for every non-empty element between separators.
template <class F>
void for_each_between(std::string_view list, std::string_view separators, F&& f) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(separators), list.size());
    if (const std::string_view element = trim_ows(list.substr(0, end)); !element.empty()) f(std::string(element));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

class Checker {
 public:
  Checker() : ctx_(SSL_CTX_new(TLS_method())) {}

  void min_version(const std::string& v) {
    if (v != "1.2" && v != "1.3") wrong("min_version", v, "expected \"1.2\" or \"1.3\"");
  }
  void ciphers(const std::string& list) {
    if (list.empty()) return;
    const std::size_t before = found_.size();
    // OpenSSL skips what it does not know as long as something is left: a typing error would go unnoticed.
    for_each_between(list, ":,; ", [&](const std::string& element) {
      if (std::string_view("!-+@").find(element.front()) != std::string_view::npos) return;
      if (SSL_CTX_set_cipher_list(ctx_.get(), element.c_str()) != 1) wrong("ciphers", element, "there is no such TLS 1.2 cipher");
    });
    if (found_.size() == before && SSL_CTX_set_cipher_list(ctx_.get(), list.c_str()) != 1) wrong("ciphers", list, "leaves no TLS 1.2 cipher");
  }
  void ciphersuites(const std::string& list) {
    if (list.empty()) return;
    const std::size_t before = found_.size();
    for_each_between(list, ":", [&](const std::string& element) {
      if (SSL_CTX_set_ciphersuites(ctx_.get(), element.c_str()) != 1) wrong("ciphersuites", element, "there is no such TLS 1.3 cipher suite");
    });
    if (found_.size() == before && SSL_CTX_set_ciphersuites(ctx_.get(), list.c_str()) != 1)
      wrong("ciphersuites", list, "names no TLS 1.3 cipher suite");
  }
  void groups(const std::string& list) {
    if (!list.empty() && SSL_CTX_set1_groups_list(ctx_.get(), list.c_str()) != 1)
      wrong("groups", list, "there is no such group, or one stands twice (expected e.g. X25519:P-256)");
  }
  std::vector<TlsOptionProblem> found() {
    ERR_clear_error();
    return std::move(found_);
  }

 private:
  void wrong(std::string_view option, const std::string& value, std::string_view why) {
    found_.push_back({option, "'" + value + "': " + std::string(why)});
  }

  SslCtxPtr ctx_;
  std::vector<TlsOptionProblem> found_;
};

}  // namespace

std::vector<TlsOptionProblem> check_tls_options(const TlsServerOptions& options) {
  tls_detail::init_openssl();
  Checker c;
  c.min_version(options.min_version);
  c.ciphers(options.ciphers);
  c.ciphersuites(options.ciphersuites);
  c.groups(options.groups);
  return c.found();
}

}  // namespace twp

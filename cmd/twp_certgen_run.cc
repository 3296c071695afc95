#include "cmd/twp_certgen_run.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "certs/authority.h"
#include "certs/describe.h"
#include "certs/export.h"
#include "certs/leaf.h"
#include "certs/pem.h"
#include "certs/trust.h"

namespace twp::certgen {
namespace {

using certs::Authority;
using certs::Overwrite;

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Overwrite overwrite(const Arguments& a) { return a.force ? Overwrite::yes : Overwrite::no; }

std::string default_prefix(const certs::Name& name) {
  std::string prefix;
  for (const char c : name.text) prefix += c == '*' ? "_wildcard" : c == ':' ? "_" : std::string(1, c);
  return prefix;
}

std::string name_list(const certs::Description& d) {
  std::string out;
  for (const std::string& name : d.names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

void warn_if_exposed(const std::string& key_path) {
  if (!certs::key_file_exposed(key_path)) return;
  std::fprintf(stderr, "twp-certgen: warning: %s: other users can read the CA's key; run chmod 600 on it\n",
               key_path.c_str());
}

bool is_directory(const std::string& path) {
  std::error_code ec;
  return std::filesystem::is_directory(path, ec);
}

/// The one CA certificate that trust and untrust are about: its key is not needed.
Result<certs::X509Ptr> ca_certificate(const std::string& dir) {
  auto x = certs::load_certificate(Authority::cert_path(dir));
  if (!x || certs::describe(x->get()).ca) return x;
  return fail(Fault::bad_config, Authority::cert_path(dir) + ": not a CA certificate");
}

struct Source {
  certs::X509Chain chain;
  certs::PkeyPtr key;
  std::string stem;
};

/// What export is about: the CA without its key, or a certificate with the key that was given.
Result<Source> export_source(const Arguments& a) {
  if (a.cert.empty()) {
    auto x = ca_certificate(a.dir);
    if (!x) return std::unexpected(x.error());
    Source source;
    source.chain.push_back(std::move(*x));
    source.stem = "ca";
    return source;
  }
  const std::string stem = std::filesystem::path(a.cert).stem().string();
  if (a.key.empty()) {
    auto chain = certs::load_chain_any(a.cert);
    if (!chain) return std::unexpected(chain.error());
    return Source{std::move(*chain), nullptr, stem};
  }
  auto both = certs::load_cert_and_key(a.cert, a.key);
  if (!both) return std::unexpected(both.error());
  return Source{std::move(both->chain), std::move(both->key), stem};
}

}  // namespace

Result<int> make_ca(const Arguments& a) {
  auto type = certs::parse_key_type(a.key_type);
  if (!type) return std::unexpected(type.error());
  auto ca = Authority::create(a.dir, {a.name, a.ca_days, *type}, overwrite(a));
  if (!ca) return std::unexpected(ca.error());
  const certs::Description d = certs::describe(ca->certificate());
  print("CA:           " + d.subject + " (" + d.key + ", until " + d.not_after + ")\n" +  //
        "Certificate:  " + Authority::cert_path(a.dir) + "\n" +                           //
        "Key:          " + Authority::key_path(a.dir) + " (whoever has it can pose as any site to you)\n" +
        "SHA-256:      " + d.fingerprint + "\n" +  //
        "\n" +                                     //
        "Trust it:     twp-certgen trust --ca " + a.dir + "   (the system's store needs root)\n" +
        "              or import " + Authority::cert_path(a.dir) + " where it is needed\n" +
        "Undo that:    twp-certgen untrust --ca " + a.dir + "\n");
  return 0;
}

Result<int> make_leaf(const Arguments& a) {
  auto names = certs::parse_names(a.hosts);
  if (!names) return std::unexpected(names.error());
  auto ca = Authority::load(a.dir);
  if (!ca) return std::unexpected(ca.error());
  warn_if_exposed(Authority::key_path(a.dir));
  auto issuer = certs::Issuer::create(*ca);
  if (!issuer) return std::unexpected(issuer.error());
  certs::LeafOptions options;
  options.days = a.leaf_days;
  options.purpose = a.client ? certs::Purpose::client : certs::Purpose::server;
  auto leaf = issuer->issue(*names, options);
  if (!leaf) return std::unexpected(leaf.error());

  auto pem = certs::to_pem(leaf->get());
  if (!pem) return std::unexpected(pem.error());
  auto chain_pem = certs::to_pem(issuer->chain());
  if (!chain_pem) return std::unexpected(chain_pem.error());
  auto key_pem = certs::key_to_pem(issuer->leaf_key());
  if (!key_pem) return std::unexpected(key_pem.error());
  const std::string prefix = a.out.empty() ? default_prefix(names->front()) : a.out;
  const std::string cert_path = prefix + ".pem", key_path = prefix + "-key.pem";
  if (auto r = certs::write_pair(key_path, *key_pem, cert_path, *pem + *chain_pem, overwrite(a)); !r) {
    return std::unexpected(r.error());
  }
  const certs::Description d = certs::describe(leaf->get());
  print("Certificate:  " + cert_path + " (followed by the CA's)\n" +  //
        "Key:          " + key_path + "\n" +                           //
        "Names:        " + name_list(d) + "\n" +                       //
        "Not after:    " + d.not_after + " (" + d.validity + ")\n");
  return 0;
}

Result<int> change_trust(const Arguments& a, bool install) {
  std::vector<certs::Store> stores;
  for (const std::string& text : a.stores) {
    auto store = certs::parse_store(text);
    if (!store) return std::unexpected(store.error());
    if (std::ranges::find(stores, *store) == stores.end()) stores.push_back(*store);
  }
  const bool asked = !stores.empty();  // then a store that does not exist is a failure
  if (!asked) stores = {certs::Store::system, certs::Store::nss, certs::Store::java};
  auto ca = ca_certificate(a.dir);
  if (!ca) return std::unexpected(ca.error());

  bool any = false, failed = false;
  for (const certs::Store store : stores) {
    for (const certs::StoreReport& r : install ? certs::trust(ca->get(), store) : certs::untrust(ca->get(), store)) {
      const bool good = r.outcome == certs::Outcome::done || r.outcome == certs::Outcome::already;
      const bool bad = r.outcome == certs::Outcome::failed || (asked && !good);
      any = any || good;
      failed = failed || bad;
      std::fprintf(bad ? stderr : stdout, "%s%s: %s\n", bad ? "twp-certgen: " : "",
                   std::string(certs::to_string(store)).c_str(), r.what.c_str());
    }
  }
  if (!any && !failed) return fail(Fault::io_error, "no store was found on this machine");
  return failed ? 1 : 0;
}

Result<int> show(const Arguments& a) {
  const std::string path = a.file.empty() ? Authority::cert_path(a.dir)
                           : is_directory(a.file) ? Authority::cert_path(a.file) : a.file;
  auto chain = certs::load_chain_any(path);
  if (!chain) return std::unexpected(chain.error());
  for (std::size_t i = 0; i < chain->size(); ++i) {
    if (i != 0) print("\n");
    print(certs::to_text(certs::describe((*chain)[i].get())));
  }
  return 0;
}

Result<int> export_file(const Arguments& a) {
  if (a.cert.empty() && !a.key.empty()) return fail(Fault::bad_config, "--key needs --cert");
  if (a.der && !a.key.empty()) return fail(Fault::bad_config, "--der holds a certificate alone; leave --key out");
  auto source = export_source(a);
  if (!source) return std::unexpected(source.error());
  X509* first = source->chain.front().get();
  auto bytes = a.der ? certs::to_der(first)
                     : certs::to_p12(source->chain, source->key.get(),
                                     {a.password, certs::describe(first).subject, a.legacy});
  if (!bytes) return std::unexpected(bytes.error());
  if (a.out == "-") {
    print(*bytes);
    return 0;
  }
  const std::string path = a.out.empty() ? source->stem + (a.der ? ".der" : ".p12") : a.out;
  if (auto r = certs::write_file(path, *bytes, source->key ? 0600 : 0644, overwrite(a)); !r) {
    return std::unexpected(r.error());
  }
  print("Exported:     " + path + (source->key ? " (with the private key)\n" : " (certificate only)\n"));
  return 0;
}

}  // namespace twp::certgen

// twp-certgen: makes, trusts, shows and exports the certificate authority of twp and its leaves.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "certs/authority.h"
#include "certs/leaf.h"
#include "cmd/cli_program.h"
#include "cmd/cli_version.h"
#include "cmd/twp_certgen_run.h"

namespace {

constexpr const char* kProgram = "twp-certgen";

using twp::certgen::Arguments;

constexpr const char* kExamples = R"(Examples:
  twp-certgen ca                                      make the CA (once)
  sudo twp-certgen trust --ca ~/.local/share/twp      trust it everywhere on this machine
  twp-certgen trust --store nss                       only in Firefox and Chrome
  twp-certgen leaf --host a.test '*.a.test' 127.0.0.1 ::1 --out server
  twp-certgen leaf --host alice --client --out alice
  twp-certgen show server.pem
  twp-certgen export --der --out ca.crt               for Android and Windows
  twp-certgen export --p12 --cert server.pem --key server-key.pem

The CA is kept in $XDG_DATA_HOME/twp, or ~/.local/share/twp: ca.pem and ca-key.pem.
Exit status: 0 success, 1 failure, 2 bad usage or configuration.)";

void add_ca(CLI::App& app, Arguments& a) {
  CLI::App* c = app.add_subcommand("ca", "Make a certificate authority");
  c->add_option("--out,--ca", a.dir, "Directory for it (made with mode 0700)")->type_name("DIR")->capture_default_str();
  c->add_option("--name", a.name, "Common name, up to 64 characters (default: twp CA and 8 digits)");
  c->add_option("--days", a.ca_days, "Days it lasts")->capture_default_str();
  c->add_option("--key", a.key_type, "ecdsa-p256, rsa-2048 or rsa-4096")->type_name("TYPE")->capture_default_str();
  c->add_flag("--force", a.force, "Replace a CA that is there (untrust it first)");
}

void add_leaf(CLI::App& app, Arguments& a) {
  CLI::App* c = app.add_subcommand("leaf", "Issue a certificate; writes PREFIX.pem and PREFIX-key.pem");
  c->add_option("--ca", a.dir, "Directory of the CA")->type_name("DIR")->capture_default_str();
  c->add_option("--host", a.hosts, "Host names and IP addresses; *.a.test is allowed")
      ->type_name("NAME|IP...")
      ->required()
      ->expected(1, -1)
      ->allow_extra_args();
  c->add_option("--out", a.out, "Path without ending (default: the first name)")->type_name("PREFIX");
  c->add_option("--days", a.leaf_days, "Days it lasts, at most 197")->capture_default_str();
  c->add_flag("--client", a.client, "For a TLS client instead of a server");
  c->add_flag("--force", a.force, "Replace files that are there");
}

void add_trust(CLI::App& app, Arguments& a, const char* name, const char* what) {
  CLI::App* c = app.add_subcommand(name, what);
  c->add_option("--ca", a.dir, "Directory of the CA")->type_name("DIR")->capture_default_str();
  c->add_option("--store", a.stores, "system, nss or java; may be repeated (default: every one that exists)")
      ->type_name("STORE")
      ->allow_extra_args(false);
  c->footer("Tools: update-ca-certificates or update-ca-trust, certutil, keytool.\n"
            "Environment: TWP_SYSTEM_ANCHORS, TWP_SYSTEM_UPDATE, TWP_NSS_DBS, TWP_JAVA_CACERTS and\n"
            "TWP_JAVA_STOREPASS name other stores than the usual ones.");
}

void add_show(CLI::App& app, Arguments& a) {
  CLI::App* c = app.add_subcommand("show", "Print what is in a certificate file (PEM or DER)");
  c->add_option("FILE", a.file, "File, or directory of a CA (default: the CA)");
  c->add_option("--ca", a.dir, "Directory of the CA")->type_name("DIR")->capture_default_str();
}

void add_export(CLI::App& app, Arguments& a) {
  CLI::App* c = app.add_subcommand("export", "Write a certificate for other systems: the CA's, or one with its key");
  CLI::Option_group* format = c->add_option_group("format");
  format->add_flag("--p12", a.p12, "PKCS #12 (Windows, macOS, browsers); with the key only if --key is given");
  format->add_flag("--der", a.der, "DER, one certificate (Android, Windows, Java)");
  format->require_option(1);
  CLI::Option* cert = c->add_option("--cert", a.cert, "Certificate to export instead of the CA's")->type_name("FILE");
  c->add_option("--key", a.key, "Its private key, to go into the container")->type_name("FILE");
  c->add_option("--ca", a.dir, "Directory of the CA")->type_name("DIR")->capture_default_str()->excludes(cert);
  c->add_option("--password", a.password, "Password of the container (default: empty)")->envname("TWP_P12_PASSWORD");
  c->add_flag("--legacy", a.legacy, "3DES and SHA-1, for importers that know nothing newer");
  c->add_option("--out", a.out, "File to write; - for standard output (default: by the name)")->type_name("FILE");
  c->add_flag("--force", a.force, "Replace a file that is there");
}

twp::Result<int> dispatch(const CLI::App& app, Arguments& a) {
  if (a.dir.empty()) {
    auto dir = twp::certs::default_directory();
    if (!dir) return std::unexpected(dir.error());
    a.dir = *dir;
  }
  const std::string command = app.get_subcommands().front()->get_name();
  if (command == "ca") return twp::certgen::make_ca(a);
  if (command == "leaf") return twp::certgen::make_leaf(a);
  if (command == "show") return twp::certgen::show(a);
  if (command == "export") return twp::certgen::export_file(a);
  return twp::certgen::change_trust(a, command == "trust");
}

int run(int argc, char** argv) {
  Arguments a;
  a.dir = twp::certs::default_directory().value_or("");
  a.ca_days = twp::certs::kDefaultCaDays;
  a.leaf_days = twp::certs::kDefaultLeafDays;
  CLI::App app("Makes the certificate authority of twp, and certificates signed by it.", "twp-certgen");
  app.set_version_flag("--version", twp::cli::version_text("twp-certgen", {"crypto", "cli11"}));
  app.require_subcommand(1);
  app.footer(kExamples);
  add_ca(app, a);
  add_leaf(app, a);
  add_trust(app, a, "trust", "Make this machine trust the CA");
  add_trust(app, a, "untrust", "Take the CA out of the stores again");
  add_show(app, a);
  add_export(app, a);
  if (const auto ended = twp::cli::parse(app, argc, argv)) return *ended;
  const auto status = dispatch(app, a);
  return status ? twp::cli::finish(kProgram, *status) : twp::cli::complain(kProgram, status.error());
}

}  // namespace

int main(int argc, char** argv) { return twp::cli::guarded(kProgram, run, argc, argv); }

// The stores are scratch folders and the tools are scripts that write down how they were called: nothing
// here touches the machine's own stores.
#include "certs/trust.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>

#include "certs/command.h"
#include "certs/file.h"
#include "certs/pem.h"
#include "unit/certs/certs_support.h"

namespace twp::certs::test {
namespace {

struct Stores : WithCa {
  Stores() {
    for (const char* d : {"anchors", "bin", "nss1", "nss2", "home"}) std::filesystem::create_directory(dir / d);
    set("TWP_SYSTEM_ANCHORS", dir / "anchors");
    set("TWP_SYSTEM_UPDATE", "");
    set("TWP_NSS_DBS", dir / "nss1" + ":" + dir / "nss2");
    set("TWP_JAVA_CACERTS", dir / "cacerts");
    set("HOME", dir / "home");
    set("JAVA_HOME", "");
    set("PATH", dir / "bin");
  }
  ~Stores() {
    // Backwards: a variable that was set twice gets its first value back.
    for (auto it = saved.rbegin(); it != saved.rend(); ++it) {
      it->second ? ::setenv(it->first.c_str(), it->second->c_str(), 1) : ::unsetenv(it->first.c_str());
    }
  }
  void set(const char* name, const std::string& value) {
    const char* old = ::getenv(name);
    saved.emplace_back(name, old != nullptr ? std::optional<std::string>(old) : std::nullopt);
    ::setenv(name, value.c_str(), 1);
  }
  /// A program that appends its arguments to `log` and then does `body`.
  std::string tool(const std::string& name, const std::string& body) {
    std::ofstream(dir / "bin/" + name) << "#!/bin/sh\necho \"$*\" >> '" << dir / "log" << "'\n" << body << "\n";
    ::chmod((dir / "bin/" + name).c_str(), 0755);
    return dir / "bin/" + name;
  }
  std::string log() const { return read_file(dir / "log").value_or(""); }
  std::string anchor() const { return dir / "anchors/" + entry_name(ca.certificate()) + ".crt"; }
  StoreReport one(bool install, Store store) const {
    const auto reports = install ? trust(ca.certificate(), store) : untrust(ca.certificate(), store);
    BOOST_REQUIRE(!reports.empty());
    return reports.front();
  }
  std::vector<std::pair<std::string, std::optional<std::string>>> saved;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(trusting, Stores)

BOOST_AUTO_TEST_CASE(system_store_gets_one_file_and_loses_it_again) {
  set("TWP_SYSTEM_UPDATE", tool("update", "exit 0"));
  BOOST_CHECK(one(true, Store::system).outcome == Outcome::done);
  BOOST_TEST(must(read_file(anchor())) == must(to_pem(ca.certificate())));
  BOOST_TEST(mode_of(anchor()) == 0644u);
  BOOST_CHECK(one(true, Store::system).outcome == Outcome::already);
  std::ofstream(dir / "anchors/other.crt") << "x";
  BOOST_CHECK(one(false, Store::system).outcome == Outcome::done);
  BOOST_TEST(!exists(anchor()));
  BOOST_TEST(exists(dir / "anchors/other.crt"));
  BOOST_CHECK(one(false, Store::system).outcome == Outcome::already);
  BOOST_TEST(std::ranges::count(log(), '\n') == 2);  // only when something changed
}

BOOST_AUTO_TEST_CASE(a_failed_update_leaves_nothing_behind) {
  set("TWP_SYSTEM_UPDATE", tool("update", "echo disk full >&2; exit 3"));
  const StoreReport r = one(true, Store::system);
  BOOST_CHECK(r.outcome == Outcome::failed);
  BOOST_TEST(contains(r.what, "disk full (exit status 3)"));
  BOOST_TEST(!exists(anchor()));
}

BOOST_AUTO_TEST_CASE(a_missing_system_store_says_so) {
  set("TWP_SYSTEM_ANCHORS", dir / "nowhere");
  const StoreReport r = one(true, Store::system);
  BOOST_CHECK(r.outcome == Outcome::absent);
  BOOST_TEST(contains(r.what, "nowhere: no such folder"));
}

BOOST_AUTO_TEST_CASE(missing_tools_say_what_to_install) {
  set("PATH", dir / "empty");
  if (!find_program("certutil").empty() || !find_program("keytool").empty()) return;  // in /usr/sbin
  for (const bool install : {true, false}) {
    BOOST_CHECK(one(install, Store::nss).outcome == Outcome::absent);
    BOOST_TEST(contains(one(install, Store::nss).what, "install libnss3-tools"));
    BOOST_CHECK(one(install, Store::java).outcome == Outcome::absent);
    BOOST_TEST(contains(one(install, Store::java).what, "install a Java runtime"));
  }
}

BOOST_AUTO_TEST_CASE(each_nss_database_is_treated) {
  std::ofstream(dir / "nss1/cert9.db") << "";
  // A database whose entries are files.
  tool("certutil",
       "db=${2#sql:}\ncase $3 in\n-L) [ -e \"$db/$5\" ];;\n-A) cat \"$9\" > \"$db/$5\";;\n"
       "-D) /bin/rm \"$db/$5\";;\nesac");
  set("PATH", dir / "bin:/usr/bin:/bin");
  const auto reports = trust(ca.certificate(), Store::nss);
  BOOST_REQUIRE_EQUAL(reports.size(), 2u);
  BOOST_TEST(reports[0].what == dir / "nss1: installed");
  BOOST_CHECK(reports[1].outcome == Outcome::absent);
  BOOST_TEST(contains(reports[1].what, "no NSS database (cert9.db) here"));
  BOOST_TEST(contains(log(), "-A -n " + entry_name(ca.certificate()) + " -t C,, -i "));
  BOOST_TEST(must(read_file(dir / "nss1/" + entry_name(ca.certificate()))) == must(to_pem(ca.certificate())));
  BOOST_CHECK(one(true, Store::nss).outcome == Outcome::already);
  BOOST_CHECK(one(false, Store::nss).outcome == Outcome::done);
  BOOST_CHECK(one(false, Store::nss).outcome == Outcome::already);
}

BOOST_AUTO_TEST_CASE(firefox_and_chrome_databases_are_found) {
  ::unsetenv("TWP_NSS_DBS");
  tool("certutil", "exit 0");
  const StoreReport none = one(true, Store::nss);
  BOOST_CHECK(none.outcome == Outcome::absent);
  BOOST_TEST(contains(none.what, "no NSS database found"));
  for (const char* d : {".pki/nssdb", ".mozilla/firefox/abc.default", "snap/firefox/common/.mozilla/firefox/x"}) {
    std::filesystem::create_directories(dir / "home/" + d);
    std::ofstream(dir / "home/" + d + "/cert9.db") << "";
  }
  std::filesystem::create_directories(dir / "home/.mozilla/firefox/Crash Reports");
  BOOST_TEST(trust(ca.certificate(), Store::nss).size() == 3u);
}

BOOST_AUTO_TEST_CASE(java_store_is_asked_before_it_is_changed) {
  tool("keytool",
       "s='" + dir / "cacerts" + "'\ncase \"$*\" in\n*-list*) [ -e \"$s\" ];;\n*-importcert*) : > \"$s\";;\n"
       "*-delete*) [ -e \"$s\" ] && /bin/rm \"$s\";;\nesac");
  BOOST_CHECK(one(true, Store::java).outcome == Outcome::done);
  BOOST_TEST(contains(log(), "-keystore " + dir / "cacerts"));
  BOOST_TEST(contains(log(), "-storepass changeit"));
  BOOST_CHECK(one(true, Store::java).outcome == Outcome::already);
  BOOST_CHECK(one(false, Store::java).outcome == Outcome::done);
  BOOST_CHECK(one(false, Store::java).outcome == Outcome::already);
  tool("keytool", "echo 'keytool error: java.io.IOException: bad password'\nexit 1");
  set("TWP_JAVA_STOREPASS", "sesame");
  const StoreReport r = one(true, Store::java);
  BOOST_CHECK(r.outcome == Outcome::failed);
  BOOST_TEST(contains(r.what, "bad password"));
  BOOST_TEST(!contains(log(), "sesame"));  // not on a command line that others can read
}

BOOST_AUTO_TEST_CASE(store_names) {
  for (const Store s : {Store::system, Store::nss, Store::java}) BOOST_CHECK(must(parse_store(to_string(s))) == s);
  BOOST_TEST(contains(error_of(parse_store("windows")), "use system, nss or java"));
}

BOOST_AUTO_TEST_CASE(commands_report_status_and_words) {
  const std::string noisy =
      tool("noisy", "i=0; while [ $i -lt 3000 ]; do echo 01234567890123456789012345678901234567; i=$((i+1)); done; exit 7");
  CommandOutput out = must(run({noisy}));
  BOOST_TEST(out.status == 7);
  BOOST_TEST(out.text.size() < 80000u);
  out = must(run({tool("killed", "kill -9 $$")}));
  BOOST_TEST(out.status == 128 + 9);
  BOOST_TEST(out.last_line() == "no message");
  out = must(run({tool("asks", "read x && echo got || echo eof\necho last >&2\necho")}));
  BOOST_TEST(out.last_line() == "last");
  BOOST_TEST(contains(out.text, "eof"));
  BOOST_TEST(contains(error_of(run({"/nonexistent/tool"})), "/nonexistent/tool: cannot be started: "));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace twp::certs::test

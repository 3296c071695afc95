#include "proxy/router.h"

#include <boost/test/unit_test.hpp>

#include "config/load.h"

using namespace twp;

namespace {

// Clusters c0..c4 and the given routes.
config::Config config_with(const std::string& routes) {
  std::string text = "[[listener]]\nurl = 'http://127.0.0.1:0'\n";
  for (int i = 0; i < 5; ++i)
    text += "[[cluster]]\nname = 'c" + std::to_string(i) + "'\norigin = [{url = 'http://127.0.0.1:1'}]\n";
  const config::Loaded l = config::load_text(text + routes, "test");
  BOOST_TEST(l.errors == std::vector<std::string>{}, boost::test_tools::per_element());
  return l.config;
}

struct Request {
  Method method = Method::get;
  std::string authority, path;
  std::vector<std::pair<std::string, std::string>> fields;
};

// Index of the cluster; -1: no route.
int route(const Router& router, const Request& r) {
  Head head = Head::request(r.method, "http", r.authority, r.path);
  for (const auto& [name, value] : r.fields) head.fields.add(name, value);
  const RouteTarget* t = router.find(head);
  return t == nullptr ? -1 : static_cast<int>(t->cluster);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(router)

BOOST_AUTO_TEST_CASE(hosts) {
  const auto c = config_with(R"(
[[route]]
hosts = ["a.test", "[::1]", "127.0.0.1"]
cluster = "c0"
[[route]]
hosts = ["*.a.test"]
cluster = "c1"
[[route]]
hosts = ["DOT.test."]
cluster = "c2"
)");
  const Router r(c);
  const std::vector<std::pair<std::string, int>> cases = {
      {"a.test", 0},       {"A.TEST", 0},         {"a.test:8080", 0},  {"a.test.", 0},    {"a.test.:80", 0},
      {"[::1]", 0},        {"[::1]:443", 0},      {"127.0.0.1:1", 0},  {"b.a.test", 1},   {"c.b.A.test:1", 1},
      {"x.a.test.", 1},    {".a.test", -1},       {"ba.test", -1},     {"a.testx", -1},   {"a.tes", -1},
      {"", -1},            {"dot.TEST", 2},       {"xdot.test", -1},   {"[::1", 0},       {"[", -1},
      {".", -1},           {"a.test..", -1},
  };
  for (const auto& [authority, cluster] : cases) BOOST_TEST(route(r, {.authority = authority, .path = "/"}) == cluster, authority);
}

BOOST_AUTO_TEST_CASE(paths) {
  const auto c = config_with(R"(
[[route]]
path_exact = "/exact"
cluster = "c0"
[[route]]
path_prefix = "/api/"
cluster = "c1"
[[route]]
path_prefix = "/plain"
cluster = "c2"
)");
  const Router r(c);
  const std::vector<std::pair<std::string, int>> cases = {
      {"/exact", 0},  {"/exact?q=/x", 0}, {"/exact/", -1},  {"/Exact", -1},         {"/api/", 1},      {"/api/v1?x", 1},
      {"/api", -1},   {"/apis", -1},      {"/plain", 2},    {"/plainer", 2},        {"/plain/x", 2},   {"/", -1},
      {"", -1},       {"/x?/exact", -1},  {"?/exact", -1},  {"/%65xact", -1},       {"/api/../exact", 1}, {"*", -1},
  };
  for (const auto& [path, cluster] : cases) BOOST_TEST(route(r, {.authority = "h", .path = path}) == cluster, path);
}

BOOST_AUTO_TEST_CASE(methods_and_fields) {
  const auto c = config_with(R"(
[[route]]
methods = ["POST", "PURGE"]
cluster = "c0"
[[route]]
header = [{name = "X-Tenant", value = "blue"}, {name = "x-debug"}]
cluster = "c1"
[[route]]
header = [{name = "accept", value = "text/html"}]
cluster = "c2"
)");
  const Router r(c);
  BOOST_TEST(route(r, {.method = Method::post, .authority = "h", .path = "/"}) == 0);
  BOOST_TEST(route(r, {.authority = "h", .path = "/"}) == -1);
  Head purge = Head::request(Method::other, "http", "h", "/");
  purge.method_name = "PURGE";
  BOOST_REQUIRE(r.find(purge) != nullptr);
  BOOST_TEST(r.find(purge)->cluster == 0);
  purge.method_name = "purge";
  BOOST_TEST((r.find(purge) == nullptr));

  using F = std::vector<std::pair<std::string, std::string>>;
  BOOST_TEST(route(r, {.authority = "h", .path = "/", .fields = F{{"x-tenant", "blue"}, {"X-Debug", ""}}}) == 1);
  BOOST_TEST(route(r, {.authority = "h", .path = "/", .fields = F{{"x-tenant", "red"}, {"x-tenant", "blue"}, {"x-debug", "1"}}}) == 1);
  BOOST_TEST(route(r, {.authority = "h", .path = "/", .fields = F{{"x-tenant", "Blue"}, {"x-debug", "1"}}}) == -1);
  BOOST_TEST(route(r, {.authority = "h", .path = "/", .fields = F{{"x-tenant", "blue"}}}) == -1);
  BOOST_TEST(route(r, {.authority = "h", .path = "/", .fields = F{{"Accept", "text/html"}}}) == 2);
}

BOOST_AUTO_TEST_CASE(first_match_wins_and_the_target_says_which) {
  const auto c = config_with(R"(
[[route]]
hosts = ["a.test"]
path_prefix = "/x"
cluster = "c4"
preserve_host = false
[[route]]
hosts = ["a.test"]
cluster = "c3"
[[route]]
cluster = "c2"
)");
  const Router r(c);
  BOOST_TEST(route(r, {.authority = "a.test", .path = "/x"}) == 4);
  BOOST_TEST(route(r, {.authority = "a.test", .path = "/y"}) == 3);
  BOOST_TEST(route(r, {.authority = "b.test", .path = "/x"}) == 2);
  const Head head = Head::request(Method::get, "http", "a.test", "/x");
  BOOST_TEST(!r.find(head)->preserve_host);
  BOOST_TEST((r.find(head)->route == &c.routes[0]));
}

BOOST_AUTO_TEST_SUITE_END()

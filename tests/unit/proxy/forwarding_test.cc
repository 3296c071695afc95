#include "proxy/forwarding.h"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace twp;

namespace {

PeerInfo client_at(const char* ip, bool tls = false) {
  PeerInfo p;
  p.remote = *Address::parse(ip, 50000);
  p.local = *Address::parse("198.51.100.1", 8443);
  p.tls = tls;
  return p;
}

Head get(std::vector<std::pair<std::string, std::string>> fields = {}) {
  Head h = Head::request(Method::get, "http", "a.test:80", "/");
  for (const auto& [name, value] : fields) h.fields.add(name, value);
  return h;
}

config::Forwarding settings(config::ForwardedStyle style, std::vector<std::string> trusted = {}) {
  config::Forwarding f;
  f.style = style;
  f.trusted = std::move(trusted);
  return f;
}

std::string all(const Head& h, std::string_view name) {
  std::string out;
  for (std::size_t i = h.fields.find(name); i != HeaderBlock::npos; i = h.fields.find(name, i + 1))
    out += (out.empty() ? "" : "|") + std::string(h.fields[i].value);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(forwarding)

BOOST_AUTO_TEST_CASE(an_untrusted_senders_fields_are_replaced) {
  const Forwarding f(settings(config::ForwardedStyle::x_forwarded), "1");
  Head h = get({{"X-Forwarded-For", "6.6.6.6"}, {"x-forwarded-for", "7.7.7.7"}, {"X-Forwarded-Proto", "https"},
                {"X-Forwarded-Host", "evil.test"}, {"X-Forwarded-Port", "1"}, {"Forwarded", "for=6.6.6.6"},
                {"X-Real-IP", "6.6.6.6"}, {"X-Other", "kept"}});
  f.edit_request(h, client_at("192.0.2.9"));
  BOOST_TEST(all(h, "x-forwarded-for") == "192.0.2.9");
  BOOST_TEST(all(h, "x-forwarded-proto") == "http");
  BOOST_TEST(all(h, "x-forwarded-host") == "a.test:80");
  BOOST_TEST(all(h, "x-forwarded-port") == "8443");
  BOOST_TEST(all(h, "forwarded") == "");
  BOOST_TEST(all(h, "x-real-ip") == "");
  BOOST_TEST(all(h, "x-other") == "kept");
}

BOOST_AUTO_TEST_CASE(a_trusted_senders_fields_are_kept_and_appended_to) {
  const Forwarding f(settings(config::ForwardedStyle::both, {"192.0.2.0/24"}), "1");
  Head h = get({{"X-Forwarded-For", "6.6.6.6"}, {"X-Forwarded-For", "7.7.7.7, 8.8.8.8"}, {"X-Forwarded-Proto", "https"},
                {"X-Forwarded-Host", "front.test"}, {"Forwarded", "for=6.6.6.6"}});
  f.edit_request(h, client_at("192.0.2.9"));
  BOOST_TEST(all(h, "x-forwarded-for") == "6.6.6.6, 7.7.7.7, 8.8.8.8, 192.0.2.9");
  BOOST_TEST(all(h, "x-forwarded-proto") == "https");
  BOOST_TEST(all(h, "x-forwarded-host") == "front.test");
  BOOST_TEST(all(h, "forwarded") == "for=6.6.6.6, for=192.0.2.9;host=\"a.test:80\";proto=http");

  Head other = get({{"X-Forwarded-For", "6.6.6.6"}});
  f.edit_request(other, client_at("192.0.3.9"));
  BOOST_TEST(all(other, "x-forwarded-for") == "192.0.3.9");
}

BOOST_AUTO_TEST_CASE(forwarded_quotes_what_needs_it) {
  const Forwarding f(settings(config::ForwardedStyle::forwarded), "1");
  Head h = get();
  h.set_authority("a.test");
  f.edit_request(h, client_at("2001:db8::17", true));
  BOOST_TEST(all(h, "forwarded") == "for=\"[2001:db8::17]\";host=a.test;proto=https");
  BOOST_TEST(all(h, "x-forwarded-for") == "");
  Head none = get();
  none.authority = {};
  f.edit_request(none, client_at("192.0.2.9"));
  BOOST_TEST(all(none, "forwarded") == "for=192.0.2.9;proto=http");
}

BOOST_AUTO_TEST_CASE(style_none_leaves_them_alone) {
  const Forwarding f(settings(config::ForwardedStyle::none), "1");
  Head h = get({{"X-Forwarded-For", "6.6.6.6"}});
  f.edit_request(h, client_at("192.0.2.9"));
  BOOST_TEST(all(h, "x-forwarded-for") == "6.6.6.6");
}

BOOST_AUTO_TEST_CASE(what_the_client_lists_in_connection_cannot_remove_ours) {
  const Forwarding f(settings(config::ForwardedStyle::x_forwarded), "1");
  Head h = get({{"Connection", "close, X-Forwarded-For, X-Forwarded-Host"}, {"X-Forwarded-For", "6.6.6.6"}});
  remove_hop_by_hop(h.fields);
  f.edit_request(h, client_at("192.0.2.9"));
  BOOST_TEST(all(h, "x-forwarded-for") == "192.0.2.9");
  BOOST_TEST(all(h, "x-forwarded-host") == "a.test:80");
}

BOOST_AUTO_TEST_CASE(via_names_the_version_received_and_is_appended) {
  const Forwarding f(settings(config::ForwardedStyle::none), "1a2b");
  for (const auto& [version, text] : {std::pair{HttpVersion{1, 0}, "1.0"}, {HttpVersion{1, 1}, "1.1"},
                                      {HttpVersion{2, 0}, "2.0"}, {HttpVersion{3, 0}, "3.0"}}) {
    Head h = get({{"Via", "1.1 before"}});
    h.version = version;
    f.edit_request(h, client_at("192.0.2.9"));
    BOOST_TEST(all(h, "via") == "1.1 before|" + std::string(text) + " twp-1a2b");
  }
}

BOOST_AUTO_TEST_CASE(loops_are_seen_by_our_own_name_only) {
  const Forwarding f(settings(config::ForwardedStyle::none), "1a2b");
  BOOST_TEST(!f.is_loop(get()));
  BOOST_TEST(!f.is_loop(get({{"Via", "1.1 twp-ffff"}})));
  BOOST_TEST(!f.is_loop(get({{"Via", "1.1 other (twp-1a2b)"}})));
  BOOST_TEST(f.is_loop(get({{"Via", "1.1 twp-1a2b"}})));
  BOOST_TEST(f.is_loop(get({{"Via", "1.1 x"}, {"Via", "2.0 y, HTTP/1.1 \t TWP-1A2B (c, d)"}})));
  config::Forwarding off = settings(config::ForwardedStyle::none);
  off.detect_loops = false;
  BOOST_TEST(!Forwarding(off, "1a2b").is_loop(get({{"Via", "1.1 twp-1a2b"}})));
  off.via = "";
  Head h = get();
  Forwarding(off, "1a2b").edit_request(h, client_at("192.0.2.9"));
  BOOST_TEST(all(h, "via") == "");
}

BOOST_AUTO_TEST_CASE(proxy_credentials_stop_here) {
  const Forwarding f(settings(config::ForwardedStyle::none), "1");
  Head h = get({{"Proxy-Authorization", "Basic x"}, {"Authorization", "Bearer y"}});
  f.edit_request(h, client_at("192.0.2.9"));
  BOOST_TEST(all(h, "proxy-authorization") == "");
  BOOST_TEST(all(h, "authorization") == "Bearer y");
}

BOOST_AUTO_TEST_CASE(date_is_made_once_a_second) {
  DateCache dates;
  const std::uint64_t at = 784111777'000'000'000u;
  BOOST_TEST(dates.at(at) == "Sun, 06 Nov 1994 08:49:37 GMT");
  const char* const text = dates.at(at + 999'999'999u).data();
  BOOST_TEST(dates.at(at).data() == text);
  BOOST_TEST(dates.at(at + 1'000'000'000u) == "Sun, 06 Nov 1994 08:49:38 GMT");
}

BOOST_AUTO_TEST_CASE(ip_text) {
  std::array<char, 64> b;
  for (const char* ip : {"0.0.0.0", "9.10.99.100", "255.255.255.255", "::1", "2001:db8::17"})
    BOOST_TEST(write_ip(*Address::parse(ip, 1), b) == ip);
  BOOST_TEST(write_ip(*Address::parse("::ffff:192.0.2.1", 1), b) == "192.0.2.1");
}

BOOST_AUTO_TEST_SUITE_END()

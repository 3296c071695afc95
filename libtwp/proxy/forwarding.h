// Forwarding: what a proxy changes in the heads it passes on (RFC 9110 §7.6, RFC 7239).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "http/head.h"
#include "net/address.h"
#include "net/transport.h"

namespace twp {

/// The Date of now, built at most once a second.
class DateCache {
 public:
  /// IMF-fixdate of `wall` (ns since 1970). The view is valid until the next call.
  std::string_view at(std::uint64_t wall) {
    const std::uint64_t second = wall / 1'000'000'000u;
    if (second != second_) {
      second_ = second;
      text_ = http_date(wall);
    }
    return text_;
  }

 private:
  std::uint64_t second_ = ~std::uint64_t{0};
  std::string text_;
};

/// Immutable; outlives every head it has edited (fields it adds are views of its own strings).
class Forwarding {
 public:
  /// `config` was validated. `instance` tells this process from others with the same pseudonym.
  Forwarding(const config::Forwarding& config, std::string_view instance);

  /// The request has been through this process before: our own name is in its Via (RFC 9110 §7.6.3).
  bool is_loop(const Head& request) const noexcept;
  /// Via, X-Forwarded-*, Forwarded, Proxy-Authorization of a request that came from `client`.
  /// An untrusted sender's forwarding fields are replaced, a trusted one's are kept and appended to.
  /// Hop-by-hop fields went when the head was decoded, so nothing a sender lists in Connection removes ours.
  void edit_request(Head& head, const PeerInfo& client) const;
  /// Via of an interim or final response; Date of a final one that has none (RFC 9110 §6.6.1).
  void edit_response(Head& head, DateCache& dates, std::uint64_t wall) const;

  /// "twp-1a2b3c4d", our name in Via; empty: none.
  std::string_view received_by() const noexcept { return received_by_; }

 private:
  void add_via(Head& head) const;
  bool trusts(const Address& sender) const noexcept;
  void add_x_forwarded(Head& head, const PeerInfo& client, std::string_view ip) const;
  void add_forwarded(Head& head, const PeerInfo& client, std::string_view ip) const;

  bool x_forwarded_ = true;
  bool forwarded_ = false;
  bool detect_loops_ = true;
  std::vector<Cidr> trusted_;
  std::string received_by_;
  std::array<std::string, 4> via_;  ///< complete values for HTTP/1.0, 1.1, 2, 3
};

/// Text of the IP of `a` ("192.0.2.1", "2001:db8::1"; IPv4-mapped as IPv4), written into `out`.
std::string_view write_ip(const Address& a, std::array<char, 64>& out) noexcept;

}  // namespace twp

// What the files of QuicConnection share. ngtcp2's types meet ours here.
#pragma once

#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_ossl.h>

#include <algorithm>
#include <utility>

#include "h3/quic_connection.h"

namespace twp {

/// ngtcp2 says "no time" with the largest value, a worker with 0.
constexpr ngtcp2_tstamp kNoTime = UINT64_MAX;

inline ngtcp2_cid to_cid(const QuicId& id) noexcept {
  ngtcp2_cid c;
  ngtcp2_cid_init(&c, id.octets.data(), id.size);
  return c;
}
inline QuicId to_id(const ngtcp2_cid& c) noexcept { return QuicId(std::span(c.data, c.datalen)); }

/// A path as ngtcp2 takes it; borrows `from`, which it does not change.
inline ngtcp2_path to_path(const QuicPath& from) noexcept {
  const auto address = [](const Address& a) {
    return ngtcp2_addr{const_cast<sockaddr*>(a.sa()), a.length()};
  };
  return {address(from.local), address(from.remote), nullptr};
}
inline QuicPath from_path(const ngtcp2_path& p) noexcept {
  return {Address::from_sockaddr(p.local.addr), Address::from_sockaddr(p.remote.addr)};
}

/// How the TLS stack finds the connection again; lives as long as the SSL.
struct QuicConnection::Ref {
  ngtcp2_crypto_conn_ref native;
};

/// What ngtcp2 calls.
struct QuicCallbacks {
  struct On;
  static ngtcp2_callbacks make(bool server) noexcept;
  static void random(std::uint8_t* into, std::size_t n) noexcept;
};

}  // namespace twp

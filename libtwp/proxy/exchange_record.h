// What is known when an exchange is over: for the access log and for tests.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "base/fault.h"
#include "http/head.h"
#include "net/transport.h"

namespace twp {

/// Views and pointers are valid during the call only.
struct ExchangeRecord {
  std::uint64_t wall = 0;          ///< ns since 1970 when the request head arrived
  Instant started = kNever;        ///< request head arrived
  Instant request_sent = kNever;   ///< request head given to an origin connection; kNever: never
  Instant response = kNever;       ///< final response head; kNever: none
  Instant ended = kNever;

  const Address* client = nullptr;  ///< remote address of the client
  const Address* local = nullptr;   ///< where it connected to
  bool tls = false;                 ///< the client's leg
  bool tls_resumed = false;
  std::string_view tls_version, cipher, sni, client_subject;  ///< of the client's leg; empty: none
  HttpVersion client_version;
  std::string_view method;
  std::string_view scheme;
  std::string_view authority;      ///< as the client sent it
  std::string_view path;           ///< octets untouched: escape before writing
  std::string_view protocol;       ///< "websocket" ...; empty otherwise
  std::string_view user_agent;
  std::string_view referer;

  std::uint16_t status = 0;        ///< sent to the client; 0: none
  Fault fault = Fault::none;       ///< why it ended other than well
  bool generated = false;          ///< the response was made by the proxy
  std::string_view detail;         ///< one line about the fault; may be empty
  std::uint64_t request_octets = 0;   ///< of body
  std::uint64_t response_octets = 0;  ///< of body
  bool tunnel = false;

  std::string_view cluster;        ///< empty: no route
  std::string_view origin;         ///< "host:port" of the origin tried last; empty: none
  const Address* origin_address = nullptr;  ///< peer of the origin connection; null: none
  HttpVersion origin_version;
  bool reused = false;             ///< the origin connection had carried a request before
  bool replayed = false;           ///< sent twice
};

class ExchangeObserver {
 public:
  virtual void on_exchange_done(const ExchangeRecord& record) noexcept = 0;
  /// A request was refused by the codec before it became an exchange.
  virtual void on_rejected(const PeerInfo& client, Fault why) noexcept = 0;

 protected:
  ~ExchangeObserver() = default;
};

}  // namespace twp

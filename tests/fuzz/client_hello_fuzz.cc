// The first octets of a TLS connection. Oracle: an answer given for a part stays the answer for more, and a hello means the
// same however it is spread over records.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tls/client_hello.h"

namespace {

using twp::ClientHello;
using Status = ClientHello::Status;

ClientHello peek(std::string_view octets) { return twp::peek_client_hello(std::as_bytes(std::span(octets))); }

bool same(const ClientHello& a, const ClientHello& b) {
  return a.status == b.status && a.sni == b.sni && a.alpn == b.alpn && a.versions == b.versions;
}

void check(const ClientHello& h) {
  if (h.status != Status::complete) {
    if (!h.sni.empty() || !h.alpn.empty() || !h.versions.empty()) std::abort();
    return;
  }
  if (h.sni.size() > 255 || h.sni.find('\0') != std::string::npos) std::abort();
  for (const std::string& name : h.alpn)
    if (name.empty() || name.size() > 255) std::abort();
}

/// The same handshake octets in records of at most `n`. `octets` are whole records, or the last is cut.
std::string refragment(std::string_view octets, std::size_t n) {
  std::string message;
  while (octets.size() >= 5) {
    const std::size_t length = static_cast<unsigned char>(octets[3]) * 256u + static_cast<unsigned char>(octets[4]);
    message += octets.substr(5, length);
    octets.remove_prefix(std::min(octets.size(), 5 + length));
  }
  // What is behind the hello is not its business.
  std::size_t need = 4;
  for (std::size_t i = 1, v = 0; i < 4 && message.size() >= 4; ++i) {
    v = v << 8 | static_cast<unsigned char>(message[i]);
    if (i == 3) need += v;
  }
  if (message.size() < need) std::abort();
  message.resize(need);
  std::string out;
  for (std::size_t i = 0; i < message.size(); i += n) {
    const std::string part = message.substr(i, n);
    out += {22, 3, 1, static_cast<char>(part.size() >> 8), static_cast<char>(part.size() & 255)};
    out += part;
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view octets(reinterpret_cast<const char*>(data), size);
  const ClientHello whole = peek(octets);
  check(whole);
  const std::size_t step = size / 64 + 1;
  for (std::size_t n = 0; n < size; n += step) {
    const ClientHello part = peek(octets.substr(0, n));
    check(part);
    if (part.status != Status::incomplete && !same(part, whole)) std::abort();
  }
  if (whole.status != Status::complete) return 0;
  for (const std::size_t n : {1u, 3u, 50u, 16384u})
    if (!same(peek(refragment(octets, n)), whole)) std::abort();
  return 0;
}

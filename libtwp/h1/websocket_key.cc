#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>

#include "h1/translate.h"

namespace twp::h1 {
namespace {

std::string base64(const unsigned char* data, std::size_t n) {
  std::string out((n + 2) / 3 * 4 + 1, '\0');
  const int written = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), data, static_cast<int>(n));
  out.resize(static_cast<std::size_t>(written));
  return out;
}

}  // namespace

std::string websocket_accept(std::string_view key) {
  std::string text(key);
  text += "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";  // fixed by RFC 6455 §1.3
  std::array<unsigned char, 20> digest{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  return base64(digest.data(), digest.size());
}

std::string websocket_key() {
  std::array<unsigned char, 16> nonce{};
  RAND_bytes(nonce.data(), static_cast<int>(nonce.size()));
  return base64(nonce.data(), nonce.size());
}

}  // namespace twp::h1

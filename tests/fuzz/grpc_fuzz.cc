// The reader of gRPC messages against a plain reading of the whole body, in pieces that the input chooses.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "origin/grpc.h"

namespace {

using twp::grpc::Status;

constexpr std::uint64_t kMost = 300;  // octets of a message

struct Messages final : twp::grpc::ReaderEvents {
  void on_message(std::span<const std::byte> octets, bool end) noexcept override {
    if (octets.empty() && (!end || begun)) std::abort();
    if (!begun) all.emplace_back();
    begun = !end;
    all.back().append(reinterpret_cast<const char*>(octets.data()), octets.size());
  }
  std::vector<std::string> all;
  bool begun = false;
};

struct Expected {
  std::vector<std::string> all;  // the last one may be half
  std::uint64_t whole = 0;
  Status status = Status::ok;
  bool between = true;
};

Expected read_all(std::string_view body) {
  Expected e;
  while (!body.empty()) {
    e.between = false;
    if (body.size() < twp::grpc::kPrefix) return e;
    std::uint64_t n = 0;
    for (std::size_t i = 1; i < twp::grpc::kPrefix; ++i) n = n << 8 | static_cast<std::uint8_t>(body[i]);
    if (body[0] != 0) e.status = body[0] == 1 ? Status::unimplemented : Status::internal;
    else if (n > kMost) e.status = Status::resource_exhausted;
    if (e.status != Status::ok) return e;
    body.remove_prefix(twp::grpc::kPrefix);
    if (n != 0 && body.empty()) return e;
    e.all.emplace_back(body.substr(0, n));
    if (n > body.size()) return e;
    body.remove_prefix(n);
    ++e.whole;
    e.between = true;
  }
  return e;
}

void check(std::string_view body, std::uint8_t piece) {
  const Expected want = read_all(body);
  twp::grpc::Reader reader;
  Messages got;
  Status status = Status::ok;
  const std::size_t step = piece == 0 ? body.size() : piece;
  for (std::string_view left = body; !left.empty(); left.remove_prefix(std::min(step, left.size()))) {
    const Status now = reader.feed(std::as_bytes(std::span(left.substr(0, step))), got, kMost);
    if (status != Status::ok && now != status) std::abort();  // the first defect, and so for ever
    status = now;
  }
  if (status != want.status || got.all != want.all || reader.messages() != want.whole ||
      reader.between_messages() != want.between)
    std::abort();
}

/// What we write as a prefix is read as that length.
void check_prefix(std::uint32_t n) {
  twp::grpc::Reader reader;
  Messages got;
  if (reader.feed(twp::grpc::prefix(n), got, n) != Status::ok || reader.between_messages() != (n == 0)) std::abort();
  if (n == 0) return;
  twp::grpc::Reader strict;
  if (strict.feed(twp::grpc::prefix(n), got, n - 1) != Status::resource_exhausted) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 4000) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const std::uint8_t piece : {std::uint8_t{0}, std::uint8_t{1}, data[0]}) check(body, piece);
  std::uint32_t n = 0;
  for (std::size_t i = 0; i < 4 && i < body.size(); ++i) n = n << 8 | static_cast<std::uint8_t>(body[i]);
  check_prefix(n);
  // Content types: what is taken for gRPC begins with it, and nothing that is a longer word is taken.
  if (twp::grpc::is_content_type(body)) {
    if (body.size() < twp::grpc::kContentType.size()) std::abort();
    if (body.size() > twp::grpc::kContentType.size() &&
        std::string_view("+; \t").find(body[twp::grpc::kContentType.size()]) == std::string_view::npos)
      std::abort();
  }
  return 0;
}

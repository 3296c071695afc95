// Body octets as chunks (RFC 9112 §7.1).
#include <utility>

#include "base/ascii.h"
#include "h1/h1_connection.h"

namespace twp::h1 {
namespace {

constexpr std::uint32_t kChunkLine = 18;  // a size of 64 bits in hex and CRLF
constexpr std::string_view kCrLf = "\r\n";

}  // namespace

void H1Connection::put_chunk(Slice body) noexcept {
  if (body.empty()) return;  // an empty chunk would be the last one
  if (body.size() <= kCopyBelow && out_.size() >= kGatherFrom) {
    gather_chunk(body);
    return;
  }
  close_chunk();
  write_chunk(std::move(body));
}

void H1Connection::gather_chunk(const Slice& body) noexcept {
  // Its size goes in front and its end behind it, within one block.
  if (chunk_.room() < body.size() + kCrLf.size()) {
    close_chunk();
    Block* b = BlockPool::local().take();
    b->used = kChunkLine;
    chunk_ = Slice(b, kChunkLine, 0);
    chunk_.set_headroom(kChunkLine);
  }
  chunk_.extend(body.bytes());
}

void H1Connection::close_chunk() noexcept {
  if (chunk_.empty()) return;
  Slice body = std::exchange(chunk_, Slice());
  if (send_broken_) mark(body.size());
  else write_chunk(std::move(body));
}

void H1Connection::write_chunk(Slice body) noexcept {
  const std::size_t n = body.size();
  char line[kChunkLine];
  std::size_t size = write_hex(line, body.size());
  line[size++] = '\r';
  line[size++] = '\n';
  const auto header = std::as_bytes(std::span(line, size));
  if (body.size() > kCopyBelow && body.prepend(header)) {
    out_.append(std::move(body));
  } else {
    out_.append_copy(header);
    out_.append(std::move(body));
  }
  out_.append_copy(kCrLf);
  mark(n);
}

}  // namespace twp::h1

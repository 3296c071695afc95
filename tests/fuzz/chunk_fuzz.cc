// The chunk decoder. Oracle: any cut gives the same body, end and rest; what it accepts means the same when written again.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/chain.h"
#include "h1/body_framing.h"
#include "h1/head_writer.h"

namespace {

using twp::Slice;
using twp::h1::ChunkDecoder;

struct Decoded {
  std::string body, rest;
  bool bad = false, done = false;
  bool operator==(const Decoded&) const = default;
};

Decoded decode(std::string_view text, std::size_t piece) {
  Decoded d;
  ChunkDecoder decoder;
  while (!text.empty()) {
    Slice in = Slice::copy_of(text.substr(0, piece));
    text.remove_prefix(in.size());
    while (!in.empty()) {
      const auto event = decoder.next(in);
      if (event == ChunkDecoder::Event::need_more) {
        if (!in.empty()) std::abort();
        break;
      }
      if (event == ChunkDecoder::Event::bad) {
        d.bad = true;
        d.body.clear();
        return d;
      }
      if (event == ChunkDecoder::Event::trailers) {
        d.done = true;
        d.rest = std::string(in.text()) + std::string(text);
        return d;
      }
      const std::size_t n = decoder.data_size(in);
      if (n == 0 || n > in.size()) std::abort();
      decoder.took(n);
      d.body += in.split(n).text();
    }
  }
  return d;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > twp::kBlockSize) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Decoded whole = decode(text, twp::kBlockSize);
  for (const std::size_t piece : {1u, 2u, 3u, 7u, 64u})
    if (decode(text, piece) != whole) std::abort();
  if (!whole.done) return 0;
  twp::Chain again;
  if (!whole.body.empty()) {
    twp::h1::write_chunk_size(again, whole.body.size());
    again.append_copy(whole.body + "\r\n");
  }
  twp::h1::write_last_chunk(again, nullptr);
  std::string out(again.size(), '\0');
  again.peek(std::as_writable_bytes(std::span(out)));
  const Decoded second = decode(out, 5);
  if (!second.done || second.body != whole.body || second.rest != "\r\n") std::abort();
  return 0;
}

#include "h1/head_writer.h"

#include <cstring>
#include <string>

#include "base/ascii.h"
#include "h1/translate.h"

namespace twp::h1 {
namespace {

/// Room beside start line and fields for everything that this file adds by itself.
constexpr std::size_t kExtra = 256;

/// Writes into memory that is known to be large enough.
class Pen {
 public:
  explicit Pen(char* at) noexcept : begin_(at), at_(at) {}
  Pen& put(std::string_view s) noexcept {
    std::memcpy(at_, s.data(), s.size());
    at_ += s.size();
    return *this;
  }
  Pen& number(std::uint64_t v) noexcept {
    at_ += write_decimal(at_, v);
    return *this;
  }
  Pen& field(std::string_view name, std::string_view value) noexcept {
    std::memcpy(at_, name.data(), name.size());
    at_ += name.size();
    *at_++ = ':';
    *at_++ = ' ';
    std::memcpy(at_, value.data(), value.size());
    at_ += value.size();
    *at_++ = '\r';
    *at_++ = '\n';
    return *this;
  }
  std::size_t size() const noexcept { return static_cast<std::size_t>(at_ - begin_); }

 private:
  char* begin_;
  char* at_;
};

std::size_t fields_size(const HeaderBlock& fields) noexcept {
  std::size_t n = 0;
  for (const Field& f : fields) n += f.name.size() + f.value.size() + 4;
  return n;
}

/// Runs `write(Pen&)` over `bound` octets of contiguous memory and appends what it wrote.
template <class F>
void write_bounded(Chain& out, std::size_t bound, F&& write) {
  if (bound <= kBlockSize) {
    Pen pen(out.prepare(bound));
    write(pen);
    out.commit(pen.size());
    return;
  }
  std::string big(bound, '\0');  // a head above 16 KiB: rare enough for the heap
  Pen pen(big.data());
  write(pen);
  out.append_copy(std::string_view(big.data(), pen.size()));
}

/// Every field but those that framing decides here.
void put_fields(Pen& pen, const HeaderBlock& fields, bool drop_length) noexcept {
  for (const Field& f : fields) {
    if (drop_length && f.id == HeaderId::content_length) continue;
    pen.field(f.name, f.value);
  }
}

void put_framing(Pen& pen, const HeaderBlock& fields, const WriteInfo& info) noexcept {
  if (info.no_framing_fields) return;
  if (info.framing == Framing::chunked) pen.put("Transfer-Encoding: chunked\r\n");
  if (info.framing == Framing::length && !fields.has(HeaderId::content_length))
    pen.put("Content-Length: ").number(info.length).put("\r\n");
}

bool keeps_length(const WriteInfo& info) noexcept { return info.framing == Framing::length || info.no_framing_fields; }

}  // namespace

std::string write_request(Chain& out, const Head& head, const WriteInfo& info) {
  std::string key = info.websocket && !head.fields.has(HeaderId::sec_websocket_key) ? websocket_key() : std::string();
  // Plain CONNECT asks for an authority and nothing else (RFC 9112 §3.2.3).
  const bool plain_connect = head.is_connect() && !info.websocket;
  const std::string_view method = info.websocket ? std::string_view("GET") : head.method_name;
  const std::string_view target = plain_connect ? head.authority : head.path;
  const std::size_t bound =
      method.size() + target.size() + head.authority.size() + fields_size(head.fields) + key.size() + kExtra;
  write_bounded(out, bound, [&](Pen& pen) {
    pen.put(method).put(" ").put(target).put(" HTTP/1.1\r\n").field("Host", head.authority);
    put_fields(pen, head.fields, !keeps_length(info));
    put_framing(pen, head.fields, info);
    const bool te = head.fields.has(HeaderId::te);
    if (info.websocket) {
      pen.put("Connection: Upgrade\r\nUpgrade: websocket\r\n");
      if (!key.empty()) pen.field("Sec-WebSocket-Key", key);
      if (!head.fields.has(HeaderId::sec_websocket_version)) pen.put("Sec-WebSocket-Version: 13\r\n");
    } else if (te || info.close) {
      // TE is about this connection only and must be listed (RFC 9110 §10.1.4).
      pen.put("Connection: ").put(te ? "TE" : "").put(te && info.close ? ", " : "").put(info.close ? "close" : "").put("\r\n");
    }
    pen.put("\r\n");
  });
  return key;
}

void write_response(Chain& out, const Head& head, const WriteInfo& info, std::string_view accept_key) {
  const std::uint16_t status = info.websocket ? 101 : head.status;
  const std::string_view reason = !head.reason.empty() && !info.websocket ? head.reason : reason_phrase(status);
  const std::string accept = info.websocket && !head.fields.has(HeaderId::sec_websocket_accept) && !accept_key.empty()
                                 ? websocket_accept(accept_key)
                                 : std::string();
  const std::size_t bound = reason.size() + fields_size(head.fields) + accept.size() + kExtra;
  write_bounded(out, bound, [&](Pen& pen) {
    pen.put("HTTP/1.1 ").number(status).put(" ").put(reason).put("\r\n");
    put_fields(pen, head.fields, !keeps_length(info));
    if (!head.is_interim()) put_framing(pen, head.fields, info);
    if (info.websocket) {
      pen.put("Connection: Upgrade\r\nUpgrade: websocket\r\n");
      if (!accept.empty()) pen.field("Sec-WebSocket-Accept", accept);
    } else if (info.close) {
      pen.put("Connection: close\r\n");
    } else if (info.keep_alive) {
      pen.put("Connection: keep-alive\r\n");
    }
    pen.put("\r\n");
  });
}

void write_chunk_size(Chain& out, std::uint64_t n) {
  char line[18];
  std::size_t size = write_hex(line, n);
  line[size++] = '\r';
  line[size++] = '\n';
  out.append_copy(std::string_view(line, size));
}

void write_last_chunk(Chain& out, const HeaderBlock* trailers) {
  const std::size_t bound = 16 + (trailers == nullptr ? 0 : fields_size(*trailers));
  write_bounded(out, bound, [&](Pen& pen) {
    pen.put("0\r\n");
    if (trailers != nullptr) put_fields(pen, *trailers, true);
    pen.put("\r\n");
  });
}

}  // namespace twp::h1

// Arbitrary octets from an origin, to several kinds of request. Oracle: as h1_request_fuzz.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/log.h"
#include "support/h1_rig.h"

namespace twp::test {
namespace {

enum class Request { get, head, connect, websocket, upload };

void send(Recorder& r, Request kind) {
  switch (kind) {
    case Request::get: return r.send_head(Head::request(Method::get, "http", "a.test", "/"), End::yes);
    case Request::head: return r.send_head(Head::request(Method::head, "http", "a.test", "/"), End::yes);
    case Request::connect: return r.send_head(Head::request(Method::connect, "http", "a.test:1", ""), End::no);
    case Request::upload:
      r.send_head(Head::request(Method::post, "http", "a.test", "/", BodySize::exactly(10)), End::no);
      return r.send_body("hello", End::no);
    case Request::websocket: {
      Head h = Head::request(Method::connect, "http", "a.test", "/");
      h.protocol = "websocket";
      return r.send_head(h, End::no);
    }
  }
}

std::string play(std::string_view octets, Request kind, bool finish, Chop chop) {
  HttpLimits limits;
  limits.max_response_head = 600;
  limits.max_fields = 12;
  limits.max_trailer = 100;
  limits.max_interim = 3;
  ClientRig rig(limits);
  rig.start(std::move(chop));
  Recorder* r = rig.open();
  send(*r, kind);
  run_quiet(rig.worker);
  rig.peer->send(octets);
  if (finish) rig.peer->finish();
  run_quiet(rig.worker);
  const std::string out = r->transcript() + (rig.owner.gone ? "session gone " + std::string(log_word(rig.owner.fault)) : "") +
                          (rig.peer->eof() ? "eof" : "") + (rig.peer->was_reset() ? "reset" : "");
  if (rig.owner.session() != nullptr) rig.owner.session()->close(Fault::shutdown);
  if (!r->gone || !rig.owner.gone) std::abort();
  return out;
}

}  // namespace
}  // namespace twp::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace twp;
  if (size == 0 || size > 1500) return 0;
  set_log_level(LogLevel::error);
  // The first octet says what was asked; the rest is the origin's.
  const auto kind = static_cast<test::Request>(data[0] % 5);
  const bool finish = data[0] % 2 != 0;
  const std::string_view octets(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = test::play(octets, kind, finish, test::whole());
  const std::string pieces[] = {test::play(octets, kind, finish, test::every_octet()),
                                test::play(octets, kind, finish, test::random_pieces(static_cast<std::uint32_t>(size)))};
  for (const std::string& p : pieces) {
    if (p == whole) continue;
    std::fprintf(stderr, "at once:\n%s\nin pieces:\n%s\n", whole.c_str(), p.c_str());
    std::abort();
  }
  return 0;
}

// Arbitrary octets from an origin, to several kinds of request. Oracle: as h1_request_fuzz.
#include <string>

#include "fuzz/session_fuzz.h"
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
  // How the session ends is not compared: octets behind a response are found at once or a little later.
  const std::string out = r->transcript();
  must_end(rig.owner, rig.streams);
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
  // An empty line at the end: until then a defect in a head that comes in pieces is not looked for.
  const std::string octets = std::string(reinterpret_cast<const char*>(data) + 1, size - 1) + "\r\n\r\n";
  test::must_not_depend_on_pieces(static_cast<std::uint32_t>(size), [&](test::Chop chop) {
    return test::play(octets, kind, finish, std::move(chop));
  });
  return 0;
}

// Arbitrary octets from a client. Oracle: no crash, no leak, the promises of StreamEvents (the recorder aborts), and the same
// events and answers however the octets are cut into pieces.
#include <string>

#include "fuzz/session_fuzz.h"
#include "support/h1_rig.h"

namespace twp::test {
namespace {

HttpLimits limits() {
  HttpLimits l;
  l.max_head = 600;
  l.max_target = 100;
  l.max_fields = 12;
  l.max_trailer = 100;
  return l;
}

void answer(Recorder& r) {
  r.on_request = [](Recorder& s) {
    if (!s.head->is_connect()) return;
    // Refusing an upgrade keeps the connection only when nothing came early: that does depend on the pieces.
    if (s.head->protocol.empty() && s.head->authority.size() % 2 == 0) return s.respond(403, "no");
    Head yes = Head::response(200);
    yes.set_method(Method::connect);
    s.send_head(yes, End::no);
    s.send_body("down", End::no);
  };
  r.on_end = [](Recorder& s) {
    if (s.head->is_connect()) return s.send_body("", End::yes);
    if (s.head->path.size() % 2 == 0) return s.respond(200, s.body);
    s.send_head(Head::response(200, BodySize::unknown()), End::no);
    s.send_body("hello", End::no);
    HeaderBlock t;
    t.add("X-T", "1");
    s.send_trailers(t);
  };
}

std::string play(std::string_view octets, bool finish, Chop chop) {
  ServerRig rig(limits());
  rig.acceptor.setup = answer;
  rig.start(std::move(chop));
  rig.peer->send(octets);
  if (finish) rig.peer->finish();
  run_quiet(rig.worker);
  std::string got = rig.peer->got();
  for (std::size_t i = 0; (i = got.find("date: ", i)) != std::string::npos;) got.erase(i, got.find('\n', i) - i);
  // Whether the half close was seen before the last answer depends on the pieces.
  for (std::size_t i = 0; finish && (i = got.find("Connection: close\r\n")) != std::string::npos;) got.erase(i, 19);
  std::string out = rig.acceptor.transcript() + "\n<<" + got + ">>" + (rig.peer->eof() ? "eof" : "") +
                    (rig.peer->was_reset() ? "reset" : "");
  // Nothing that is still open may lose its last call.
  must_end(rig.owner, rig.acceptor.streams);
  return out;
}

}  // namespace
}  // namespace twp::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace twp;
  if (size > 1500) return 0;
  set_log_level(LogLevel::error);
  // An empty line at the end: until then a defect in a head that comes in pieces is not looked for.
  const std::string octets = std::string(reinterpret_cast<const char*>(data), size) + "\r\n\r\n";
  for (const bool finish : {false, true})
    test::must_not_depend_on_pieces(static_cast<std::uint32_t>(size + 1), [&](test::Chop chop) {
      return test::play(octets, finish, std::move(chop));
    });
  return 0;
}

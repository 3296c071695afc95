// Arbitrary frames from a client. Oracle: no crash, no leak, the promises of StreamEvents (the recorder aborts), every
// stream and the session end exactly once, whole and cut at every octet.
#include "fuzz/session_fuzz.h"
#include "h2/h2_session.h"

namespace twp::test {
namespace {

constexpr std::string_view kHello("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0\0\0\0\4\1\0\0\0\0", 42);

void answer(Recorder& r) {
  r.on_request = [](Recorder& s) {
    if (s.head->is_connect()) {
      s.send_head(Head::response(s.head->authority.size() % 2 == 0 ? 200 : 403, BodySize::unknown()),
                  End::no);
      s.send_body("down", End::no);
    } else if (s.head->path.size() % 5 == 0) {
      s.respond(200, "early");
      s.reset(Fault::early_response);
    } else if (s.head->path.size() % 7 == 0) {
      s.reset(Fault::cancelled);
    }
  };
  r.on_end = [](Recorder& s) {
    if (s.stream == nullptr || s.stream->send_state() == SendState::reset) return;
    if (s.stream->send_state() == SendState::body) return s.send_body("", End::yes);
    if (s.stream->send_state() == SendState::done) return;
    s.send_head(Head::interim(103), End::no);
    if (s.head->path.size() % 2 == 0) return s.respond(200, s.body);
    HeaderBlock t;
    t.add("x-t", "1");
    s.send_head(Head::response(200, BodySize::unknown()), End::no);
    s.send_body("hello", End::no);
    s.send_trailers(t);
  };
}

void play(std::string_view octets, bool finish, Chop chop) {
  HttpLimits limits;
  limits.max_head = 600;
  limits.max_target = 100;
  limits.max_fields = 12;
  limits.max_trailer = 100;
  limits.max_body = 200;
  limits.h2_max_streams = 4;
  Worker worker;
  RecordingAcceptor acceptor;
  acceptor.setup = answer;
  RecordingOwner owner(worker);
  auto [ours, theirs] = MemoryTransport::make_pair(worker);
  ours->set_chop(std::move(chop));
  RawPeer peer(std::move(theirs));
  owner.hold(make_h2_server(worker, std::move(ours), acceptor, owner, limits));
  peer.send(octets);
  if (finish) peer.finish();
  run_quiet(worker);
  must_end(owner, acceptor.streams);
}

}  // namespace
}  // namespace twp::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace twp::test;
  return play_frames(data, size, kHello, play);
}

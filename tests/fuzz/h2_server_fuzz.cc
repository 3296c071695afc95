// Arbitrary frames from a client. Oracle: no crash, no leak, the promises of StreamEvents (the recorder aborts), every
// stream and the session end exactly once, whole and cut at every octet.
#include <cstdlib>
#include <string>

#include "base/log.h"
#include "h2/h2_session.h"
#include "support/memory_transport.h"
#include "support/recorder.h"

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
  if (owner.session() != nullptr) owner.session()->close(Fault::shutdown);
  for (const auto& s : acceptor.streams)
    if (!s->gone) std::abort();
  if (!owner.gone) std::abort();
}

}  // namespace
}  // namespace twp::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace twp;
  if (size == 0 || size > 2000) return 0;
  set_log_level(LogLevel::error);
  // The first octet: whether the greeting is made for it, and whether the client ends its side.
  std::string octets;
  if ((data[0] & 1) == 0) octets = test::kHello;
  octets.append(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool finish = (data[0] & 2) != 0;
  test::play(octets, finish, test::whole());
  test::play(octets, finish, test::every_octet());
  return 0;
}

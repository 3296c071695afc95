// Arbitrary frames from an origin, in answer to several kinds of request at once. Oracle: as h2_server_fuzz.
#include <memory>
#include <string>
#include <vector>

#include "fuzz/session_fuzz.h"
#include "h2/h2_session.h"

namespace twp::test {
namespace {

constexpr std::string_view kHello("\0\0\6\4\0\0\0\0\0\0\10\0\0\0\1\0\0\0\4\1\0\0\0\0", 24);

void ask(Session& session, std::vector<std::unique_ptr<Recorder>>& all, const Head& head, End end,
         bool reset) {
  auto& r = *all.emplace_back(std::make_unique<Recorder>());
  r.stream = session.open(r);
  if (r.stream == nullptr) {
    all.pop_back();
    return;
  }
  r.send_head(head, end);
  if (end == End::no) r.send_body("hello", End::no);
  if (reset) r.on_request = [](Recorder& s) { s.reset(Fault::cancelled); };
}

void play(std::string_view octets, bool finish, Chop chop) {
  HttpLimits limits;
  limits.max_response_head = 600;
  limits.max_fields = 12;
  limits.max_trailer = 100;
  limits.max_interim = 3;
  Worker worker;
  RecordingOwner owner(worker);
  std::vector<std::unique_ptr<Recorder>> all;
  auto [ours, theirs] = MemoryTransport::make_pair(worker);
  ours->set_chop(std::move(chop));
  RawPeer peer(std::move(theirs));
  Session* session = owner.hold(make_h2_client(worker, std::move(ours), owner, limits));
  ask(*session, all, Head::request(Method::get, "http", "a.test", "/"), End::yes, false);
  ask(*session, all, Head::request(Method::head, "http", "a.test", "/"), End::yes, false);
  ask(*session, all, Head::request(Method::post, "http", "a.test", "/", BodySize::unknown()), End::no, false);
  ask(*session, all, Head::request(Method::connect, "http", "a.test:1", ""), End::no, false);
  ask(*session, all, Head::request(Method::get, "http", "a.test", "/"), End::yes, true);
  run_quiet(worker);
  Head websocket = Head::request(Method::connect, "http", "a.test", "/");
  websocket.protocol = "websocket";
  ask(*session, all, websocket, End::no, false);
  peer.send(octets);
  if (finish) peer.finish();
  run_quiet(worker);
  must_end(owner, all);
}

}  // namespace
}  // namespace twp::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace twp::test;
  return play_frames(data, size, kHello, play);
}

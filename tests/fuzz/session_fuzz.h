// What the fuzz targets of sessions share.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "support/memory_transport.h"
#include "support/recorder.h"

namespace twp::test {

/// Closes what is still open; then every stream and the session must have ended.
inline void must_end(RecordingOwner& owner, const std::vector<std::unique_ptr<Recorder>>& streams) {
  if (owner.session() != nullptr) owner.session()->close(Fault::shutdown);
  for (const auto& s : streams)
    if (!s->gone) std::abort();
  if (!owner.gone) std::abort();
}

/// However the octets came, the same must have happened: `play(chop)` says what.
template <class Play>
void must_not_depend_on_pieces(std::uint32_t seed, Play&& play) {
  const std::string at_once = play(whole());
  for (const std::string& p : {play(every_octet()), play(random_pieces(seed))}) {
    if (p == at_once) continue;
    std::fprintf(stderr, "at once:\n%s\nin pieces:\n%s\n", at_once.c_str(), p.c_str());
    std::abort();
  }
}

/// Arbitrary frames for one end of an HTTP/2 connection, at once and octet by octet. The first octet says whether `hello`
/// is put in front of the rest and whether the peer then ends its side: `play(octets, finish, chop)`.
template <class Play>
int play_frames(const std::uint8_t* data, std::size_t size, std::string_view hello, Play&& play) {
  if (size == 0 || size > 2000) return 0;
  set_log_level(LogLevel::error);
  std::string octets;
  if ((data[0] & 1) == 0) octets = hello;
  octets.append(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool finish = (data[0] & 2) != 0;
  play(octets, finish, whole());
  play(octets, finish, every_octet());
  return 0;
}

}  // namespace twp::test

// Cluster: the origins of one configured cluster on one worker, and which of them is next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "config/config.h"
#include "proxy/origin_pool.h"

namespace twp {

class Cluster {
 public:
  struct Member {
    OriginPool* pool = nullptr;  ///< several members may share one
    std::string authority;       ///< for requests that do not keep the client's Host
    std::string label;           ///< "host:port", for logs
    unsigned weight = 1;         ///< 0: takes no requests
    std::int64_t current = 0;    ///< smooth weighted round robin's running value
  };

  /// `seed` makes random choices differ between workers.
  Cluster(std::string name, config::Balance balance, std::uint64_t seed)
      : name_(std::move(name)), balance_(balance), random_(seed | 1) {}

  void add(Member member) { members_.push_back(std::move(member)); }

  /// The next origin. Those in back-off and `avoid` are passed over while there is another; when all are in
  /// back-off, they are tried anyway. nullptr only when no member has a weight.
  Member* pick(const Member* avoid = nullptr) noexcept;

  /// There is a member other than `m` that takes requests.
  bool has_another(const Member& m) const noexcept {
    for (const Member& other : members_)
      if (&other != &m && other.weight != 0) return true;
    return false;
  }

  const std::string& name() const noexcept { return name_; }
  std::vector<Member>& members() noexcept { return members_; }
  Duration response_timeout{};  ///< 0: none

 private:
  enum class Who : std::uint8_t { healthy, any_but_avoided, any };
  Member* pick_among(Who who, const Member* avoid) noexcept;
  Member* round_robin(Who who, const Member* avoid) noexcept;
  Member* random(Who who, const Member* avoid, const Member* not_this) noexcept;
  Member* least_of_two(Who who, const Member* avoid) noexcept;
  bool eligible(const Member& m, Who who, const Member* avoid) const noexcept {
    return m.weight != 0 && (who == Who::any || &m != avoid) && (who != Who::healthy || !m.pool->backing_off());
  }
  std::uint64_t draw() noexcept;

  std::string name_;
  config::Balance balance_;
  std::uint64_t random_;
  std::vector<Member> members_;
};

}  // namespace twp

#include "net/linger.h"

#include <array>

namespace twp {
namespace {

constexpr Duration kMaxTime = std::chrono::seconds(2);
constexpr std::size_t kMaxOctets = 1024 * 1024;
constexpr int kReadsPerTurn = 1;  // of 64 KiB: who floods is not to hold up others with what is thrown away

class Linger final : public Guest, TransportHandler, Timer, Task {
 public:
  Linger(Worker& worker, std::unique_ptr<Transport> transport) noexcept
      : worker_(worker), transport_(std::move(transport)) {}

  void start() noexcept {
    transport_->set_handler(this);
    transport_->shutdown_write();
    worker_.arm(*this, kMaxTime);
    // What is waiting already makes no further edge.
    worker_.schedule(Phase::client, *this);
  }

 private:
  void run() noexcept override { discard(); }
  void on_ready(Transport&, bool, bool) noexcept override {
    if (!done_) worker_.schedule(Phase::client, *this);
  }
  void on_open_failed(Transport&, Fault, std::string_view) noexcept override { finish(); }
  void on_timer() noexcept override { finish(); }

  void discard() noexcept {
    static thread_local std::array<std::byte, 64 * 1024> sink;
    for (int i = 0; i < kReadsPerTurn && !done_ && !transport_->drained(); ++i) {
      const IoResult r = transport_->read(sink);
      if (r.status == IoStatus::again) return;
      seen_ += r.n;
      if (r.status != IoStatus::ok || seen_ >= kMaxOctets) finish();
    }
    // What is left makes no further edge.
    if (!done_ && !transport_->drained()) worker_.schedule_rest(Phase::client, *this);
  }

  void finish() noexcept {
    if (std::exchange(done_, true)) return;
    cancel();
    static_cast<Task&>(*this).unlink();
    transport_->close(Fault::none);
    worker_.retire(std::unique_ptr<Linger>(this));
  }

  Worker& worker_;
  std::unique_ptr<Transport> transport_;
  std::size_t seen_ = 0;
  bool done_ = false;
};

}  // namespace

void linger_and_close(Worker& worker, std::unique_ptr<Transport> transport) {
  if (transport == nullptr) return;
  auto linger = std::make_unique<Linger>(worker, std::move(transport));
  Linger& l = *linger;
  worker.adopt(std::move(linger));
  l.start();
}

}  // namespace twp

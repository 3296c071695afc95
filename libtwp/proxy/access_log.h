// Access log: one JSON object on one line for each request. docs/configuration.md lists the members.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "event/worker.h"
#include "proxy/exchange_record.h"

namespace twp {

/// The log of one worker. Lines collect in memory and leave with one write(2) when the turn ends, or as soon
/// as 64 KiB are there. Files are opened with O_APPEND, so workers and processes share one. Worker thread only.
///
/// A write that fails (disk full) drops what it held and says so in the program's log; requests never wait
/// for it. Writing to a regular file or a pipe blocks as long as the kernel does.
class AccessLog final : public ExchangeObserver, Task {
 public:
  /// `file`: "-" is standard output. Error text: "cannot open 'x' for the access log: Permission denied".
  static Result<std::unique_ptr<AccessLog>> open(Worker& worker, const std::string& file);
  ~AccessLog();

  /// Writes what is held to the old file, then goes on with `file` (rotation, or another name; empty: lines
  /// are dropped from now on). On error the old file stays.
  Result<void> reopen(const std::string& file);
  void flush() noexcept;

  void on_exchange_done(const ExchangeRecord& record) noexcept override;
  void on_rejected(const PeerInfo& client, Fault why) noexcept override;

 private:
  static constexpr std::size_t kFlushAt = 64 * 1024;

  explicit AccessLog(Worker& worker) noexcept : worker_(worker) {}
  void run() noexcept override { flush(); }
  void written() noexcept;
  void close() noexcept;

  Worker& worker_;
  std::string buffer_;
  int fd_ = -1;
  bool owns_ = false;     // fd_ is ours to close
  bool regular_ = false;  // O_APPEND makes one write one piece
};

}  // namespace twp

// Loopback sockets driven by one worker.
#pragma once

#include <boost/test/unit_test.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "event/worker.h"
#include "net/listener.h"
#include "net/tcp_transport.h"
#include "support/turn.h"

namespace twp::test {

struct Acceptor final : ListenHandler {
  void on_accept(std::unique_ptr<TcpTransport> t) noexcept override { accepted.push_back(std::move(t)); }
  std::vector<std::unique_ptr<TcpTransport>> accepted;
};

/// Reads everything, sends what it has.
struct Reader final : TransportHandler {
  explicit Reader(std::unique_ptr<Transport> t) : transport(std::move(t)) { transport->set_handler(this); }
  void on_open(Transport&) noexcept override {
    ++opened;
    pump();
  }
  void on_ready(Transport&, bool, bool) noexcept override { pump(); }
  void on_open_failed(Transport&, Fault f, std::string_view d) noexcept override {
    ++failed;
    fault = f;
    detail = d;
  }
  void pump() noexcept {
    if (!out.empty() && transport->write(out).status == IoStatus::error) write_failed = true;
    std::array<std::byte, 50000> buf;
    while (!paused && !transport->drained()) {
      const IoResult r = transport->read(std::span(buf).first(read_size));
      if (r.status == IoStatus::ok) {
        in.append(reinterpret_cast<const char*>(buf.data()), r.n);
        continue;
      }
      eof |= r.status == IoStatus::eof;
      if (r.status == IoStatus::error) fault = r.fault;
      break;
    }
  }
  std::unique_ptr<Transport> transport;
  Chain out;
  std::string in, detail;
  std::size_t read_size = 50000;
  int opened = 0, failed = 0;
  bool eof = false, paused = false, write_failed = false;
  Fault fault = Fault::none;
};

}  // namespace twp::test

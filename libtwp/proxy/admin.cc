#include "proxy/admin.h"

#include <string>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "base/block.h"
#include "base/ilist.h"
#include "proxy/front.h"

namespace twp {
namespace {

bool local_authority(std::string_view authority) {
  if (authority.empty()) return true;  // HTTP/1.0
  const auto hp = parse_host_port(authority, 80);
  return hp && (iequals(hp->host, "localhost") || Address::parse(hp->host, 0).has_value());
}

class AdminImpl final : public Admin, Acceptor {
 public:
  AdminImpl(Worker& worker, AdminSource& source, ProcessInfo process)
      : worker_(worker), source_(source), process_(std::move(process)) {}
  ~AdminImpl() override {
    if (front_ == nullptr) return;
    front_->close();
    // Sessions and replies let go of us in the turns that follow.
    for (int i = 0; i < 3; ++i) worker_.turn(Duration::zero());
    front_.reset();
    replies_.for_each([](Reply& r) { delete &r; });
  }

  Result<void> listen(const Address& at) {
    FrontOptions options;
    options.at = at;
    options.listen.reuse_port = false;
    options.max_connections = 64;
    options.limit_name = "the admin listener's own limit";
    // A monitor asks and goes; who only holds connections open must not keep it out.
    limits_.keep_alive_timeout = std::chrono::seconds(5);
    limits_.head_timeout = std::chrono::seconds(5);
    options.versions.http2 = false;  // nothing that scrapes metrics asks for it
    auto front = Front::open(worker_, options, nullptr, *this, limits_);
    if (!front) return std::unexpected(front.error());
    front_ = std::move(*front);
    return {};
  }
  const Address& address() const noexcept override { return front_->address(); }

 private:
  /// One request.
  class Reply final : public StreamEvents, public IListHook<> {
   public:
    Reply(AdminImpl& admin, std::uint64_t number) noexcept : admin_(admin), number_(number) {}

    void on_head(Stream& s, Head&& head, End) noexcept override;
    void on_body(Stream& s, Slice body, End) noexcept override { s.consume(body.size()); }
    void on_trailers(Stream&, HeaderBlock&&) noexcept override {}
    void on_sent(Stream&, std::size_t) noexcept override {}
    void on_gone(Stream&, Fault) noexcept override {
      unlink();
      admin_.worker_.retire(std::unique_ptr<Reply>(this));
    }
    void answer(std::uint16_t status, std::string_view type, std::string_view body);
    std::uint64_t number() const noexcept { return number_; }

   private:
    void collected(std::string_view path);

    AdminImpl& admin_;
    const std::uint64_t number_;
    Stream* stream_ = nullptr;
    bool is_head_ = false;
  };

  StreamEvents& accept(Stream&) noexcept override {
    auto* r = new Reply(*this, ++last_);
    replies_.push_back(*r);
    return *r;
  }
  /// The client may have gone while the workers were asked.
  Reply* find(std::uint64_t number) noexcept {
    Reply* found = nullptr;
    replies_.for_each([&](Reply& r) {
      if (r.number() == number) found = &r;
    });
    return found;
  }

  Worker& worker_;
  AdminSource& source_;
  const ProcessInfo process_;
  HttpLimits limits_;
  std::uint64_t last_ = 0;
  IList<Reply> replies_;
  std::unique_ptr<Front> front_;
};

constexpr std::string_view kPlain = "text/plain; charset=utf-8";

void AdminImpl::Reply::on_head(Stream& s, Head&& head, End) noexcept {
  stream_ = &s;
  is_head_ = head.method == Method::head;
  const std::string_view path = head.path.substr(0, head.path.find('?'));
  if (!local_authority(head.authority)) return answer(421, kPlain, "the admin listener has no name\n");
  if (path != "/metrics" && path != "/healthz" && path != "/memory")
    return answer(404, kPlain, "there are /metrics, /healthz and /memory\n");
  if (head.method != Method::get && !is_head_) return answer(405, kPlain, "GET or HEAD\n");
  if (path != "/healthz") return collected(path);
  const bool draining = admin_.source_.draining();
  answer(draining ? 503 : 200, kPlain, draining ? "draining\n" : "ok\n");
}

void AdminImpl::Reply::collected(std::string_view path) {
  const bool metrics = path == "/metrics";
  // The source forgets what it was asked before the admin goes (AdminSource outlives it, on the same thread).
  admin_.source_.collect([&admin = admin_, number = number_, metrics](std::vector<WorkerSample> samples) {
    Reply* r = admin.find(number);
    if (r == nullptr) return;
    if (metrics)
      r->answer(200, "text/plain; version=0.0.4; charset=utf-8", prometheus_text(samples, admin.process_));
    else
      r->answer(200, "application/json", memory_json(samples));
  });
}

void AdminImpl::Reply::answer(std::uint16_t status, std::string_view type, std::string_view body) {
  Head head = Head::response(status, BodySize::exactly(body.size()));
  head.fields.add(HeaderId::content_type, type);
  head.fields.add(HeaderId::content_length, std::to_string(body.size()));
  head.fields.add(HeaderId::cache_control, "no-store");
  if (status == 405) head.fields.add(HeaderId::allow, "GET, HEAD");
  stream_->send_head(head, is_head_ ? End::yes : End::no);
  if (is_head_) return;
  while (body.size() > kBlockSize) {
    stream_->send_body(Slice::copy_of(body.substr(0, kBlockSize)), End::no);
    body.remove_prefix(kBlockSize);
  }
  stream_->send_body(Slice::copy_of(body), End::yes);
}

}  // namespace

Result<std::unique_ptr<Admin>> Admin::open(Worker& worker, const Address& at, AdminSource& source, ProcessInfo process) {
  if (!at.is_loopback()) return fail(Fault::bad_config, "the admin listener must be on a loopback address, not " + at.text());
  auto admin = std::make_unique<AdminImpl>(worker, source, std::move(process));
  if (auto ok = admin->listen(at); !ok) return std::unexpected(ok.error());
  return admin;
}

}  // namespace twp

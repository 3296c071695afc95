#include "loadgen/sampler.h"

#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <memory>

#include "base/ascii.h"

namespace twp::load {
namespace {

std::string read_file(const std::string& path) {
  std::string out;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return out;
  char buffer[4096];
  for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<std::size_t>(n));
  ::close(fd);
  return out;
}

struct Stat {
  int parent = 0;
  std::uint64_t own_ticks = 0;     // utime + stime
  std::uint64_t waited_ticks = 0;  // cutime + cstime
};

// proc(5): the command may hold blanks and parentheses, so fields count from the last ')'.
bool read_stat(int pid, Stat& out) {
  const std::string text = read_file("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t close = text.rfind(')');
  if (close == std::string::npos) return false;
  std::string_view rest = std::string_view(text).substr(close + 1);
  std::array<std::uint64_t, 18> field{};  // [3] is field 3 of proc(5)
  for (std::size_t i = 3; i < field.size() && !rest.empty(); ++i) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const std::size_t end = std::min(rest.find(' '), rest.size());
    std::from_chars(rest.data(), rest.data() + end, field[i]);
    rest.remove_prefix(end);
  }
  out = {static_cast<int>(field[4]), field[14] + field[15], field[16] + field[17]};
  return true;
}

std::uint64_t ticks_to_ns(std::uint64_t ticks) noexcept {
  static const auto per_second = static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
  return ticks * (1'000'000'000u / per_second);
}

std::uint64_t process_cpu_ns(int pid, const Stat& stat) noexcept {
  // The process's own clock counts nanoseconds; the ticks of stat are 10 ms.
  clockid_t clock;
  timespec t{};
  if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &t) == 0)
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
  return ticks_to_ns(stat.own_ticks);
}

std::uint64_t rss_bytes(int pid) {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::string text = read_file("/proc/" + std::to_string(pid) + "/statm");
  const std::size_t blank = text.find(' ');
  if (blank == std::string::npos) return 0;
  std::uint64_t pages = 0;
  std::from_chars(text.data() + blank + 1, text.data() + text.size(), pages);
  return pages * page;
}

std::vector<int> numbers_in(const std::string& dir) {
  std::vector<int> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> d(::opendir(dir.c_str()), ::closedir);
  if (d == nullptr) return out;
  while (const dirent* e = ::readdir(d.get()))
    if (const auto v = parse_decimal(e->d_name)) out.push_back(static_cast<int>(*v));
  return out;
}

// Children by the kernel's own list when it has one (CONFIG_PROC_CHILDREN), else by looking at every process.
void add_children(int pid, std::vector<int>& tree) {
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  static const bool listed = ::access("/proc/self/task/self/children", F_OK) == 0 ||
                             ::access(("/proc/self/task/" + std::to_string(::getpid()) + "/children").c_str(), F_OK) == 0;
  if (!listed) {
    Stat stat;
    for (const int other : numbers_in("/proc"))
      if (read_stat(other, stat) && stat.parent == pid) tree.push_back(other);
    return;
  }
  for (const int task : numbers_in(tasks)) {
    const std::string text = read_file(tasks + "/" + std::to_string(task) + "/children");
    const char* p = text.data();
    const char* end = p + text.size();
    while (p < end) {
      int child = 0;
      const auto r = std::from_chars(p, end, child);
      if (r.ec != std::errc()) break;
      tree.push_back(child);
      p = r.ptr + 1;
    }
  }
}

}  // namespace

TreeUsage tree_usage(int root) {
  TreeUsage out;
  std::vector<int> tree{root};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const int pid = tree[i];
    Stat stat;
    if (!read_stat(pid, stat)) continue;
    ++out.processes;
    out.cpu_ns += process_cpu_ns(pid, stat) + ticks_to_ns(stat.waited_ticks);
    out.rss_bytes += rss_bytes(pid);
    add_children(pid, tree);
  }
  return out;
}

std::uint64_t own_cpu_ns() noexcept {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

Result<Sampler> Sampler::create(const std::vector<Watched>& watched) {
  Sampler s;
  for (const Watched& w : watched) {
    if (tree_usage(w.pid).processes == 0)
      return fail(Fault::bad_config, "--watch " + w.name + "=" + std::to_string(w.pid) + ": no such process");
    s.starts_.push_back({w.pid, 0, 0});
    s.usage_.push_back({w.name, 0, 0, false});
  }
  return s;
}

void Sampler::look(std::size_t i, bool first) {
  const TreeUsage now = tree_usage(starts_[i].pid);
  if (now.processes == 0) {
    usage_[i].lost = true;
    return;
  }
  if (first) {
    starts_[i].cpu_ns = now.cpu_ns;
    usage_[i].rss_peak_bytes = 0;
    usage_[i].lost = false;
  }
  starts_[i].last_cpu_ns = now.cpu_ns;
  usage_[i].rss_peak_bytes = std::max(usage_[i].rss_peak_bytes, now.rss_bytes);
}

void Sampler::begin() {
  for (std::size_t i = 0; i < starts_.size(); ++i) look(i, true);
}

void Sampler::sample() {
  for (std::size_t i = 0; i < starts_.size(); ++i) look(i, false);
}

void Sampler::end() {
  sample();
  for (std::size_t i = 0; i < starts_.size(); ++i)
    usage_[i].cpu_ns = starts_[i].last_cpu_ns - std::min(starts_[i].cpu_ns, starts_[i].last_cpu_ns);
}

const Sampler::Usage* Sampler::find(std::string_view name) const noexcept {
  for (const Usage& u : usage_)
    if (u.name == name) return &u;
  return nullptr;
}

}  // namespace twp::load

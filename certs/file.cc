#include "certs/file.h"

#include <fcntl.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>

#include "base/write_all.h"

namespace twp::certs {
namespace {

class Fd {
 public:
  explicit Fd(int fd) noexcept : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const noexcept { return fd_; }
  int reset() noexcept {
    const int r = fd_ >= 0 ? ::close(fd_) : 0;
    fd_ = -1;
    return r;
  }

 private:
  int fd_;
};

std::unexpected<Error> io_fail(const std::string& path, int err) {
  return fail(Fault::io_error, path + ": " + errno_text(err));
}

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string temporary_name(const std::string& path) {
  std::array<unsigned char, 8> random{};
  RAND_bytes(random.data(), static_cast<int>(random.size()));
  std::string name = path + ".tmp-";
  for (const unsigned char b : random) {
    name += "0123456789abcdef"[b >> 4];
    name += "0123456789abcdef"[b & 15];
  }
  return name;
}

int fill(const std::string& path, std::string_view bytes, mode_t mode) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd.get() < 0) return errno;
  if (const int err = write_all(fd.get(), bytes)) return err;
  if (::fchmod(fd.get(), mode) != 0 || ::fsync(fd.get()) != 0) return errno;
  return fd.reset() != 0 ? errno : 0;
}

int move_into_place(const std::string& from, const std::string& to, Overwrite overwrite) {
  if (overwrite == Overwrite::yes) return ::rename(from.c_str(), to.c_str()) != 0 ? errno : 0;
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // Older network file systems lack RENAME_NOREPLACE; a hard link refuses an existing name as well.
  if (::link(from.c_str(), to.c_str()) != 0) return errno;
  ::unlink(from.c_str());
  return 0;
}

void sync_dir(const std::string& dir) noexcept {
  const Fd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() >= 0) ::fsync(fd.get());
}

std::unexpected<Error> already_exists(const std::string& path) {
  return fail(Fault::io_error, path + ": already exists; --force replaces it");
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return io_fail(path, errno);
  std::string out;
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_fail(path, errno);
    if (n == 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(n));
    if (out.size() > kMaxFileBytes) {
      return fail(Fault::bad_config, path + ": larger than 1 MiB, so not a certificate or key file");
    }
  }
}

Result<void> write_file(const std::string& path, std::string_view bytes, mode_t mode, Overwrite overwrite) {
  const std::string temporary = temporary_name(path);
  int err = fill(temporary, bytes, mode);
  if (err == 0) err = move_into_place(temporary, path, overwrite);
  if (err == 0) {
    sync_dir(parent_of(path));
    return {};
  }
  ::unlink(temporary.c_str());
  return err == EEXIST ? already_exists(path) : io_fail(path, err);
}

Result<void> write_pair(const std::string& key_path, std::string_view key_pem, const std::string& cert_path,
                        std::string_view cert_pem, Overwrite overwrite) {
  if (overwrite == Overwrite::no) {
    if (exists(key_path)) return already_exists(key_path);
    if (exists(cert_path)) return already_exists(cert_path);
  }
  const bool key_was_there = exists(key_path);
  if (auto r = write_file(key_path, key_pem, 0600, overwrite); !r) return r;
  auto r = write_file(cert_path, cert_pem, 0644, overwrite);
  if (!r && !key_was_there) ::unlink(key_path.c_str());
  return r;
}

Result<void> make_private_dir(const std::string& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) == 0) {
    if (!S_ISDIR(st.st_mode)) return io_fail(path, ENOTDIR);
    if ((st.st_mode & S_IWOTH) != 0 && (st.st_mode & S_ISVTX) == 0) {
      return fail(Fault::bad_config, path + ": anyone may replace files in it; run chmod 0700 on it first");
    }
    return {};
  }
  const std::string parent = std::filesystem::path(path).parent_path().string();
  if (!parent.empty() && parent != path && !exists(parent)) {
    if (auto r = make_private_dir(parent); !r) return r;
  }
  // EEXIST: made by someone else a moment ago, or "a/" whose parent path is "a".
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return io_fail(path, errno);
  return {};
}

bool exists(const std::string& path) noexcept {
  struct stat st {};
  return ::lstat(path.c_str(), &st) == 0;
}

DirLock::DirLock(const std::string& dir, Mode mode) noexcept
    : fd_(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (fd_ < 0) return;
  while (::flock(fd_, mode == Mode::exclusive ? LOCK_EX : LOCK_SH) != 0 && errno == EINTR) {
  }
}

DirLock::~DirLock() {
  if (fd_ >= 0) ::close(fd_);
}

std::string join(std::string_view dir, std::string_view name) {
  std::string out(dir);
  if (!out.empty() && out.back() != '/') out += '/';
  return out.append(name);
}

}  // namespace twp::certs

#include "config/save.h"

#include <functional>

#include "config/keys.h"

namespace twp::config {
namespace {

// TOML wants a table's own keys before its sub-tables: those are put off until the keys are written.
class Writer {
 public:
  Writer(std::string& out, std::string path) : out_(out), path_(std::move(path)) {}

  template <class T>
  void value(const Spec& spec, T& field) {
    const auto text = toml_text(spec, field_of(field));
    if (text) out_ += std::string(spec.name) + " = " + *text + "\n";
  }
  template <class T>
  void table(std::string_view name, T& sub) {
    later(name, "[", "]", sub);
  }
  template <class T>
  void optional_table(std::string_view name, std::optional<T>& sub) {
    if (sub) later(name, "[", "]", *sub);
  }
  template <class T>
  void array(std::string_view name, std::vector<T>& items) {
    for (T& item : items) later(name, "[[", "]]", item);
  }
  void finish() {
    for (const auto& write : later_) write();
  }

 private:
  template <class T>
  void later(std::string_view name, std::string_view open, std::string_view close, T& sub) {
    const std::string path = path_.empty() ? std::string(name) : path_ + "." + std::string(name);
    std::string header = "\n" + std::string(open) + path + std::string(close) + "\n";
    later_.push_back([this, path, header = std::move(header), &sub] {
      out_ += header;
      Writer inner(out_, path);
      keys(inner, sub);
      inner.finish();
    });
  }

  std::string& out_;
  std::string path_;
  std::vector<std::function<void()>> later_;
};

}  // namespace

std::string save(const Config& config) {
  Config copy = config;
  std::string out;
  Writer writer(out, "");
  keys(writer, copy);
  writer.finish();
  return out;
}

}  // namespace twp::config

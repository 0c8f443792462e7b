#include "measure/command/report.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/context.h"
#include "core/error.h"
#include "core/file.h"
#include "core/runtime.h"
#include "dispatch/machine.h"
#include "kernels/threads.h"

namespace plumb::command {

using detail::check_writable;
using detail::is_stream;
namespace {

namespace fs = std::filesystem;

// If the stream is the standard output, the text follows what was printed before.
void write_stream(const std::string& file, const std::string& text) {
  std::fflush(stdout);
  const detail::FilePointer f(std::fopen(file.c_str(), "abe"));
  const bool good = f && std::fwrite(text.data(), 1, text.size(), f.get()) == text.size() && std::fflush(f.get()) == 0;
  PLUMB_CHECK(good, "{} cannot be written: {}", file, std::strerror(errno));
}

}  // namespace

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  const auto place = [&](const std::string& p) { return fs::weakly_canonical(fs::absolute(p), error); };
  return !is_stream(a) && !is_stream(b) && place(a) == place(b);
}

std::string where(Device d) {
  if (!d.is_cpu()) return fmt::format("{} ({})", to_string(d), runtime_of(d).properties().name);
  return fmt::format("{} thread{}", threads(), threads() == 1 ? "" : "s");
}

nlohmann::ordered_json environment_json(Device d) {
  std::vector<std::string> libraries = library_versions();
  for (std::string& of_device : device_library_versions(d)) libraries.push_back(std::move(of_device));
  nlohmann::ordered_json j{{"plumbline", version()}, {"processor", cpu_model()}, {"isa", cpu_isa()},
                           {"libraries", libraries}, {"threads", threads()},     {"compiler", __VERSION__},
                           {"device", to_string(d)}};
  if (!d.is_cpu()) j["device_name"] = runtime_of(d).properties().name;
  return j;
}

nlohmann::ordered_json memory_json(const MemoryStats& stats) {
  nlohmann::ordered_json j;
  for (int c = 0; c < kMemoryClassCount; ++c)
    j[to_string(static_cast<MemoryClass>(c))] = stats.at_peak_bytes[static_cast<size_t>(c)];
  j["total"] = stats.peak_total();
  j["reserved"] = stats.reserved_bytes;
  return j;
}

double shown(double loss) { return std::fabs(loss); }  // a loss is never negative; this drops a NaN's sign

bool note(const std::string& text) { return std::fputs(text.c_str(), stderr) >= 0 && std::fflush(stderr) == 0; }

void warn_of_loss(double loss, const std::string& which, const std::string& advice) {
  if (!std::isfinite(loss)) note(fmt::format("plumb: {} is {}; {}\n", which, shown(loss), advice));
}

void write_text(const std::string& file, const std::string& text) {
  if (is_stream(file)) return write_stream(file, text);
  const std::span<const std::byte> piece = std::as_bytes(std::span(text));
  detail::write_file(file, {&piece, 1});
}

void write_json(const std::string& file, const nlohmann::ordered_json& json) { write_text(file, json.dump(1) + "\n"); }

void check_distinct(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  std::vector<NamedFile> known = inputs;
  for (const NamedFile& file : outputs) {
    if (file.path.empty()) continue;
    for (const NamedFile& other : known) {
      if (other.path.empty()) continue;
      PLUMB_CHECK(!is_same_file(file.path, other.path), "{} and {} name the same file {}; give them one each",
                  other.option, file.option, file.path);
    }
    known.push_back(file);
  }
}

void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  check_distinct(outputs, inputs);
  for (const auto& [option, path] : outputs) {
    if (!path.empty() && !is_stream(path)) check_writable(path);
    PLUMB_CHECK(!is_stream(path) || ::access(path.c_str(), W_OK) == 0, "{} cannot be written: {}", path,
                std::strerror(errno));
  }
}

std::vector<NamedFile> files_of(std::initializer_list<const datasets::Dataset*> sets) {
  std::vector<NamedFile> files;
  for (const datasets::Dataset* set : sets) {
    for (const std::string& file : set->files) files.push_back({"--data", file});
  }
  return files;
}

void check_writable_in(const std::string& folder, const std::string& file) {
  std::error_code error;
  fs::path nearest = fs::absolute(folder);
  for (; !fs::exists(nearest, error); nearest = nearest.parent_path()) {
    PLUMB_CHECK(!error, "{} cannot be written: {}", folder, error.message());
    PLUMB_CHECK(!fs::is_symlink(nearest, error), "{} cannot be written: {} is a link to nothing", folder,
                nearest.string());
    PLUMB_CHECK(nearest.filename().native().size() <= NAME_MAX, "{} cannot be written: {}", folder,
                std::strerror(ENAMETOOLONG));
  }
  PLUMB_CHECK(fs::is_directory(nearest, error), "{} cannot be written: {} is a file, not a folder", folder,
              nearest.string());
  const bool is_there = fs::exists(folder, error);
  check_writable(is_there ? folder / fs::path(file) : nearest / ("." + file), is_there ? "" : folder);
}

std::string in_mb(double bytes) { return fmt::format("{:.1f} MB", bytes / 1e6); }

ProgressBar::ProgressBar(std::string title) : title_(std::move(title)), on_terminal_(isatty(STDERR_FILENO) != 0) {}
ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::update(int64_t done, int64_t total, const std::string& note) {
  if (!on_terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (done < total && now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  constexpr int kWidth = 30;
  const auto filled = static_cast<size_t>(kWidth * done / std::max<int64_t>(total, 1));
  on_terminal_ = command::note(fmt::format("\r\033[K{} [{}{}] {}/{} {}", title_, std::string(filled, '#'),
                                           std::string(kWidth - filled, '.'), done, total, note));
}

void ProgressBar::clear() {
  if (on_terminal_) on_terminal_ = note("\r\033[K");
}

}  // namespace plumb::command

#include "app/report.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "core/context.h"
#include "core/error.h"
#include "kernels/machine.h"

namespace plumb::app {

nlohmann::ordered_json environment_json() {
  return {{"processor", cpu_model()},
          {"isa", cpu_isa()},
          {"libraries", library_versions()},
          {"threads", threads()},
          {"compiler", __VERSION__}};
}

nlohmann::ordered_json memory_json(const MemoryStats& stats) {
  nlohmann::ordered_json j;
  for (int c = 0; c < kMemoryClassCount; ++c)
    j[to_string(static_cast<MemoryClass>(c))] = stats.at_peak_bytes[static_cast<size_t>(c)];
  j["total"] = stats.peak_total();
  j["reserved"] = stats.reserved_bytes;
  return j;
}

void write_text(const std::string& file, const std::string& text) {
  const std::string aside = file + ".partial";
  std::FILE* f = std::fopen(aside.c_str(), "wb");
  PLUMB_CHECK(f, "{} cannot be written: {}", file, std::strerror(errno));
  const bool complete = std::fwrite(text.data(), 1, text.size(), f) == text.size();
  const bool closed = std::fclose(f) == 0;
  if (complete && closed && std::rename(aside.c_str(), file.c_str()) == 0) return;
  const int reason = errno;
  std::remove(aside.c_str());
  fail("{} cannot be written: {}", file, std::strerror(reason));
}

void check_writable(const std::string& file) {
  if (file.empty()) return;
  namespace fs = std::filesystem;
  const fs::path folder = fs::absolute(file).parent_path();
  PLUMB_CHECK(fs::is_directory(folder), "{} cannot be written: the folder {} does not exist", file, folder.string());
  PLUMB_CHECK(!fs::is_directory(file), "{} cannot be written: it is a folder", file);
  PLUMB_CHECK(::access(folder.c_str(), W_OK) == 0, "{} cannot be written: no permission to write to {}", file,
              folder.string());
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
  fmt::print(stderr, "\r\033[K{} [{}{}] {}/{} {}", title_, std::string(filled, '#'), std::string(kWidth - filled, '.'),
             done, total, note);
  std::fflush(stderr);
}

void ProgressBar::clear() {
  if (on_terminal_) fmt::print(stderr, "\r\033[K");
}

}  // namespace plumb::app

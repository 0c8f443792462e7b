#include "app/report.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/context.h"
#include "core/error.h"
#include "kernels/machine.h"

namespace plumb::app {
namespace {

namespace fs = std::filesystem;

// What may be replaced by a file that was written aside. Elsewhere that would put a plain file in a device's place.
bool is_replaceable(const fs::path& file) {
  const fs::file_type type = fs::symlink_status(file).type();
  return type == fs::file_type::regular || type == fs::file_type::not_found;
}

// Permissions do not tell all: some file systems refuse even those who may write.
void try_a_file(const std::string& wanted, const fs::path& folder) {
  std::string name = (folder / ".plumb-XXXXXX").string();
  const int file = ::mkstemp(name.data());
  PLUMB_CHECK(file >= 0, "{} cannot be written: {}", wanted, std::strerror(errno));
  ::close(file);
  ::unlink(name.c_str());
}

}  // namespace

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
  const bool aside = is_replaceable(file);
  const std::string target = aside ? file + ".partial" : file;
  std::FILE* f = std::fopen(target.c_str(), "wb");
  PLUMB_CHECK(f, "{} cannot be written: {}", file, std::strerror(errno));
  int error = std::fwrite(text.data(), 1, text.size(), f) == text.size() ? 0 : errno;
  if (std::fclose(f) != 0 && !error) error = errno;
  if (!error && aside && std::rename(target.c_str(), file.c_str()) != 0) error = errno;
  if (!error) return;
  if (aside) std::remove(target.c_str());
  fail("{} cannot be written: {}", file, std::strerror(error));
}

void check_writable(const std::string& file) {
  if (file.empty()) return;
  PLUMB_CHECK(!fs::is_directory(file), "{} cannot be written: it is a folder", file);
  if (!is_replaceable(file)) {
    PLUMB_CHECK(::access(file.c_str(), W_OK) == 0, "{} cannot be written: {}", file, std::strerror(errno));
    return;
  }
  const fs::path folder = fs::absolute(file).parent_path();
  PLUMB_CHECK(fs::is_directory(folder), "{} cannot be written: the folder {} does not exist", file, folder.string());
  try_a_file(file, folder);
}

void check_folder_writable(const std::string& folder) {
  fs::path nearest = fs::absolute(folder);
  while (!fs::exists(nearest) && nearest.has_relative_path()) nearest = nearest.parent_path();
  PLUMB_CHECK(fs::is_directory(nearest), "{} cannot be written: {} is not a folder", folder, nearest.string());
  try_a_file(folder, nearest);
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

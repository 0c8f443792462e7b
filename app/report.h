// What the subcommands print and write: environment, memory, files, the progress bar.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "core/memory.h"

namespace plumb::app {

/// Processor, instructions, libraries, threads, version.
nlohmann::ordered_json environment_json();
/// Bytes by class at the peak, and what the process took from the system.
nlohmann::ordered_json memory_json(const MemoryStats& stats);
/// Writes a whole file or throws; the file appears only when it is complete. Devices, pipes and links stay what they
/// are and are written to.
void write_text(const std::string& file, const std::string& text);
/// Throws a sentence now if a file could not be written there later; an empty name is no file.
void check_writable(const std::string& file);
/// The same for a folder that is to be made, with those above it, and written to.
void check_folder_writable(const std::string& folder);
/// Bytes in MB, "313.3 MB".
std::string in_mb(double bytes);

/// One line on a terminal that is rewritten; silent elsewhere.
class ProgressBar {
 public:
  explicit ProgressBar(std::string title);
  ~ProgressBar();
  void update(int64_t done, int64_t total, const std::string& note);
  void clear();

 private:
  std::string title_;
  bool on_terminal_;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace plumb::app

// What the subcommands print and write: environment, memory, files, the progress bar.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/memory.h"
#include "data/dataset.h"

namespace plumb::command {

/// Where a result comes from: "2 threads", or "cuda:0 (emulated)".
std::string where(Device d);
/// Plumbline's version, processor, instructions, libraries, threads, compiler, and the device of the result, a GPU's
/// with its own name.
nlohmann::ordered_json environment_json(Device d = Device());
/// Bytes by class at the peak, and what the process took from the system.
nlohmann::ordered_json memory_json(const MemoryStats& stats);
/// A loss for people: without the sign that a NaN may have.
double shown(double loss);
/// Says on stderr that "the loss of epoch 1" is no finite number, if it is none, and what to do.
void warn_of_loss(double loss, const std::string& which, const std::string& advice);

/// Writes a text to a file as write_file does, or to a stream as it is.
void write_text(const std::string& file, const std::string& text);
/// The same for JSON, a line a value.
void write_json(const std::string& file, const nlohmann::ordered_json& json);
/// Whether writing to one of two files would change the other. Streams do not mind.
bool is_same_file(const std::string& a, const std::string& b);
/// A file that an option names.
struct NamedFile {
  const char* option;
  std::string path;  ///< empty: the option was not given
};
/// Throws a sentence if an output is the same file as another output or an input.
void check_distinct(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);
/// The same, and throws now if an output could not be written later.
void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs = {});
/// The files of --data that sets were read from, as inputs of check_distinct.
std::vector<NamedFile> files_of(std::initializer_list<const datasets::Dataset*> sets);
/// Throws a sentence now if a file in a folder, which is to be made with those above it, could not be written later.
void check_writable_in(const std::string& folder, const std::string& file);
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

}  // namespace plumb::command

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

/// Where a result was computed: "2 threads", or "cuda:0 (emulated)".
std::string where(Device d);
/// Plumbline's version, processor, instructions, libraries, threads, compiler, and the device of the result; for a GPU
/// also its name.
nlohmann::ordered_json environment_json(Device d = Device());
/// Bytes by class at the peak, and the bytes taken from the system.
nlohmann::ordered_json memory_json(const MemoryStats& stats);
/// A loss for people: a NaN is shown without its sign.
double shown(double loss);
/// Writes to stderr; whether that could be done. Where it could not, as on a terminal that was closed, nothing else
/// has to end for it.
bool note(const std::string& text);
/// If the loss is not finite, says so on stderr, with its name ("the loss of epoch 1") and the advice.
void warn_of_loss(double loss, const std::string& which, const std::string& advice);

/// Writes a text to a file by write_file, or directly to a stream.
void write_text(const std::string& file, const std::string& text);
/// The same for JSON, one value per line.
void write_json(const std::string& file, const nlohmann::ordered_json& json);
/// Whether both are the same file, so that writing one would change the other. False for streams.
bool is_same_file(const std::string& a, const std::string& b);
/// A file that an option names.
struct NamedFile {
  const char* option;
  std::string path;  ///< empty: the option was not given
};
/// Throws if an output is the same file as another output or an input.
void check_distinct(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);
/// The same, and throws now if an output could not be written later.
void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs = {});
/// The files of --data from which the sets were read, as inputs of check_distinct.
std::vector<NamedFile> files_of(std::initializer_list<const datasets::Dataset*> sets);
/// Throws now if a file in a folder could not be written later; the folder and those above it need not exist yet.
void check_writable_in(const std::string& folder, const std::string& file);
/// A number of bytes in MB: "313.3 MB".
std::string in_mb(double bytes);

/// A line that is rewritten on a terminal; silent elsewhere.
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

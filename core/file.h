// Files: opened with everything checked, and written whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace plumb::detail {

/// A text without line breaks and other characters that a terminal would obey: '?' stands for each.
std::string on_one_line(std::string_view text);
/// A text of a user's or of a file's for a message: on one line, and not long.
std::string shortened(std::string_view text);
/// The same in quotes.
std::string in_quotes(std::string_view text);

struct CloseFile {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using FilePointer = std::unique_ptr<std::FILE, CloseFile>;

/// A regular file that is open for reading.
struct InputFile {
  FilePointer stream;
  int64_t bytes = 0;  ///< its size when it was opened
};
/// Opens a file. Throws a sentence that names it, with `whose` in front ("mnist: "), when it is missing, a folder, no
/// regular file or may not be read.
InputFile open_input(const std::filesystem::path& path, std::string_view whose = "");

/// Whether a path is a device, a pipe or what the standard output goes to: it can be written to, but not replaced.
bool is_stream(const std::filesystem::path& path);
/// Throws now what write_file would throw before it writes. The sentence names `called`, or the path if it is empty.
void check_writable(const std::filesystem::path& path, const std::string& called = "");
/// Writes the pieces one after another into a file: into a new one beside it, which is brought to the disk and renamed,
/// so that an old file stays whole whatever happens. Links to files are followed and stay. Throws a sentence that names
/// the file when it cannot be written; nothing is left then.
void write_file(const std::filesystem::path& path, std::span<const std::span<const std::byte>> pieces);

}  // namespace plumb::detail

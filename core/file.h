// Files: opened with every check, and written completely or not at all.
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

/// The text with line breaks and other control characters replaced by '?', so that a terminal obeys none of them.
std::string on_one_line(std::string_view text);
/// A text from a user or a file, fit for a message: on one line, and cut after 80 characters.
std::string shortened(std::string_view text);
/// The shortened text in quotes.
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
/// Opens a file. Throws a sentence that names it, with `whose` in front ("mnist: "), if it is missing, a folder, not a
/// regular file, or not readable.
InputFile open_input(const std::filesystem::path& path, std::string_view whose = "");

/// Whether a path is a device, a pipe or the target of standard output or error: writable, but not replaceable.
bool is_stream(const std::filesystem::path& path);
/// Throws what write_file would throw before it writes. The sentence names `called`, or the path if `called` is empty.
void check_writable(const std::filesystem::path& path, const std::string& called = "");
/// Writes the pieces one after another into a new file beside `path`, flushes it to the disk, and renames it over
/// `path`: an old file stays whole whatever happens. A link to a file stays, and its target is replaced. Throws a
/// sentence that names the file when it cannot be written, and leaves nothing behind.
void write_file(const std::filesystem::path& path, std::span<const std::span<const std::byte>> pieces);

}  // namespace plumb::detail

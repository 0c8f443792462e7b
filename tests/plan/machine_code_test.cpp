// The code of our kernels, as nvcc wrote it into this program. What a constexpr function calls that is the host's
// alone, nvcc takes for what never happens, and says nothing: the kernel is left without a result.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/folder.h"

namespace plumb {
namespace {

// The end of a kernel whose text begins so: of the braces that hold its instructions. 0 where there is none.
size_t end_of(std::string_view text) {
  int depth = 0;
  for (size_t i = text.find('{'); i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return i;
  }
  return 0;
}
// The kernels that a program holds as PTX: each from its name to its end.
std::vector<std::string_view> kernels_in(std::string_view program) {
  constexpr std::string_view kEntry = ".entry _Z";
  std::vector<std::string_view> all;
  for (size_t at = program.find(kEntry); at != program.npos; at = program.find(kEntry, at + 1)) {
    const std::string_view text = program.substr(at + kEntry.size() - 2);
    const auto is_of_name = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '$'; };
    const auto after_name = std::ranges::find_if_not(text, is_of_name);
    if (after_name == text.end() || *after_name != '(') continue;  // the words above
    if (const size_t end = end_of(text)) all.push_back(text.substr(0, end));
  }
  return all;
}

bool has_instruction(std::string_view kernel, std::string_view name) {
  for (size_t at = kernel.find(name); at != kernel.npos; at = kernel.find(name, at + 1)) {
    const std::string_view where = kernel.substr(at + name.size(), 6);  // not memory of its own
    const bool is_own = where.starts_with("param") || where.starts_with("local") || where.starts_with("shared");
    if (!is_own && std::string_view(" \t\n").find(kernel[at - 1]) != std::string_view::npos) return true;
  }
  return false;
}
// Whether it stores to the device's memory.
bool writes(std::string_view kernel) {
  return has_instruction(kernel, "st.") || has_instruction(kernel, "red.") || has_instruction(kernel, "atom.");
}

TEST(MachineCodeTest, EveryKernelWrites) {
  const std::string program = test::content(std::filesystem::read_symlink("/proc/self/exe"));
  const std::vector<std::string_view> kernels = kernels_in(program);
  RecordProperty("kernels", static_cast<int>(kernels.size()));
  EXPECT_GT(kernels.size(), 700u) << "it is compressed; configure with PLUMB_CUDA_COMPRESS=OFF";
  for (const std::string_view k : kernels) EXPECT_TRUE(writes(k)) << k.substr(0, k.find('('));
}

}  // namespace
}  // namespace plumb

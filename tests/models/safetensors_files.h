// Files in a folder of the test's own.
#pragma once

#include <gtest/gtest.h>

#include <fstream>

#include "models/safetensors.h"
#include "tests/support/compare.h"
#include "tests/support/folder.h"

namespace plumb::models {

namespace fs = std::filesystem;
using test::content;

/// Files in a folder of the test's own, removed at its end.
class Safetensors : public ::testing::Test {
 protected:
  void put_bytes(const std::string& bytes) const {
    fs::remove(file_);  // some file systems bring a file that is overwritten to the disk at once
    std::ofstream(file_, std::ios::binary) << bytes;
  }
  /// A file of a header, with its length in front, and so many bytes of data.
  void put(const std::string& header, size_t data_bytes = 0) const {
    const uint64_t length = header.size();
    put_bytes(std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data_bytes, 'x'));
  }
  /// The sentence that loading throws, on one line and beginning with the file.
  std::string refusal() const {
    std::string text = test::error_of([&] { load_safetensors(file_); });
    if (text == test::kNothingThrown) return text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_NE(text.find(file_.string()), std::string::npos) << text;
    EXPECT_LT(text.size(), 500u);
    return text;
  }
  testing::AssertionResult refuses(const std::string& header, size_t data_bytes, const std::string& part) const {
    put(header, data_bytes);
    const std::string text = refusal();
    if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
    return testing::AssertionFailure() << header.substr(0, 200) << "\n  gives: " << text << "\n  not: " << part;
  }
  /// A header with one tensor "w" whose three fields are these.
  static std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"w":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  }

  const test::Folder own_folder_;
  const fs::path folder_ = own_folder_.path(), file_ = folder_ / "a.safetensors";
};

}  // namespace plumb::models

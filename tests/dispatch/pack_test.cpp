#include "dispatch/pack.h"

#include <gtest/gtest.h>

#include "tests/support/compare.h"

namespace plumb {
namespace {

std::unique_ptr<Kernel> no_packer(const TensorSpec&) { return nullptr; }

struct Key {
  int64_t rows;
  bool operator==(const Key&) const = default;
};

TEST(Pack, EqualKeysAreOneFormatWhateverTheNames) {
  const Layout four = register_pack(Key{4}, {"rows", 64, no_packer});
  EXPECT_EQ(register_pack(Key{4}, {"rows", 64, no_packer}), four);
  EXPECT_NE(register_pack(Key{8}, {"rows", 128, no_packer}), four);
  EXPECT_EQ(detail::pack_bytes(four), 64u);
}

TEST(Pack, KeysOfDifferentTypesAreDifferentFormats) {
  const Layout number = register_pack(int64_t{4}, {"number", 64, no_packer});
  EXPECT_NE(register_pack(int32_t{4}, {"number", 64, no_packer}), number);
  EXPECT_NE(register_pack(Key{4}, {"number", 64, no_packer}), number);
}

TEST(Pack, OneThatNobodyRegisteredIsASentence) {
  const Layout alone = detail::new_pack("alone", 64);
  EXPECT_TRUE(test::refused([&] { detail::make_packer(TensorSpec(Shape{16}), alone); }, "pack alone has no packer"));
}

}  // namespace
}  // namespace plumb

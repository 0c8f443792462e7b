// Files that are not what they should be are refused with a sentence.
#include "tests/models/safetensors_files.h"

namespace plumb::models {
namespace {

using test::refused;

class SafetensorsHeader : public Safetensors {};

TEST_F(SafetensorsHeader, RefusesLengthsThatDoNotFit) {
  EXPECT_EQ(refusal(), "the file " + file_.string() + " is missing");
  put_bytes("");
  EXPECT_NE(refusal().find("it is cut short: it has 0 bytes"), std::string::npos);
  put_bytes("1234567");
  EXPECT_NE(refusal().find("it is cut short: it has 7 bytes"), std::string::npos);
  put_bytes(std::string("\x03\0\0\0\0\0\0\0{}", 10));
  EXPECT_NE(refusal().find("it is cut short: its header has 3 bytes"), std::string::npos);
  put_bytes(std::string(8, '\xff'));
  EXPECT_NE(refusal().find("18446744073709551615 bytes, too many"), std::string::npos);
  put_bytes(std::string(8, '\0'));
  EXPECT_NE(refusal().find("does not begin with {"), std::string::npos);
  const uint64_t length = 100'000'001;
  put_bytes(std::string(reinterpret_cast<const char*>(&length), 8));
  fs::resize_file(file_, 200'000'000);  // a hole, which takes no room on the disk
  EXPECT_NE(refusal().find("100000001 bytes, too many"), std::string::npos);
}

TEST_F(SafetensorsHeader, RefusesWhatIsNoFile) {
  EXPECT_TRUE(refused([&] { load_safetensors(folder_); }, "is a folder, not a file"));
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(refused([&] { load_safetensors(pipe); }, "is not a regular file"));
}

TEST_F(SafetensorsHeader, RefusesWhatIsNotJson) {
  for (const std::string header :
       {"{", "{\"w\"", "{]", "{,}", "{}}", "{} x", "{\"w\":1e999}", "{/**/}", "{'a':1}", "{\"\xff\":1}"}) {
    EXPECT_TRUE(refuses(header, 0, "its header is not JSON at byte ")) << header;
  }
  EXPECT_TRUE(refuses(std::string("{}\0", 3), 0, "its header has a zero byte"));
  for (const std::string header : {"[]", " {}", "\xef\xbb\xbf{}", "1", "null", "PK\x03\x04"}) {
    EXPECT_TRUE(refuses(header, 0, "its header does not begin with {")) << header;
  }
}

TEST_F(SafetensorsHeader, RefusesWrongTypes) {
  EXPECT_TRUE(refuses(R"({"w":1})", 0, "tensor \"w\" is 1, not an object"));
  EXPECT_TRUE(refuses(R"({"w":[]})", 0, "tensor \"w\" is a list, not an object"));
  EXPECT_TRUE(refuses(R"({"w":null})", 0, "tensor \"w\" is null, not an object"));
  EXPECT_TRUE(refuses(one("4", "[1]", "[0,4]"), 4, "the dtype of tensor \"w\" is 4, not a text"));
  EXPECT_TRUE(refuses(one("[\"F32\"]", "[1]", "[0,4]"), 4, "the dtype of tensor \"w\" is a list, not a text"));
  EXPECT_TRUE(refuses(one("\"F32\"", "1", "[0,4]"), 4, "the shape of tensor \"w\" is 1, not a list"));
  EXPECT_TRUE(refuses(one("\"F32\"", "{}", "[0,4]"), 4, "the shape of tensor \"w\" is an object, not a list"));
  EXPECT_TRUE(
      refuses(one("\"F32\"", "[\"1\"]", "[0,4]"), 4, "the shape of tensor \"w\" has \"1\", not a whole number"));
  EXPECT_TRUE(refuses(one("\"F32\"", "[1.0]", "[0,4]"), 4, "has \"1.0\", not a whole number"));
  EXPECT_TRUE(refuses(one("\"F32\"", "[true]", "[0,4]"), 4, "has a boolean, not a whole number"));
  EXPECT_TRUE(refuses(one("\"F32\"", "[1]", "true"), 4, "the data_offsets of tensor \"w\" is a boolean, not a list"));
  EXPECT_TRUE(refuses(one("\"F32\"", "[1]", "[0]"), 4, "the data_offsets of tensor \"w\" are not two numbers"));
  EXPECT_TRUE(refuses(one("\"F32\"", "[1]", "[0,2,4]"), 4, "the data_offsets of tensor \"w\" has more than 2 numbers"));
}

TEST_F(SafetensorsHeader, RefusesMissingUnknownAndRepeatedNames) {
  EXPECT_TRUE(refuses(R"({"w":{}})", 0, "tensor \"w\" has no dtype"));
  EXPECT_TRUE(refuses(R"({"w":{"dtype":"F32"}})", 0, "tensor \"w\" has no shape"));
  EXPECT_TRUE(refuses(R"({"w":{"dtype":"F32","shape":[]}})", 4, "tensor \"w\" has no data_offsets"));
  EXPECT_TRUE(refuses(R"({"w":{"stride":[1]}})", 0, "tensor \"w\" has the unknown field \"stride\""));
  EXPECT_TRUE(refuses(R"({"w":{"dtype":"F32","dtype":"F64"}})", 0, "tensor \"w\" has \"dtype\" twice"));
  const std::string w = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_TRUE(refuses("{\"w\":" + w + ",\"v\":" + w + ",\"w\":" + w + "}", 0, "it has tensor \"w\" twice"));
  EXPECT_TRUE(refuses(R"({"__metadata__":{},"__metadata__":{}})", 0, "it has the entry \"__metadata__\" twice"));
  // What one tensor says is not taken for the next.
  EXPECT_TRUE(refuses("{\"w\":" + w + ",\"v\":{}}", 0, "tensor \"v\" has no dtype"));
}

TEST_F(SafetensorsHeader, RefusesWrongMetadata) {
  EXPECT_TRUE(refuses(R"({"__metadata__":1})", 0, "the entry \"__metadata__\" is 1, not an object"));
  EXPECT_TRUE(refuses(R"({"__metadata__":{"k":1}})", 0, "\"k\" in the entry \"__metadata__\" is 1, not a text"));
  EXPECT_TRUE(refuses(R"({"__metadata__":{"k":null}})", 0, "is null, not a text"));
  EXPECT_TRUE(refuses(R"({"__metadata__":{"k":{"l":"m"}}})", 0, "is an object, not a text"));
  EXPECT_TRUE(refuses(R"({"__metadata__":{"k":["l"]}})", 0, "is a list, not a text"));
  EXPECT_TRUE(refuses(R"({"__metadata__":{"k":"1","k":"2"}})", 0, "the entry \"__metadata__\" has \"k\" twice"));
}

TEST_F(SafetensorsHeader, RefusesDTypesThatAreNotOurs) {
  for (const std::string t : {"BOOL", "I8", "I16", "U16", "U32", "U64", "F8_E4M3", "F8_E5M2", "f32", "F32 ", ""}) {
    EXPECT_TRUE(
        refuses(one("\"" + t + "\"", "[4]", "[0,4]"), 4, "tensor \"w\" has dtype \"" + t + "\"; supported are F32"));
  }
}

TEST_F(SafetensorsHeader, RefusesWrongShapes) {
  EXPECT_TRUE(refuses(one("\"F32\"", "[-1]", "[0,4]"), 4, "the shape of tensor \"w\" has -1, not a whole number"));
  EXPECT_TRUE(refuses(one("\"F32\"", "[1,1,1,1,1,1,1]", "[0,4]"), 4, "tensor \"w\" has more than 6 dimensions"));
  for (const std::string shape : {"[9223372036854775807]", "[4294967296,4294967296]", "[4611686018427387904,4]",
                                  "[65536,65536,65536,65536]", "[2305843009213693952,8,0]"}) {
    EXPECT_TRUE(refuses(one("\"F32\"", shape, "[0,4]"), 4, "tensor \"w\": shape (")) << shape;
  }
  for (const std::string huge : {"9223372036854775808", "18446744073709551615"}) {
    EXPECT_TRUE(refuses(one("\"F32\"", "[" + huge + "]", "[0,4]"), 4, "has " + huge + ", not a whole number"));
    EXPECT_TRUE(refuses(one("\"F32\"", "[1]", "[0," + huge + "]"), 4, "has " + huge + ", not a whole number"));
  }
  EXPECT_TRUE(refuses(one("\"F32\"", "[18446744073709551617]", "[0,4]"), 4, "not a whole number"));
  EXPECT_TRUE(refuses(one("\"F32\"", "[2]", "[0,4]"), 4, "tensor \"w\" has 4 bytes of data, but f32 (2) nchw takes 8"));
  EXPECT_TRUE(refuses(one("\"F32\"", "[]", "[0,0]"), 0, "tensor \"w\" has 0 bytes of data, but f32 () nchw takes 4"));
  EXPECT_TRUE(refuses(one("\"F32\"", "[0]", "[0,4]"), 4, "tensor \"w\" has 4 bytes of data, but f32 (0) nchw takes 0"));
}

TEST_F(SafetensorsHeader, RefusesDataWithHolesAndOverlaps) {
  const auto two = [](const std::string& a, const std::string& b) {
    const auto entry = [](const std::string& o) { return R"({"dtype":"U8","shape":[4],"data_offsets":)" + o + "}"; };
    return "{\"a\":" + entry(a) + ",\"b\":" + entry(b) + "}";
  };
  EXPECT_TRUE(refuses(two("[4,0]", "[4,8]"), 8, "the data of tensor \"a\" ends at byte 0, before it begins at 4"));
  EXPECT_TRUE(refuses(two("[0,4]", "[0,4]"), 4, "the data of tensor \"b\" overlaps that of another"));
  EXPECT_TRUE(refuses(two("[2,6]", "[0,4]"), 6, "the data of tensor \"a\" overlaps that of another"));
  EXPECT_TRUE(refuses(two("[0,4]", "[5,9]"), 9, "1 bytes before the data of tensor \"b\" belong to no tensor"));
  EXPECT_TRUE(refuses(two("[8,12]", "[4,8]"), 12, "4 bytes before the data of tensor \"b\" belong to no tensor"));
  EXPECT_TRUE(refuses(two("[0,4]", "[4,8]"), 9, "1 bytes after the last tensor belong to none"));
  EXPECT_TRUE(refuses(two("[0,4]", "[4,8]"), 7, "it is cut short: the data of tensor \"b\" ends at byte 8 of 7"));
  EXPECT_TRUE(refuses("{}", 1, "1 bytes after the last tensor belong to none"));
  // An empty tensor inside another's data, and one after a hole.
  const std::string four = R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  EXPECT_TRUE(refuses("{" + four + R"(,"e":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})", 4, "\"e\" overlaps"));
  EXPECT_TRUE(refuses("{" + four + R"(,"e":{"dtype":"U8","shape":[0],"data_offsets":[5,5]}})", 4, "1 bytes before"));
}

TEST_F(SafetensorsHeader, AllocatesNothingOnItsWord) {
  const MemoryStats before = cpu_memory().stats();

  EXPECT_TRUE(refuses(one("\"U8\"", "[1099511627776]", "[0,1099511627776]"), 4, "it is cut short"));

  EXPECT_EQ(cpu_memory().stats().allocations, before.allocations);
}

TEST_F(SafetensorsHeader, StopsAtDeepNestingAndShortensLongNames) {
  const std::string deep(1'000'000, '[');
  EXPECT_TRUE(refuses("{\"w\":" + deep, 0, "tensor \"w\" is a list"));
  EXPECT_TRUE(refuses(one("\"F32\"", deep, "[0,4]"), 0, "the shape of tensor \"w\" has a list"));
  EXPECT_TRUE(refuses("{\"__metadata__\":{\"k\":" + deep, 0, "is a list, not a text"));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"w\":";
  EXPECT_TRUE(refuses(objects, 0, "\"w\" has the unknown field \"w\""));
  EXPECT_TRUE(refuses("{\"" + std::string(1'000'000, 'n') + "\\n\":1}", 0, "nnn...\" is 1"));
  EXPECT_EQ(detail::in_quotes("a\nb\x7f"), "\"a?b?\"");
}

TEST_F(SafetensorsHeader, EveryTruncationAndFlippedByteIsRefusedOrLoads) {
  save_safetensors(
      file_, std::vector<NamedTensor>{{"w", Tensor::from({1.f, 2.f}, Shape{2})}, {"v", Tensor::from({7}, Shape{})}},
      {{"k", "v"}});
  const std::string good = content(file_);
  for (size_t n = 0; n < good.size(); ++n) {
    put_bytes(good.substr(0, n));
    EXPECT_NE(refusal(), "nothing was thrown") << n;
  }
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int flip : {1, 2, 8, 32, 128}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      put_bytes(bad);
      refusal();  // no other exception, and no wrong access for the sanitizers to see
    }
  }
}

}  // namespace
}  // namespace plumb::models

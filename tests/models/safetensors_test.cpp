#include "models/safetensors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstring>
#include <fstream>

#include "core/random.h"
#include "models/weights.h"
#include "support/compare.h"

namespace plumb::models {
namespace {

namespace fs = std::filesystem;
using test::bitwise_equal;
using test::refused;

constexpr DType kDTypes[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBf16, DType::kI32, DType::kI64, DType::kU8};

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// While it lives, no file can grow beyond so many bytes: a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit small{bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  FullDisk(const FullDisk&) = delete;
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_{};
  void (*old_handler_)(int);
};

/// Files in a folder of the test's own, removed at its end.
class Safetensors : public ::testing::Test {
 protected:
  Safetensors() {
    std::string name = (fs::temp_directory_path() / "plumb_safetensors_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    file_ = folder_ / "a.safetensors";
  }
  ~Safetensors() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

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
    try {
      load_safetensors(file_);
    } catch (const Error& e) {
      const std::string text = e.what();
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      EXPECT_NE(text.find(file_.string()), std::string::npos) << text;
      EXPECT_LT(text.size(), 500u);
      return text;
    }
    return "nothing was thrown";
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

  fs::path folder_, file_;
};

using SafetensorsHeader = Safetensors;
using SafetensorsSave = Safetensors;
using Weights = Safetensors;

/// Random bits, so that NaNs with payloads and denormal numbers are among them.
Tensor random_bits(const TensorSpec& spec, uint64_t seed) {
  Tensor t = Tensor::empty(spec);
  std::vector<int32_t> bits(spec.bytes() / 4 + 1);
  fill_uniform(bits.data(), DType::kI32, static_cast<int64_t>(bits.size()), -2147483648.0, 2147483648.0, seed);
  std::memcpy(t.value->data, bits.data(), spec.bytes());
  return t;
}

TEST_F(Safetensors, RoundTripsEveryDTypeAndRankBitForBit) {
  std::vector<NamedTensor> tensors;
  for (const DType t : kDTypes) {
    for (const Shape& s : {Shape{}, Shape{3}, Shape{0}, Shape{2, 0, 5}, Shape{3, 4, 5, 7}, Shape{1, 2, 1, 3, 1, 2}}) {
      tensors.push_back({message("{} {}", t, s), random_bits(TensorSpec(s, t), tensors.size() + 1)});
    }
  }
  const std::map<std::string, std::string> metadata{{"a", "1"}, {"", "quote \" and \n line"}, {"ü", "✓"}};

  save_safetensors(file_, tensors, metadata);
  const TensorFile loaded = load_safetensors(file_);

  EXPECT_EQ(loaded.metadata, metadata);
  ASSERT_EQ(loaded.tensors.size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(loaded.tensors[i].name, tensors[i].name);
    EXPECT_TRUE(bitwise_equal(loaded.tensors[i].tensor, tensors[i].tensor)) << tensors[i].name;
    EXPECT_EQ(loaded.tensors[i].tensor.value->memory_class, MemoryClass::kParameter);
  }
}

TEST_F(Safetensors, RoundTripsNoTensorsAndOddNames) {
  save_safetensors(file_, {});
  EXPECT_TRUE(load_safetensors(file_).tensors.empty());
  EXPECT_EQ(content(file_), std::string("\x08\0\0\0\0\0\0\0{}      ", 16));

  const Tensor x = Tensor::from({1.f}, Shape{1});
  const std::vector<NamedTensor> odd{{"", x}, {"a\nb\"c\\", x}, {"größe", x}, {"dtype", x}};
  save_safetensors(file_, odd);
  const TensorFile loaded = load_safetensors(file_);
  for (size_t i = 0; i < odd.size(); ++i) EXPECT_EQ(loaded.tensors[i].name, odd[i].name);
}

TEST_F(Safetensors, ReaderTellsSpecsBeforeReading) {
  save_safetensors(file_, std::vector<NamedTensor>{{"w", Tensor::from({1.f, 2.f}, Shape{2})}}, {{"k", "v"}});

  const TensorFileReader reader(file_);

  ASSERT_EQ(reader.entries().size(), 1u);
  EXPECT_EQ(reader.entries()[0].spec, TensorSpec(Shape{2}));
  EXPECT_EQ(reader.metadata().at("k"), "v");
  EXPECT_TRUE(refused([&] { reader.read(reader.entries()[0], Tensor::empty(TensorSpec(Shape{3}))); }, "f32 (2) nchw"));
}

TEST_F(Safetensors, OrdersByDataAndTakesPaddingAndAnyOrderOfFields) {
  put(R"({"b":{"data_offsets":[4,8],"shape":[1],"dtype":"I32"} , "z":{"shape":[0,9],"data_offsets":[4,4],"dtype":"F64"},
          "a":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]}}      )",
      8);

  const TensorFile loaded = load_safetensors(file_);

  ASSERT_EQ(loaded.tensors.size(), 3u);
  EXPECT_EQ(loaded.tensors[0].name, "a");
  EXPECT_EQ(loaded.tensors[1].tensor.shape(), (Shape{0, 9}));
  EXPECT_EQ(loaded.tensors[2].tensor.data<int32_t>()[0], 0x78787878);
}

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
  EXPECT_TRUE(refused([&] { load_safetensors(folder_); }, "is not a regular file"));
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
  EXPECT_TRUE(
      refuses(one("\"F32\"", "[1,1,1,1,1,1,1]", "[0,4]"), 4, "the shape of tensor \"w\" has more than 6 numbers"));
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
  EXPECT_EQ(in_quotes("a\nb\x7f"), "\"a?b?\"");
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

TEST_F(SafetensorsSave, WritesTheBytesOfTheFormat) {
  const std::vector<NamedTensor> tensors{{"b", Tensor::from({1.f, -2.f}, Shape{2, 1})},
                                         {"a", Tensor::from<uint8_t>({7, 8, 9}, Shape{3})}};

  save_safetensors(file_, tensors, {{"y", "2"}, {"x", "1"}});

  const std::string header =
      R"({"__metadata__":{"x":"1","y":"2"},"b":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("a":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})";
  std::string expected = header + std::string((8 - header.size() % 8) % 8, ' ');
  expected = std::string(1, static_cast<char>(expected.size())) + std::string(7, '\0') + expected;
  expected += std::string("\0\0\x80\x3f\0\0\0\xc0\x07\x08\x09", 11);
  EXPECT_EQ(content(file_), expected);
  EXPECT_FALSE(fs::exists(file_.string() + ".partial"));
}

TEST_F(SafetensorsSave, RefusesWhatCannotBeStored) {
  const Tensor x = Tensor::from({1.f}, Shape{1});
  const auto save = [&](const NamedTensor& t) {
    return [=, this] { save_safetensors(file_, std::vector{t, {"x", x}}); };
  };

  const Tensor nhwc = Tensor::empty(TensorSpec(Shape{1, 2, 2, 2}, DType::kF32, Layout::kNhwc));
  EXPECT_TRUE(refused(save({"w", nhwc}), "tensor \"w\" is in layout nhwc; convert it to nchw"));
  EXPECT_TRUE(refused(save({"w", Tensor()}), "tensor \"w\" is empty"));
  EXPECT_TRUE(refused(save({"w", Tensor(Value::make(x.spec(), MemoryClass::kActivation, true))}), "captured"));
  EXPECT_TRUE(refused(save({"x", x}), "the name \"x\" is taken"));
  EXPECT_TRUE(refused(save({"__metadata__", x}), "the name \"__metadata__\" is taken"));
  EXPECT_TRUE(refused(save({"\xff", x}), "is not UTF-8"));
  EXPECT_TRUE(refused([&] { save_safetensors(file_, {}, {{"k", "\xc0\x80"}}); }, "is not UTF-8"));
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(SafetensorsSave, KeepsTheOldFileWhenTheDiskIsFull) {
  save_safetensors(file_, std::vector<NamedTensor>{{"w", Tensor::from({1.f}, Shape{1})}});
  const std::string old = content(file_);
  const std::vector<NamedTensor> large{{"w", random_bits(TensorSpec(Shape{100'000}), 1)}};

  for (const rlim_t bytes : {0, 50, 100, 4096, 399'000}) {
    const FullDisk full(bytes);
    EXPECT_TRUE(
        refused([&] { save_safetensors(file_, large); }, file_.string() + " cannot be written: File too large"));
  }

  EXPECT_EQ(content(file_), old);
  EXPECT_FALSE(fs::exists(file_.string() + ".partial"));
  save_safetensors(file_, large);
  EXPECT_TRUE(bitwise_equal(load_safetensors(file_).tensors[0].tensor, large[0].tensor));
}

TEST_F(SafetensorsSave, RefusesPlacesThatCannotBeWritten) {
  put_bytes("old");
  const std::vector<NamedTensor> x{{"x", Tensor::from({1.f}, Shape{1})}};
  EXPECT_TRUE(refused([&] { save_safetensors(file_ / "inside", x); }, "inside cannot be written: Not a directory"));
  EXPECT_TRUE(refused([&] { save_safetensors(folder_ / "none" / "a", x); }, "cannot be written: No such file"));
  fs::create_directory(folder_ / "taken");
  EXPECT_TRUE(refused([&] { save_safetensors(folder_ / "taken", x); }, "taken cannot be written: Is a directory"));
  EXPECT_FALSE(fs::exists(folder_ / "taken.partial"));
  EXPECT_EQ(content(file_), "old");
}

/// A network of two parameters and two buffers.
class Tiny final : public Network {
 public:
  explicit Tiny(uint64_t seed) : Network("tiny", Shape{1, 2, 2}, 2) {
    ParameterMaker maker(seed);
    maker.weight("fc.weight", Shape{2, 4}, 4, 2);
    maker.bias("fc.bias", 2, 4);
    maker.buffer("bn.running_mean", Shape{2}, 0.5);
    maker.buffer("bn.running_var", Shape{2}, 1);
    finish(std::move(maker));
  }
  Tensor forward(const Tensor& x, const Pass&) const override { return x; }
  std::vector<NamedTensor> all() const { return {parameters()[0], parameters()[1], buffers()[0], buffers()[1]}; }
};

testing::AssertionResult same_weights(const Tiny& a, const Tiny& b) {
  for (size_t i = 0; i < a.all().size(); ++i) {
    if (auto equal = bitwise_equal(a.all()[i].tensor, b.all()[i].tensor); !equal)
      return equal << " in " << a.all()[i].name;
  }
  return testing::AssertionSuccess();
}

/// The tensors of a network as another dtype, with other names if wanted.
std::vector<NamedTensor> converted(const Tiny& network, DType dtype, const std::string& prefix = "") {
  std::vector<NamedTensor> all;
  for (const auto& [name, tensor] : network.all())
    all.push_back({prefix + name, test::converted(tensor, dtype, Layout::kNchw)});
  return all;
}

TEST_F(Weights, RoundTrip) {
  const Tiny saved(1);
  Tiny loaded(2);
  const uint32_t version = loaded.all()[0].tensor.value->version();
  ASSERT_FALSE(same_weights(saved, loaded));

  save_weights(saved, file_);
  load_weights(loaded, file_);

  EXPECT_TRUE(same_weights(saved, loaded));
  EXPECT_GT(loaded.all()[0].tensor.value->version(), version);
  const TensorFile file = load_safetensors(file_);
  EXPECT_EQ(file.tensors[0].name, "fc.weight");
  EXPECT_EQ(file.tensors[3].name, "bn.running_var");
}

TEST_F(Weights, TakesOtherFloats) {
  for (const DType t : {DType::kF64, DType::kF16, DType::kBf16}) {
    const Tiny source(1);
    Tiny loaded(2);
    save_safetensors(file_, converted(source, t));

    load_weights(loaded, file_);

    for (size_t i = 0; i < 4; ++i) {
      const Tensor expected = test::converted(converted(source, t)[i].tensor, DType::kF32, Layout::kNchw);
      EXPECT_TRUE(bitwise_equal(loaded.all()[i].tensor, expected)) << to_string(t);
    }
  }
}

TEST_F(Weights, PassesOverDataParallelAndBatchCounters) {
  const Tiny source(1);
  for (const std::string prefix : {"", "module."}) {
    Tiny loaded(2);
    std::vector<NamedTensor> tensors = converted(source, DType::kF32, prefix);
    tensors.insert(tensors.begin() + 1, {prefix + "bn.num_batches_tracked", Tensor::from<int64_t>({12}, Shape{})});
    save_safetensors(file_, tensors);

    load_weights(loaded, file_);

    EXPECT_TRUE(same_weights(source, loaded));
  }
}

TEST_F(Weights, LeavesTheNetworkAloneWhenTheFileDoesNotFit) {
  const Tiny source(1), before(2);
  Tiny network(2);
  const auto refuses = [&](const std::vector<NamedTensor>& tensors, const std::string& part) {
    save_safetensors(file_, tensors);
    const auto result = refused([&] { load_weights(network, file_); }, part);
    return result ? same_weights(network, before) : result;
  };
  std::vector<NamedTensor> tensors = source.all();
  tensors.pop_back();
  EXPECT_TRUE(refuses(tensors, "does not hold the weights of tiny: it lacks \"bn.running_var\""));
  tensors.push_back({"bn.variance", source.all()[3].tensor});
  EXPECT_TRUE(refuses(tensors, "it lacks \"bn.running_var\", and has \"bn.variance\", which the network lacks"));
  tensors = source.all();
  for (const char* name : {"c", "a", "d", "b", "e"}) tensors.push_back({name, source.all()[3].tensor});
  EXPECT_TRUE(refuses(tensors, "it has \"a\", \"b\", \"c\" and 2 more, which the network lacks"));
  tensors = source.all();
  tensors[3].tensor = Tensor::from({1.f, 2.f, 3.f}, Shape{3});
  EXPECT_TRUE(refuses(tensors, "tensor \"bn.running_var\" has shape (3), in tiny it has (2)"));
  tensors[3].tensor = Tensor::from<int64_t>({1, 2}, Shape{2});
  EXPECT_TRUE(refuses(tensors, "tensor \"bn.running_var\" has dtype i64"));
  tensors = converted(source, DType::kF32, "module.");
  tensors[0].name = "fc.weight";
  EXPECT_TRUE(refuses(tensors, "it lacks \"fc.bias\""));
  EXPECT_TRUE(refused([&] { load_weights(network, folder_ / "none"); }, "is missing"));
  put_bytes("no weights at all");
  EXPECT_TRUE(refused([&] { load_weights(network, file_); }, "is not a valid safetensors file"));
  EXPECT_TRUE(same_weights(network, before));
}

}  // namespace
}  // namespace plumb::models

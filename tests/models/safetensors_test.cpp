// What is written is read back, and a file is whole or not there.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "core/random.h"
#include "tests/models/safetensors_files.h"

namespace plumb::models {
namespace {

using test::bitwise_equal;
using test::refused;

class SafetensorsSave : public Safetensors {
 protected:
  auto files() const { return std::distance(fs::directory_iterator(folder_), {}); }
};

constexpr DType kDTypes[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBf16, DType::kI32, DType::kI64, DType::kU8};

/// Random bits, so that NaNs with payloads and denormal numbers are among them.
Tensor random_bits(const TensorSpec& spec, uint64_t seed) {
  Tensor t = Tensor::empty(spec);
  std::vector<int32_t> bits(spec.bytes() / 4 + 1);
  detail::fill_uniform(bits.data(), DType::kI32, static_cast<int64_t>(bits.size()), -2147483648.0, 2147483647.0, seed);
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

TEST_F(Safetensors, AReaderThatWasMovedFromSaysSo) {
  save_safetensors(file_, std::vector<NamedTensor>{{"w", Tensor::from({1.0f, 2.0f}, {2})}});
  TensorFileReader first(file_);
  const TensorFileReader::Entry entry = first.entries()[0];
  const TensorFileReader second = std::move(first);
  const Tensor into = Tensor::empty(entry.spec);
  EXPECT_TRUE(refused([&] { first.read(entry, into); }, "read: this reader of a file was moved from"));
  second.read(entry, into);
  EXPECT_EQ(into.at({1}), 2);
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
  EXPECT_EQ(files(), 1) << "nothing is left beside it";
}

TEST_F(SafetensorsSave, RefusesWhatCannotBeStored) {
  const Tensor x = Tensor::from({1.f}, Shape{1});
  const auto save = [&](const NamedTensor& t) {
    return [=, this] { save_safetensors(file_, std::vector{t, {"x", x}}); };
  };

  const Tensor nhwc = Tensor::empty(TensorSpec(Shape{1, 2, 2, 2}, DType::kF32, Layout::kNhwc));
  EXPECT_TRUE(refused(save({"w", nhwc}), "tensor \"w\" is in layout nhwc; convert it to nchw"));
  EXPECT_TRUE(refused(save({"w", Tensor()}), "tensor \"w\" is empty"));
  EXPECT_TRUE(refused(save({"w", Tensor(detail::Value::make(x.spec(), MemoryClass::kActivation, Device{}, true))}),
                      "captured"));
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

  for (const size_t bytes : {0, 50, 100, 4096, 399'000}) {
    const test::FullDisk full(bytes);
    EXPECT_TRUE(
        refused([&] { save_safetensors(file_, large); }, file_.string() + " cannot be written: File too large"));
  }

  EXPECT_EQ(content(file_), old);
  EXPECT_EQ(files(), 1) << "nothing is left beside it";
  save_safetensors(file_, large);
  EXPECT_TRUE(bitwise_equal(load_safetensors(file_).tensors[0].tensor, large[0].tensor));
}

TEST_F(SafetensorsSave, RefusesPlacesThatCannotBeWritten) {
  put_bytes("old");
  const std::vector<NamedTensor> x{{"x", Tensor::from({1.f}, Shape{1})}};
  EXPECT_TRUE(refused([&] { save_safetensors(file_ / "inside", x); }, "a.safetensors is a file, not a folder"));
  EXPECT_TRUE(refused([&] { save_safetensors(folder_ / "none" / "a", x); }, "none does not exist"));
  fs::create_directory(folder_ / "taken");
  EXPECT_TRUE(refused([&] { save_safetensors(folder_ / "taken", x); }, "taken cannot be written: it is a folder"));
  EXPECT_EQ(content(file_), "old");
  EXPECT_EQ(files(), 2) << "nothing is left beside them";
}

TEST_F(SafetensorsSave, NothingIsLeftOfAProcessThatIsKilled) {
  const int nameless = open(folder_.c_str(), O_TMPFILE | O_WRONLY, 0666);
  if (nameless < 0) GTEST_SKIP() << "this file system has no files without a name";
  close(nameless);
  const std::vector<NamedTensor> large{{"w", random_bits(TensorSpec(Shape{100'000}), 1)}};
  for (const fs::path& path : {file_, file_.filename()}) {
    const pid_t child = fork();
    if (child == 0) {  // the system kills it in the middle, for the size of the file
      const rlimit most{4096, 4096}, none{0, 0};
      setrlimit(RLIMIT_CORE, &none);
      setrlimit(RLIMIT_FSIZE, &most);
      std::signal(SIGXFSZ, SIG_DFL);
      if (chdir(folder_.c_str()) == 0) save_safetensors(path, large);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status)) << path;
    EXPECT_TRUE(fs::is_empty(folder_)) << path;
  }
}

TEST_F(SafetensorsSave, LeavesAnotherRunsUnfinishedFileAlone) {
  const std::string aside = folder_ / message(".{}.0.partial", ::getpid());
  std::ofstream(aside) << "half";
  save_safetensors(file_, std::vector<NamedTensor>{{"x", Tensor::from({1.f}, Shape{1})}});
  EXPECT_EQ(content(aside), "half");
  EXPECT_EQ(load_safetensors(file_).tensors.size(), 1u);
}

TEST_F(SafetensorsSave, FollowsLinksAndLeavesThem) {
  const std::vector<NamedTensor> x{{"x", Tensor::from({1.f}, Shape{1})}};
  put_bytes("old");
  fs::create_symlink(file_.filename(), folder_ / "once");
  fs::create_symlink("once", folder_ / "twice");
  fs::create_symlink("nothing", folder_ / "to_nothing");
  fs::create_symlink("circle", folder_ / "circle");

  save_safetensors(folder_ / "twice", x);

  EXPECT_TRUE(fs::is_symlink(folder_ / "twice"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "once"));
  EXPECT_EQ(load_safetensors(file_).tensors.size(), 1u);
  EXPECT_TRUE(refused([&] { save_safetensors(folder_ / "to_nothing", x); }, "it is a link to nothing"));
  EXPECT_TRUE(refused([&] { save_safetensors(folder_ / "circle", x); }, "circle cannot be written"));
}

TEST_F(SafetensorsSave, RefusesDevicesAndPipes) {
  const std::vector<NamedTensor> x{{"x", Tensor::from({1.f}, Shape{1})}};
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  fs::create_symlink("/dev/full", folder_ / "device");  // a link, so that the device is safe from a mistake
  for (const char* name : {"pipe", "device"}) {
    EXPECT_TRUE(refused([&] { save_safetensors(folder_ / name, x); },
                        std::string(name) + " cannot be written: it is not a regular file"));
  }
  EXPECT_TRUE(fs::is_fifo(folder_ / "pipe"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "device"));
}

TEST_F(SafetensorsSave, KeepsThePermissionsOfTheOldFile) {
  put_bytes("old");
  fs::permissions(file_, fs::perms::owner_read | fs::perms::owner_write);
  save_safetensors(file_, {});
  EXPECT_EQ(fs::status(file_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

}  // namespace
}  // namespace plumb::models

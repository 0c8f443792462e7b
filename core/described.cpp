#include "core/described.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/runtime.h"

namespace plumb {
namespace {

// A key of the description, and what it must be.
template <class T>
T entry(const nlohmann::json& d, const char* key, const char* what, bool (nlohmann::json::*is_right)() const noexcept) {
  PLUMB_CHECK(d.contains(key), "the description of a device has no \"{}\"; it must have {}", key, what);
  const nlohmann::json& value = d[key];
  PLUMB_CHECK((value.*is_right)(), "the description of a device has \"{}\": {}; it must be {}", key,
              value.is_structured() ? value.type_name() : detail::shortened(value.dump()),  // dump follows any nesting
              what);
  return value.get<T>();
}

DeviceProperties properties_of(const std::string& text) {
  using Json = nlohmann::json;
  const Json d = Json::parse(text, nullptr, false);
  PLUMB_CHECK(d.is_object(), "the description of a device is not an object of JSON, as cuDNN writes one");
  DeviceProperties p;
  p.name = entry<std::string>(d, "deviceName", "its name", &Json::is_string);
  const bool is_name = !p.name.empty() && p.name.size() < 256 &&
                       std::ranges::all_of(p.name, [](char c) { return c >= ' ' && c <= '~'; });
  PLUMB_CHECK(is_name, "the description of a device has a \"deviceName\" that is none: 1 to 255 letters of ASCII");
  const auto number = [&](const char* key, const char* what) {
    const auto n = entry<int64_t>(d, key, what, &Json::is_number_integer);
    PLUMB_CHECK(n > 0, "the description of a device has \"{}\": {}; it must be more than 0", key, n);
    return n;
  };
  constexpr int64_t kMost = 1 << 20;
  p.capability =
      static_cast<int>(std::min(kMost, number("deviceVer", "a hundred times its compute capability, 900 for 9.0"))) /
      10;
  constexpr int kOldest = 80;  // what kernels are compiled for
  PLUMB_CHECK(p.capability >= kOldest, "the description of a device has \"deviceVer\": {}; the kernels need {} or more",
              d["deviceVer"].dump(), kOldest * 10);
  p.multiprocessors = static_cast<int>(std::min(kMost, number("multiProcessorCount", "how many there are")));
  p.memory_bytes = static_cast<size_t>(number("totalGlobalMem", "its memory in bytes"));
  const auto cache = d.find("l2CacheSize");
  if (cache != d.end() && cache->is_number_unsigned()) p.cache_bytes = cache->get<size_t>();
  p.description = text;
  return p;
}

class DescribedRuntime final : public Runtime {
 public:
  explicit DescribedRuntime(const std::string& json) : Runtime(properties_of(json)) {}
  bool is_present() const override { return false; }

  // Addresses that nothing else has, and that nobody can touch.
  void* allocate(size_t bytes) override {
    if (taken_.fetch_add(bytes) + bytes <= properties().memory_bytes) {
      void* const block = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (block != MAP_FAILED) return block;
    }
    taken_ -= bytes;
    return nullptr;
  }
  void release(void* block, size_t bytes) noexcept override {
    munmap(block, bytes);
    taken_ -= bytes;
  }
  void* allocate_pinned(size_t bytes) override { return std::malloc(bytes); }
  void release_pinned(void* block, size_t) noexcept override { std::free(block); }

  std::unique_ptr<RuntimeEvent> make_event() override { return std::make_unique<RuntimeEvent>(); }
  void record(RuntimeEvent&, Stream) override {}
  bool is_done(const RuntimeEvent&) override { return true; }
  double seconds_between(const RuntimeEvent&, const RuntimeEvent&) override { return 0; }
  Stream begin_capture() override { refuse(); }
  std::unique_ptr<RuntimeGraph> end_capture() override { refuse(); }

 protected:
  void do_copy(void*, const void*, size_t, Direction direction, Stream) override {
    if (direction == Direction::kToHost) refuse();
  }
  void do_launch(const KernelCall&, Stream) override {}  // what it would have made nobody can read
  void do_wait(Stream) override { refuse(); }
  void do_wait_for(const RuntimeEvent&) override {}
  void do_replay(const RuntimeGraph&, Stream) override { refuse(); }

 private:
  [[noreturn]] void refuse() const {
    fail("{} is described and not here: kernels are prepared and steps planned for it, and nothing is read or run",
         properties().name);
  }
  std::atomic<size_t> taken_{0};
};

}  // namespace

Device describe_device(const std::string& json) { return add_device(std::make_unique<DescribedRuntime>(json)); }

}  // namespace plumb

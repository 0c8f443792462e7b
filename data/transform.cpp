#include "data/transform.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/random.h"

namespace plumb::datasets {
namespace {

// Streams of random numbers, apart from those that other parts draw from the same seed.
constexpr uint64_t kShuffle = uint64_t{0x5u} << 60, kAugment = uint64_t{0xAu} << 60;

}  // namespace

Normalization Normalization::imagenet() { return {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}}; }

functors::Window draw_crop(const Augmentation& augmentation, uint64_t seed, int64_t epoch, int64_t image) {
  const auto bits = Philox::block(seed, static_cast<uint64_t>(image), kAugment | static_cast<uint64_t>(epoch));
  const auto offset = [&](uint32_t b) {
    const uint64_t choices = 2 * static_cast<uint64_t>(augmentation.padding) + 1;
    return static_cast<int32_t>(static_cast<int64_t>((b * choices) >> 32) - augmentation.padding);
  };
  return {offset(bits[0]), offset(bits[1]), augmentation.flip && bits[2] >> 31 != 0};
}

void shuffle(std::span<int64_t> order, uint64_t seed, int64_t epoch) {
  std::iota(order.begin(), order.end(), int64_t{0});
  __extension__ using Wide = unsigned __int128;
  for (size_t left = order.size(); left > 1; --left) {  // Fisher-Yates; the modulo bias of 64 bits is below 2^-32
    const auto bits = Philox::block(seed, left, kShuffle | static_cast<uint64_t>(epoch));
    const uint64_t number = uint64_t{bits[0]} << 32 | bits[1];
    std::swap(order[left - 1], order[static_cast<size_t>((Wide{number} * left) >> 64)]);
  }
}

Converter::Converter(const Dataset& data, const Normalization& normalization, const Augmentation& augmentation,
                     DType dtype, Layout layout, uint64_t seed)
    : data_(&data), augmentation_(augmentation), dtype_(dtype), layout_(layout), seed_(seed) {
  const auto channels = static_cast<size_t>(data.channels());
  const auto& [mean, deviation] = normalization;
  PLUMB_CHECK(dtype == DType::kF32 || dtype == DType::kBf16, "loader: images cannot be {}; use f32 or bf16", dtype);
  PLUMB_CHECK(!is_pack(layout), "loader: images cannot have layout {}; use nchw, nhwc or chwn", layout);
  PLUMB_CHECK(augmentation.padding >= 0 && augmentation.padding < std::min(data.height(), data.width()),
              "loader: a padding of {} does not suit images of shape {}; it must be at least 0 and less than their "
              "height and width",
              augmentation.padding, data.image);
  PLUMB_CHECK((mean.empty() || mean.size() == channels) && (deviation.empty() || deviation.size() == channels),
              "loader: {} means and {} deviations were given for {} channels", mean.size(), deviation.size(), channels);
  for (size_t c = 0; c < channels; ++c) {
    const double m = mean.empty() ? 0 : mean[c], d = deviation.empty() ? 1 : deviation[c];
    PLUMB_CHECK(std::isfinite(m) && std::isfinite(d) && d > 0,
                "loader: channel {} has mean {} and deviation {}; both must be finite, and the deviation positive", c,
                m, d);
    const double dark = -m / d, bright = (1 - m) / d;
    PLUMB_CHECK(
        std::max(std::abs(dark), std::abs(bright)) <= std::numeric_limits<float>::max(),
        "loader: channel {} has mean {} and deviation {}, by which pixels become {} to {}, which f32 cannot hold", c, m,
        d, dark, bright);
    for (size_t v = 0; v < static_cast<size_t>(functors::kPixelValues); ++v)
      table_.push_back(static_cast<float>((static_cast<double>(v) / 255 - m) / d));
  }
  for (const float v : table_) table_bf16_.emplace_back(v);
}

TensorSpec Converter::spec(int64_t count) const {
  return {Shape{count, data_->channels(), data_->height(), data_->width()}, dtype_, layout_};
}

void Converter::write(std::span<const int64_t> images, int64_t epoch, void* out) const {
  const int64_t bytes = data_->image.numel(), count = static_cast<int64_t>(images.size());
  const auto number = [&](int64_t i) { return images[static_cast<size_t>(i)]; };
  const auto pixels = [&](int64_t i) { return data_->pixels.data() + number(i) * bytes; };
  const auto window = [&](int64_t i) { return draw_crop(augmentation_, seed_, epoch, number(i)); };
  const auto write_as = [&]<class T>(const std::vector<T>& table) {
    functors::write_images(spec(count), 0, count, pixels, window, table.data(), static_cast<T*>(out));
  };
  dtype_ == DType::kF32 ? write_as(table_) : write_as(table_bf16_);
}

void Converter::stage(std::span<const int64_t> images, int64_t epoch, uint8_t* pixels,
                      functors::Window* windows) const {
  const auto bytes = static_cast<size_t>(data_->image.numel());
  for (const int64_t i : images) {
    std::memcpy(pixels, data_->pixels.data() + static_cast<size_t>(i) * bytes, bytes);
    *windows++ = draw_crop(augmentation_, seed_, epoch, i);
    pixels += bytes;
  }
}

}  // namespace plumb::datasets

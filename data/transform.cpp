#include "data/transform.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "core/random.h"

namespace plumb::datasets {
namespace {

constexpr size_t kBytes = 256;  // values of a pixel
// Streams of random numbers, apart from those that other parts draw from the same seed.
constexpr uint64_t kShuffle = uint64_t{0x5u} << 60, kAugment = uint64_t{0xAu} << 60;

// One row of an image: `source` is the input's row, or null where the window is outside.
template <class T>
void write_row(const uint8_t* source, int64_t width, const Crop& crop, const T* table, T* out, int64_t stride) {
  if (crop.flip) {
    out += (width - 1) * stride;
    stride = -stride;
  }
  const int64_t begin = source ? std::max<int64_t>(0, -crop.dx) : width;
  const int64_t end = source ? std::min(width, width - crop.dx) : width;
  for (int64_t x = 0; x < begin; ++x) out[x * stride] = table[0];
  if (stride == 1) {
    for (int64_t x = begin; x < end; ++x) out[x] = table[source[x + crop.dx]];
  } else {
    for (int64_t x = begin; x < end; ++x) out[x * stride] = table[source[x + crop.dx]];
  }
  for (int64_t x = end; x < width; ++x) out[x * stride] = table[0];
}

}  // namespace

Normalization Normalization::imagenet() { return {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}}; }

Crop draw_crop(const Augmentation& augmentation, uint64_t seed, int64_t epoch, int64_t image) {
  const auto bits = Philox::block(seed, static_cast<uint64_t>(image), kAugment | static_cast<uint64_t>(epoch));
  const auto offset = [&](uint32_t b) {
    const uint64_t choices = 2 * static_cast<uint64_t>(augmentation.padding) + 1;
    return static_cast<int64_t>((b * choices) >> 32) - augmentation.padding;
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
    for (size_t v = 0; v < kBytes; ++v) table_.push_back(static_cast<float>((static_cast<double>(v) / 255 - m) / d));
  }
  for (const float v : table_) table_bf16_.emplace_back(v);
}

TensorSpec Converter::spec(int64_t count) const {
  return {Shape{count, data_->channels(), data_->height(), data_->width()}, dtype_, layout_};
}

void Converter::write(std::span<const int64_t> images, int64_t epoch, void* out) const {
  if (dtype_ == DType::kF32) {
    write_as(images, epoch, static_cast<float*>(out));
  } else {
    write_as(images, epoch, static_cast<Bfloat16*>(out));
  }
}

template <class T>
void Converter::write_as(std::span<const int64_t> images, int64_t epoch, T* out) const {
  const auto count = static_cast<int64_t>(images.size());
  const int64_t channels = data_->channels(), height = data_->height(), width = data_->width();
  const Strides stride = strides_of(spec(count));
  const T* tables;
  if constexpr (std::is_same_v<T, float>) {
    tables = table_.data();
  } else {
    tables = table_bf16_.data();
  }

  // Images are taken in blocks, so that where N is innermost in memory, neighbours meet in the cache.
  constexpr int64_t kBlock = 32;
  Crop crops[kBlock];
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t block = std::min(kBlock, count - first);
    const int64_t* image = images.data() + first;
    for (int64_t i = 0; i < block; ++i) crops[i] = draw_crop(augmentation_, seed_, epoch, image[i]);
    const auto row = [&](int64_t i, int64_t c, int64_t y) {
      const int64_t from = y + crops[i].dy;
      const uint8_t* plane = data_->pixels.data() + (image[i] * channels + c) * height * width;
      write_row(from >= 0 && from < height ? plane + from * width : nullptr, width, crops[i],
                tables + static_cast<size_t>(c) * kBytes, out + (first + i) * stride[0] + c * stride[1] + y * stride[2],
                stride[3]);
    };
    if (layout_ == Layout::kChwn) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t y = 0; y < height; ++y) {
          for (int64_t i = 0; i < block; ++i) row(i, c, y);
        }
      }
    } else {
      for (int64_t i = 0; i < block; ++i) {
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t y = 0; y < height; ++y) row(i, c, y);
        }
      }
    }
  }
}

}  // namespace plumb::datasets

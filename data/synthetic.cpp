#include "data/synthetic.h"

#include <algorithm>
#include <exception>

#include "core/error.h"
#include "core/random.h"

namespace plumb::datasets {
namespace {

// A pattern interpolates kKnots x kKnots random bytes. All arithmetic is on integers: no machine rounds differently.
constexpr int64_t kKnots = 5;
constexpr int32_t kNoise = 80;             // noise is 0 ... kNoise
constexpr int32_t kSignal = 255 - kNoise;  // patterns are 0 ... kSignal, so that no sum needs to be clipped
constexpr int64_t kOne = 256;              // the unit of positions between two knots

constexpr int64_t kMostClasses = int64_t{1} << 32;  // which a random number of 32 bits reaches

// Where pixel i of `extent` stands: after which knot, and how far.
struct Place {
  int64_t knot;
  int32_t fraction;
};
Place place(int64_t i, int64_t extent) {
  const int64_t p = i * (kKnots - 1) * kOne / std::max<int64_t>(extent - 1, 1);
  const int64_t knot = std::min(p / kOne, kKnots - 2);
  return {knot, static_cast<int32_t>(p - knot * kOne)};
}

// A number in 0 ... n - 1.
int64_t below(uint32_t bits, int64_t n) {
  return static_cast<int64_t>((uint64_t{bits} * static_cast<uint64_t>(n)) >> 32);
}

// `out` = the bytes of consecutive counters from 1; rounded up to 16, the bytes of one counter.
void fill_noise(std::vector<uint8_t>& out, uint64_t seed, uint64_t stream) {
  for (size_t i = 0; i < out.size(); i += 16) {
    const auto bits = Philox::block(seed, 1 + i / 16, stream);
    for (size_t j = 0; j < 16; ++j) out[i + j] = static_cast<uint8_t>(bits[j / 4] >> (8 * (j % 4)));
  }
}

// Patterns are kept half done: interpolated along x, as kKnots rows of `width` for each class and channel.
std::vector<uint16_t> make_patterns(const SyntheticSpec& spec, int64_t width) {
  PLUMB_CHECK(spec.classes <= kMostClasses, "synthetic: {} classes were asked for; use at most {}", spec.classes,
              kMostClasses);
  const Shape shape{spec.classes, spec.image[0], kKnots, width};
  std::vector<uint16_t> patterns;
  try {
    patterns.resize(static_cast<size_t>(shape.numel()));
  } catch (const std::exception&) {  // bad_alloc, or a length_error
    fail("synthetic: out of memory for the patterns of {} classes of images of shape {}", spec.classes, spec.image);
  }
  const auto rows = static_cast<size_t>(shape.numel() / width);
  for (size_t row = 0; row < rows; ++row) {
    uint32_t knots[kKnots + 3];
    for (uint32_t block = 0; block < 2; ++block) {
      const auto bits = Philox::block(spec.seed, block, row);
      for (uint32_t j = 0; j < 4; ++j) knots[4 * block + j] = static_cast<uint32_t>(below(bits[j], kSignal + 1));
    }
    for (int64_t x = 0; x < width; ++x) {
      const auto [k, f] = place(x, width);
      const auto t = static_cast<uint32_t>(f);
      patterns[row * static_cast<size_t>(width) + static_cast<size_t>(x)] =
          static_cast<uint16_t>((knots[k] * (kOne - t) + knots[k + 1] * t) / kOne);
    }
  }
  return patterns;
}

}  // namespace

Dataset synthetic(const SyntheticSpec& spec) {
  Dataset set = Dataset::make("synthetic", spec.split, spec.image, spec.classes, spec.count);
  const int64_t channels = set.channels(), height = set.height(), width = set.width();
  const int64_t slack_y = height / 8, slack_x = width / 8;
  const int64_t canvas_height = height + 2 * slack_y, canvas_width = width + 2 * slack_x;
  const std::vector<uint16_t> patterns = make_patterns(spec, canvas_width);
  std::vector<uint8_t> noise(static_cast<size_t>((spec.image.numel() + 15) / 16 * 16));
  const uint64_t first_stream = (uint64_t{1} + static_cast<uint64_t>(spec.split)) << 56;
  for (int64_t i = 0; i < spec.count; ++i) {
    const uint64_t stream = first_stream + static_cast<uint64_t>(i);
    const auto bits = Philox::block(spec.seed, 0, stream);
    const int64_t label = below(bits[0], spec.classes);
    const int64_t dy = below(bits[1], 2 * slack_y + 1), dx = below(bits[2], 2 * slack_x + 1);
    set.labels[static_cast<size_t>(i)] = label;
    fill_noise(noise, spec.seed, stream);
    const uint8_t* noise_row = noise.data();
    uint8_t* out = set.pixels_of(i).data();
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t y = 0; y < height; ++y, out += width, noise_row += width) {
        const auto [knot, fraction] = place(y + dy, canvas_height);
        const int32_t t = fraction, s = static_cast<int32_t>(kOne) - t;
        const uint16_t* above = patterns.data() + ((label * channels + c) * kKnots + knot) * canvas_width + dx;
        const uint16_t* below_it = above + canvas_width;
        for (int64_t x = 0; x < width; ++x) {
          const int32_t signal = (above[x] * s + below_it[x] * t) >> 8;
          out[x] = static_cast<uint8_t>(signal + ((noise_row[x] * (kNoise + 1)) >> 8));
        }
      }
    }
  }
  return set;
}

int64_t usual_count(std::string_view name, Split split) {
  if (name == "imagenet") return split == Split::kTest ? 500 : 2000;
  const bool is_mnist = name == "mnist";
  PLUMB_CHECK(is_mnist || name == "cifar10" || name == "cifar100",
              "synthetic: there is nothing like \"{}\"; use cifar10, cifar100, mnist or imagenet", name);
  return split == Split::kTest ? 10000 : is_mnist ? 60000 : 50000;
}

Dataset synthetic_like(std::string_view name, Split split, uint64_t seed, int64_t count) {
  const int64_t usual = usual_count(name, split);
  SyntheticSpec spec{.count = count == 0 ? usual : count, .seed = seed, .split = split};
  if (name == "mnist") spec.image = {1, 28, 28};
  if (name == "cifar100") spec.classes = 100;
  if (name == "imagenet") spec.image = {3, 224, 224}, spec.classes = 1000;
  Dataset set = synthetic(spec);
  set.name = message("synthetic-{}", name);
  return set;
}

}  // namespace plumb::datasets

#include "kernels/cpu/conv2d/conv2d_f64.h"

#include <algorithm>

#include "core/memory.h"
#include "kernels/cpu/conv2d/windows.h"
#include "kernels/cpu/gemm/f64_product.h"
#include "kernels/cpu/parallel.h"

namespace plumb::cpu {
namespace {

constexpr int64_t kPixels = kF64Tile, kTaps = 2 * kF64Tile, kOutputs = 2 * kF64Tile;  // of a block, about

// A convolution that is cut: pixels of y, taps (some input channels, with all places of the window) and outputs of a
// group. Pixels of a block are of one image, or all of several small ones.
struct Blocks : Windows {
  int64_t group_inputs, group_outputs;
  int64_t block_images, block_pixels, block_inputs, block_outputs;
  int64_t parts;  // of an image

  explicit Blocks(const ConvTensors& c)
      : Windows(c),
        group_inputs(c.w.shape[1]),
        group_outputs(c.w.shape[0] / c.params.groups),
        block_images(std::clamp<int64_t>(kPixels / image_pixels(), 1, y[0])),
        block_pixels(std::min(kPixels, image_pixels())),
        block_inputs(std::clamp<int64_t>(kTaps / (KH * KW), 1, group_inputs)),
        block_outputs(std::min(kOutputs, group_outputs)),
        parts(ceil_div(image_pixels(), block_pixels)) {}

  int64_t taps() const { return group_inputs * KH * KW; }  // of a group: a row of w
  int64_t most_pixels() const { return block_images * block_pixels; }
  int64_t most_taps() const { return block_inputs * KH * KW; }

  int64_t image_blocks() const { return ceil_div(y[0], block_images); }
  int64_t input_blocks() const { return ceil_div(group_inputs, block_inputs); }
  int64_t output_blocks() const { return ceil_div(group_outputs, block_outputs); }
  Range images(int64_t i) const { return {i * block_images, std::min(y[0], (i + 1) * block_images)}; }
  Range pixels(int64_t i) const { return {i * block_pixels, std::min(image_pixels(), (i + 1) * block_pixels)}; }
  Range inputs(int64_t i) const { return {i * block_inputs, std::min(group_inputs, (i + 1) * block_inputs)}; }
  Range outputs(int64_t i) const { return {i * block_outputs, std::min(group_outputs, (i + 1) * block_outputs)}; }

  /// Calls body(row, at) for the pixels of some images: the row's number, and the offset of its first channel in y.
  template <class Body>
  void each_row(Range images, Range pixels, const Body& body) const {
    int64_t row = 0;
    for (int64_t n = images.begin; n < images.end; ++n) {
      for (int64_t i = pixels.begin; i < pixels.end; ++i, ++row) body(row, pixel_at(n, i));
    }
  }
  /// Calls body(place, at) for the taps of these pixels' windows in some channels of x, the first being `first`: its
  /// place in the matrix of windows, and its offset as in each_tap.
  template <class Body>
  void each_place(Range images, Range pixels, int64_t first, int64_t count, const Body& body) const {
    int64_t place = 0;
    for (int64_t n = images.begin; n < images.end; ++n) {
      for (int64_t i = pixels.begin; i < pixels.end; ++i) {
        for (int64_t channel = first; channel < first + count; ++channel)
          each_tap(n, i, channel, [&](int64_t at) { body(place++, at); });
      }
    }
  }
  /// Rows of windows, and of y's outputs, as matrices.
  void gather_windows(double* to, const double* from, Range images, Range pixels, int64_t first, int64_t count) const {
    each_place(images, pixels, first, count, [&](int64_t place, int64_t at) { to[place] = at < 0 ? 0.0 : from[at]; });
  }
  void gather_outputs(double* to, const double* from, Range images, Range pixels, int64_t first, int64_t count) const {
    each_row(images, pixels, [&](int64_t row, int64_t at) {
      for (int64_t oc = 0; oc < count; ++oc) to[row * count + oc] = from[at + (first + oc) * ys[1]];
    });
  }
};

// What a thread holds.
struct Room {
  double *windows, *outputs;
};

// Shares the tasks among threads: each has its own room.
template <class Body>
std::unique_ptr<Kernel> kernel_of(const Blocks& b, int threads, int64_t tasks, const Body& body) {
  const int64_t windows = b.most_pixels() * b.most_taps(), outputs = b.most_pixels() * b.block_outputs;
  const int64_t each =
      static_cast<int64_t>(detail::aligned(static_cast<size_t>(windows + outputs) * sizeof(double)) / sizeof(double));
  const int team = static_cast<int>(std::min<int64_t>(threads, tasks));
  auto kernel = make_kernel("plumb:im2col:eigen", [=](const Launch& l) {
    parallel_team(team, [&](int64_t t, int64_t of) {
      double* memory = static_cast<double*>(l.workspace) + t * each;
      const Range own = piece(tasks, t, of);
      for (int64_t task = own.begin; task < own.end; ++task) body(l, task, Room{memory, memory + windows});
    });
  });
  kernel->info().workspace_bytes = static_cast<size_t>(team * each) * sizeof(double);
  return kernel;
}

const double* input(const Launch& l, size_t i) { return static_cast<const double*>(l.in[i]); }

// A task is a block of pixels and a group.
std::unique_ptr<Kernel> forward(const Blocks& b, bool bias, int threads) {
  const int64_t groups = b.p.groups, tasks = b.image_blocks() * b.parts * groups;
  return kernel_of(b, threads, tasks, [=](const Launch& l, int64_t task, Room room) {
    const int64_t group = task % groups, part = task / groups % b.parts;
    const Range images = b.images(task / groups / b.parts), pixels = b.pixels(part);
    const int64_t rows = images.size() * pixels.size();
    for (int64_t o = 0; o < b.output_blocks(); ++o) {
      const Range outputs = b.outputs(o);
      const int64_t first = group * b.group_outputs + outputs.begin, count = outputs.size();
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t oc = 0; oc < count; ++oc) room.outputs[r * count + oc] = bias ? input(l, 2)[first + oc] : 0.0;
      }
      for (int64_t i = 0; i < b.input_blocks(); ++i) {
        const Range inputs = b.inputs(i);
        const int64_t taps = inputs.size() * b.KH * b.KW;
        b.gather_windows(room.windows, input(l, 0), images, pixels, group * b.group_inputs + inputs.begin,
                         inputs.size());
        const double* w = input(l, 1) + first * b.taps() + inputs.begin * b.KH * b.KW;
        add_f64_product(rows, count, taps, {room.windows, taps}, {w, b.taps(), true}, room.outputs, count);
      }
      const bool relu = b.p.activation == Activation::kRelu;
      auto* y = static_cast<double*>(l.out[0]);
      b.each_row(images, pixels, [&](int64_t row, int64_t at) {
        for (int64_t oc = 0; oc < count; ++oc) {
          const double v = room.outputs[row * count + oc];
          y[at + (first + oc) * b.ys[1]] = relu && v < 0 ? 0.0 : v;
        }
      });
    }
  });
}

// A task is a block of images and one of channels, of which no other adds to dx.
std::unique_ptr<Kernel> backward_input(const Blocks& b, int threads) {
  const int64_t groups = b.p.groups, input_blocks = b.input_blocks(), tasks = b.image_blocks() * groups * input_blocks;
  return kernel_of(b, threads, tasks, [=](const Launch& l, int64_t task, Room room) {
    const int64_t group = task / input_blocks % groups;
    const Range images = b.images(task / input_blocks / groups), inputs = b.inputs(task % input_blocks);
    const int64_t first = group * b.group_inputs + inputs.begin, taps = inputs.size() * b.KH * b.KW;
    auto* dx = static_cast<double*>(l.out[0]);
    for (int64_t n = images.begin; n < images.end; ++n) {
      for (int64_t channel = first; channel < first + inputs.size(); ++channel)
        b.each_element(n, channel, [&](int64_t at) { dx[at] = 0; });
    }
    for (int64_t part = 0; part < b.parts; ++part) {
      const Range pixels = b.pixels(part);
      const int64_t rows = images.size() * pixels.size();
      std::fill_n(room.windows, rows * taps, 0.0);
      for (int64_t o = 0; o < b.output_blocks(); ++o) {
        const Range outputs = b.outputs(o);
        const int64_t oc = group * b.group_outputs + outputs.begin, count = outputs.size();
        b.gather_outputs(room.outputs, input(l, 0), images, pixels, oc, count);
        const double* w = input(l, 1) + oc * b.taps() + inputs.begin * b.KH * b.KW;
        add_f64_product(rows, taps, count, {room.outputs, count}, {w, b.taps()}, room.windows, taps);
      }
      b.each_place(images, pixels, first, inputs.size(), [&](int64_t place, int64_t at) {
        if (at >= 0) dx[at] += room.windows[place];
      });
    }
  });
}

// A task is a block of dw: some outputs by some channels.
std::unique_ptr<Kernel> backward_weight(const Blocks& b, int threads) {
  const int64_t input_blocks = b.input_blocks(), output_blocks = b.output_blocks();
  const int64_t tasks = b.p.groups * output_blocks * input_blocks;
  return kernel_of(b, threads, tasks, [=](const Launch& l, int64_t task, Room room) {
    const int64_t group = task / input_blocks / output_blocks;
    const Range outputs = b.outputs(task / input_blocks % output_blocks), inputs = b.inputs(task % input_blocks);
    const int64_t oc = group * b.group_outputs + outputs.begin, count = outputs.size();
    const int64_t taps = inputs.size() * b.KH * b.KW;
    double* dw = static_cast<double*>(l.out[0]) + oc * b.taps() + inputs.begin * b.KH * b.KW;
    for (int64_t o = 0; o < count; ++o) std::fill_n(dw + o * b.taps(), taps, 0.0);
    for (int64_t i = 0; i < b.image_blocks() * b.parts; ++i) {
      const Range images = b.images(i / b.parts), pixels = b.pixels(i % b.parts);
      b.gather_outputs(room.outputs, input(l, 0), images, pixels, oc, count);
      b.gather_windows(room.windows, input(l, 1), images, pixels, group * b.group_inputs + inputs.begin, inputs.size());
      add_f64_product(count, taps, images.size() * pixels.size(), {room.outputs, count, true}, {room.windows, taps}, dw,
                      b.taps());
    }
  });
}

}  // namespace

std::unique_ptr<Kernel> conv2d_f64(InnerProduct which, const ConvTensors& c, int threads) {
  if (c.x.dtype != DType::kF64 || c.is_empty()) return nullptr;
  const Blocks blocks(c);
  switch (which) {
    case InnerProduct::kForward: return forward(blocks, c.has_bias, threads);
    case InnerProduct::kBackwardInput: return backward_input(blocks, threads);
    case InnerProduct::kBackwardWeight: return backward_weight(blocks, threads);
  }
  return nullptr;
}

}  // namespace plumb::cpu

#include "kernels/cpu/conv2d/winograd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <random>
#include <thread>

#include "dispatch/pack.h"
#include "tests/support/guarded.h"

namespace plumb {
namespace {

struct Case {
  int64_t n, ic, oc, h, w;
  int32_t top, bottom, left, right;
  bool bias, relu;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << "n " << c.n << " ic " << c.ic << " oc " << c.oc << " image " << c.h << "x" << c.w << " padding "
             << c.top << " " << c.bottom << " " << c.left << " " << c.right << (c.bias ? " bias" : "")
             << (c.relu ? " relu" : "");
}

const Case kCases[] = {
    // sizes around a tile, and down to one pixel
    {1, 16, 16, 3, 3, 0, 0, 0, 0, false, false},
    {2, 16, 16, 4, 4, 0, 0, 0, 0, false, false},
    {1, 16, 16, 5, 6, 0, 0, 0, 0, true, false},
    {3, 16, 32, 6, 7, 0, 0, 0, 0, false, true},
    {1, 32, 16, 8, 8, 1, 1, 1, 1, true, true},
    {2, 17, 33, 9, 11, 1, 1, 1, 1, true, true},
    {1, 8, 8, 1, 1, 1, 1, 1, 1, false, false},
    {2, 8, 8, 1, 5, 1, 1, 0, 0, false, false},
    {1, 8, 8, 2, 1, 2, 2, 2, 2, true, false},
    {1, 1, 1, 7, 7, 1, 1, 1, 1, true, true},
    // channels that fill no vector
    {2, 3, 64, 12, 12, 1, 1, 1, 1, true, true},
    {2, 3, 10, 8, 8, 0, 0, 0, 0, false, false},
    {1, 10, 3, 13, 13, 1, 1, 1, 1, true, false},
    {1, 31, 47, 10, 10, 1, 1, 1, 1, false, true},
    {4, 17, 10, 9, 5, 1, 1, 1, 1, true, true},
    {1, 100, 15, 6, 6, 1, 1, 1, 1, false, false},
    {1, 15, 100, 6, 6, 1, 1, 1, 1, true, false},
    {2, 49, 49, 7, 7, 1, 1, 1, 1, true, true},
    // padding: uneven, full, and beyond the window
    {1, 16, 16, 8, 8, 1, 0, 0, 1, false, false},
    {1, 16, 16, 8, 8, 0, 2, 2, 0, true, true},
    {1, 12, 20, 7, 9, 2, 1, 0, 2, true, false},
    {1, 16, 16, 6, 6, 2, 2, 2, 2, false, false},
    {1, 16, 16, 5, 4, 3, 0, 1, 4, true, true},
    {1, 5, 7, 3, 3, 5, 6, 7, 4, true, false},
    // many tiles and few channels; few tiles and many channels; several blocks
    {9, 16, 16, 21, 21, 1, 1, 1, 1, true, true},
    {40, 8, 24, 9, 9, 1, 1, 1, 1, false, false},
    {1, 192, 224, 4, 4, 0, 0, 0, 0, false, false},
    {3, 130, 129, 5, 5, 1, 1, 1, 1, true, true},
    {30, 64, 64, 8, 8, 1, 1, 1, 1, false, true},
    {2, 64, 64, 16, 16, 1, 1, 1, 1, true, false},
    {17, 128, 120, 8, 8, 1, 1, 1, 1, false, false},
};

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

Floats random_floats(int64_t n, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  Floats values(static_cast<size_t>(n));
  for (float& v : values) v = normal(engine);
  return values;
}

// The convolution of a case: its specs, random inputs, and results by definition, in double.
struct Convolution {
  Conv2dParams params;
  TensorSpec x, w, y, b;
  Floats x_data, w_data, dy_data, b_data;
  Doubles y_data, dx_data, dw_data;

  explicit Convolution(const Case& c)
      : x({c.n, c.ic, c.h, c.w}, DType::kF32, Layout::kNhwc),
        w({c.oc, c.ic, 3, 3}),
        y({c.n, c.oc, c.h + c.top + c.bottom - 2, c.w + c.left + c.right - 2}, DType::kF32, Layout::kNhwc),
        b({c.oc}),
        x_data(random_floats(x.numel(), 1)),
        w_data(random_floats(w.numel(), 2)),
        dy_data(random_floats(y.numel(), 3)),
        b_data(random_floats(c.oc, 4)) {
    params.padding[0] = c.top, params.padding[1] = c.bottom, params.padding[2] = c.left, params.padding[3] = c.right;
    params.activation = c.relu ? Activation::kRelu : Activation::kNone;
    compute(c);
  }

  void compute(const Case& c) {
    const int64_t oh = y.shape[2], ow = y.shape[3];
    y_data.resize(dy_data.size());
    dx_data.resize(x_data.size());
    dw_data.resize(w_data.size());
    for (int64_t i = 0; i < c.n * oh * ow; ++i) {
      const int64_t n = i / (oh * ow), oy = i / ow % oh, ox = i % ow;
      for (int64_t tap = 0; tap < 9; ++tap) {
        const int64_t iy = oy + tap / 3 - c.top, ix = ox + tap % 3 - c.left;
        if (iy < 0 || iy >= c.h || ix < 0 || ix >= c.w) continue;
        const auto from = static_cast<size_t>(((n * c.h + iy) * c.w + ix) * c.ic);
        for (int64_t k = 0; k < c.oc; ++k) add(from, static_cast<size_t>(i * c.oc + k), static_cast<size_t>(k), tap);
      }
    }
    for (size_t i = 0; i < y_data.size(); ++i) {
      if (c.bias) y_data[i] += static_cast<double>(b_data[i % b_data.size()]);
      if (c.relu) y_data[i] = std::max(y_data[i], 0.);
    }
  }

  // One tap of one output: all input channels of the pixel at `from`.
  void add(size_t from, size_t to, size_t k, int64_t tap) {
    const auto ic = static_cast<size_t>(x.shape[1]);
    const double dy = dy_data[to];
    for (size_t c = 0; c < ic; ++c) {
      const size_t at = (k * ic + c) * 9 + static_cast<size_t>(tap);
      y_data[to] += static_cast<double>(x_data[from + c]) * static_cast<double>(w_data[at]);
      dx_data[from + c] += dy * static_cast<double>(w_data[at]);
      dw_data[at] += dy * static_cast<double>(x_data[from + c]);
    }
  }
};

// Packs what the kernel wants packed and runs it, in memory of exactly the declared sizes between guarded zones.
Floats run(const Kernel& kernel, const std::vector<TensorSpec>& specs, const std::vector<const Floats*>& inputs,
           const TensorSpec& out) {
  std::deque<test::Guarded> memory;
  const auto fresh = [&](size_t bytes) { return memory.emplace_back(bytes).data(); };
  std::vector<void*> in;
  for (const Floats* f : inputs) in.push_back(memory.emplace_back(f->data(), f->size() * sizeof(float)).data());
  for (const PackRequest& r : kernel.info().packs) {
    const auto packer = detail::make_packer(specs[static_cast<size_t>(r.input)], r.layout);
    void*& input = in[static_cast<size_t>(r.input)];
    void* pack = fresh(detail::pack_bytes(r.layout));
    packer->run({&input, &pack, fresh(packer->info().workspace_bytes)});
    input = pack;
  }
  void* to = fresh(out.bytes());
  kernel.run({in.data(), &to, fresh(kernel.info().workspace_bytes)});
  for (const test::Guarded& m : memory) EXPECT_TRUE(m.intact());
  return {static_cast<float*>(to), static_cast<float*>(to) + out.numel()};
}

std::unique_ptr<Kernel> forward_kernel(const Convolution& c, bool bias, int m, int threads) {
  std::vector<TensorSpec> in = {c.x, c.w};
  if (bias) in.push_back(c.b);
  return cpu::winograd_forward({c.params, in, {&c.y, 1}, threads, MathMode::kStrict}, m);
}
std::unique_ptr<Kernel> backward_input_kernel(const Convolution& c, int m, int threads) {
  const TensorSpec in[] = {c.y, c.w};
  return cpu::winograd_backward_input({c.params, in, {&c.x, 1}, threads, MathMode::kStrict}, m);
}
std::unique_ptr<Kernel> backward_weight_kernel(const Convolution& c, int m, int threads) {
  const TensorSpec in[] = {c.y, c.x};
  return cpu::winograd_backward_weight({c.params, in, {&c.w, 1}, threads, MathMode::kStrict}, m);
}

double relative_error(const Floats& is, const Doubles& should_be) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < is.size(); ++i) {
    difference += std::pow(static_cast<double>(is[i]) - should_be[i], 2);
    norm += should_be[i] * should_be[i];
  }
  return std::sqrt(difference / (norm > 0 ? norm : 1));
}

// F(4 x 4) loses about three times as many digits as F(2 x 2), which loses about as many as a direct convolution.
double tolerance(int m) { return m == 2 ? 1e-6 : 5e-6; }

TEST(WinogradTest, MatchesTheDefinition) {
  for (const Case& c : kCases) {
    const Convolution conv(c);
    for (const int m : {2, 4}) {
      for (const int threads : {1, 3}) {
        SCOPED_TRACE(testing::Message() << c << ", m " << m << ", threads " << threads);
        const auto forward = forward_kernel(conv, c.bias, m, threads);
        const auto backward_input = backward_input_kernel(conv, m, threads);
        const auto backward_weight = backward_weight_kernel(conv, m, threads);
        ASSERT_TRUE(forward && backward_input && backward_weight);

        const Floats y = run(*forward, {conv.x, conv.w, conv.b}, {&conv.x_data, &conv.w_data, &conv.b_data}, conv.y);
        const Floats dx = run(*backward_input, {conv.y, conv.w}, {&conv.dy_data, &conv.w_data}, conv.x);
        const Floats dw = run(*backward_weight, {conv.y, conv.x}, {&conv.dy_data, &conv.x_data}, conv.w);

        EXPECT_LT(relative_error(y, conv.y_data), tolerance(m));
        EXPECT_LT(relative_error(dx, conv.dx_data), tolerance(m));
        EXPECT_LT(relative_error(dw, conv.dw_data), 5e-6);
      }
    }
  }
}

TEST(WinogradTest, ForwardIsTheSameForEveryNumberOfThreads) {
  const Convolution conv({3, 40, 72, 11, 13, 1, 1, 1, 1, false, false});
  for (const int m : {2, 4}) {
    const auto once = [&](int threads) {
      return run(*forward_kernel(conv, false, m, threads), {conv.x, conv.w}, {&conv.x_data, &conv.w_data}, conv.y);
    };
    const Floats expected = once(1);

    for (const int threads : {2, 3, 7, 16}) EXPECT_EQ(once(threads), expected) << threads << " threads, m " << m;
  }
}

// Outputs of many megabytes are written past the caches; those of one image are not.
TEST(WinogradTest, ABatchIsTheSameAsItsImages) {
  constexpr int64_t kN = 66, kOutput = 64 * 32 * 32;
  const TensorSpec x({kN, 4, 32, 32}, DType::kF32, Layout::kNhwc), w({64, 4, 3, 3});
  const TensorSpec y({kN, 64, 32, 32}, DType::kF32, Layout::kNhwc);
  const TensorSpec x1 = x.with(x.shape.with(0, 1)), y1 = y.with(y.shape.with(0, 1));
  const Floats x_data = random_floats(x.numel(), 1), w_data = random_floats(w.numel(), 2);
  const Conv2dParams params{.padding = {1, 1, 1, 1}};
  for (const int m : {2, 4}) {
    const auto forward = [&](const TensorSpec& from, const TensorSpec& to, const Floats& data) {
      const TensorSpec in[] = {from, w};
      const auto kernel = cpu::winograd_forward({params, in, {&to, 1}, 2, MathMode::kStrict}, m);
      return run(*kernel, {from, w}, {&data, &w_data}, to);
    };
    const Floats batch = forward(x, y, x_data);

    for (int64_t n = 0; n < kN; n += 13) {
      const auto image = x_data.begin() + n * x1.numel();
      const Floats expected = forward(x1, y1, Floats(image, image + x1.numel()));
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), batch.begin() + n * kOutput))
          << "image " << n << ", m " << m;
    }
  }
}

TEST(WinogradTest, OneKernelRunsOnSeveralThreadsAtOnce) {
  const Convolution conv({6, 32, 48, 14, 14, 1, 1, 1, 1, true, false});
  for (const int m : {2, 4}) {
    const auto forward = forward_kernel(conv, true, m, 2), backward_weight = backward_weight_kernel(conv, m, 2);
    const auto y = [&] {
      return run(*forward, {conv.x, conv.w, conv.b}, {&conv.x_data, &conv.w_data, &conv.b_data}, conv.y);
    };
    const auto dw = [&] { return run(*backward_weight, {conv.y, conv.x}, {&conv.dy_data, &conv.x_data}, conv.w); };
    const Floats expected_y = y(), expected_dw = dw();

    int equal[2] = {};
    const auto repeat = [&](int& count) {
      for (int i = 0; i < 20; ++i) count += y() == expected_y && dw() == expected_dw;
    };
    std::thread other([&] { repeat(equal[1]); });
    repeat(equal[0]);
    other.join();

    EXPECT_EQ(equal[0], 20);
    EXPECT_EQ(equal[1], 20);
  }
}

// An output of 2 x 2 is one tile; the input of 4 x 4 would be four. With padding there is nothing to gain.
TEST(WinogradTest, TakesTheAdjointWhereItHasFewerTiles) {
  const auto is_adjoint = [](int64_t image, int32_t padding, int m) {
    const Convolution c({2, 16, 16, image, image, padding, padding, padding, padding, false, false});
    return backward_input_kernel(c, m, 1)->info().name.find("adjoint") != std::string::npos;
  };

  EXPECT_TRUE(is_adjoint(4, 0, 2));
  EXPECT_TRUE(is_adjoint(6, 0, 4));
  EXPECT_FALSE(is_adjoint(4, 0, 4));
  EXPECT_FALSE(is_adjoint(8, 1, 2));
}

TEST(WinogradTest, DeclinesWhatItCannotDo) {
  const Convolution conv({2, 16, 16, 8, 8, 1, 1, 1, 1, false, false});
  const auto declines = [&](const auto& change, int m = 2) {
    Convolution c = conv;
    change(c);
    return !forward_kernel(c, false, m, 1) && !backward_input_kernel(c, m, 1) && !backward_weight_kernel(c, m, 1);
  };

  EXPECT_FALSE(declines([](Convolution&) {}));
  EXPECT_TRUE(declines([](Convolution&) {}, 3));
  EXPECT_TRUE(declines([](Convolution& c) { c.params.stride[1] = 2; }));
  EXPECT_TRUE(declines([](Convolution& c) { c.params.dilation[0] = 2; }));
  EXPECT_TRUE(declines([](Convolution& c) { c.params.groups = 2; }));
  EXPECT_TRUE(declines([](Convolution& c) { c.w.shape = {16, 16, 5, 5}; }));
  EXPECT_TRUE(declines([](Convolution& c) { c.x.layout = Layout::kNchw; }));
  EXPECT_TRUE(declines([](Convolution& c) { c.y.dtype = DType::kBf16; }));
  EXPECT_TRUE(declines([](Convolution& c) { c.x.shape = c.x.shape.with(0, 0), c.y.shape = c.y.shape.with(0, 0); }));
}

}  // namespace
}  // namespace plumb

// Convolutions whose weights are packs in krsc, and whose channels are padded, around our own kernel: what stands
// around a library's plan is the same.
#include "kernels/cuda/conv2d/krsc.h"

#include <gtest/gtest.h>

#include "dispatch/gate.h"
#include "dispatch/pack.h"
#include "kernels/cuda/conv2d/direct.h"
#include "ops/conv2d.h"
#include "ops/convert.h"
#include "tests/support/compare.h"

namespace plumb {
namespace {

using cuda::ConvDirection;
constexpr Device kDevice{DeviceType::kCuda, 0};

struct Layer {
  int64_t n, c, h, w, oc, kh, kw;
  Conv2dParams p{};
};
const Layer kLayers[] = {
    {2, 3, 7, 6, 5, 3, 3, {.padding = 1}},
    {1, 1, 5, 5, 4, 1, 1},
    {3, 3, 9, 8, 8, 5, 4, {.stride = 2, .padding = {2, 1, 0, 3}}},
    {2, 2, 6, 6, 33, 2, 2, {.dilation = 2}},
    {2, 7, 5, 6, 3, 3, 3, {.padding = 1}},
};

// Every candidate of `offered` on these inputs, each into a tensor of its own.
std::vector<Tensor> run_all(const Candidates& offered, const std::vector<Tensor>& in, const TensorSpec& out) {
  Runtime& runtime = runtime_of(kDevice);
  std::vector<Tensor> all;
  for (const auto& c : offered.all()) {
    const auto kernel = c.make();
    std::vector<Tensor> given = in;
    std::vector<detail::Ref<detail::Value>> packs;
    std::vector<void*> pointers;
    for (const Tensor& t : in) pointers.push_back(t.value->data);
    for (const PackRequest& r : kernel->info().packs) {
      packs.push_back(detail::packed(in[static_cast<size_t>(r.input)].value.get(), r.layout));
      pointers[static_cast<size_t>(r.input)] = packs.back()->data;
    }
    all.push_back(Tensor::empty(out, MemoryClass::kInput, kDevice));
    void* const to[] = {all.back().value->data};
    kernel->run({pointers.data(), to, runtime.workspace(kernel->info().workspace_bytes), runtime.stream()});
  }
  return all;
}

void expect_all(const Candidates& offered, const std::vector<Tensor>& host_inputs, const Tensor& expected) {
  std::vector<Tensor> there;
  for (const Tensor& t : host_inputs) there.push_back(to(t, kDevice));
  EXPECT_FALSE(offered.all().empty());
  for (const Tensor& got : run_all(offered, there, expected.spec()))
    EXPECT_TRUE(test::bitwise_equal(to(got, Device{}), expected));
}

class Krsc : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Dtypes, Krsc, testing::Values(DType::kF32, DType::kF64, DType::kBf16),
                         [](const auto& p) { return to_string(p.param); });

TEST_P(Krsc, GivesWhatRowMajorWeightsGive) {
  for (const Layer& l : kLayers) {
    const Tensor x = test::small_integers({Shape{l.n, l.c, l.h, l.w}, GetParam(), Layout::kNhwc}, 1, 2),
                 w = test::small_integers({Shape{l.oc, l.c, l.kh, l.kw}, GetParam()}, 2, 2),
                 b = test::small_integers({Shape{l.oc}, GetParam()}, 3, 2), y = conv2d(x, w, b, l.p),
                 dy = test::small_integers(y.spec(), 4, 2), dw = conv2d_backward_weight(dy, x, l.p, w.spec()),
                 dx = conv2d_backward_input(dy, w, l.p, x.spec());
    const auto problem = [&](const std::vector<TensorSpec>& in, const std::vector<TensorSpec>& out) {
      return Problem<Conv2dParams>{l.p, in, out, 1, MathMode::kStrict, kDevice};
    };
    const std::vector<TensorSpec> forward{x.spec(), w.spec(), b.spec()}, plain{x.spec(), w.spec()},
        backward_weight{dy.spec(), x.spec()}, backward_input{dy.spec(), w.spec()}, of_y{y.spec()}, of_dw{dw.spec()},
        of_dx{dx.spec()};
    const cuda::ConvSpecs specs{x.spec(), w.spec(), y.spec()};
    const auto direct = [&](ConvDirection direction, const Problem<Conv2dParams>& p) {
      return [=](const cuda::ConvSpecs& s, Candidates& c) { cuda::offer_direct(direction, s, p, c); };
    };
    const auto p = problem(forward, of_y), without_bias = problem(plain, of_y), q = problem(backward_weight, of_dw),
               r = problem(backward_input, of_dx);
    Candidates krsc, gradients;
    cuda::offer_krsc(specs, p, direct(ConvDirection::kForward, p), krsc);
    expect_all(krsc, {x, w, b}, y);
    cuda::offer_krsc(specs, r, direct(ConvDirection::kBackwardInput, r), gradients);
    expect_all(gradients, {dy, w}, dx);
    for (const int64_t channels : {l.c + 1, (l.c + 7) / 8 * 8, l.c + 31}) {
      Candidates padded, padded_plain, weights;
      cuda::offer_padded(ConvDirection::kForward, specs, p, channels, direct(ConvDirection::kForward, p), padded);
      expect_all(padded, {x, w, b}, y);
      cuda::offer_padded(ConvDirection::kForward, specs, without_bias, channels,
                         direct(ConvDirection::kForward, without_bias), padded_plain);
      expect_all(padded_plain, {x, w}, conv2d(x, w, l.p));
      cuda::offer_padded(ConvDirection::kBackwardWeight, specs, q, channels, direct(ConvDirection::kBackwardWeight, q),
                         weights);
      expect_all(weights, {dy, x}, dw);
    }
  }
}

TEST(KrscPacks, FollowTheirWeights) {
  Tensor w = to(test::small_integers(TensorSpec(Shape{4, 3, 3, 2}), 1), kDevice);
  const Layout layout = cuda::krsc_pack(w.spec(), 4, kDevice);
  EXPECT_EQ(layout, cuda::krsc_pack(w.spec(), 4, kDevice)) << "one format";
  EXPECT_NE(layout, cuda::krsc_pack(w.spec(), 3, kDevice));
  const auto first = detail::packed(w.value.get(), layout);
  EXPECT_EQ(first.get(), detail::packed(w.value.get(), layout).get()) << "packed once";
  const TensorSpec as_krsc = cuda::krsc(cuda::with_channels(w.spec(), 4));
  const auto at = [&](const detail::Ref<detail::Value>& pack, int64_t index) {
    return test::to_doubles(pack->data, as_krsc, kDevice)[static_cast<size_t>(index)];
  };
  EXPECT_EQ(at(first, ((1 * 4 + 2) * 3 + 1) * 2 + 1), w.at({1, 2, 1, 1}));
  EXPECT_EQ(at(first, ((1 * 4 + 3) * 3 + 1) * 2 + 1), 0) << "a channel that was added";
  w.copy_from(test::small_integers(w.spec(), 2));
  EXPECT_EQ(at(detail::packed(w.value.get(), layout), ((3 * 4 + 2) * 3 + 2) * 2 + 0), w.at({3, 2, 2, 0}));
}

}  // namespace
}  // namespace plumb

#include "core/tape.h"

#include <gtest/gtest.h>

#include <pthread.h>

#include "tests/support/compare.h"

namespace plumb {
namespace {

using test::refused;

Tensor scalar(float v) { return Tensor::from<float>({v}, Shape{}); }
Tensor leaf(float v) { return scalar(v).require_grad(); }

// Hands every gradient to the test. The engine with its order and sums is ops/grad.
class Sink final : public detail::GradientSink {
 public:
  std::vector<std::pair<detail::Node*, Tensor>> given;

 private:
  void give_output(detail::Node*, size_t, size_t, Tensor) override {}
  void add(detail::Node* to, Tensor gradient) override { given.emplace_back(to, std::move(gradient)); }
};

#ifdef PLUMB_SANITIZED
constexpr int kDeep = 100000;
#else
constexpr int kDeep = 1000000;
#endif

TEST(Tape, AnEmptyTensorMayBeKept) {
  const SavedTensor bias{Tensor()};
  EXPECT_FALSE(bias());
}

TEST(Tape, RecordingGoesOffAndOn) {
  EXPECT_TRUE(is_recording());
  const NoGrad off;
  EXPECT_FALSE(is_recording());
  {
    const EnableGrad on;
    EXPECT_TRUE(is_recording());
    EXPECT_TRUE(record(scalar(0), wrt(leaf(1), [](const Tensor& dy) { return dy; })).requires_grad());
  }
  EXPECT_FALSE(is_recording());
}

TEST(Tape, RecordsOnlyWhereAGradientIsNeeded) {
  const Tensor x = leaf(1), constant = scalar(2);
  const auto pass = [](const Tensor& dy) { return dy; };
  EXPECT_TRUE(record(scalar(0), wrt(x, pass), wrt(constant, pass)).requires_grad());
  EXPECT_FALSE(record(scalar(0), wrt(constant, pass)).requires_grad());
  const NoGrad no_grad;
  EXPECT_FALSE(record(scalar(0), wrt(x, pass)).requires_grad());
}

TEST(Tape, KeepsOnlyWhatANeededGradientNeeds) {
  const Tensor x = scalar(1), w = leaf(2);

  const Tensor y = record(scalar(0), wrt(x, [w = SavedTensor(w)](const Tensor&) { return w(); }),
                          wrt(w, [x = SavedTensor(x)](const Tensor&) { return x(); }));

  EXPECT_EQ(x.value->refs, 2u);  // for the gradient of w
  EXPECT_EQ(w.value->refs, 1u);  // x needs none
}

TEST(Tape, GivesEachGradientToItsInput) {
  const Tensor a = leaf(1), b = leaf(2);
  const Tensor y =
      record(scalar(0), wrt(a, [](const Tensor&) { return scalar(10); }), wrt(b, [](const Tensor& dy) { return dy; }));
  Sink sink;

  y.node->backward(scalar(5), sink);

  ASSERT_EQ(sink.given.size(), 2u);
  EXPECT_EQ(sink.given[0].first, a.node.get());
  EXPECT_EQ(sink.given[0].second.item(), 10);
  EXPECT_EQ(sink.given[1].first, b.node.get());
  EXPECT_EQ(sink.given[1].second.item(), 5);
}

TEST(Tape, KeptRefusesWhatWasWrittenTo) {
  Tensor x = leaf(1);
  const Tensor y = record(scalar(0), wrt(x, [x = SavedTensor(x)](const Tensor&) { return x(); }));
  Sink sink;
  EXPECT_NO_THROW(y.node->backward(scalar(1), sink));

  x.mutable_data<float>()[0] = 2;

  EXPECT_TRUE(refused([&] { y.node->backward(scalar(1), sink); }, "kept for backward was written to in between"));
}

TEST(Tape, ClosuresThatTakeTheOutputRefuseItWhenItWasWrittenTo) {
  const Tensor x = leaf(1);
  Tensor y = record(scalar(3), wrt(x, [](const Tensor&, const Tensor& out) { return out; }));
  Sink sink;
  y.node->backward(scalar(1), sink);
  EXPECT_EQ(sink.given[0].second.item(), 3);
  EXPECT_FALSE(sink.given[0].second.requires_grad());  // no cycle, unless a graph is asked for

  y.mutable_data<float>()[0] = 2;

  EXPECT_TRUE(refused([&] { y.node->backward(scalar(1), sink); }, "its output f32 () nchw was written to"));
}

TEST(Tape, OutputsThatAreKeptAreNoCycle) {
  const int64_t before = cpu_memory().stats().live_total();
  {
    const Tensor x = leaf(1);
    const Tensor y = record(scalar(3), wrt(x, [](const Tensor&, const Tensor& out) { return out; }));
  }
  EXPECT_EQ(cpu_memory().stats().live_total(), before);
}

TEST(Tape, ReleaseDropsWhatWasKeptAndRefusesAnotherBackward) {
  const Tensor x = leaf(1);
  const Tensor kept = scalar(7);
  const Tensor y = record(scalar(0), wrt(x, [k = SavedTensor(kept)](const Tensor&) { return k(); }));
  EXPECT_EQ(kept.value->refs, 2u);

  y.node->release();

  EXPECT_EQ(kept.value->refs, 1u);
  Sink sink;
  EXPECT_TRUE(refused([&] { y.node->backward(scalar(1), sink); }, "pass retain_graph to the first call"));
}

TEST(Tape, JointBackwardsAreToldWhatIsNeeded) {
  const Tensor a = leaf(1), b = scalar(2), c = leaf(3);
  Needs<3> told{};
  const Tensor y =
      record_joint<3>(scalar(0), {&a, &b, &c}, [&told, b = SavedTensor(b)](const Tensor& dy, const Needs<3>& needs) {
        told = needs;
        return std::array<Tensor, 3>{dy, Tensor(), scalar(static_cast<float>(b().item()) + 7)};
      });
  Sink sink;

  y.node->backward(scalar(5), sink);

  EXPECT_EQ(told, (Needs<3>{true, false, true}));
  ASSERT_EQ(sink.given.size(), 2u);
  EXPECT_EQ(sink.given[0].first, a.node.get());
  EXPECT_EQ(sink.given[1].second.item(), 9);
  y.node->release();
  EXPECT_TRUE(refused([&] { y.node->backward(scalar(1), sink); }, "backward ran through this graph before"));
}

TEST(Tape, GradientsThatAreNotOfTheirInputsSpecAreRefused) {
  const Tensor x = leaf(1), wide = Tensor::from<float>({1, 2}, Shape{2}), f64 = Tensor::from<double>({1}, Shape{});
  Sink sink;
  for (const Tensor& wrong : {wide, f64}) {
    const Tensor y = record(scalar(0), wrt(
                                           x, [&](const Tensor&) { return wrong; }, "snake"));
    EXPECT_TRUE(refused([&] { y.node->backward(scalar(1), sink); },
                        "snake: its backward gave a gradient " + to_string(wrong.spec()) + " for an input f32 ()"));
    const Tensor z = record_joint<1>(
        scalar(0), {&x}, [&](const Tensor&, const Needs<1>&) { return std::array<Tensor, 1>{wrong}; }, "joint");
    EXPECT_TRUE(refused([&] { z.node->backward(scalar(1), sink); }, "joint: its backward gave a gradient "));
  }
  EXPECT_TRUE(sink.given.empty());
}

// The function that a lambda is, is called operator(), which helps nobody.
TEST(Tape, OpsThatAreLambdasAreToldToNameThemselves) {
  const auto op = [](const Tensor& x, const Tensor& kept) {
    return record(scalar(0), wrt(x, [k = SavedTensor(kept)](const Tensor&) { return k(); }));
  };
  const Tensor x = leaf(1), wide = Tensor::from<float>({1, 2}, Shape{2});
  Sink sink;
  const Tensor y = op(x, wide);
  EXPECT_TRUE(refused([&] { y.node->backward(scalar(1), sink); },
                      "an op without a name (give it one as the last argument of wrt"));
  wide.value->bump_version();
  EXPECT_TRUE(refused([&] { y.node->backward(scalar(1), sink); }, "an op without a name (give it one"));
}

// An op's number is above those of its inputs, also where these were recorded by another thread that counted further.
TEST(Tape, NumbersGrowAlongEveryEdge) {
  const auto pass = [](const Tensor& dy) { return dy; };
  Tensor x = leaf(1), joint;
  pthread_t thread;
  std::pair<Tensor*, Tensor*> out{&x, &joint};
  pthread_create(
      &thread, nullptr,
      [](void* p) -> void* {
        auto [y, j] = *static_cast<std::pair<Tensor*, Tensor*>*>(p);
        detail::ctx.sequence = 1000000000;
        *y = record(*y, wrt(*y, [](const Tensor& dy) { return dy; }));
        *j = record_joint<1>(*y, {y}, [](const Tensor& dy, const Needs<1>&) { return std::array<Tensor, 1>{dy}; });
        return nullptr;
      },
      &out);
  pthread_join(thread, nullptr);

  const Tensor y = record(scalar(0), wrt(x, pass));
  const Tensor z =
      record_joint<1>(scalar(0), {&joint}, [](const Tensor& dy, const Needs<1>&) { return std::array<Tensor, 1>{dy}; });

  EXPECT_GT(y.node->sequence, x.node->sequence);
  EXPECT_GT(z.node->sequence, joint.node->sequence);
}

// On 256 KiB of stack, where recursion over the chain would overflow.
TEST(Tape, ChainsOfAnyLengthAreDestroyedWithoutRecursion) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void*) -> void* {
                  Tensor y = leaf(1);
                  for (int i = 0; i < kDeep; ++i) y = record(y.detached(), wrt(y, [](const Tensor& dy) { return dy; }));
                  y = {};
                  return nullptr;
                },
                nullptr),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// Nodes that hold each other through what they keep are a tree as deep as the chain.
TEST(Tape, ChainsThroughKeptTensorsAreDestroyedWithoutRecursion) {
  Tensor y = leaf(1);
  for (int i = 0; i < kDeep; ++i) y = record(y.detached(), wrt(y, [y = SavedTensor(y)](const Tensor&) { return y(); }));
  y = {};
}

}  // namespace
}  // namespace plumb

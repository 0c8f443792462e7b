#include "core/tensor.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/compare.h"

namespace plumb {

using detail::Ref;
using detail::Value;
namespace {

using test::refused;

struct Counted {
  std::atomic<uint32_t> refs{1};
  int* destroyed;
  explicit Counted(int* d) : destroyed(d) {}
  static void destroy(Counted* c) {
    ++*c->destroyed;
    delete c;
  }
};

TEST(Ref, DestroysWithTheLastOwner) {
  int destroyed = 0;
  {
    Ref<Counted> a = Ref<Counted>::adopt(new Counted(&destroyed));
    EXPECT_TRUE(a.sole_owner());
    Ref<Counted> b = a, c(a.get());
    EXPECT_EQ(a->refs, 3u);
    EXPECT_FALSE(a.sole_owner());
    b = std::move(c);
    EXPECT_FALSE(c);
    EXPECT_EQ(a->refs, 2u);
    a = a;  // NOLINT: assignment to itself must do no harm
    b = {};
    EXPECT_TRUE(a.sole_owner());
    EXPECT_EQ(destroyed, 0);
  }
  EXPECT_EQ(destroyed, 1);
}

TEST(Ref, ReleaseGivesUpTheCount) {
  int destroyed = 0;
  Ref<Counted> a = Ref<Counted>::adopt(new Counted(&destroyed));
  Counted* raw = a.release();
  EXPECT_FALSE(a);
  EXPECT_EQ(destroyed, 0);
  a = Ref<Counted>::adopt(raw);
  a = nullptr;
  EXPECT_EQ(destroyed, 1);
}

TEST(Tensor, FromCopiesTheData) {
  std::vector<float> data = {1, 2, 3, 4, 5, 6};
  const Tensor x = Tensor::from<float>(data, TensorSpec(Shape{2, 3}));
  data[0] = 9;
  EXPECT_EQ(x.data<float>()[0], 1);
  EXPECT_EQ(x.data<float>()[5], 6);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(x.value->data) % 256, 0u);
}

TEST(Tensor, HoldsNoElementsOrOne) {
  const Tensor none = Tensor::from<float>(std::initializer_list<float>{}, Shape{0, 3});
  EXPECT_EQ(none.data<float>().size(), 0u);
  const Tensor one = Tensor::from<double>({2.5}, Shape{});
  EXPECT_EQ(one.item(), 2.5);
  EXPECT_FALSE(none.value->is_symbolic());
}

TEST(Tensor, WrapsForeignMemoryAndCallsTheDeleterOnce) {
  std::vector<float> memory = {1, 2, 3};
  int deleted = 0;
  {
    Tensor x = Tensor::wrap(memory.data(), TensorSpec(Shape{3}), [&](void* p) {
      EXPECT_EQ(p, memory.data());
      ++deleted;
    });
    const Tensor other = x;
    x.mutable_data<float>()[1] = 7;
    x = {};
    EXPECT_EQ(deleted, 0);
    EXPECT_EQ(other.data<float>()[1], 7);
    EXPECT_FALSE(other.value->is_private());
  }
  EXPECT_EQ(deleted, 1);
  EXPECT_EQ(memory[1], 7);
}

TEST(Tensor, WrapRefusesNullAndMisalignedMemory) {
  alignas(8) char bytes[16];
  EXPECT_TRUE(refused([] { Tensor::wrap(nullptr, TensorSpec(Shape{1})); }, "wrap a null pointer"));
  EXPECT_TRUE(refused([&] { Tensor::wrap(bytes + 1, TensorSpec(Shape{1})); }, "not aligned to its elements"));
  EXPECT_NO_THROW(Tensor::wrap(nullptr, TensorSpec(Shape{0})));
}

TEST(Tensor, DataIsOfTheDtypeAskedFor) {
  const Tensor x = Tensor::from<int32_t>({1, 2}, Shape{2});
  EXPECT_TRUE(refused([&] { x.data<float>(); }, "data: f32 was asked of a tensor of dtype i32"));
  const Tensor none;
  EXPECT_TRUE(refused([&] { none.data<float>(); }, "the tensor is empty"));
}

TEST(Tensor, WritingRaisesTheVersionForAllHandlesAndAliases) {
  Tensor x = Tensor::from<float>({1, 2, 3, 4}, Shape{4});
  const Tensor handle = x.detached();
  const Tensor alias(Value::alias(x.value, TensorSpec(Shape{2, 2})));
  const Tensor alias_of_alias(Value::alias(alias.value, TensorSpec(Shape{4, 1})));
  const uint32_t version = x.value->version();

  x.mutable_data<float>()[0] = 5;
  EXPECT_EQ(handle.value->version(), version + 1);
  EXPECT_EQ(alias.value->version(), version + 1);
  EXPECT_EQ(alias_of_alias.value->version(), version + 1);
  Tensor same = alias_of_alias;
  same.mutable_data<float>()[1] = 6;
  EXPECT_EQ(x.value->version(), version + 2);
  EXPECT_EQ(x.data<float>()[1], 6);
  EXPECT_EQ(alias_of_alias.value->root(), x.value.get());
}

TEST(Tensor, AliasesKeepTheMemory) {
  Tensor x = Tensor::from<float>({1, 2}, Shape{2});
  const Tensor alias(Value::alias(x.value, TensorSpec(Shape{1, 2})));
  EXPECT_FALSE(x.value->is_private());
  x = {};
  EXPECT_EQ(alias.data<float>()[1], 2);
}

TEST(Tensor, ItemReadsEveryDtype) {
  EXPECT_EQ(Tensor::from<float>({1.5f}, Shape{1}).item(), 1.5);
  EXPECT_EQ(Tensor::from<int64_t>({-7}, Shape{1, 1}).item(), -7);
  EXPECT_EQ(Tensor::from<uint8_t>({200}, Shape{}).item(), 200);
  EXPECT_EQ(Tensor::from<Bfloat16>({Bfloat16(0.5f)}, Shape{}).item(), 0.5);
  EXPECT_EQ(Tensor::from<Float16>({Float16(0.25f)}, Shape{}).item(), 0.25);
  EXPECT_TRUE(refused([] { Tensor::from<float>({1, 2}, Shape{2}).item(); }, "shape (2), which is not one element"));
  EXPECT_TRUE(refused([] { Tensor().item(); }, "the tensor is empty"));
}

TEST(Tensor, RequireGradIsForFloats) {
  Tensor x = Tensor::from<float>({1}, Shape{1});
  EXPECT_FALSE(x.requires_grad());
  EXPECT_TRUE(x.require_grad().requires_grad());
  EXPECT_FALSE(x.detached().requires_grad());
  EXPECT_TRUE(refused([] { Tensor::from<int32_t>({1}, Shape{1}).require_grad(); }, "dtype i32 has no gradient"));
  EXPECT_TRUE(refused([] { Tensor().require_grad(); }, "the tensor is empty"));
}

TEST(Tensor, CapturedTensorsHaveNoElements) {
  const Tensor x(Value::make(TensorSpec(Shape{2}), MemoryClass::kActivation, Device{}, true));
  EXPECT_TRUE(x.value->is_symbolic());
  EXPECT_TRUE(refused([&] { x.data<float>(); }, "not known while capturing"));
}

TEST(Tensor, MemoryIsCountedUntilTheLastHandleIsGone) {
  const int64_t before = cpu_memory().stats().live_total();
  {
    const Tensor x = Tensor::empty(TensorSpec(Shape{1024}), MemoryClass::kParameter);
    const Tensor handle = x;
    EXPECT_EQ(cpu_memory().stats().live_total() - before, 4096);
  }
  EXPECT_EQ(cpu_memory().stats().live_total(), before);
}

TEST(Tensor, IsMadeOfAnyListOfNumbers) {
  const std::vector<float> numbers{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(Tensor::from(numbers, {2, 3}).spec(), TensorSpec({2, 3}));
  EXPECT_EQ(Tensor::from(std::array<int64_t, 2>{4, 5}, Shape{2}).dtype(), DType::kI64);
  EXPECT_EQ(Tensor::from(numbers, TensorSpec({1, 1, 2, 3}, DType::kF32, Layout::kNhwc)).layout(), Layout::kNhwc);
  EXPECT_TRUE(refused([&] { Tensor::from(numbers, {2, 2}); }, "a tensor f32 (2, 2) nchw was given 6 elements"));
  EXPECT_TRUE(refused([&] { Tensor::from(numbers, TensorSpec({6}, DType::kF64)); }, "was given data of dtype f32"));
}

TEST(Tensor, ElementsByLogicalIndex) {
  const Tensor x =
      Tensor::from(std::vector<float>{0, 1, 2, 3, 4, 5}, TensorSpec({1, 2, 1, 3}, DType::kF32, Layout::kNhwc));
  EXPECT_EQ(x.at({0, 0, 0, 1}), 2);
  EXPECT_EQ(x.at({0, 1, 0, 1}), 3);
  EXPECT_EQ(x.at({-1, -1, -1, -1}), 5);
  EXPECT_EQ(Tensor::from<uint8_t>({7}, Shape{}).at({}), 7);
  EXPECT_TRUE(refused([&] { x.at({0, 2, 0, 0}); }, "at: index 2 of dimension 1 lies outside of shape (1, 2, 1, 3)"));
  EXPECT_TRUE(refused([&] { x.at({0, 0, 0, -4}); }, "at: index -4 of dimension 3"));
  EXPECT_TRUE(refused([&] { x.at({0}); }, "at: 1 indices were given for a tensor of shape (1, 2, 1, 3)"));
  EXPECT_TRUE(refused([&] { Tensor().at({0}); }, "at: the tensor is empty"));
}

// What would be read after it is gone does not compile.
template <class T>
concept GivesData = requires(T t) {
  std::forward<T>(t).template data<float>();
};
template <class T>
concept GivesMutableData = requires(T t) {
  std::forward<T>(t).template mutable_data<float>();
};
static_assert(GivesData<Tensor&> && GivesData<const Tensor&> && !GivesData<Tensor&&> && !GivesData<const Tensor&&>);
static_assert(GivesMutableData<Tensor&> && !GivesMutableData<Tensor&&> && !GivesMutableData<const Tensor&>);
static_assert(std::is_same_v<decltype(Tensor().spec()), TensorSpec> &&
              std::is_same_v<decltype(Tensor().shape()), Shape>);
static_assert(std::is_same_v<decltype(TensorList()[0]), Tensor>);
static_assert(std::is_same_v<decltype(std::declval<TensorList&>()[0]), Tensor&>);

}  // namespace
}  // namespace plumb

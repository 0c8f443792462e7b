// Weights of networks in files.
#include "models/weights.h"
#include "models/layers.h"
#include "ops/convert.h"
#include "ops/fill.h"
#include "tests/models/safetensors_files.h"

namespace plumb::models {
namespace {

using test::bitwise_equal;
using test::refused;

class Weights : public Safetensors {};

/// A network of two parameters and two buffers.
class Tiny final : public Network {
 public:
  explicit Tiny(uint64_t seed) : Network("tiny", Shape{1, 2, 2}, 2) {
    ParameterMaker maker(seed);
    maker.weight("fc.weight", Shape{2, 4}, 4, 2);
    maker.bias("fc.bias", 2, 4);
    maker.buffer("bn.running_mean", Shape{2}, 0.5);
    maker.buffer("bn.running_var", Shape{2}, 1);
    finish(std::move(maker));
  }
  Tensor forward(const Tensor& x, const ForwardContext&) const override { return x; }
  std::vector<NamedTensor> all() const { return {parameters()[0], parameters()[1], buffers()[0], buffers()[1]}; }
};

testing::AssertionResult same_weights(const Tiny& a, const Tiny& b) {
  for (size_t i = 0; i < a.all().size(); ++i) {
    if (auto equal = bitwise_equal(a.all()[i].tensor, b.all()[i].tensor); !equal)
      return equal << " in " << a.all()[i].name;
  }
  return testing::AssertionSuccess();
}

/// The tensors of a network as another dtype, with other names if wanted.
std::vector<NamedTensor> converted(const Tiny& network, DType dtype, const std::string& prefix = "") {
  std::vector<NamedTensor> all;
  for (const auto& [name, tensor] : network.all())
    all.push_back({prefix + name, test::converted(tensor, dtype, Layout::kNchw)});
  return all;
}

TEST_F(Weights, RoundTrip) {
  const Tiny saved(1);
  Tiny loaded(2);
  const uint32_t version = loaded.all()[0].tensor.value->version();
  ASSERT_FALSE(same_weights(saved, loaded));

  save_weights(saved, file_);
  load_weights(loaded, file_);

  EXPECT_TRUE(same_weights(saved, loaded));
  EXPECT_GT(loaded.all()[0].tensor.value->version(), version);
  const TensorFile file = load_safetensors(file_);
  EXPECT_EQ(file.tensors[0].name, "fc.weight");
  EXPECT_EQ(file.tensors[3].name, "bn.running_var");
}

TEST_F(Weights, TakesOtherFloats) {
  for (const DType t : {DType::kF64, DType::kF16, DType::kBf16}) {
    const Tiny source(1);
    Tiny loaded(2);
    save_safetensors(file_, converted(source, t));

    load_weights(loaded, file_);

    for (size_t i = 0; i < 4; ++i) {
      const Tensor expected = test::converted(converted(source, t)[i].tensor, DType::kF32, Layout::kNchw);
      EXPECT_TRUE(bitwise_equal(loaded.all()[i].tensor, expected)) << to_string(t);
    }
  }
}

TEST_F(Weights, PassesOverDataParallelAndBatchCounters) {
  const Tiny source(1);
  for (const std::string prefix : {"", "module."}) {
    Tiny loaded(2);
    std::vector<NamedTensor> tensors = converted(source, DType::kF32, prefix);
    tensors.insert(tensors.begin() + 1, {prefix + "bn.num_batches_tracked", Tensor::from<int64_t>({12}, Shape{})});
    save_safetensors(file_, tensors);

    load_weights(loaded, file_);

    EXPECT_TRUE(same_weights(source, loaded));
  }
}

TEST_F(Weights, OfALayerThatIsNamedAsAWrapperIs) {
  const Tensor weight = Tensor::from({1.f, 2.f}, {2}), count = Tensor::from({3.f}, {1});
  const auto list = [](const Tensor& w, const Tensor& c) {
    return std::vector<NamedTensor>{{"module.weight", w}, {"module.num_batches_tracked", c}};
  };
  save_weights(list(weight, count), file_);
  const Tensor loaded = zeros({2}), counted = zeros({1});
  load_weights(list(loaded, counted), file_);
  EXPECT_TRUE(bitwise_equal(loaded, weight) && bitwise_equal(counted, count));

  save_weights(std::vector<NamedTensor>{{"module.module.weight", count}}, file_);
  const Tensor wrapped = zeros({1});
  load_weights(std::vector<NamedTensor>{{"module.weight", wrapped}}, file_);
  EXPECT_TRUE(bitwise_equal(wrapped, count));
}

TEST_F(Weights, LeavesTheNetworkAloneWhenTheFileDoesNotFit) {
  const Tiny source(1), before(2);
  Tiny network(2);
  const auto refuses = [&](const std::vector<NamedTensor>& tensors, const std::string& part) {
    save_safetensors(file_, tensors);
    const auto result = refused([&] { load_weights(network, file_); }, part);
    return result ? same_weights(network, before) : result;
  };
  std::vector<NamedTensor> tensors = source.all();
  tensors.pop_back();
  EXPECT_TRUE(refuses(tensors, "does not hold the weights of tiny: it lacks \"bn.running_var\""));
  tensors.push_back({"bn.variance", source.all()[3].tensor});
  EXPECT_TRUE(refuses(tensors, "it lacks \"bn.running_var\", and has \"bn.variance\", which the network lacks"));
  tensors = source.all();
  for (const char* name : {"c", "a", "d", "b", "e"}) tensors.push_back({name, source.all()[3].tensor});
  EXPECT_TRUE(refuses(tensors, "it has \"a\", \"b\", \"c\" and 2 more, which the network lacks"));
  tensors = source.all();
  tensors[3].tensor = Tensor::from({1.f, 2.f, 3.f}, Shape{3});
  EXPECT_TRUE(refuses(tensors, "tensor \"bn.running_var\" has shape (3), in tiny it has (2)"));
  tensors[3].tensor = Tensor::from<int64_t>({1, 2}, Shape{2});
  EXPECT_TRUE(refuses(tensors, "tensor \"bn.running_var\" has dtype i64"));
  tensors = converted(source, DType::kF32, "module.");
  tensors[0].name = "fc.weight";
  EXPECT_TRUE(refuses(tensors, "it lacks \"fc.bias\""));
  EXPECT_TRUE(refused([&] { load_weights(network, folder_ / "none"); }, "is missing"));
  put_bytes("no weights at all");
  EXPECT_TRUE(refused([&] { load_weights(network, file_); }, "is not a valid safetensors file"));
  EXPECT_TRUE(same_weights(network, before));
}

TEST_F(Weights, OfAnyListOfNamedTensors) {
  const test::Folder folder;
  const auto file = folder.path() / "list.safetensors";
  const Linear saved(3, 2);
  const Tensor scale = Tensor::from({0.1, 0.2}, {2});
  const auto list = [](const Linear& layer, const Tensor& s) {
    return std::vector<NamedTensor>{{"fc.weight", layer.weight}, {"fc.bias", layer.bias}, {"scale", s}};
  };
  save_weights(list(saved, scale), file);

  const Linear loaded(3, 2);
  const Tensor same = zeros({2}, DType::kF64), rounded = zeros({2}, DType::kBf16);
  EXPECT_FALSE(bitwise_equal(loaded.weight, saved.weight));
  load_weights(list(loaded, same), file);
  EXPECT_TRUE(bitwise_equal(loaded.weight, saved.weight) && bitwise_equal(loaded.bias, saved.bias));
  EXPECT_TRUE(bitwise_equal(same, scale));
  load_weights(list(loaded, rounded), file);
  EXPECT_TRUE(bitwise_equal(rounded, to(scale, DType::kBf16)));

  EXPECT_TRUE(refused([&] { load_weights(list(Linear(4, 2), same), file); }, "in the list it has (2, 4)"));
  const std::vector<NamedTensor> one{{"fc.weight", saved.weight}};
  EXPECT_TRUE(refused([&] { load_weights(one, file); },
                      "does not hold the weights of the list: it has \"fc.bias\", \"scale\""));
  EXPECT_TRUE(refused([&] { load_weights(list(loaded, Tensor()), file); }, "load_weights: tensor \"scale\" is empty"));
}

}  // namespace
}  // namespace plumb::models

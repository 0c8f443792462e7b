// What every network has: named parameters, running statistics, and a forward function.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../core/convention.h"
#include "../core/tensor.h"
#include "../ops/dropout.h"

namespace plumb::models {

/// A tensor by its name in a file of weights, such as "conv1.weight".
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// A row of the layer table: what a layer is, the shape that it puts out, and how many parameters it has.
struct LayerRow {
  std::string type;
  Shape output;
  int64_t parameters = 0;
};

class RoundedParameters;

/// What a forward pass knows besides its input.
struct ForwardContext {
  bool train = false;                      ///< batch statistics and dropout, or running statistics and none
  Generator* generator = nullptr;          ///< of the dropout masks; needed in training by networks with dropout
  std::vector<LayerRow>* table = nullptr;  ///< filled with a row a layer when set
  RoundedParameters* rounded = nullptr;    ///< the parameters in bf16, kept between passes (models/rounded.h)

  /// A pass of a training step, whose dropout masks come from `g`.
  static ForwardContext training(Generator& g) { return {true, &g}; }
  void note(const char* type, const Shape& y, int64_t parameters = 0) const {
    if (table) table->push_back({type, y, parameters});
  }
  void note(const char* type, const Tensor& y, int64_t parameters = 0) const { note(type, y.shape(), parameters); }
};

/// Fills a weight with its first values, as init_weight of models/init.h.
using WeightFiller = void (*)(Tensor& w, Convention convention, int64_t fan_in, int64_t fan_out, uint64_t seed);

/// Makes parameters by name, in a framework's own initial distribution. Parameter number i of seed s is always the same
/// (models/init.h).
class ParameterMaker {
 public:
  explicit ParameterMaker(uint64_t seed = 0, Convention convention = Convention::kPyTorch)
      : seed_(seed), convention_(convention) {}
  /// Weights that are made from now on are filled by `fill`: for a network whose distribution is its own.
  void fill_weights_by(WeightFiller fill) { fill_ = fill; }
  /// The weight of a layer with `fan_in` inputs and `fan_out` outputs a position.
  Tensor weight(const std::string& name, const Shape& shape, int64_t fan_in, int64_t fan_out);
  Tensor bias(const std::string& name, int64_t n, int64_t fan_in);
  /// A parameter whose elements are all `value`.
  Tensor constant(const std::string& name, const Shape& shape, double value);
  /// A running statistic: saved and loaded, not trained.
  Tensor buffer(const std::string& name, const Shape& shape, double value);
  Convention convention() const { return convention_; }

  std::vector<NamedTensor> parameters, buffers;

 private:
  Tensor add(std::vector<NamedTensor>& to, const std::string& name, Tensor t);
  uint64_t seed_, count_ = 0;
  Convention convention_;
  WeightFiller fill_ = nullptr;  // of the convention where there is none
};

/// A network for images: a plain struct of parameters with a forward function.
class Network {
 public:
  virtual ~Network() = default;
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  /// Logits (N, classes) for images x (N, C, H, W) of the shape `input`, in any layout. f32, f64 or bf16 (parameters
  /// stay f32 and are rounded where they are used).
  virtual Tensor forward(const Tensor& x, const ForwardContext& context) const = 0;

  const std::string& name() const { return name_; }
  const Shape& input() const { return input_; }  ///< (C, H, W)
  int64_t classes() const { return classes_; }
  /// The parameters by PyTorch's names ("conv1.weight"), in the order of the layers.
  const std::vector<NamedTensor>& parameters() const { return made_.parameters; }
  /// Running statistics ("bn1.running_mean").
  const std::vector<NamedTensor>& buffers() const { return made_.buffers; }
  /// The handles of the parameters, for grad and for optimizers.
  const TensorList& trainable() const { return trainable_; }
  int64_t parameter_count() const;
  /// Where its parameters are.
  Device device() const;
  /// The layer table for a batch of one, found without computing.
  std::vector<LayerRow> table() const;

 protected:
  Network(std::string name, const Shape& input, int64_t classes)
      : name_(std::move(name)), input_(input), classes_(classes) {}
  void finish(ParameterMaker&& made);

 private:
  std::string name_;
  Shape input_;
  int64_t classes_;
  ParameterMaker made_;
  TensorList trainable_;
};

/// A network by one of network_names(), or "vgg", which is "vgg16". Throws on another name.
std::unique_ptr<Network> make_network(std::string_view name, uint64_t seed = 0,
                                      Convention convention = Convention::kPyTorch);
/// The names that make_network knows, without aliases.
std::vector<std::string> network_names();

}  // namespace plumb::models

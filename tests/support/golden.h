// Golden values: results that the frameworks computed, from the safetensors files of tests/golden.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/shape.h"

namespace plumb::test {

/// The arguments of an op or an optimizer: each has its list of numbers; a boolean is 0 or 1. None and words have an
/// empty list.
using Arguments = std::map<std::string, std::vector<double>>;
/// Reads "groups=1 stride=2,2 training=true". Ignores anything that is not such a pair.
Arguments arguments_of(const std::string& text);
/// The words of a text, separated by spaces.
std::vector<std::string> words_of(const std::string& text);

/// A file of tests/golden, or the part of it below a path of names: "torch/adam/steps".
class GoldenFile {
 public:
  explicit GoldenFile(const std::string& file);
  /// The part below this name. Throws if there is none.
  GoldenFile operator[](const std::string& name) const;
  bool contains(const std::string& name) const;
  /// The next names below this one, sorted.
  std::vector<std::string> names() const;

  /// The elements of the tensor with this name, in row-major order. Throws if there is none.
  const std::vector<double>& numbers() const { return tensor().second; }
  const Shape& shape() const { return tensor().first; }
  /// Its only element.
  double number() const;
  /// Row i: the elements at index i of the first dimension.
  std::vector<double> row(size_t i) const;
  /// The text with this name. Throws if there is none.
  const std::string& text() const;

 private:
  struct Contents {
    std::string file;
    std::map<std::string, std::pair<Shape, std::vector<double>>> tensors;
    std::map<std::string, std::string> texts;
  };
  const std::pair<Shape, std::vector<double>>& tensor() const;

  std::shared_ptr<const Contents> all_;
  std::string name_;  // empty: the whole file
};

}  // namespace plumb::test

// Golden values: what the frameworks computed, from the safetensors files of tests/golden.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/shape.h"

namespace plumb::test {

/// The arguments of an op or an optimizer: each the numbers that it lists, a boolean as 0 or 1. None and words list
/// none.
using Arguments = std::map<std::string, std::vector<double>>;
/// Reads "groups=1 stride=2,2 training=true". What is no such pair is passed over.
Arguments arguments_of(const std::string& text);
/// The words of a text.
std::vector<std::string> words_of(const std::string& text);

/// A file of tests/golden, or what stands in it below a name, which is the way to it: "torch/adam/steps".
class GoldenFile {
 public:
  explicit GoldenFile(const std::string& file);
  /// What is below the name. Throws where nothing is.
  GoldenFile operator[](const std::string& name) const;
  bool contains(const std::string& name) const;
  /// The names that one step leads to, in the order of the alphabet.
  std::vector<std::string> names() const;

  /// The tensor of this name, its elements in row-major order. Throws where there is none.
  const std::vector<double>& numbers() const { return tensor().second; }
  const Shape& shape() const { return tensor().first; }
  /// The only element of it.
  double number() const;
  /// Row i of it: the elements behind the first dimension.
  std::vector<double> row(size_t i) const;
  /// The text of this name. Throws where there is none.
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

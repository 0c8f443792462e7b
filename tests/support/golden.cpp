#include "tests/support/golden.h"

#include <cstdlib>
#include <iterator>
#include <set>
#include <sstream>

#include "models/safetensors.h"
#include "tests/support/folder.h"
#include "tests/support/tensors.h"

namespace plumb::test {
namespace {

template <class Map>
auto& entry(const Map& map, const std::string& name, const std::string& file) {
  const auto found = map.find(name);
  PLUMB_CHECK(found != map.end(), "{} has no {}", file, name);
  return found->second;
}

// Whether a name equals this one, or continues it after a slash.
template <class Map>
bool has(const Map& map, const std::string& name) {
  const auto behind = map.lower_bound(name + '/');
  return map.contains(name) || (behind != map.end() && behind->first.starts_with(name + '/'));
}

}  // namespace

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

Arguments arguments_of(const std::string& text) {
  Arguments all;
  for (const std::string& word : words_of(text)) {
    const size_t equals = word.find('=');
    if (equals == word.npos) continue;
    std::vector<double>& values = all[word.substr(0, equals)];
    std::istringstream list(word.substr(equals + 1));
    for (std::string item; std::getline(list, item, ',');) {
      char* end = nullptr;
      const double value = std::strtod(item.c_str(), &end);
      if (item == "true" || item == "false") {
        values.push_back(item == "true");
      } else if (!item.empty() && *end == '\0') {
        values.push_back(value);
      }
    }
  }
  return all;
}

GoldenFile::GoldenFile(const std::string& file) {
  const models::TensorFile read = models::load_safetensors(source_folder() + "/tests/golden/" + file);
  Contents all{file, {}, read.metadata};
  for (const auto& [name, tensor] : read.tensors) all.tensors[name] = {tensor.shape(), to_doubles(tensor)};
  all_ = std::make_shared<const Contents>(std::move(all));
}

GoldenFile GoldenFile::operator[](const std::string& name) const {
  PLUMB_CHECK(contains(name), "{} has no {} in {}", all_->file, name, name_);
  GoldenFile below = *this;
  below.name_ += (name_.empty() ? "" : "/") + name;
  return below;
}

bool GoldenFile::contains(const std::string& name) const {
  const std::string full = name_.empty() ? name : name_ + '/' + name;
  return has(all_->tensors, full) || has(all_->texts, full);
}

std::vector<std::string> GoldenFile::names() const {
  const std::string before = name_.empty() ? "" : name_ + '/';
  std::set<std::string> next;
  const auto add = [&](const auto& map) {
    for (auto i = map.lower_bound(before); i != map.end() && i->first.starts_with(before); ++i) {
      next.insert(i->first.substr(before.size(), i->first.find('/', before.size()) - before.size()));
    }
  };
  add(all_->tensors);
  add(all_->texts);
  return {next.begin(), next.end()};
}

const std::pair<Shape, std::vector<double>>& GoldenFile::tensor() const {
  return entry(all_->tensors, name_, all_->file);
}
const std::string& GoldenFile::text() const { return entry(all_->texts, name_, all_->file); }

double GoldenFile::number() const {
  PLUMB_CHECK(numbers().size() == 1, "{}: {} has {} elements", all_->file, name_, numbers().size());
  return numbers()[0];
}

std::vector<double> GoldenFile::row(size_t i) const {
  const auto rows = static_cast<size_t>(shape()[0]), size = numbers().size() / rows;
  PLUMB_CHECK(i < rows, "{}: {} has no row {}", all_->file, name_, i);
  const auto begin = numbers().begin() + static_cast<std::ptrdiff_t>(i * size);
  return {begin, begin + static_cast<std::ptrdiff_t>(size)};
}

}  // namespace plumb::test

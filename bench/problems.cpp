#include "bench/problems.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <span>
#include <sstream>

#include "core/file.h"
#include "ops/conv2d.h"
#include "ops/matmul.h"
#include "ops/pool2d.h"

namespace plumb::bench {

using detail::in_quotes;
namespace {

// What is wrong with a line is thrown as it is found; Problems::read adds which line it is.

std::vector<int32_t> numbers(std::string_view text) {
  std::vector<int32_t> all;
  for (size_t i = 0; i <= text.size();) {
    const size_t end = std::min(text.find('x', i), text.size());
    const auto [stop, error] = std::from_chars(text.data() + i, text.data() + end, all.emplace_back());
    const bool is_number = error == std::errc() && stop == text.data() + end && all.back() >= 0;
    PLUMB_CHECK(is_number, "{} is neither a number nor several with x between", in_quotes(text));
    i = end + 1;
  }
  return all;
}

struct Line {
  std::string op, name;
  std::vector<Shape> shapes;
  std::map<std::string, std::vector<int32_t>> attributes;

  Line(const std::string& text, int64_t batch) {
    std::istringstream words(text);
    words >> op >> name;
    for (std::string word; words >> word;) {
      const size_t equals = word.find('=');
      const std::vector<int32_t> given = numbers(word.substr(equals == word.npos ? 0 : equals + 1));
      if (equals != word.npos) {
        const std::string key = word.substr(0, equals);
        PLUMB_CHECK(attributes.emplace(key, given).second, "{} is there twice", key);
        continue;
      }
      shapes.emplace_back(std::vector<int64_t>(given.begin(), given.end()));
      PLUMB_CHECK(shapes.back().numel() > 0, "{} has no elements", word);
    }
    if (batch && !shapes.empty() && op != "matmul") shapes[0] = shapes[0].with(0, batch);
  }
  const Shape& shape(size_t i) const {
    PLUMB_CHECK(i < shapes.size(), "a shape is missing");
    return shapes[i];
  }
  // One number stands for all.
  void take(const std::string& key, std::span<int32_t> values) {
    const auto found = attributes.find(key);
    if (found == attributes.end()) return;
    const std::vector<int32_t>& given = found->second;
    PLUMB_CHECK(given.size() == 1 || given.size() == values.size(), "{} has {} numbers; give 1 or {}", key,
                given.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = given[given.size() == 1 ? 0 : i];
    attributes.erase(found);
  }
  void check_is_used_up(size_t taken) const {
    PLUMB_CHECK(shapes.size() == taken, "{} has {} shapes, and here are {}", op, taken, shapes.size());
    PLUMB_CHECK(attributes.empty(), "{} has no {}", op, attributes.begin()->first);
  }
};

// Rows and their results are known by an op and a name; convolutions and layers are also optimized, together.
void check_is_new(const Line& l, const Problems& all) {
  const auto has_name = [&](const auto& problems) {
    return std::ranges::any_of(problems, [&](const auto& p) { return p.name == l.name; });
  };
  const bool has_weights = l.op == "conv2d" || l.op == "linear";
  const bool is_there = has_weights        ? has_name(all.conv2d) || has_name(all.linear)
                        : l.op == "matmul" ? has_name(all.matmul)
                        : l.op == "pool2d" ? has_name(all.pool2d)
                                           : l.op == "tensor" && has_name(all.tensor);
  PLUMB_CHECK(!is_there, "there is another {} {}; give each a name of its own", has_weights ? "layer" : l.op, l.name);
}

// The op's own rule for shapes says whether a problem is one.
void read_line(const std::string& text, int64_t batch, Problems& to) {
  Line l(text, batch);
  check_is_new(l, to);
  size_t operands = 2;
  if (l.op == "conv2d") {
    ConvProblem& p = to.conv2d.emplace_back(ConvProblem{l.name, l.shape(0), l.shape(1), {}, {}});
    l.take("stride", p.params.stride.of);
    l.take("dilation", p.params.dilation.of);
    l.take("padding", p.params.padding.of);
    l.take("groups", std::span(&p.params.groups, 1));
    p.y = conv2d_output(p.params, TensorSpec(p.x), TensorSpec(p.w)).shape;
  } else if (l.op == "linear") {
    const Shape x = l.shape(0), w = l.shape(1);
    PLUMB_CHECK(x.rank() == 2 && w.rank() == 2 && x[1] == w[1], "linear takes no x {} and w {}", x, w);
    to.linear.push_back({l.name, x[0], x[1], w[0]});
  } else if (l.op == "matmul") {
    int32_t a = 0, b = 0;
    l.take("transpose_a", std::span(&a, 1));
    l.take("transpose_b", std::span(&b, 1));
    const MatmulProblem& p = to.matmul.emplace_back(MatmulProblem{l.name, l.shape(0), l.shape(1), a != 0, b != 0});
    matmul_output({p.transpose_a, p.transpose_b}, TensorSpec(p.a), TensorSpec(p.b));
  } else if (l.op == "pool2d") {
    operands = 1;
    PoolProblem& p = to.pool2d.emplace_back(PoolProblem{l.name, l.shape(0), {}, {}});
    l.take("kernel", p.params.kernel.of);
    l.take("stride", p.params.stride.of);
    l.take("padding", p.params.padding.of);
    p.params = with_stride(p.params);
    p.y = pool2d_output("pool2d", p.params, TensorSpec(p.x)).shape;
  } else {
    PLUMB_CHECK(l.op == "tensor", "{} is no op; use conv2d, linear, matmul, pool2d or tensor", in_quotes(l.op));
    operands = 1;
    to.tensor.push_back({l.name, l.shape(0)});
  }
  l.check_is_used_up(operands);
}

}  // namespace

size_t Problems::size() const { return conv2d.size() + linear.size() + matmul.size() + pool2d.size() + tensor.size(); }

void Problems::read(std::string_view text, const std::string& source, int64_t batch) {
  std::istringstream lines{std::string(text)};
  int64_t count = 0;
  for (std::string raw; std::getline(lines, raw);) {
    ++count;
    const std::string line = raw.substr(0, raw.find('#'));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    try {
      read_line(line, batch, *this);
    } catch (const Error& e) {
      fail("{}, line {}: {}, in {}", source, count, e.what(), in_quotes(line));
    }
  }
}

void Problems::read_file(const std::string& file, int64_t batch) {
  const detail::InputFile input = detail::open_input(file);
  std::string text(static_cast<size_t>(input.bytes), '\0');
  PLUMB_CHECK(std::fread(text.data(), 1, text.size(), input.stream.get()) == text.size(), "{} cannot be read", file);
  const size_t before = size();
  read(text, file, batch);
  PLUMB_CHECK(size() > before, "{} holds no problems; give lines like conv2d NAME 2x3x8x8 4x3x3x3 padding=1", file);
}

}  // namespace plumb::bench

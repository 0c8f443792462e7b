#include "bench/problems.h"

#include <cctype>
#include <map>
#include <optional>
#include <sstream>

#include "core/file.h"
#include "ops/conv2d.h"
#include "ops/matmul.h"
#include "ops/pool2d.h"

namespace plumb::bench {

using detail::in_quotes;
namespace {

// What is wrong with a line is thrown as it is found; Problems::read adds which line it is.

int64_t number(std::string_view digits) {
  PLUMB_CHECK(!digits.empty(), "a number is missing");
  int64_t n = 0;
  for (const char c : digits) {
    PLUMB_CHECK(std::isdigit(static_cast<unsigned char>(c)), "{} is no number", in_quotes(digits));
    n = n * 10 + (c - '0');
    PLUMB_CHECK(n <= INT32_MAX, "{} is too large a number", in_quotes(digits));
  }
  return n;
}

int64_t positive(const std::string& what, int64_t n) {
  PLUMB_CHECK(n >= 1, "{} is {}, which leaves nothing to do", what, n);
  return n;
}

int32_t narrow(int64_t v) {
  PLUMB_CHECK(v <= INT32_MAX, "a padding or dilation of {} is too large", v);
  return static_cast<int32_t>(v);
}

// Cuts the name off a benchdnn descriptor: ...n"name".
std::string cut_name(std::string& descriptor) {
  const size_t at = descriptor.find("n\"");
  if (at == std::string::npos) return descriptor;
  const size_t end = descriptor.find('"', at + 2);
  PLUMB_CHECK(end != std::string::npos && end + 1 == descriptor.size(),
              "the name does not end with the word, at a second quote");
  const std::string name = descriptor.substr(at + 2, end - at - 2);
  PLUMB_CHECK(at > 0 && !name.empty(), "there is nothing {}", at > 0 ? "in the quotes" : "before the name");
  descriptor.erase(at);
  return name;
}

// Benchdnn: letters and numbers.

// A spatial size: the padding after the image may differ from the one before, and follows from the output.
struct Axis {
  int64_t in, out = 1, kernel = 1, stride = 1, dilation = 0, before = 0;
  int64_t reach() const { return (kernel - 1) * (dilation + 1) + 1; }
  int64_t after() const { return std::max<int64_t>(0, (out - 1) * stride + reach() - in - before); }
  /// The output when the padding is the same on both sides.
  int64_t natural_out() const {
    PLUMB_CHECK(in + 2 * before >= reach(), "a kernel that reaches over {} does not fit into {} with a padding of {}",
                reach(), in, before);
    return (in + 2 * before - reach()) / stride + 1;
  }
};

class Letters {
 public:
  explicit Letters(std::string_view descriptor) {
    for (size_t i = 0; i < descriptor.size();) {
      if (descriptor[i] == '_') {
        ++i;
        continue;
      }
      const size_t name = i;
      while (i < descriptor.size() && std::isalpha(static_cast<unsigned char>(descriptor[i]))) ++i;
      const size_t digits = i;
      while (i < descriptor.size() && std::isdigit(static_cast<unsigned char>(descriptor[i]))) ++i;
      PLUMB_CHECK(digits > name && i > digits, "{} is no problem of benchdnn's or DeepBench's", in_quotes(descriptor));
      add(std::string(descriptor.substr(name, digits - name)), number(descriptor.substr(digits, i - digits)));
    }
  }
  bool has(const std::string& key) const { return values_.contains(key); }
  int64_t get(const std::string& key, std::optional<int64_t> otherwise = {}) const {
    const auto it = values_.find(key);
    if (it != values_.end()) return it->second;
    PLUMB_CHECK(otherwise, "{} is missing", key);
    return *otherwise;
  }
  int64_t batch(int64_t replaced) const { return replaced ? replaced : get("mb", 2); }
  Axis height() const { return has("ih") ? axis("h") : Axis{1}; }  // without: one spatial dimension
  Axis width() const {                                             // what is not said of the width is as the height's
    if (!has("iw") && !has("ow") && !has("kw") && !has("sw") && !has("pw") && !has("dw")) return height();
    return axis("w");
  }

 private:
  void add(const std::string& key, int64_t value) {
    PLUMB_CHECK(!key.ends_with('d'), "it has three spatial dimensions; only two are supported");
    PLUMB_CHECK(kKeys.find(" " + key + " ") != std::string_view::npos, "{} is unknown", in_quotes(key));
    const bool may_be_zero = key[0] == 'p' || key[0] == 'd';
    PLUMB_CHECK(values_.emplace(key, may_be_zero ? value : positive(key, value)).second, "{} is there twice", key);
  }
  int64_t either(const std::string& what, const std::string& d, std::optional<int64_t> otherwise) const {
    return get(what + d, d == "w" && has(what + "h") && !has(what + "w") ? std::optional(get(what + "h")) : otherwise);
  }
  Axis axis(const std::string& d) const {
    Axis a{either("i", d, {})};
    a.kernel = either("k", d, 1);
    a.stride = either("s", d, 1);
    a.dilation = either("d", d, 0);
    const bool says_out = has("o" + d) || (d == "w" && has("oh"));
    const bool says_pad = has("p" + d) || (d == "w" && has("ph"));
    if (says_out) a.out = either("o", d, {});
    if (says_pad) {
      a.before = either("p", d, 0);
    } else if (says_out) {
      a.before = std::max<int64_t>(0, ((a.out - 1) * a.stride + a.reach() - a.in) / 2);
    }
    if (!says_out) a.out = a.natural_out();
    PLUMB_CHECK(a.after() < a.reach(), "o{}{} is more than i{}{} gives with this kernel, stride and padding", d, a.out,
                d, a.in);
    return a;
  }
  static constexpr std::string_view kKeys = " g mb ic oc ih iw oh ow kh kw sh sw ph pw dh dw ";
  std::map<std::string, int64_t> values_;
};

// The op's own rule for shapes says whether a problem is one.
void add_conv2d(const ConvProblem& p, Problems& to) {
  const Shape y = conv2d_output(p.params, TensorSpec(p.x), TensorSpec(p.w)).shape;
  PLUMB_CHECK(y == p.y, "the output is said to be {}, and is {}", p.y, y);
  to.conv2d.push_back(p);
}

void add_pool2d(const PoolProblem& p, Problems& to) {
  const Shape y = pool2d_output("pooling", p.params, TensorSpec(p.x)).shape;
  PLUMB_CHECK(y == p.y, "the output is said to be {}, and is {}", p.y, y);
  to.pool2d.push_back(p);
}

void add_matmul(const MatmulProblem& p, Problems& to) {
  matmul_output({p.transpose_a, p.transpose_b}, TensorSpec(p.a), TensorSpec(p.b));
  to.matmul.push_back(p);
}

void read_letters(const std::string& name, const std::string& descriptor, int64_t batch, Problems& to) {
  const Letters l(descriptor);
  const int64_t n = l.batch(batch), ic = l.get("ic");
  const bool is_image = l.has("ih") || l.has("iw"), has_kernel = l.has("kh") || l.has("kw");
  const Axis h = is_image ? l.height() : Axis{1}, w = is_image ? l.width() : Axis{1};
  const Shape x = is_image ? Shape{n, ic, h.in, w.in} : Shape{n, ic};
  if (!is_image || !has_kernel) {
    if (l.has("oc")) {
      to.linear.push_back({name, n, x.numel() / n, l.get("oc")});
    } else {
      to.tensor.push_back({name, x});
    }
    return;
  }
  const int32_t padding[4] = {narrow(h.before), narrow(h.after()), narrow(w.before), narrow(w.after())};
  if (l.has("oc")) {
    const int64_t oc = l.get("oc"), g = l.get("g", 1);
    PLUMB_CHECK(ic % g == 0 && oc % g == 0, "{} groups do not divide {} and {} channels", g, ic, oc);
    ConvProblem p{name, x, Shape{oc, ic / g, h.kernel, w.kernel}, Shape{n, oc, h.out, w.out}, {}};
    p.params = {.stride = {narrow(h.stride), narrow(w.stride)},
                .dilation = {narrow(h.dilation + 1), narrow(w.dilation + 1)},
                .padding = {padding[0], padding[1], padding[2], padding[3]},
                .groups = narrow(g)};
    add_conv2d(p, to);
  } else {
    PLUMB_CHECK(h.dilation == 0 && w.dilation == 0, "a pooling has no dilation; leave dh and dw out, or give oc");
    PoolProblem p{name, x, Shape{n, ic, h.out, w.out}, {}};
    p.params = {.kernel = {narrow(h.kernel), narrow(w.kernel)},
                .stride = {narrow(h.stride), narrow(w.stride)},
                .padding = {padding[0], padding[1], padding[2], padding[3]}};
    add_pool2d(p, to);
  }
}

// Benchdnn: extents.

Shape extents(std::string_view text, int64_t batch) {
  std::vector<int64_t> all;
  for (size_t i = 0; i <= text.size();) {
    const size_t end = std::min(text.find('x', i), text.size());
    all.push_back(positive("an extent", number(text.substr(i, end - i))));
    i = end + 1;
  }
  if (batch) all[0] = batch;
  return Shape(std::span<const int64_t>(all));
}

void read_extents(const std::string& name, const std::string& descriptor, int64_t batch, Problems& to) {
  const size_t colon = descriptor.find(':');
  if (colon == std::string::npos) {
    to.tensor.push_back({name, extents(descriptor, batch)});
  } else {
    add_matmul({name, extents(descriptor.substr(0, colon), 0), extents(descriptor.substr(colon + 1), 0)}, to);
  }
}

// DeepBench: plain numbers.

void read_numbers(const std::vector<int64_t>& v, Problems& to) {
  std::string name = "deepbench";
  for (const int64_t n : v) name += "_" + std::to_string(n);
  if (v.size() == 11) {
    for (const size_t i : {0, 1, 2, 3, 4, 5, 6, 9, 10}) positive(message("number {}", i + 1), v[i]);
    const Axis h{.in = v[1], .kernel = v[6], .stride = v[10], .before = v[8]},
        w{.in = v[0], .kernel = v[5], .stride = v[9], .before = v[7]};
    ConvProblem p{name,
                  Shape{v[3], v[2], h.in, w.in},
                  Shape{v[4], v[2], h.kernel, w.kernel},
                  Shape{v[3], v[4], h.natural_out(), w.natural_out()},
                  {}};
    p.params = {.stride = {narrow(h.stride), narrow(w.stride)},
                .padding = {narrow(h.before), narrow(h.before), narrow(w.before), narrow(w.before)}};
    add_conv2d(p, to);
    return;
  }
  PLUMB_CHECK(v.size() == 5, "there are {} numbers; DeepBench's convolutions have 11 and its products 5", v.size());
  // Column-major C = op(A) op(B) is row-major C^T = op(B)^T op(A)^T over the same memory.
  const int64_t m = positive("m", v[0]), n = positive("n", v[1]), k = positive("k", v[2]);
  const bool ta = v[3] != 0, tb = v[4] != 0;
  add_matmul({name, tb ? Shape{k, n} : Shape{n, k}, ta ? Shape{m, k} : Shape{k, m}, tb, ta}, to);
}

// The numbers of a line without letters; nothing if it is not such a line.
std::optional<std::vector<int64_t>> plain_numbers(std::string text) {
  if (const size_t at = text.find("std::make_tuple"); at != std::string::npos) text.erase(at, 15);
  for (char& c : text) {
    if (c == '(' || c == ')' || c == ',' || c == ';') c = ' ';
  }
  std::istringstream words(text);
  std::vector<int64_t> numbers;
  for (std::string word; words >> word;) {
    if (word == "true" || word == "t" || word == "T") word = "1";
    if (word == "false" || word == "n" || word == "N") word = "0";
    const bool is_negative = word.size() > 1 && word[0] == '-' && std::isdigit(static_cast<unsigned char>(word[1]));
    PLUMB_CHECK(!is_negative, "{} is less than 0", word);
    if (word.find_first_not_of("0123456789") != std::string::npos) return {};
    numbers.push_back(number(word));
  }
  return numbers;
}

void read_line(const std::string& line, int64_t batch, Problems& to) {
  if (const auto numbers = plain_numbers(line); numbers && numbers->size() > 1) return read_numbers(*numbers, to);
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    if (word.starts_with('-')) continue;
    const std::string name = cut_name(word);
    if (std::isdigit(static_cast<unsigned char>(word[0]))) {
      read_extents(name, word, batch, to);
    } else {
      read_letters(name, word, batch, to);
    }
  }
}

}  // namespace

size_t Problems::size() const { return conv2d.size() + linear.size() + matmul.size() + pool2d.size() + tensor.size(); }

void Problems::read(std::string_view text, const std::string& source, int64_t batch) {
  std::istringstream lines{std::string(text)};
  int64_t count = 0;
  for (std::string raw; std::getline(lines, raw);) {
    ++count;
    const std::string line = raw.substr(0, raw.find('#'));
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
  PLUMB_CHECK(size() > before, "{} holds no problems; give lines of benchdnn's or DeepBench's, like ic3ih8oc4kh3ph1",
              file);
}

}  // namespace plumb::bench

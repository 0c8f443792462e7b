#include "bench/problems.h"

#include <cctype>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

namespace plumb::bench {
namespace {

struct Line {
  std::string text, where;
};

int64_t number(const Line& line, std::string_view digits) {
  int64_t n = 0;
  PLUMB_CHECK(!digits.empty() && digits.size() <= 12, "{}: a number is missing or too long in \"{}\"", line.where,
              line.text);
  for (const char c : digits) {
    PLUMB_CHECK(std::isdigit(static_cast<unsigned char>(c)), "{}: \"{}\" is no number in \"{}\"", line.where, digits,
                line.text);
    n = n * 10 + (c - '0');
  }
  return n;
}

// Cuts the name off a benchdnn descriptor: ...n"name".
std::string cut_name(std::string& descriptor) {
  const size_t at = descriptor.find("n\"");
  if (at == std::string::npos) return descriptor;
  const std::string name = descriptor.substr(at + 2, descriptor.find('"', at + 2) - at - 2);
  descriptor.erase(at);
  return name;
}

// ---- benchdnn: letters and numbers

// A spatial size: the padding after the image may differ from the one before, and follows from the output.
struct Axis {
  int64_t in, out, kernel = 1, stride = 1, dilation = 0, before = 0;
  int64_t after() const {
    return std::max<int64_t>(0, (out - 1) * stride + (kernel - 1) * (dilation + 1) + 1 - in - before);
  }
};

class Letters {
 public:
  explicit Letters(const Line& line, std::string_view descriptor) : line_(line) {
    for (size_t i = 0; i < descriptor.size();) {
      if (descriptor[i] == '_') {
        ++i;
        continue;
      }
      const size_t name = i;
      while (i < descriptor.size() && std::isalpha(static_cast<unsigned char>(descriptor[i]))) ++i;
      const size_t digits = i;
      while (i < descriptor.size() && std::isdigit(static_cast<unsigned char>(descriptor[i]))) ++i;
      PLUMB_CHECK(digits > name && i > digits, "{}: \"{}\" is no problem of benchdnn's or DeepBench's", line.where,
                  line.text);
      const std::string key(descriptor.substr(name, digits - name));
      PLUMB_CHECK(!key.ends_with('d'), "{}: \"{}\" has three spatial dimensions; only two are supported", line.where,
                  line.text);
      PLUMB_CHECK(kKeys.find(" " + key + " ") != std::string_view::npos, "{}: \"{}\" is unknown in \"{}\"", line.where,
                  key, line.text);
      values_[key] = number(line, descriptor.substr(digits, i - digits));
    }
  }
  bool has(const std::string& key) const { return values_.contains(key); }
  int64_t get(const std::string& key, std::optional<int64_t> otherwise = {}) const {
    const auto it = values_.find(key);
    if (it != values_.end()) return it->second;
    PLUMB_CHECK(otherwise, "{}: {} is missing in \"{}\"", line_.where, key, line_.text);
    return *otherwise;
  }
  int64_t batch(int64_t replaced) const { return replaced ? replaced : get("mb", 2); }
  Axis height() const { return has("ih") ? axis("h") : Axis{1, 1}; }  // without: one spatial dimension
  Axis width() const {  // what is not said of the width is as the height's
    if (!has("iw") && !has("ow") && !has("kw") && !has("sw") && !has("pw") && !has("dw")) return height();
    return axis("w");
  }

 private:
  int64_t either(const std::string& what, const std::string& d, std::optional<int64_t> otherwise) const {
    return get(what + d, d == "w" && has(what + "h") && !has(what + "w") ? std::optional(get(what + "h")) : otherwise);
  }
  Axis axis(const std::string& d) const {
    Axis a{either("i", d, {}), 0};
    a.kernel = either("k", d, 1);
    a.stride = either("s", d, 1);
    a.dilation = either("d", d, 0);
    const int64_t reach = (a.kernel - 1) * (a.dilation + 1) + 1;
    const bool says_out = has("o" + d) || (d == "w" && has("oh"));
    const bool says_pad = has("p" + d) || (d == "w" && has("ph"));
    PLUMB_CHECK(a.stride > 0 && a.kernel > 0, "{}: a stride or kernel of 0 in \"{}\"", line_.where, line_.text);
    if (says_out) a.out = either("o", d, {});
    if (says_pad) {
      a.before = either("p", d, 0);
    } else if (says_out) {
      a.before = std::max<int64_t>(0, ((a.out - 1) * a.stride + reach - a.in) / 2);
    }
    if (!says_out) a.out = (a.in + 2 * a.before - reach) / a.stride + 1;
    return a;
  }
  static constexpr std::string_view kKeys = " g mb ic oc ih iw oh ow kh kw sh sw ph pw dh dw ";
  const Line& line_;
  std::map<std::string, int64_t> values_;
};

int32_t narrow(int64_t v) { return static_cast<int32_t>(v); }

void read_letters(const Line& line, const std::string& name, const std::string& descriptor, int64_t batch,
                  Problems& to) {
  const Letters l(line, descriptor);
  const int64_t n = l.batch(batch), ic = l.get("ic");
  if (!l.has("ih") && !l.has("iw")) {
    if (l.has("oc")) {
      to.linear.push_back({name, n, ic, l.get("oc")});
    } else {
      to.tensor.push_back({name, Shape{n, ic}});
    }
    return;
  }
  const Axis h = l.height(), w = l.width();
  const Shape x{n, ic, h.in, w.in};
  if (!l.has("kh") && !l.has("kw")) {
    if (l.has("oc")) {
      to.linear.push_back({name, n, ic * h.in * w.in, l.get("oc")});
    } else {
      to.tensor.push_back({name, x});
    }
    return;
  }
  const int32_t padding[4] = {narrow(h.before), narrow(h.after()), narrow(w.before), narrow(w.after())};
  if (l.has("oc")) {
    const int64_t oc = l.get("oc"), g = l.get("g", 1);
    PLUMB_CHECK(g > 0 && ic % g == 0 && oc % g == 0, "{}: the groups do not divide the channels in \"{}\"", line.where,
                line.text);
    ConvProblem p{name, x, Shape{oc, ic / g, h.kernel, w.kernel}, Shape{n, oc, h.out, w.out}, {}};
    p.params = {.stride = {narrow(h.stride), narrow(w.stride)},
                .dilation = {narrow(h.dilation + 1), narrow(w.dilation + 1)},
                .padding = {padding[0], padding[1], padding[2], padding[3]},
                .groups = narrow(g)};
    to.conv2d.push_back(p);
  } else {
    PoolProblem p{name, x, Shape{n, ic, h.out, w.out}, {}};
    p.params = {.kernel = {narrow(h.kernel), narrow(w.kernel)},
                .stride = {narrow(h.stride), narrow(w.stride)},
                .padding = {padding[0], padding[1], padding[2], padding[3]}};
    to.pool2d.push_back(p);
  }
}

// ---- benchdnn: extents

Shape extents(const Line& line, std::string_view text, int64_t batch) {
  std::vector<int64_t> all;
  for (size_t i = 0; i <= text.size();) {
    const size_t end = std::min(text.find('x', i), text.size());
    all.push_back(number(line, text.substr(i, end - i)));
    i = end + 1;
  }
  if (batch && !all.empty()) all[0] = batch;
  return Shape(std::span<const int64_t>(all));
}

void read_extents(const Line& line, const std::string& name, const std::string& descriptor, int64_t batch,
                  Problems& to) {
  const size_t colon = descriptor.find(':');
  if (colon == std::string::npos) {
    to.tensor.push_back({name, extents(line, descriptor, batch)});
    return;
  }
  const Shape a = extents(line, descriptor.substr(0, colon), 0), b = extents(line, descriptor.substr(colon + 1), 0);
  PLUMB_CHECK(a.rank() >= 2 && b.rank() >= 2 && a[-1] == b[-2], "{}: the matrices {} and {} do not fit together",
              line.where, a, b);
  to.matmul.push_back({name, a, b});
}

// ---- DeepBench: plain numbers

void read_numbers(const Line& line, const std::vector<int64_t>& v, Problems& to) {
  std::string name = "deepbench";
  for (const int64_t n : v) name += "_" + std::to_string(n);
  if (v.size() == 11) {
    const Axis h{v[1], (v[1] + 2 * v[8] - v[6]) / std::max<int64_t>(v[10], 1) + 1};
    const Axis w{v[0], (v[0] + 2 * v[7] - v[5]) / std::max<int64_t>(v[9], 1) + 1};
    PLUMB_CHECK(v[9] > 0 && v[10] > 0, "{}: a stride of 0 in \"{}\"", line.where, line.text);
    ConvProblem p{
        name, Shape{v[3], v[2], v[1], v[0]}, Shape{v[4], v[2], v[6], v[5]}, Shape{v[3], v[4], h.out, w.out}, {}};
    p.params = {.stride = {narrow(v[10]), narrow(v[9])},
                .padding = {narrow(v[8]), narrow(v[8]), narrow(v[7]), narrow(v[7])}};
    to.conv2d.push_back(p);
    return;
  }
  PLUMB_CHECK(v.size() == 5, "{}: \"{}\" has {} numbers; DeepBench's convolutions have 11 and its products 5",
              line.where, line.text, v.size());
  // Column-major C = op(A) op(B) is row-major C^T = op(B)^T op(A)^T over the same memory.
  const int64_t m = v[0], n = v[1], k = v[2];
  const bool ta = v[3] != 0, tb = v[4] != 0;
  to.matmul.push_back({name, tb ? Shape{k, n} : Shape{n, k}, ta ? Shape{m, k} : Shape{k, m}, tb, ta});
}

// The numbers of a line without letters; nothing if it is not such a line.
std::optional<std::vector<int64_t>> plain_numbers(const Line& line) {
  std::string text = line.text;
  if (const size_t at = text.find("std::make_tuple"); at != std::string::npos) text.erase(at, 15);
  for (char& c : text) {
    if (c == '(' || c == ')' || c == ',' || c == ';') c = ' ';
  }
  std::istringstream words(text);
  std::vector<int64_t> numbers;
  for (std::string word; words >> word;) {
    if (word == "true" || word == "t" || word == "T") word = "1";
    if (word == "false" || word == "n" || word == "N") word = "0";
    if (word.find_first_not_of("0123456789") != std::string::npos) return {};
    numbers.push_back(number(line, word));
  }
  return numbers;
}

}  // namespace

void Problems::read(std::string_view text, const std::string& source, int64_t batch) {
  std::istringstream lines{std::string(text)};
  int64_t count = 0;
  for (std::string raw; std::getline(lines, raw);) {
    ++count;
    const Line line{raw.substr(0, raw.find('#')), message("{}, line {}", source, count)};
    if (line.text.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (const auto numbers = plain_numbers(line)) {
      if (numbers->size() > 1) {
        read_numbers(line, *numbers, *this);
        continue;
      }
    }
    std::istringstream words(line.text);
    for (std::string word; words >> word;) {
      if (word.starts_with('-')) continue;
      const std::string name = cut_name(word);
      if (std::isdigit(static_cast<unsigned char>(word[0]))) {
        read_extents(line, name, word, batch, *this);
      } else {
        read_letters(line, name, word, batch, *this);
      }
    }
  }
}

void Problems::read_file(const std::string& file, int64_t batch) {
  std::ifstream in(file);
  PLUMB_CHECK(in, "{} cannot be read", file);
  std::stringstream text;
  text << in.rdbuf();
  read(text.str(), file, batch);
}

}  // namespace plumb::bench

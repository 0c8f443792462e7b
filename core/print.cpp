#include "core/print.h"

#include <algorithm>
#include <cstdio>
#include <ostream>

#include "core/runtime.h"

namespace plumb {
namespace {

constexpr int64_t kMostElements = 200, kEdge = 3;

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// The elements of one tensor, in brackets.
class Printer {
 public:
  explicit Printer(const Tensor& x) : x_(x), strides_(strides_of(x.spec())), is_short_(x.numel() > kMostElements) {
    if (x.numel() > 0) visit(0, 0, [this](int64_t offset) { width_ = std::max(width_, number(offset).size()); });
  }
  std::string text() const {
    if (x_.numel() == 0) return "[]";
    std::string out;
    print(out, 0, 0);
    return out;
  }

 private:
  bool skips(int d, int64_t i) const {
    const int64_t extent = x_.shape()[d];
    return is_short_ && extent > 2 * kEdge && i >= kEdge && i < extent - kEdge;
  }
  template <class Each>
  void visit(int d, int64_t offset, const Each& each) const {
    if (d == x_.rank()) return each(offset);
    for (int64_t i = 0; i < x_.shape()[d]; ++i) {
      if (!skips(d, i)) visit(d + 1, offset + i * strides_[d], each);
    }
  }
  std::string number(int64_t offset) const {
    return dispatch_dtype(x_.dtype(), [&]<class T>() -> std::string {
      const T v = static_cast<const T*>(x_.value->data)[offset];
      if constexpr (std::is_integral_v<T>) {
        return std::to_string(v);
      } else {
        const auto wide = static_cast<double>(static_cast<Wide<T>>(v));
        if (wide != wide) return "nan";  // some have a sign, which is no news
        char text[32];
        std::snprintf(text, sizeof text, "%.6g", wide);
        return text;
      }
    });
  }
  void print(std::string& out, int d, int64_t offset) const {
    if (d == x_.rank()) {
      const std::string text = number(offset);
      out.append(width_ - text.size(), ' ') += text;
      return;
    }
    const std::string between = d + 1 == x_.rank() ? ", "
                                                   : "," + std::string(static_cast<size_t>(x_.rank() - d - 1), '\n') +
                                                         std::string(static_cast<size_t>(d + 1), ' ');
    out += '[';
    for (int64_t i = 0; i < x_.shape()[d]; ++i) {
      if (skips(d, i)) {
        if (i == kEdge) out += between + "...";
        continue;
      }
      if (i > 0) out += between;
      print(out, d + 1, offset + i * strides_[d]);
    }
    out += ']';
  }

  const Tensor& x_;
  Strides strides_;
  bool is_short_;
  size_t width_ = 0;
};

}  // namespace

std::string to_string(const Tensor& x) {
  if (!x) return "(empty tensor)";
  const std::string spec = to_string(x.spec());
  if (x.value->is_symbolic()) return spec + ", captured: its elements are known after run()";
  if (is_pack(x.layout())) return spec;
  const Device d = x.device();
  if (d.is_cpu()) return spec + '\n' + Printer(x).text();
  const Runtime& r = runtime_of(d);
  if (!r.is_present()) return spec + ", on " + r.properties().name + ", which is described and not here";
  const Tensor here = Tensor::empty(x.spec());
  detail::copy_bytes(here.value->data, {}, x.value->data, d, x.bytes());
  return spec + " on " + to_string(d) + '\n' + Printer(here).text();
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << to_string(x); }
std::ostream& operator<<(std::ostream& out, const TensorSpec& s) { return out << to_string(s); }
std::ostream& operator<<(std::ostream& out, const Shape& s) { return out << to_string(s); }
std::ostream& operator<<(std::ostream& out, DType t) { return out << to_string(t); }
std::ostream& operator<<(std::ostream& out, Layout l) { return out << to_string(l); }

}  // namespace plumb

#include "bench/compare/plumbline/epochs.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "bench/compare/plumbline/tensor_files.h"
#include "core/stopwatch.h"
#include "ops/convert.h"

namespace plumb::compare {
namespace {

// Rows of a row-major tensor along its first dimension.
template <class T>
Tensor rows(const Tensor& from, std::span<const int64_t> which) {
  std::vector<int64_t> extents{static_cast<int64_t>(which.size())};
  for (int i = 1; i < from.rank(); ++i) extents.push_back(from.shape()[i]);
  Tensor picked = Tensor::empty(TensorSpec(Shape(std::span<const int64_t>(extents)), from.dtype()));
  const int64_t row = from.numel() / from.shape()[0];
  T* to = picked.mutable_data<T>().data();
  for (const int64_t i : which) to = std::copy_n(from.data<T>().data() + i * row, row, to);
  return picked;
}

}  // namespace

void Epochs::read(const std::string& data, const std::string& orders) {
  if (data == data_ && orders == orders_file_) return;
  const Tensors images = read_tensors(data);
  images_ = images.at("images");
  labels_ = images.at("labels");
  orders_ = read_tensors(orders).at("orders");
  data_ = data, orders_file_ = orders;
}

nlohmann::json Epochs::run(Work& work, int64_t epoch, int64_t scored) const {
  const int64_t count = images_.shape()[0], batch = work.batch();
  const auto order = orders_.data<int64_t>().subspan(static_cast<size_t>(epoch * count), static_cast<size_t>(count));
  const auto feed = [&](std::span<const int64_t> which) {
    work.feed(rows<float>(images_, which), rows<int64_t>(labels_, which));
  };
  const size_t steps_before = work.losses().size();
  const double seconds = detail::seconds_of([&] {
    for (int64_t i = 0; i + batch <= count; i += batch) {
      feed(order.subspan(static_cast<size_t>(i), static_cast<size_t>(batch)));
      work.step();
    }
  });
  double loss = 0;
  for (size_t i = steps_before; i < work.losses().size(); ++i) loss += work.losses()[i];
  loss /= static_cast<double>(work.losses().size() - steps_before);

  scored = std::min(scored, count) / batch * batch;
  int64_t right = 0;
  std::vector<int64_t> which(static_cast<size_t>(batch));
  for (int64_t i = 0; i < scored; i += batch) {
    std::iota(which.begin(), which.end(), i);
    feed(which);
    const Tensor predicted = to(work.predicted(), Device());
    for (int64_t j = 0; j < batch; ++j) {
      right += predicted.data<int64_t>()[static_cast<size_t>(j)] == labels_.data<int64_t>()[static_cast<size_t>(i + j)];
    }
  }
  return {{"loss", std::isfinite(loss) ? nlohmann::json(loss) : nlohmann::json()},
          {"accuracy", static_cast<double>(right) / static_cast<double>(scored)},
          {"seconds", seconds}};
}

}  // namespace plumb::compare

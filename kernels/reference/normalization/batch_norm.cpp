#include "kernels/batch_norm.h"

#include <cmath>

#include "kernels/reference/elements.h"

namespace plumb {

using reference::Elements;
using reference::Index;

// body(channel) for every channel of x, on all threads.
template <class Body>
static void for_each_channel(const Shape& x, const Body& body) {
  cpu::parallel_for(x[1], 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) body(Index{{c}});
  });
}

// body(index) for every element of a channel of x.
template <class Body>
static void for_each_of_channel(const Shape& x, const Index& channel, const Body& body) {
  reference::for_each_index(x.with(1, 1), [&](const Index& i) { body(i + Index{{0, channel[0]}}); });
}

void BatchNormForward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements x(p.in[0]), y(p.out[0]), parameter(p.in[1]);  // all parameters and statistics are of one spec
  if (!reference::computes_on(x.dtype())) return;
  const bool adds = p.in.size() == 6;
  reference::offer(kName, candidates, [=, params = p.params](const Launch& l) {
    for_each_channel(x.shape(), [&](const Index& c) {
      const auto each = [&](const auto& body) { for_each_of_channel(x.shape(), c, body); };
      const auto of_channel = [&](size_t input) { return parameter.load(l.in[input], c); };
      double mean = of_channel(3), var = of_channel(4);
      if (params.train) {
        double n = 0, sum = 0, squares = 0;
        each([&](const Index& i) { n += 1, sum += x.load(l.in[0], i); });
        mean = sum / n;
        each([&](const Index& i) { squares += std::pow(x.load(l.in[0], i) - mean, 2); });
        var = squares / n;
        const double running_var = params.unbiased_running_variance ? squares / (n - 1) : var;
        parameter.store(l.in[3], c, (1 - params.momentum) * of_channel(3) + params.momentum * mean);
        parameter.store(l.in[4], c, (1 - params.momentum) * of_channel(4) + params.momentum * running_var);
        parameter.store(l.out[1], c, mean);
        parameter.store(l.out[2], c, 1 / std::sqrt(var + params.epsilon));
      }
      each([&](const Index& i) {
        const double x_hat = (x.load(l.in[0], i) - mean) / std::sqrt(var + params.epsilon);
        const double z = x_hat * of_channel(1) + of_channel(2) + (adds ? x.load(l.in[5], i) : 0);
        y.store(l.out[0], i, params.activation == Activation::kRelu && z < 0 ? 0 : z);
      });
    });
  });
}

void BatchNormBackward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements dy(p.in[0]), x(p.in[1]), parameter(p.in[2]);
  if (!reference::computes_on(x.dtype())) return;
  reference::offer(kName, candidates, [=, params = p.params, needs_dx = p.out.size() == 3](const Launch& l) {
    for_each_channel(x.shape(), [&](const Index& c) {
      const auto each = [&](const auto& body) { for_each_of_channel(x.shape(), c, body); };
      const double gamma = parameter.load(l.in[2], c), mean = parameter.load(l.in[3], c);
      const double spread = parameter.load(l.in[4], c);
      const double inv_std = params.train ? spread : 1 / std::sqrt(spread + params.epsilon);
      const auto x_hat = [&](const Index& i) { return (x.load(l.in[1], i) - mean) * inv_std; };
      const bool is_relu = params.activation == Activation::kRelu;
      const double beta = is_relu ? parameter.load(l.in[5], c) : 0;
      const auto dz = [&](const Index& i) {
        return is_relu && !(x_hat(i) * gamma + beta > 0) ? 0 : dy.load(l.in[0], i);
      };
      double n = 0, dgamma = 0, dbeta = 0;
      each([&](const Index& i) {
        n += 1;
        dgamma += dz(i) * x_hat(i);
        dbeta += dz(i);
      });
      parameter.store(l.out[0], c, dgamma);
      parameter.store(l.out[1], c, dbeta);
      if (!needs_dx) return;
      each([&](const Index& i) {
        const double of_statistics = params.train ? (dbeta + x_hat(i) * dgamma) / n : 0;
        x.store(l.out[2], i, gamma * inv_std * (dz(i) - of_statistics));  // dx is of x's spec
      });
    });
  });
}

}  // namespace plumb

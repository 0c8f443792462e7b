// What ran is always named, a conversion inside a kernel is counted, and no op copies behind the gate's back. oneDNN's
// own log says what it ran, and the allocator what was made.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <dnnl.hpp>
#include <map>

#include "dispatch/policy.h"
#include "dispatch/recorder.h"
#include "models/network.h"
#include "ops/cross_entropy.h"
#include "ops/grad.h"
#include "ops/random.h"
#include "tests/cases/op_case.h"

namespace plumb::test {
namespace {

// While it lives, what oneDNN executes is logged to a file of ours, which standard output becomes. Tests keep silent.
class DnnlLog {
 public:
  DnnlLog() : file_(memfd_create("onednn", 0)) {
    std::fflush(stdout);
    stdout_ = dup(STDOUT_FILENO);
    dup2(file_, STDOUT_FILENO);
    dnnl_set_verbose(1);
  }
  ~DnnlLog() {
    dnnl_set_verbose(0);
    std::fflush(stdout);
    dup2(stdout_, STDOUT_FILENO);
    ::close(stdout_);
    ::close(file_);
  }
  DnnlLog(const DnnlLog&) = delete;
  DnnlLog& operator=(const DnnlLog&) = delete;
  struct Line {
    std::string primitive, implementation;
  };
  /// What was executed since the last call: "onednn_verbose,exec,cpu,convolution,jit:avx512_core,..."
  std::vector<Line> executed() {
    std::fflush(stdout);
    std::string text(static_cast<size_t>(lseek(file_, 0, SEEK_CUR)), '\0');
    [[maybe_unused]] const ssize_t read = pread(file_, text.data(), text.size(), 0);
    lseek(file_, 0, SEEK_SET);
    std::vector<Line> lines;
    constexpr std::string_view kMark = ",exec,cpu,";
    for (size_t at = text.find(kMark); at != text.npos; at = text.find(kMark, at + 1)) {
      const size_t primitive = at + kMark.size(), implementation = text.find(',', primitive) + 1;
      lines.push_back({text.substr(primitive, implementation - 1 - primitive),
                       text.substr(implementation, text.find(',', implementation) - implementation)});
    }
    return lines;
  }

 private:
  int file_, stdout_;
};

// Notes every kernel whose name or whose number of conversions is not what oneDNN logged.
class NameCheck final : public Observer {
 public:
  NameCheck() : scope_(this) {}
  void before(const PreparedKernel&) override { log_.executed(); }
  void after(const PreparedKernel& p, const Launch&) override {
    const KernelInfo& info = p.kernel->info();
    const std::string what = std::string(p.kind->name) + " " + info.algorithm + " " + info.name;
    const std::vector<DnnlLog::Line> lines = log_.executed();
    const std::string_view kind = p.kind->name;
    const bool is_pack = kind == "repack", is_conversion = is_pack || kind == "permute" || kind == "cast";
    int conversions = 0;
    bool has_named = false;
    for (const auto& [primitive, implementation] : lines) {
      conversions += primitive == "reorder";
      has_named |= primitive == "gemm_api" || info.name.find(implementation) != std::string::npos;
    }
    // Around a kernel in f32 stand casts of ours: of the operands that are not packed and of the result, if it is none.
    const bool is_via_f32 = info.name.starts_with("plumb:via_f32:onednn:");
    if (is_via_f32) conversions += static_cast<int>(p.specs.size() - info.packs.size()) - is_pack;
    const bool is_ours = (info.name.starts_with("plumb:") && !is_via_f32) || info.name.starts_with("reference:");
    if (info.algorithm.empty() || (!is_ours && !is_via_f32 && !info.name.starts_with("onednn:")))
      wrong[what] = "it has no full name";
    if (is_ours && !lines.empty()) wrong[what] = "oneDNN ran " + lines[0].primitive + " " + lines[0].implementation;
    if (!is_ours && !is_pack && !lines.empty() && !has_named) wrong[what] = "oneDNN ran " + lines[0].implementation;
    if (conversions != info.conversions + is_conversion && !lines.empty())
      wrong[what] = message("it says {} conversions and does {}", info.conversions, conversions);
    onednn_lines += lines.size();
  }
  std::map<std::string, std::string> wrong;
  size_t onednn_lines = 0;

 private:
  DnnlLog log_;
  ObserverScope scope_;
};

TensorList forward_backward(const OpCase& c, const OpVariant& v, std::span<const Tensor> in) {
  const Tensor y = v.run(in);
  if (!c.differentiable) return {y};
  return grad(y, leaves_of(in), y.detached(), {.allow_unused = true});
}

// body(case, variant, inputs) for every case, dtype and layout.
template <class Body>
void for_each_problem(const Body& body) {
  for (const OpCase& c : op_cases()) {
    for (const OpVariant& v : c.variants) {
      for (const Layout layout : layouts_of(v)) {
        for (const DType dtype : c.dtypes) body(c, v, make_inputs(v, dtype, layout));
      }
    }
  }
}

TEST(WhatRan, IsWhatTheKernelIsCalled) {
  std::map<std::string, std::string> wrong;
  size_t lines = 0;
  for (const char* family : {"", "direct", "gemm", "onednn"}) {
    NameCheck check;
    const PolicyScope policy({.algorithm = algorithm_id(family)});
    for_each_problem(
        [](const OpCase& c, const OpVariant& v, std::span<const Tensor> in) { forward_backward(c, v, in); });
    wrong.merge(check.wrong);
    lines += check.onednn_lines;
  }
  EXPECT_GT(lines, 100u) << "oneDNN has logged nothing";
  for (const auto& [kernel, what] : wrong) ADD_FAILURE() << kernel << ": " << what;
}

// Nothing is made but what kernels put out.

class OutputCount final : public Observer {
 public:
  OutputCount() : scope_(this) {}
  void after(const PreparedKernel& p, const Launch&) override {
    outputs += static_cast<int64_t>(p.out().size());
    ++kinds[p.kind->name];
  }
  int64_t outputs = 0;
  std::map<std::string, int> kinds;

 private:
  ObserverScope scope_;
};

TEST(WhatRan, IsAllThatMakesTensors) {
  for_each_problem([](const OpCase& c, const OpVariant& v, std::span<const Tensor> in) {
    forward_backward(c, v, in);  // packs and the workspace stay
    const int64_t before = cpu_memory().stats().allocations;
    OutputCount count;
    forward_backward(c, v, in);

    const int64_t own = c.name == "dropout";  // the case makes a generator
    EXPECT_LE(cpu_memory().stats().allocations - before, count.outputs + own) << c.name << " " << v.name;
  });
}

struct Conversions {
  const char* model;
  std::map<Layout, int> permutes;  // forward and backward of flatten
  int pads;                        // shortcuts to more channels; borders are a matter of the convolution
};
class WhatRanInNetworks : public testing::TestWithParam<Conversions> {};

TEST_P(WhatRanInNetworks, ConvertsOnlyWhatIsFlattened) {
  const auto network = models::make_network(GetParam().model);
  const Shape& image = network->input();
  for (const auto& [layout, permutes] : GetParam().permutes) {
    SCOPED_TRACE(to_string(layout));
    const Tensor x = uniform({Shape{2, image[0], image[1], image[2]}, DType::kF32, layout}, 0, 1, 1);
    const Tensor labels = uniform({Shape{2}, DType::kI64}, 0, 9, 2);
    Generator generator(3);

    OutputCount count;
    grad(cross_entropy(network->forward(x, models::ForwardContext::training(generator)), labels), network->trainable());

    EXPECT_EQ(count.kinds["permute"], permutes);
    EXPECT_EQ(count.kinds["cast"], 0);
    EXPECT_EQ(count.kinds["pad"], GetParam().pads);
    EXPECT_EQ(count.kinds["slice"], GetParam().pads);
  }
}

constexpr auto kNchw = Layout::kNchw, kNhwc = Layout::kNhwc, kChwn = Layout::kChwn;
INSTANTIATE_TEST_SUITE_P(, WhatRanInNetworks,
                         testing::Values(Conversions{"lenet", {{kNchw, 0}, {kNhwc, 2}, {kChwn, 2}}, 0},
                                         Conversions{"alexnet", {{kNchw, 0}, {kNhwc, 2}, {kChwn, 2}}, 0},
                                         Conversions{"vgg16", {{kNchw, 0}, {kNhwc, 2}, {kChwn, 2}}, 0},
                                         Conversions{"resnet20", {{kNchw, 0}, {kNhwc, 0}, {kChwn, 2}}, 2}),
                         [](const auto& test) { return std::string(test.param.model); });

}  // namespace
}  // namespace plumb::test

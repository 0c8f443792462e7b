// What plumb audit plans holds against each other, of steps that are made up.
#include "app/audit_rows.h"

#include <gtest/gtest.h>

namespace plumb::app {
namespace {

PlannedKernel norm(const char* algorithm, size_t operands) {
  PlannedKernel k;
  k.kind = "batch_norm_forward", k.shapes = k.output = "2x8x4x4", k.algorithm = algorithm;
  k.in = std::vector(operands, TensorSpec(Shape{2, 8, 4, 4}));
  k.is_offered_by_vendor = true;
  return k;
}
std::vector<AuditRow> rows_of_each(const std::vector<std::vector<PlannedKernel>>& kernels) {
  std::vector<PlannedStep> steps(kernels.size());
  for (size_t i = 0; i < kernels.size(); ++i) steps[i].kernels = kernels[i];
  return rows_of(steps);
}

TEST(AuditRowsTest, KernelsOfOtherInputsAreOthers) {
  const auto rows = rows_of_each({{norm("cudnn_e1", 4), norm("cudnn_e2", 5)}, {norm("cudnn_e3", 5)}});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].by[0].algorithm, "cudnn_e1");
  EXPECT_EQ(rows[0].by[1].algorithm, "");
  EXPECT_EQ(rows[1].by[0].algorithm, "cudnn_e2");
  EXPECT_EQ(rows[1].by[1].algorithm, "cudnn_e3");
  EXPECT_EQ(rows[1].place, 1u);
  EXPECT_EQ(shapes_of(rows[0], rows), "2x8x4x4 to 2x8x4x4, 4 inputs");
  EXPECT_EQ(shapes_of(rows[1], rows), "2x8x4x4 to 2x8x4x4, 5 inputs");
}

TEST(AuditRowsTest, ARowIsTheFirstOfItsKernels) {
  const auto rows = rows_of_each({{norm("cudnn_e1", 4), norm("cudnn_e2", 4)}, {norm("cudnn_e3", 4), norm("x", 4)}});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].place, 0u);
  EXPECT_EQ(rows[0].by[0].algorithm, "cudnn_e1");
  EXPECT_EQ(rows[0].by[1].algorithm, "cudnn_e3");
  EXPECT_EQ(shapes_of(rows[0], rows), "2x8x4x4");
}

TEST(AuditRowsTest, PlansHaveAnEngine) {
  for (const char* plan : {"cudnn_e38", "cudnn_e38_7", "cudnn_e38_fallback", "cudnn_e38_7_krsc"})
    EXPECT_EQ(engine_of(plan), "cudnn_e38");
  EXPECT_EQ(engine_of("cudnn_e3"), "cudnn_e3");
  EXPECT_EQ(engine_of("pieces_of_four"), "pieces_of_four");
}

}  // namespace
}  // namespace plumb::app

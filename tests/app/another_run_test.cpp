// What a checkpoint of another run is refused with.
#include <gtest/gtest.h>

#include "app/resume.h"
#include "ops/fill.h"
#include "tests/support/compare.h"
#include "tests/support/folder.h"

namespace plumb::app {
namespace {

TEST(AnotherRunTest, IsNamedByTheOptionThatDiffers) {
  const test::Folder folder;
  const std::map<std::string, std::string> saved{{"batch", "250"}, {"model", "alexnet"}, {"optimizer", "adam"}};
  training::save_checkpoint(folder.path(), std::vector<models::NamedTensor>{{"generator", zeros({2}, DType::kI64)}},
                            {.config = saved});
  const std::string file = (folder.path() / "checkpoint.safetensors").string();
  const auto refuses = [&](const std::map<std::string, std::string>& expected, const std::string& part) {
    return test::refused([&] { resumable(folder.path().string(), expected); }, part);
  };

  EXPECT_NO_THROW(resumable(folder.path().string(), {{"model", "alexnet"}}));
  auto config = saved;
  config["model"] = "vgg16";
  EXPECT_TRUE(refuses(config, "the checkpoint " + file + " was made with the model alexnet, not the model vgg16"));
  config["batch"] = "10";
  EXPECT_TRUE(refuses(config, "made with --batch 250, not --batch 10; give --batch 250"));
  EXPECT_TRUE(refuses({{"seed", "0"}}, "does not say of which seed it is; start anew without --resume"));
}

}  // namespace
}  // namespace plumb::app

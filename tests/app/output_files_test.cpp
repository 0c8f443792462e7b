// Where results go, and what happens when they cannot go there.
#include "tests/app/command.h"

namespace plumb::app {
namespace {

namespace fs = std::filesystem;
using test::kShortRun;

using OutputFilesTest = test::CommandTest;

TEST_F(OutputFilesTest, RefusesBeforeAnyWorkWhatCannotBeWrittenLater) {
  write("file", "in the way");
  for (const std::string option : {"--json", "--csv", "--profile"}) {
    EXPECT_TRUE(refuses(kShortRun + option + " none/report", "cannot be written: the folder"));
    EXPECT_TRUE(refuses(kShortRun + option + " .", ". cannot be written: it is a folder"));
    EXPECT_TRUE(refuses(kShortRun + option + " file/report", "cannot be written: the folder"));
    EXPECT_TRUE(refuses(kShortRun + option + " /proc/report", "/proc/report cannot be written"));
  }
  EXPECT_TRUE(refuses(kShortRun + "--checkpoint file", "file cannot be written"));
  EXPECT_TRUE(refuses(kShortRun + "--checkpoint file/a/b", "file is not a folder"));
  EXPECT_TRUE(refuses(kShortRun + "--checkpoint /proc/a/b", "/proc/a/b cannot be written"));
  for (const std::string line : {"info --model lenet", "layout lenet", "eval lenet --weights w --data synthetic"}) {
    EXPECT_TRUE(refuses(line + " --json none/report", "none/report cannot be written"));
  }
}

TEST_F(OutputFilesTest, MakesTheFoldersOfACheckpointAndReplacesOldReports) {
  write("report.json", "old");
  EXPECT_TRUE(works(kShortRun + "--checkpoint a/b --json report.json --csv report.csv --profile trace.json"));
  EXPECT_TRUE(fs::exists(path("a/b/checkpoint.safetensors")));
  EXPECT_EQ(read_json("report.json")["epochs"].size(), 1u);
  EXPECT_EQ(files().size(), 6u) << "besides the reports and the checkpoint in its two folders nothing is left";
}

TEST_F(OutputFilesTest, LeavesNoHalfReportOnAFullDisk) {
  for (const std::string option : {"--json", "--csv", "--profile"}) {
    write("report", "old");
    const auto before = files();
    const test::Outcome o = run(kShortRun + option + " report", {.largest_file = 64});
    EXPECT_TRUE(is_refusal(o, "report cannot be written: File too large"));
    EXPECT_EQ(files(), before);
  }
}

TEST_F(OutputFilesTest, WritesToDevicesAndLinksWithoutReplacingThem) {
  write("target", "old");
  fs::create_symlink("target", path("link"));
  EXPECT_TRUE(works("info --model lenet --json link"));
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_json("target")["model"], "lenet");

  fs::create_symlink("/dev/full", path("full"));  // a link, so that the device is safe from a mistake
  EXPECT_TRUE(is_refusal(run("info --model lenet --json full"), "full cannot be written: No space left on device"));
  EXPECT_TRUE(fs::is_symlink(path("full")));

  const test::Outcome o = run("info --model lenet --json /dev/stdout");
  EXPECT_NE(o.out.find("\"parameters\": 61706"), o.out.npos) << o;
  EXPECT_TRUE(fs::exists("/dev/stdout"));
}

TEST_F(OutputFilesTest, AFullStandardOutputIsAnError) {
  EXPECT_TRUE(is_refusal(run("info --model lenet", {.output = "/dev/full"}),
                         "the standard output cannot be written: No space"));
}

}  // namespace
}  // namespace plumb::app

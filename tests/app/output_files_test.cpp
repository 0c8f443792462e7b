// Where results go, and what happens when they cannot go there.
#include <algorithm>

#include "models/weights.h"
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
    EXPECT_TRUE(
        refuses(kShortRun + option + " file/report", "file/report cannot be written: file is a file, not a folder"));
    EXPECT_TRUE(refuses(kShortRun + option + " /proc/report", "/proc/report cannot be written"));
  }
  EXPECT_TRUE(refuses(kShortRun + "--checkpoint file", "file cannot be written"));
  EXPECT_TRUE(refuses(kShortRun + "--checkpoint file/a/b", "file is a file, not a folder"));
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
  ASSERT_EQ(run("info --model lenet --json /dev/stdout", {.output = path("both").string()}).status, 0);
  EXPECT_EQ(read("both"), run("info --model lenet").out + read("target"));
}

TEST_F(OutputFilesTest, RefusesTwoOptionsThatNameTheSameFile) {
  models::save_weights(*models::make_network("lenet"), path("w"));
  write("target", "old");
  fs::create_symlink("target", path("link"));
  EXPECT_TRUE(refuses(kShortRun + "--json k --csv k", "--json and --csv name the same file k"));
  EXPECT_TRUE(refuses(kShortRun + "--json k --profile ./k", "--json and --profile name the same file ./k"));
  EXPECT_TRUE(refuses(kShortRun + "--csv link --profile target", "--csv and --profile name the same file target"));
  EXPECT_TRUE(refuses(kShortRun + "--init w --json w", "--init and --json name the same file w"));
  EXPECT_TRUE(refuses("eval lenet --data synthetic --weights w --json w", "--weights and --json name the same file w"));
  EXPECT_TRUE(works(kShortRun + "--json /dev/null --csv /dev/null"));

  ASSERT_TRUE(works(kShortRun + "--checkpoint c"));
  const std::string state = "c/checkpoint.safetensors";
  EXPECT_TRUE(refuses(kShortRun + "--checkpoint c --json " + state, "--checkpoint and --json name the same file"));
  EXPECT_TRUE(refuses(kShortRun + "--checkpoint c --init " + state, "--init and --checkpoint name the same file"));
  EXPECT_TRUE(refuses(kShortRun + "--checkpoint c --init c", "--init and --checkpoint name the same file"));
}

TEST_F(OutputFilesTest, RefusesBeforeAnyWorkACheckpointThatCannotBeWrittenLater) {
  fs::create_symlink("nothing", path("dangling"));
  EXPECT_TRUE(refuses(kShortRun + "--checkpoint dangling", "dangling is a link to nothing"));
  EXPECT_TRUE(refuses(kShortRun + "--checkpoint dangling/in/it", "dangling is a link to nothing"));
  fs::create_directories(path("a/checkpoint.safetensors"));
  EXPECT_TRUE(refuses(kShortRun + "--checkpoint a", "a/checkpoint.safetensors cannot be written: it is a folder"));
  fs::create_directory(path("c"));
  EXPECT_TRUE(refuses(kShortRun + "--checkpoint d/" + std::string(300, 'x'), "cannot be written: File name too long"));
  fs::create_symlink("/dev/full", path("c/checkpoint.safetensors"));
  EXPECT_TRUE(refuses(kShortRun + "--checkpoint c", "it is not a regular file"));
}

TEST_F(OutputFilesTest, ARunThatIsStoppedKeepsItsEpochs) {
  ASSERT_TRUE(works(kShortRun + "--json r.json"));
  const uint64_t of_one_epoch = read("r.json").size();
  const std::string line = "train lenet --limit 16 --batch 8 --layout nchw --algorithm heuristic --epochs 50 ";

  const test::Outcome o = run(line + "--json r.json --csv r.csv", {.largest_file = of_one_epoch + 1000});

  EXPECT_TRUE(is_refusal(o, "r.json cannot be written: File too large"));
  const size_t kept = read_json("r.json")["epochs"].size();
  EXPECT_GT(kept, 1u);
  EXPECT_LT(kept, 50u);
  const Bytes lines = read("r.csv");
  EXPECT_EQ(std::ranges::count(lines, '\n'), 1 + static_cast<std::ptrdiff_t>(kept)) << lines;
}

TEST_F(OutputFilesTest, AFullStandardOutputIsAnError) {
  for (const char* line : {"--help", "--version", "train --help"}) {
    EXPECT_TRUE(is_refusal(run(line, {.output = "/dev/full"}), "the standard output cannot be written: No space"));
  }
  for (const char* line : {"info --model lenet", "layout lenet --batch 2 --algorithm heuristic"}) {
    EXPECT_TRUE(is_refusal(run(line, {.output = "/dev/full"}), "the standard output cannot be written: No space"))
        << line;
  }
}

}  // namespace
}  // namespace plumb::app

// What measuring has found out, on the disk.
#include "dispatch/tuning_cache.h"
#include "dispatch/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "dispatch/gate.h"
#include "dispatch/machine.h"
#include "tests/support/folder.h"

namespace plumb {
namespace {

using testing::HasSubstr;

std::unique_ptr<Kernel> writes(float value, int microseconds = 0) {
  return make_kernel("test:function", [=](const Launch& l) {
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    static_cast<float*>(l.out[0])[0] = value;
  });
}

// Candidates that write their number: the fast one between two slow ones.
struct Either {
  static constexpr char kName[] = "either";
  struct Params {
    int64_t key = 0;
  };
  static void cpu(const Problem<Params>&, Candidates& c) {
    c.add("slow_a", [] { return writes(2, 3000); });
    c.add("fast", [] { return writes(3); });
    c.add("slow_b", [] { return writes(4, 3000); });
  }
};
const TensorSpec kOne(Shape{1});

// The same, where the key does not decide which one is fast.
struct Alike : Either {
  static constexpr char kName[] = "alike";
  static constexpr bool kTunesAlike = true;
};

// The file of results is read once by a process, so this part is run by processes of their own: the exit status is the
// number that the chosen kernel writes, and 90 more where choosing was refused before, for the reason that is printed.
TEST(ChoicesOfAProcess, DISABLED_Child) {
  int refused = 0;
  try {
    const PolicyScope measured({.search = Search::kMeasured});
    std::_Exit(static_cast<int>(run<Either>({7}, {}, kOne).item()));
  } catch (const Error& e) {
    std::printf("%s\n", e.what());
    std::fflush(stdout);
    refused = 90;
  }
  std::_Exit(refused + static_cast<int>(run<Either>({7}, {}, kOne).item()));
}

namespace fs = std::filesystem;

// PLUMB_CACHE names this folder, for as long as it lives.
class CacheIn {
 public:
  explicit CacheIn(const fs::path& folder) {
    if (const char* set = std::getenv("PLUMB_CACHE")) old_ = set;
    ::setenv("PLUMB_CACHE", folder.c_str(), 1);
  }
  CacheIn(const CacheIn&) = delete;
  ~CacheIn() { old_ ? ::setenv("PLUMB_CACHE", old_->c_str(), 1) : ::unsetenv("PLUMB_CACHE"); }

 private:
  std::optional<std::string> old_;
};

class ChoicesOnDisk : public testing::Test {
 protected:
  static constexpr int kRefused = 92;  // and then the first of the list
  std::vector<std::string> lines() const {
    std::ifstream in(file_);
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }
  int chosen_by_child(const std::string& child = "DISABLED_Child") const {
    const std::string self = fs::read_symlink("/proc/self/exe").string();
    const int status =
        std::system(("PLUMB_CACHE='" + folder_.string() + "' '" + self + "' --gtest_also_run_disabled_tests " +
                     "--gtest_filter=ChoicesOfAProcess." + child + " > '" + said_.string() + "'")
                        .c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string said() const { return test::content(said_); }

  const test::Folder own_folder_;
  const fs::path folder_ = own_folder_.path() / "deep", said_ = own_folder_.path() / "said";
  const fs::path file_ = folder_ / ("measured-" + machine_signature() + ".txt");
};

TEST_F(ChoicesOnDisk, AreWrittenByOneProcessAndReadByTheNext) {
  EXPECT_EQ(chosen_by_child(), 3);
  ASSERT_EQ(lines().size(), 2u);
  const std::string title = lines()[0], line = lines()[1];
  EXPECT_EQ(title, "plumbline measured on " + machine_signature());
  EXPECT_TRUE(line.starts_with("either 0000000000000007 -> f32 (1) nchw")) << line;
  EXPECT_TRUE(line.ends_with("\tfast")) << line;

  EXPECT_EQ(chosen_by_child(), 3);
  EXPECT_EQ(lines().size(), 2u);  // known: not measured again

  const std::string other = line.substr(0, line.find('\t')) + "\tslow_b\n";
  std::ofstream(file_) << title << "\n" << other << "a line that is being writ";
  EXPECT_EQ(chosen_by_child(), 4);

  // One that was cut off is taken away before another is written.
  std::ofstream(file_) << title << "\n" << line.substr(0, 20);
  EXPECT_EQ(chosen_by_child(), 3);
  ASSERT_EQ(lines().size(), 2u);
  EXPECT_EQ(lines()[1], line);
  EXPECT_EQ(chosen_by_child(), 3);
}

// Processes that begin a file together, each with a result of its own.
TEST_F(ChoicesOnDisk, AreAllThereWhoeverBeganTheFile) {
  const CacheIn here(folder_);
  constexpr int kProcesses = 6;
  for (int again = 0; again < 40; ++again) {
    fs::remove_all(folder_);
    if (again % 2) {
      fs::create_directories(folder_);
      std::ofstream(file_) << "plumbline measured on " << machine_signature() << "\na line that was cut off";
    }
    int start[2];
    ASSERT_EQ(::pipe(start), 0);
    std::vector<pid_t> children;
    for (int n = 0; n < kProcesses; ++n) {
      if (const pid_t child = ::fork()) {
        children.push_back(child);
        continue;
      }
      ::close(start[1]);
      char c;
      while (::read(start[0], &c, 1) > 0) {  // until all are there
      }
      detail::keep_tuned(Device(), "key " + std::to_string(n), "fast");
      std::_Exit(0);
    }
    ::close(start[0]), ::close(start[1]);
    for (const pid_t child : children) ::waitpid(child, nullptr, 0);
    ASSERT_EQ(lines().size(), 1u + kProcesses) << again;
  }
}

TEST_F(ChoicesOnDisk, MayBeOfAnyNames) {
  const CacheIn here(folder_);
  const std::string work = "net\twork\n of \\x09 \xff and \u00fc", algorithm = "fa\tst";
  const auto in_a_process = [](const auto& f) {
    const pid_t child = ::fork();
    if (child == 0) std::_Exit(f());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  const auto keep = [&] { return detail::keep_tuned(Device(), work, algorithm), 0; };
  const auto is_found = [&] {
    return detail::find_tuned(Device(), work, [&](const std::string& found) { return found == algorithm; }) ? 1 : 0;
  };
  EXPECT_EQ(in_a_process(keep), 0);
  EXPECT_EQ(lines().size(), 2u);
  EXPECT_EQ(in_a_process(is_found), 1);
}

TEST(ChoicesOfAProcess, DISABLED_ChildOfManyKeys) {
  const PolicyScope measured({.search = Search::kMeasured});
  for (int64_t key = 1; key < 9; ++key) run<Alike>({key}, {}, kOne);
  std::_Exit(0);
}

TEST_F(ChoicesOnDisk, AreOneWhereParametersTuneAlike) {
  EXPECT_EQ(chosen_by_child("DISABLED_ChildOfManyKeys"), 0);
  ASSERT_EQ(lines().size(), 2u);
  EXPECT_TRUE(lines()[1].starts_with("alike -> f32 (1) nchw")) << lines()[1];
}

TEST_F(ChoicesOnDisk, AreRefusedWhereTheyAreAnotherMachinesOrDamaged) {
  ASSERT_EQ(chosen_by_child(), 3);
  const std::string title = lines()[0] + "\n", line = lines()[1] + "\n";
  std::ofstream(file_) << "plumbline measured on another\n" << line;
  EXPECT_EQ(chosen_by_child(), kRefused);
  EXPECT_THAT(said(), HasSubstr("does not hold what was measured on this machine: it begins with \"plumbline measured "
                                "on another\"; delete the file to measure anew"));
  std::ofstream(file_) << title.substr(0, title.size() - 1);
  EXPECT_EQ(chosen_by_child(), kRefused);
  EXPECT_THAT(said(), HasSubstr("is damaged in line 1"));
  fs::remove(file_);
  fs::create_directory(file_);
  EXPECT_EQ(chosen_by_child(), kRefused);
  EXPECT_THAT(said(), HasSubstr("is no file of what was measured"));
  fs::remove(file_);
  for (const std::string damage : {"no tab", "\tfast", "work\t", "two\ttabs\t"}) {
    std::ofstream(file_) << title << line << damage << "\n";
    EXPECT_EQ(chosen_by_child(), kRefused) << damage;
    EXPECT_THAT(said(), HasSubstr(file_.string() + " is damaged in line 3; delete the file"));
  }
}

}  // namespace
}  // namespace plumb

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

#include "measure/command/report.h"

namespace plumb::command {
namespace {

// Standard error goes to a file descriptor for a while.
class ErrorsTo {
 public:
  explicit ErrorsTo(int fd) : old_(dup(STDERR_FILENO)) { dup2(fd, STDERR_FILENO); }
  ~ErrorsTo() {
    dup2(old_, STDERR_FILENO);
    close(old_);
  }

 private:
  int old_;
};

void show_a_bar() {
  ProgressBar bar("epoch 1/5");
  bar.update(1, 4, "loss 2.3");
  bar.update(2, 4, "too soon after the last one");
  bar.update(4, 4, "loss 1.2");
}

// All that comes: a terminal hands on what was written to it a little later, and in pieces.
std::string read_all(int fd) {
  std::string text;
  char piece[4096];
  pollfd ready{fd, POLLIN, 0};
  while (poll(&ready, 1, 200) == 1) {
    const ssize_t n = read(fd, piece, sizeof(piece));
    if (n <= 0) break;
    text.append(piece, static_cast<size_t>(n));
  }
  return text;
}

// A terminal and the end that programs write to.
struct Terminal {
  int terminal = posix_openpt(O_RDWR | O_NOCTTY), end = -1;
  Terminal() {
    if (grantpt(terminal) == 0 && unlockpt(terminal) == 0) end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  }
};

TEST(ProgressBarTest, IsDrawnOnATerminalAndWipedAway) {
  const auto [terminal, end] = Terminal();
  ASSERT_GE(end, 0);
  {
    const ErrorsTo redirected(end);
    show_a_bar();
  }
  const std::string wipe = "\r\033[K";
  EXPECT_EQ(read_all(terminal), wipe + "epoch 1/5 [#######.......................] 1/4 loss 2.3" +  //
                                    wipe + "epoch 1/5 [##############################] 4/4 loss 1.2" + wipe);
  close(end);
  close(terminal);
}

TEST(ProgressBarTest, OfATerminalThatWasClosedNothingElseEnds) {
  const auto [terminal, end] = Terminal();
  ASSERT_GE(end, 0);
  {
    const ErrorsTo redirected(end);
    ProgressBar bar("epoch 1/5");
    bar.update(4, 4, "");
    close(terminal);
    bar.update(4, 4, "");
    EXPECT_FALSE(note("and nobody reads this"));
  }
  close(end);
}

TEST(ProgressBarTest, IsSilentElsewhere) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  {
    const ErrorsTo redirected(ends[1]);
    show_a_bar();
  }
  close(ends[1]);
  EXPECT_EQ(read_all(ends[0]), "");
  close(ends[0]);
}

}  // namespace
}  // namespace plumb::command

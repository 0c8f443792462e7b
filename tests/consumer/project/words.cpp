// `using namespace plumb` in a program that includes the standard libraries of C++ and C, and has words of its own.
#include <bits/stdc++.h>

#include <fcntl.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <plumbline.h>

// What a program may call its own things: none of it is in plumb itself.
struct Context {};
struct Inputs {};
struct Input {};
struct Ref {};
struct Value {};
struct Node {};
struct Pool {};
struct Block {};
struct Recorder {};
struct Stage {};
struct Scratch {};
namespace cpu {}
namespace data {}
namespace math {}
int train(int steps) { return steps; }
int ctx = 1, inputs = 2, hash = 3, find = 4, dispatch = 5;

using namespace plumb;

// Unqualified: the C library's functions, and the ops of the same names.
int main() {
  [[maybe_unused]] const std::tuple<Context, Inputs, Input, Ref, Value, Node, Pool, Block, Recorder, Stage, Scratch>
      own;
  namespace first = ::cpu;
  namespace second = ::data;
  namespace third = ::math;
  const bool c = abs(-1) == 1 && div(7, 2).quot == 3 && exp(0.0) == 1 && log(1.0) == 0 && pow(2.0, 3.0) == 8 &&
                 sqrt(4.0) == 2 && tanh(0.0) == 0 && ctx + inputs + hash + find + dispatch == train(15);
  const Tensor x = ones({2}).require_grad();
  const Tensor y = abs(div(exp(log(pow(sqrt(x), x))), clone(x))) - tanh(x);
  optim::make("sgd", std::span(&x, 1), {.learning_rate = 0.1})->step(grad(sum(y), {x}));
  return c && y.shape() == Shape{2} ? 0 : 1;
}

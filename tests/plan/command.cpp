// The harness around the command, for the one that was built with CUDA.
#include "tests/app/command.cpp"

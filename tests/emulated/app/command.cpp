// The harness around the command, for the one whose cuda:0 is the emulated device.
#include "tests/app/command.cpp"

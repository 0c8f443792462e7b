"""How things are measured: workers as processes, rounds in turn, statistics, and the machine they ran on."""

"""One file a framework: its optimizers' updates alone, as Update(problem, tensors, mode) with step() and first(), as a Work has them."""

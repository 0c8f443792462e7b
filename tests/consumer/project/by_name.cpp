// A header by its own name, first and alone.
#include <plumbline/core/tensor.h>

static_assert(sizeof(plumb::Tensor) > 0);

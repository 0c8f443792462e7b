#include <dlfcn.h>

#include <cstdio>

int main() {
  void* plugin = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (!plugin) return std::printf("%s\n", dlerror()), 1;
  const auto slope = reinterpret_cast<double (*)(double)>(dlsym(plugin, "slope_of_cube"));
  if (!slope) return std::printf("%s\n", dlerror()), 1;
  const double found = slope(2);
  std::printf("slope %g\n", found);
  return found == 12 ? 0 : 1;
}

# cmake -DFOLDER=kernels -DOUT=FILE.cpp -P: writes a source that knows a digest of everything in the folder, so that what was
# measured of other kernels is not taken for these.
file(GLOB_RECURSE sources RELATIVE ${FOLDER} ${FOLDER}/*)
list(SORT sources)
set(all)
foreach(source IN LISTS sources)
  file(SHA256 ${FOLDER}/${source} digest)
  string(APPEND all "${digest} ${source}\n")
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 16 digest)
file(WRITE ${OUT} "#include \"dispatch/machine.h\"\n\nstd::string plumb::detail::kernels_digest() { return \"${digest}\"; }\n")

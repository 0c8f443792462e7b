#include "kernels/cpu/onednn/dnnl.h"

namespace plumb::cpu {

dnnl::engine& dnnl_engine() {
  static dnnl::engine* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

dnnl::stream& dnnl_stream() {
  static thread_local dnnl::stream stream(dnnl_engine());
  return stream;
}

bool dnnl_has(DType t) {
  return t == DType::kF32 || t == DType::kBf16 || t == DType::kF16 || t == DType::kI32 || t == DType::kU8;
}

memory::data_type dnnl_dtype(DType t) {
  switch (t) {
    case DType::kF32: return memory::data_type::f32;
    case DType::kBf16: return memory::data_type::bf16;
    case DType::kF16: return memory::data_type::f16;
    case DType::kI32: return memory::data_type::s32;
    case DType::kU8: return memory::data_type::u8;
    default: fail("oneDNN has no dtype {}", t);
  }
}

memory::dims dnnl_dims(const Shape& s) { return {s.begin(), s.end()}; }

MemoryDesc dnnl_desc(const TensorSpec& s) {
  const Strides strides = strides_of(s);
  return {dnnl_dims(s.shape), dnnl_dtype(s.dtype), memory::dims(strides.of, strides.of + s.rank())};
}

MemoryDesc dnnl_any(const TensorSpec& s) { return {dnnl_dims(s.shape), dnnl_dtype(s.dtype), memory::format_tag::any}; }

namespace {

struct PackKey {
  MemoryDesc chosen, plain;
  bool operator==(const PackKey&) const = default;
};

}  // namespace

Layout dnnl_pack(const MemoryDesc& chosen, const MemoryDesc& plain) {
  if (chosen == plain) return Layout::kNchw;
  const auto make = [chosen, plain](const TensorSpec&) -> std::unique_ptr<Kernel> {
    auto kernel = std::make_unique<DnnlKernel>("onednn:reorder");
    kernel->append_reorder({0, plain, DnnlArg::kIn, 0}, {0, chosen, DnnlArg::kOut, 0});
    kernel->info().conversions = 0;  // the gate counts packing as an op of its own
    return kernel;
  };
  return register_pack(PackKey{chosen, plain}, {"onednn_pack", chosen.get_size(), make, Provider::kOneDnn});
}

void check_ran(std::string_view name, dnnl_status_t status) {
  PLUMB_CHECK(status == dnnl_success, "{}: oneDNN refused to run (status {})", name, static_cast<int>(status));
}

dnnl::primitive_attr dnnl_attr(MathMode math) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
#if DNNL_VERSION_MAJOR > 2 || DNNL_VERSION_MINOR >= 5
  if (math == MathMode::kBf16) attr.set_fpmath_mode(dnnl::fpmath_mode::bf16);
#endif
  return attr;
}

bool is_plain_loops(const dnnl::primitive_desc_base& pd) {
  const std::string_view name = pd.impl_info_str();
  return name.starts_with("ref") || name.starts_with("bnorm_ref");
}

bool multiplies_bf16() {
  const unsigned has = dnnl_get_effective_cpu_isa(), wanted = dnnl_cpu_isa_avx512_core_bf16;
  return (has & wanted) == wanted;  // larger sets have the bits of smaller ones
}

struct DnnlKernel::Bound {
  std::vector<memory> memories;  // of all steps, in order
  std::vector<dnnl_exec_arg_t> args;
};

DnnlKernel::DnnlKernel(std::string name) : Kernel(std::move(name)) {}
DnnlKernel::~DnnlKernel() = default;

void DnnlKernel::append(dnnl::primitive primitive, std::vector<DnnlArg> args) {
  std::erase_if(args, [](const DnnlArg& a) { return a.desc.get_size() == 0; });
  steps_.push_back({std::move(primitive), std::move(args)});
}

void DnnlKernel::append_reorder(DnnlArg from, DnnlArg to) {
  const dnnl::reorder::primitive_desc pd(dnnl_engine(), from.desc, dnnl_engine(), to.desc, dnnl_attr());
  from.name = DNNL_ARG_FROM;
  to.name = DNNL_ARG_TO;
  append(dnnl::reorder(pd), {from, to, scratchpad(pd)});
  ++info().conversions;
}

size_t DnnlKernel::reserve(size_t bytes) {
  const size_t at = info().workspace_bytes;
  info().workspace_bytes += detail::aligned(bytes);
  return at;
}

DnnlArg DnnlKernel::scratchpad(const dnnl::primitive_desc_base& pd) {
  const MemoryDesc desc = pd.scratchpad_desc();
  return {DNNL_ARG_SCRATCHPAD, desc, DnnlArg::kWorkspace, reserve(desc.get_size())};
}

DnnlKernel::Bound& DnnlKernel::bound() const {
  return bound_.get([&] {
    auto made = std::make_unique<Bound>();
    for (const Step& s : steps_) {
      for (const DnnlArg& a : s.args) made->memories.emplace_back(a.desc, dnnl_engine(), nullptr);
    }
    size_t next = 0;
    for (const Step& s : steps_) {
      for (const DnnlArg& a : s.args) made->args.push_back({a.name, made->memories[next++].get()});
    }
    return made;
  });
}

void DnnlKernel::run(const Launch& l) const {
  Bound& b = bound();
  dnnl_exec_arg_t* args = b.args.data();
  for (const Step& s : steps_) {
    for (size_t i = 0; i < s.args.size(); ++i) {
      const DnnlArg& a = s.args[i];
      void* data = a.from == DnnlArg::kIn    ? l.in[a.at]
                   : a.from == DnnlArg::kOut ? l.out[a.at]
                                             : static_cast<char*>(l.workspace) + a.at;
      dnnl_memory_set_data_handle(args[i].memory, data);
    }
    const dnnl_status_t status =
        dnnl_primitive_execute(s.primitive.get(), dnnl_stream().get(), static_cast<int>(s.args.size()), args);
    check_ran(info().name, status);
    args += s.args.size();
  }
}

std::unique_ptr<Kernel> converting_kernel(const std::string& prefix, dnnl::primitive primitive,
                                          const dnnl::primitive_desc_base& pd, const std::vector<DnnlOperand>& inputs,
                                          const DnnlOperand& output) {
  auto kernel = std::make_unique<DnnlKernel>(prefix + pd.impl_info_str());
  std::vector<DnnlArg> args{kernel->scratchpad(pd)};
  const auto in_workspace = [&](const DnnlOperand& o) -> DnnlArg {
    return {o.name, o.wanted, DnnlArg::kWorkspace, kernel->reserve(o.wanted.get_size())};
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DnnlOperand& o = inputs[i];
    const bool is_converted = o.own != o.wanted && !o.is_packed;
    args.push_back(is_converted ? in_workspace(o) : DnnlArg{o.name, o.wanted, DnnlArg::kIn, i});
    if (is_converted) kernel->append_reorder({0, o.own, DnnlArg::kIn, i}, args.back());
    if (o.is_packed) {
      if (const Layout pack = dnnl_pack(o.wanted, o.own); is_pack(pack))
        kernel->info().packs.push_back({static_cast<int>(i), pack});
    }
  }
  const DnnlArg own{output.name, output.own, DnnlArg::kOut, 0};
  args.push_back(output.own == output.wanted ? own : in_workspace(output));
  const DnnlArg made = args.back();
  kernel->append(std::move(primitive), std::move(args));
  if (made.from == DnnlArg::kWorkspace) kernel->append_reorder(made, own);
  return kernel;
}

}  // namespace plumb::cpu

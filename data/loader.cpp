#include "data/loader.h"

#include <algorithm>
#include <numeric>
#include <system_error>
#include <utility>

#include "dispatch/gate.h"
#include "kernels/augment.h"

namespace plumb::datasets {
namespace {

const Dataset& checked(const Dataset& data, const LoaderOptions& options) {
  data.check();
  PLUMB_CHECK(data.size() > 0, "loader: {} has no images", data.name);
  PLUMB_CHECK(options.batch >= 1, "loader: a batch of {} images was asked for; use at least 1", options.batch);
  PLUMB_CHECK(options.workers >= 0 && options.workers <= 1024, "loader: {} workers were asked for; use 0 to 1024",
              options.workers);
  PLUMB_CHECK(options.workers == 0 || (options.prefetch >= 1 && options.prefetch <= 1024),
              "loader: {} batches ahead were asked for; use 1 to 1024", options.prefetch);
  return data;
}

}  // namespace

Loader::Loader(const Dataset& data, const LoaderOptions& options)
    : data_(&checked(data, options)),
      options_(options),
      converter_(data, options.normalization, options.augmentation, options.dtype, options.layout, options.seed),
      order_(static_cast<size_t>(data.size())),
      runtime_(options.device.is_cpu() ? nullptr : &runtime_of(options.device)) {
  const int64_t rest = data.size() % options_.batch;
  batches_ = data.size() / options_.batch + (rest > 0 && !options_.drop_last);
  ring_ = options_.workers == 0 ? 1 : std::min<int64_t>(options_.prefetch + 1, std::max<int64_t>(batches_, 1));
  std::iota(order_.begin(), order_.end(), int64_t{0});
  if (data.size() >= options_.batch) {
    for (int64_t i = 0; i < ring_; ++i) slots_.push_back(make_slot(options_.batch));
  }
  if (rest > 0 && !options_.drop_last) slots_.push_back(make_slot(rest));
  if (runtime_) {
    const Tensor table = Tensor::from(converter_.table(), Shape{data.channels(), functors::kPixelValues});
    table_ = Tensor::empty(table.spec(), MemoryClass::kInput, options_.device);
    detail::copy_bytes(table_.value->data, options_.device, table.value->data, {}, table.bytes());
    for (Slot& s : slots_) make_there(s);
  }
  claimed_ = handed_out_ = batches_;                        // nothing to do before an epoch is started
  threads_.reserve(static_cast<size_t>(options_.workers));  // a thread that has no place to go would end the program
  try {
    for (int i = 0; i < options_.workers; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& e) {
    stop();
    fail("loader: cannot start {} worker threads: {}", options_.workers, e.what());
  }
}

Loader::~Loader() { stop(); }

void Loader::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wanted_.notify_all();
  for (std::thread& t : threads_) t.join();
  for (const Slot& s : slots_) {  // the device may still read its memory
    try {
      if (s.copied && !runtime_->is_done(*s.copied)) runtime_->wait_for(*s.copied);
    } catch (const Error&) {  // told by the next wait, too
    }
  }
}

Loader::Parts Loader::parts(int64_t count) const {
  const auto n = static_cast<size_t>(count);
  const size_t windows = detail::aligned(n * sizeof(int64_t));
  const size_t pixels = detail::aligned(windows + n * sizeof(functors::Window));
  return {windows, pixels, pixels + n * static_cast<size_t>(data_->image.numel())};
}

Loader::Slot Loader::make_slot(int64_t count) const {
  Slot s;
  s.count = count;
  if (!runtime_) {
    s.images = Tensor::empty(converter_.spec(count), MemoryClass::kInput);
    s.labels = Tensor::empty({Shape{count}, DType::kI64}, MemoryClass::kInput);
    return s;
  }
  // Memory of the host that the device reads by itself.
  const size_t bytes = parts(count).bytes;
  void* const memory = runtime_->allocate_pinned(bytes);
  PLUMB_CHECK(memory, "loader: there are no {} bytes of pinned memory for a batch; use a smaller one, or fewer ahead",
              bytes);
  s.staged = Tensor::wrap(memory, {Shape{static_cast<int64_t>(bytes)}, DType::kU8},
                          [r = runtime_, bytes](void* p) { r->release_pinned(p, bytes); });
  return s;
}

void Loader::make_there(Slot& slot) {
  const Device device = options_.device;
  const Parts at = parts(slot.count);
  slot.there = Tensor::empty({Shape{static_cast<int64_t>(at.bytes)}, DType::kU8}, MemoryClass::kInput, device);
  const auto part = [&](size_t begin, const TensorSpec& spec) {
    return Tensor::wrap(
        static_cast<char*>(slot.there.value->data) + begin, spec, [keep = slot.there](void*) {}, device);
  };
  slot.labels_there = part(0, {Shape{slot.count}, DType::kI64});
  slot.windows = part(at.windows, {Shape{slot.count, 3}, DType::kI32});
  slot.pixels = part(at.pixels, {converter_.spec(slot.count).shape, DType::kU8});
  slot.copied = runtime_->make_event();
  slot.used = runtime_->make_event();
  runtime_->record(*slot.used, runtime_->stream());  // by those who had this memory before
  const auto is_same = [&](const Batch& b) { return b.count == slot.count; };
  if (std::ranges::any_of(on_device_, is_same)) return;
  on_device_.push_back({Tensor::empty(converter_.spec(slot.count), MemoryClass::kInput, device),
                        Tensor::empty(slot.labels_there.spec(), MemoryClass::kInput, device), slot.count});
}

Loader::Slot& Loader::slot_of(int64_t batch) {
  const bool is_short = (batch + 1) * options_.batch > data_->size();
  return is_short ? slots_.back() : slots_[static_cast<size_t>(batch % ring_)];
}

void Loader::take_back(Slot& slot) const {
  if (runtime_ && !runtime_->is_done(*slot.copied)) runtime_->wait_for(*slot.copied);
  slot.ready = false;
  slot.error = nullptr;
  for (const Tensor& t : {slot.images, slot.labels, slot.staged}) {
    if (t) t.value->bump_version();
  }
}

Batch Loader::hand_out(Slot& slot) const {
  if (!runtime_) return {slot.images, slot.labels, slot.count};
  const Batch& b = *std::ranges::find_if(on_device_, [&](const Batch& o) { return o.count == slot.count; });
  const Runtime::Stream stream = runtime_->stream();
  runtime_->follow(stream, *slot.copied);
  runtime_->copy(b.labels.value->data, slot.labels_there.value->data, b.labels.bytes(), Runtime::Direction::kWithin,
                 stream);
  b.labels.value->bump_version();
  update<Augment>({}, {slot.pixels, slot.windows, table_, b.images}, Writes{3, 1});
  runtime_->record(*slot.used, stream);
  return b;
}

void Loader::prepare(int64_t batch, Slot& slot) const {
  const auto images =
      std::span(order_).subspan(static_cast<size_t>(batch * options_.batch), static_cast<size_t>(slot.count));
  // Straight to the memory: the versions belong to the thread that calls next().
  char* const staged = runtime_ ? static_cast<char*>(slot.staged.value->data) : nullptr;
  auto* labels = static_cast<int64_t*>(runtime_ ? slot.staged.value->data : slot.labels.value->data);
  for (size_t i = 0; i < images.size(); ++i) {
    labels[i] = data_->labels[static_cast<size_t>(images[i])];
    PLUMB_CHECK(labels[i] >= 0 && labels[i] < data_->classes, "loader: image {} of {} has label {}, expected 0 to {}",
                images[i], data_->name, labels[i], data_->classes - 1);
  }
  if (!runtime_) return converter_.write(images, epoch_, slot.images.value->data);
  const Parts at = parts(slot.count);
  converter_.stage(images, epoch_, reinterpret_cast<uint8_t*>(staged + at.pixels),
                   reinterpret_cast<functors::Window*>(staged + at.windows));
  copy_there(slot);
}

void Loader::copy_there(Slot& slot) const {
  const Runtime::Stream stream = runtime_->copy_stream();
  runtime_->follow(stream, *slot.used);
  runtime_->copy(slot.there.value->data, slot.staged.value->data, slot.staged.bytes(), Runtime::Direction::kToDevice,
                 stream);
  runtime_->record(*slot.copied, stream);
}

void Loader::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wanted_.wait(lock, [&] { return stopping_ || claimed_ < std::min(claim_limit_, batches_); });
    if (stopping_) return;
    const int64_t batch = claimed_++;
    Slot& slot = slot_of(batch);
    ++busy_;
    lock.unlock();
    std::exception_ptr error;
    try {
      prepare(batch, slot);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    slot.error = std::move(error);
    slot.ready = true;
    --busy_;
    finished_.notify_all();
  }
}

void Loader::start_epoch(int64_t epoch) {
  PLUMB_CHECK(epoch >= 0, "loader: epoch {} was asked for; the first one is 0", epoch);
  PLUMB_CHECK(static_cast<int64_t>(order_.size()) == data_->size() &&
                  data_->pixels.size() == order_.size() * static_cast<size_t>(data_->image.numel()),
              "loader: the size of {} has changed since the loader was made", data_->name);
  {
    std::unique_lock lock(mutex_);
    claimed_ = handed_out_ = batches_;  // at its end, should anything below throw
    finished_.wait(lock, [&] { return busy_ == 0; });
    epoch_ = epoch;
    if (options_.shuffle) shuffle(order_, options_.seed, epoch);
    for (Slot& s : slots_) take_back(s);
    handed_out_ = claimed_ = 0;
    claim_limit_ = ring_;
  }
  wanted_.notify_all();
}

bool Loader::next(Batch& batch) {
  PLUMB_CHECK(epoch_ >= 0, "loader: no epoch was started; call start_epoch(0) first");
  if (handed_out_ == batches_) return false;
  Slot& slot = slot_of(handed_out_);
  std::exception_ptr error;
  {
    std::unique_lock lock(mutex_);
    if (handed_out_ > 0) take_back(slot_of(handed_out_ - 1));
    claim_limit_ = handed_out_ + ring_;
    if (threads_.empty()) {
      try {
        prepare(handed_out_, slot);
      } catch (...) {
        error = std::current_exception();
      }
    } else {
      wanted_.notify_one();
      finished_.wait(lock, [&] { return slot.ready; });
      error = std::exchange(slot.error, nullptr);
    }
    if (error) claimed_ = handed_out_ = batches_;
  }
  if (error) std::rethrow_exception(error);
  try {
    batch = hand_out(slot);
  } catch (...) {
    if (runtime_) runtime_->record(*slot.used, runtime_->stream());
    const std::lock_guard lock(mutex_);
    claimed_ = handed_out_ = batches_;
    throw;
  }
  ++handed_out_;
  return true;
}

}  // namespace plumb::datasets

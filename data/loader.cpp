#include "data/loader.h"

#include <algorithm>
#include <numeric>
#include <system_error>
#include <utility>

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
    for (const Slot& s : slots_) {
      if (std::ranges::find(on_device_, s.count, &Batch::count) != on_device_.end()) continue;
      on_device_.push_back({Tensor::empty(s.images.spec(), MemoryClass::kInput, options_.device),
                            Tensor::empty(s.labels.spec(), MemoryClass::kInput, options_.device), s.count});
    }
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
}

Loader::Slot Loader::make_slot(int64_t count) const {
  Slot s;
  s.images = staging(converter_.spec(count));
  s.labels = staging({Shape{count}, DType::kI64});
  s.count = count;
  if (runtime_) s.copied = runtime_->make_event();
  return s;
}

// Memory of the host that the device reads by itself, if there is one.
Tensor Loader::staging(const TensorSpec& spec) const {
  if (!runtime_) return Tensor::empty(spec, MemoryClass::kInput);
  void* const memory = runtime_->allocate_pinned(std::max<size_t>(1, spec.bytes()));
  PLUMB_CHECK(memory, "loader: there are no {} bytes of pinned memory for a batch; use a smaller one, or fewer ahead",
              spec.bytes());
  return Tensor::wrap(memory, spec, [r = runtime_, bytes = spec.bytes()](void* p) { r->release_pinned(p, bytes); });
}

Loader::Slot& Loader::slot_of(int64_t batch) {
  const bool is_short = (batch + 1) * options_.batch > data_->size();
  return is_short ? slots_.back() : slots_[static_cast<size_t>(batch % ring_)];
}

void Loader::take_back(Slot& slot) const {
  if (runtime_ && !runtime_->is_done(*slot.copied)) runtime_->wait_for(*slot.copied);
  slot.ready = false;
  slot.error = nullptr;
  slot.images.value->bump_version();
  slot.labels.value->bump_version();
}

Batch Loader::hand_out(Slot& slot) const {
  if (!runtime_) return {slot.images, slot.labels, slot.count};
  Batch& batch = *std::ranges::find(on_device_, slot.count, &Batch::count);
  const auto copy = [&](Tensor& to, const Tensor& from) {
    to.value->bump_version();
    runtime_->copy(to.value->data, from.value->data, from.bytes(), Runtime::Direction::kToDevice, runtime_->stream());
  };
  copy(batch.images, slot.images);
  copy(batch.labels, slot.labels);
  runtime_->record(*slot.copied, runtime_->stream());
  return batch;
}

void Loader::prepare(int64_t batch, Slot& slot) const {
  const auto images =
      std::span(order_).subspan(static_cast<size_t>(batch * options_.batch), static_cast<size_t>(slot.count));
  // Straight to the memory: the versions belong to the thread that calls next().
  auto* labels = static_cast<int64_t*>(slot.labels.value->data);
  for (size_t i = 0; i < images.size(); ++i) {
    labels[i] = data_->labels[static_cast<size_t>(images[i])];
    PLUMB_CHECK(labels[i] >= 0 && labels[i] < data_->classes, "loader: image {} of {} has label {}, expected 0 to {}",
                images[i], data_->name, labels[i], data_->classes - 1);
  }
  converter_.write(images, epoch_, slot.images.value->data);
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
    claimed_ = batches_;
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
  ++handed_out_;
  batch = hand_out(slot);
  return true;
}

}  // namespace plumb::datasets

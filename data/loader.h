// Batches of a data set as tensors, prepared ahead by other threads.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "../core/runtime.h"
#include "../core/tensor.h"
#include "transform.h"

namespace plumb::datasets {

/// In which order, form and place a loader hands out batches.
struct LoaderOptions {
  int64_t batch = 128;
  bool shuffle = true;     ///< another order in every epoch; false: the order of the data set
  bool drop_last = false;  ///< leaves out the short batch at the end
  Augmentation augmentation{};
  Normalization normalization{};
  DType dtype = DType::kF32;  ///< of the images: f32 or bf16
  Layout layout = Layout::kNchw;
  uint64_t seed = 0;
  int workers = 1;   ///< threads that prepare batches; 0: next() prepares them itself
  int prefetch = 2;  ///< batches that are prepared ahead; unused without workers
  Device device{};   ///< where batches are handed out
};

/// The loader's own tensors of one batch, valid until its next() or start_epoch() is called.
struct Batch {
  Tensor images;      ///< (count, C, H, W)
  Tensor labels;      ///< i64 (count)
  int64_t count = 0;  ///< less than the batch size in the last batch of an epoch
};

/// Goes through a data set in batches. What a batch holds is fixed by the seed, the epoch and its place in it, whatever
/// the number of workers. Buffers are made once: `prefetch` + 1 (without workers: one, so that the addresses never
/// change), and one for the short last batch. For another device than the host these are pinned and hold the images'
/// bytes, each with memory on the device, to which it is copied in one piece when it is prepared, on the device's
/// second stream, while kernels run; next() has them cropped, flipped and normalised there, into tensors whose
/// addresses never change. One thread at a time may use a loader.
class Loader {
 public:
  /// Keeps a reference to `data`, which must outlive the loader and not change while an epoch is under way. Throws on
  /// an inconsistent or empty data set, on options out of range, and where Converter throws.
  Loader(const Dataset& data, const LoaderOptions& options);
  Loader(Dataset&&, const LoaderOptions&) = delete;
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The number of batches in an epoch.
  int64_t batches() const { return batches_; }
  /// The spec of the images of a batch of full size.
  TensorSpec image_spec() const { return converter_.spec(options_.batch); }
  /// Begins epoch 0, 1, ... in any order, from its first batch; what is left of the last one is dropped.
  void start_epoch(int64_t epoch);
  /// Hands out the next batch of the epoch, or returns false at its end. Batches handed out before are written over:
  /// their versions change. Rethrows what was thrown while the batch was prepared, which ends the epoch; throws if none
  /// was started.
  bool next(Batch& batch);

 private:
  // What is prepared of a batch on the host: the tensors, or for a device one piece of memory, and its copy there, in
  // which the parts lie.
  struct Slot {
    Tensor images, labels;
    Tensor staged, there;
    Tensor labels_there, windows, pixels;
    int64_t count = 0;
    bool ready = false;
    std::exception_ptr error;
    std::unique_ptr<RuntimeEvent> copied;  // to the device, where its kernels may read it now
    std::unique_ptr<RuntimeEvent> used;    // by the kernels, so that the next may be copied there
  };
  // Where labels, windows and pixels of a batch begin in that memory.
  struct Parts {
    size_t windows, pixels, bytes;
  };
  Slot make_slot(int64_t count) const;
  Parts parts(int64_t count) const;
  void make_there(Slot& slot);
  Slot& slot_of(int64_t batch);
  void take_back(Slot& slot) const;
  Batch hand_out(Slot& slot) const;
  void prepare(int64_t batch, Slot& slot) const;
  void copy_there(Slot& slot) const;
  void work();
  void stop() noexcept;

  const Dataset* data_;
  LoaderOptions options_;
  Converter converter_;
  int64_t batches_ = 0, epoch_ = -1;
  int64_t handed_out_ = 0;  // batches that next() has returned
  std::vector<int64_t> order_;
  std::vector<Slot> slots_;       // the ring, and at the end the slot of the short batch
  Runtime* runtime_ = nullptr;    // of the device, if it is not the host
  Tensor table_;                  // of the converter, on the device
  std::vector<Batch> on_device_;  // that are handed out, one a size of batch
  int64_t ring_ = 1;

  std::mutex mutex_;  // guards what follows, and `ready` and `error` of the slots
  std::condition_variable wanted_, finished_;
  int64_t claimed_ = 0;      // batches that workers have begun
  int64_t claim_limit_ = 0;  // batches that there is a free slot for
  int busy_ = 0;             // workers that are preparing a batch
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace plumb::datasets

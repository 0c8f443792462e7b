"""TensorFlow's tf.data: with prefetching and without."""

import tensorflow as tf

from ...problems.inputs import PADDING
from . import SCALE, SHIFT, split
from . import Pipeline as Common


def normalised(x):
    return tf.cast(x, tf.float32) * SCALE - SHIFT


def augmented(x, label):
    size = x.shape
    x = tf.image.random_crop(tf.pad(x, [[PADDING] * 2, [PADDING] * 2, [0, 0]]), size)
    return normalised(tf.image.random_flip_left_right(x)), label


def options_of(mode):
    """Unless told otherwise, tf.data makes one step of map and batch, which works up to 16 batches ahead, in the others' turns too, and
    puts a prefetch behind what has none: nothing would come one after the other."""
    options = tf.data.Options()
    options.experimental_optimization.map_and_batch_fusion = False
    options.experimental_optimization.inject_prefetch = False
    options.autotune.enabled = mode != "after"
    return options


class Pipeline(Common):
    def __init__(self, framework, problem, tensors, mode):
        pixels, labels, step, values = split(problem, tensors)
        pixels = pixels.transpose(0, 2, 3, 1)
        data = tf.data.Dataset.from_tensor_slices((pixels, labels)).shuffle(len(pixels)).repeat()
        parallel = None if mode == "after" else tf.data.AUTOTUNE  # its threads work ahead of what is asked for
        data = data.map(augmented, num_parallel_calls=parallel).batch(problem["batch"], drop_remainder=True)
        if mode == "overlapped":
            data = data.prefetch(2)
        data = data.with_options(options_of(mode))
        work = None if mode == "augment" else framework.Work(step, values, "function")
        first = normalised(pixels[:problem["batch"]]).numpy().transpose(0, 3, 1, 2)
        super().__init__(work, iter(data), mode, first)

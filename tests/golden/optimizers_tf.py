"""Keras 3's and TensorFlow 1's optimizers, step by step: sections `keras`, `tf1` and their defaults of
optimizers.safetensors.

Hyperparameters are passed as numpy.float64: Keras and TensorFlow 1 round a Python float to float32 where they make a
tensor of it on its own (beta_1 in Adam's bias correction, momentum, weight_decay), even among float64 variables.
"""

import keras
import numpy as np
import tensorflow as tf

import golden
import optimizers

tf1 = tf.compat.v1
keras.config.set_floatx("float64")

KERAS_CASES = {  # name: class, arguments, whether the learning rate changes
    "sgd": ("SGD", {"learning_rate": 0.1}),
    "sgd_default": ("SGD", {}),
    "sgd_lr_change": ("SGD", {"learning_rate": 0.1}, True),
    "sgd_weight_decay": ("SGD", {"learning_rate": 0.1, "weight_decay": 0.01}),
    "sgd_momentum": ("SGD", {"learning_rate": 0.1, "momentum": 0.9}),
    "sgd_momentum_weight_decay": ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    "sgd_momentum_lr_change": ("SGD", {"learning_rate": 0.1, "momentum": 0.9}, True),
    "sgd_nesterov": ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    "sgd_nesterov_weight_decay": (
        "SGD",
        {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    ),
    "sgd_nesterov_lr_change": ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}, True),
    "adam": ("Adam", {}),
    "adam_betas_eps": ("Adam", {"learning_rate": 0.01, "beta_1": 0.8, "beta_2": 0.95, "epsilon": 1e-3}),
    "adam_weight_decay": ("Adam", {"learning_rate": 0.01, "weight_decay": 0.01}),
    "adam_lr_change": ("Adam", {"learning_rate": 0.01}, True),
    "adamw": ("AdamW", {}),
    "adamw_betas_eps": (
        "AdamW",
        {"learning_rate": 0.01, "beta_1": 0.8, "beta_2": 0.95, "epsilon": 1e-3, "weight_decay": 0.1},
    ),
    "adamw_lr_change": ("AdamW", {"learning_rate": 0.01, "weight_decay": 0.1}, True),
    "rmsprop": ("RMSprop", {}),
    "rmsprop_rho_eps": ("RMSprop", {"learning_rate": 0.01, "rho": 0.99, "epsilon": 1e-3}),
    "rmsprop_momentum": ("RMSprop", {"momentum": 0.9}),
    "rmsprop_centered": ("RMSprop", {"centered": True}),
    "rmsprop_centered_momentum": ("RMSprop", {"centered": True, "momentum": 0.9}),
    "rmsprop_weight_decay": ("RMSprop", {"weight_decay": 0.01}),
    "rmsprop_momentum_weight_decay": ("RMSprop", {"momentum": 0.9, "weight_decay": 0.01}),
    "rmsprop_lr_change": ("RMSprop", {}, True),
    "rmsprop_momentum_lr_change": ("RMSprop", {"momentum": 0.9}, True),
}

TF1_CASES = {
    "sgd": ("GradientDescentOptimizer", {"learning_rate": 0.1}),
    "sgd_lr_change": ("GradientDescentOptimizer", {"learning_rate": 0.1}, True),
    "sgd_momentum": ("MomentumOptimizer", {"learning_rate": 0.1, "momentum": 0.9}),
    "sgd_momentum_lr_change": ("MomentumOptimizer", {"learning_rate": 0.1, "momentum": 0.9}, True),
    "sgd_nesterov": ("MomentumOptimizer", {"learning_rate": 0.1, "momentum": 0.9, "use_nesterov": True}),
    "sgd_nesterov_lr_change": (
        "MomentumOptimizer",
        {"learning_rate": 0.1, "momentum": 0.9, "use_nesterov": True},
        True,
    ),
    "adam": ("AdamOptimizer", {}),
    "adam_betas_eps": ("AdamOptimizer", {"learning_rate": 0.01, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3}),
    "adam_lr_change": ("AdamOptimizer", {"learning_rate": 0.01}, True),
    "rmsprop": ("RMSPropOptimizer", {"learning_rate": 0.01}),
    "rmsprop_decay_eps": ("RMSPropOptimizer", {"learning_rate": 0.01, "decay": 0.99, "epsilon": 1e-3}),
    "rmsprop_momentum": ("RMSPropOptimizer", {"learning_rate": 0.01, "momentum": 0.9}),
    "rmsprop_centered": ("RMSPropOptimizer", {"learning_rate": 0.01, "centered": True}),
    "rmsprop_centered_momentum": ("RMSPropOptimizer", {"learning_rate": 0.01, "centered": True, "momentum": 0.9}),
    "rmsprop_lr_change": ("RMSPropOptimizer", {"learning_rate": 0.01}, True),
    "rmsprop_momentum_lr_change": ("RMSPropOptimizer", {"learning_rate": 0.01, "momentum": 0.9}, True),
}

TF1_NAMES = ["GradientDescent", "Momentum", "Adam", "RMSProp", "Adagrad", "Adadelta", "Ftrl"]
TF1_CLASSES = {f"{n}Optimizer": getattr(tf1.train, f"{n}Optimizer") for n in TF1_NAMES}
KERAS_CLASSES = {
    n: c
    for n, c in vars(keras.optimizers).items()
    if isinstance(c, type) and issubclass(c, keras.Optimizer) and n not in ("Optimizer", "LossScaleOptimizer")
}


def used_arguments(defaults, arguments):
    """The hyperparameters of a case, the defaults among them, without options that change no number."""
    used = {**defaults, **arguments}
    return {
        n: v for n, v in used.items() if isinstance(v, (bool, int, float)) and not n.startswith(("use_ema", "ema_"))
    }


def precise(arguments):
    """The same arguments with every float as numpy.float64."""
    return {n: np.float64(v) if isinstance(v, float) else v for n, v in arguments.items()}


def run_keras(name, arguments, lr_change=False):
    """Runs one case of keras.optimizers in float64 and returns its record."""
    used = used_arguments(optimizers.defaults([KERAS_CLASSES[name]])[name], arguments)
    variables = [keras.Variable(v, dtype="float64") for v in optimizers.initial()]
    optimizer = KERAS_CLASSES[name](**precise(used))

    def step(gradients, lr):
        optimizer.learning_rate = lr
        optimizer.apply_gradients(zip([tf.constant(g) for g in gradients], variables))
        return [v.numpy() for v in variables]

    def state():
        slots = {n: getattr(optimizer, f"_{n}", None) for n in ("momentums", "velocities", "average_gradients")}
        slots["momentums"] = slots["momentums"] or getattr(optimizer, "momentums", None)
        return {n: [v.numpy() for v in vs] for n, vs in slots.items() if vs}

    return optimizers.run_case(name, used, used["learning_rate"], lr_change, step, state)


def run_tf1(name, arguments, lr_change=False):
    """Runs one case of tf.compat.v1.train in a float64 graph and returns its record."""
    used = used_arguments(optimizers.defaults([TF1_CLASSES[name]])[name], arguments)
    with tf.Graph().as_default(), tf1.Session() as session:
        variables = [
            tf1.get_variable(n, initializer=v, use_resource=True)
            for n, v in zip(optimizers.SHAPES, optimizers.initial())
        ]
        feeds = [tf1.placeholder(tf.float64, v.shape) for v in variables]
        lr_feed = tf1.placeholder(tf.float64, [])
        optimizer = TF1_CLASSES[name](**{**precise(used), "learning_rate": lr_feed})
        train = optimizer.apply_gradients(zip(feeds, variables))
        session.run(tf1.global_variables_initializer())

        def step(gradients, lr):
            session.run(train, {lr_feed: lr, **dict(zip(feeds, gradients))})
            return session.run(variables)

        def state():
            return {n: session.run([optimizer.get_slot(v, n) for v in variables]) for n in optimizer.get_slot_names()}

        return optimizers.run_case(name, used, used["learning_rate"], lr_change, step, state)


golden.update(
    "optimizers.safetensors",
    keras={name: run_keras(*case) for name, case in KERAS_CASES.items()},
    keras_defaults=optimizers.default_texts(KERAS_CLASSES.values()),
    keras_version=keras.__version__,
    tf1={name: run_tf1(*case) for name, case in TF1_CASES.items()},
    tf1_defaults=optimizers.default_texts(TF1_CLASSES.values()),
    tensorflow_version=tf.__version__,
)

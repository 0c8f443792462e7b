"""PyTorch's defaults."""

import numpy as np
import torch

from . import CONVOLUTION, FANS, KERNEL, LINEAR, of_adam, of_arithmetic, of_batch_norm, of_dropout, of_layers, of_rmsprop


def step_of(make):
    def step(g, epsilon):
        w = torch.zeros(1, requires_grad=True)
        w.grad = torch.full_like(w, g)
        make([w], lr=1.0, **({} if epsilon is None else {"eps": epsilon})).step()
        return abs(w.item())
    return step


def train(a, b):
    layer = torch.nn.BatchNorm2d(1)
    y = layer(torch.tensor([a, b]).reshape(2, 1, 1, 1))
    return y.flatten().tolist(), layer.running_mean.item(), layer.running_var.item()


def dropout(training):
    return lambda x: torch.nn.Dropout(0.5).train(training)(torch.from_numpy(x)).numpy()


def defaults():
    made = {kind: make([torch.zeros(1)]).defaults for kind, make in
            (("sgd", torch.optim.SGD), ("adam", torch.optim.Adam), ("rmsprop", torch.optim.RMSprop))}
    channels_first = torch.nn.Conv2d(*CONVOLUTION, KERNEL)(torch.zeros(1, CONVOLUTION[0], 4, 5)).shape[1] == CONVOLUTION[1]

    def numbers(make, *sizes):
        layer = make(*sizes)
        return layer.weight.detach().numpy(), layer.bias.detach().numpy()
    return {"pytorch": {
        "images": "N C H W" if channels_first else "N H W C",
        **of_layers("conv", lambda: numbers(torch.nn.Conv2d, *CONVOLUTION, KERNEL), FANS[0]),
        **of_layers("linear", lambda: numbers(torch.nn.Linear, *LINEAR), FANS[1]), **{f"{kind}_rate": d["lr"] for kind, d in made.items()},
        "adam_beta1": made["adam"]["betas"][0], "adam_beta2": made["adam"]["betas"][1], "adam_epsilon": made["adam"]["eps"],
        **of_adam(step_of(torch.optim.Adam), made["adam"]["betas"][1]), "rmsprop_epsilon": made["rmsprop"]["eps"],
        **of_rmsprop(step_of(torch.optim.RMSprop)), **of_batch_norm(train), **of_dropout(dropout(True), dropout(False)),
        **of_arithmetic(lambda a, b: torch.from_numpy(a) * torch.from_numpy(b),
                        lambda a, b: np.asarray(torch.from_numpy(a) @ torch.from_numpy(b))),
        "gpu_product": "tf32" if torch.backends.cuda.matmul.allow_tf32 else "f32",
        "gpu_convolution": "tf32" if torch.backends.cudnn.allow_tf32 else "f32"}}

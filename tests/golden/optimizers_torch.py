"""PyTorch's optimizers, step by step, and the inputs of all: the first part of optimizers.safetensors."""

import torch

import golden
import optimizers

CASES = {  # name: class, arguments, whether the learning rate changes
    "sgd": ("SGD", {"lr": 0.1}),
    "sgd_default": ("SGD", {}),
    "sgd_lr_change": ("SGD", {"lr": 0.1}, True),
    "sgd_weight_decay": ("SGD", {"lr": 0.1, "weight_decay": 0.01}),
    "sgd_momentum": ("SGD", {"lr": 0.1, "momentum": 0.9}),
    "sgd_momentum_dampening": ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1}),
    "sgd_momentum_weight_decay": ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    "sgd_momentum_lr_change": ("SGD", {"lr": 0.1, "momentum": 0.9}, True),
    "sgd_nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "sgd_nesterov_weight_decay": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    "sgd_nesterov_lr_change": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}, True),
    "adam": ("Adam", {}),
    "adam_betas_eps": ("Adam", {"lr": 0.01, "betas": [0.8, 0.95], "eps": 1e-3}),
    "adam_weight_decay": ("Adam", {"lr": 0.01, "weight_decay": 0.01}),
    "adam_lr_change": ("Adam", {"lr": 0.01}, True),
    "adamw": ("AdamW", {}),
    "adamw_betas_eps": ("AdamW", {"lr": 0.01, "betas": [0.8, 0.95], "eps": 1e-3, "weight_decay": 0.1}),
    "adamw_lr_change": ("AdamW", {"lr": 0.01, "weight_decay": 0.1}, True),
    "rmsprop": ("RMSprop", {}),
    "rmsprop_alpha_eps": ("RMSprop", {"alpha": 0.9, "eps": 1e-3}),
    "rmsprop_momentum": ("RMSprop", {"momentum": 0.9}),
    "rmsprop_centered": ("RMSprop", {"centered": True}),
    "rmsprop_centered_momentum": ("RMSprop", {"centered": True, "momentum": 0.9}),
    "rmsprop_weight_decay": ("RMSprop", {"weight_decay": 0.01}),
    "rmsprop_momentum_weight_decay": ("RMSprop", {"momentum": 0.9, "weight_decay": 0.01}),
    "rmsprop_lr_change": ("RMSprop", {}, True),
    "rmsprop_momentum_lr_change": ("RMSprop", {"momentum": 0.9}, True),
}


def run(name, arguments, lr_change=False):
    """Runs one case in float64 and returns its record."""
    parameters = [torch.tensor(v, requires_grad=True) for v in optimizers.initial()]
    optimizer = getattr(torch.optim, name)(parameters, **arguments)

    def step(gradients, lr):
        optimizer.param_groups[0]["lr"] = lr
        for p, g in zip(parameters, gradients):
            p.grad = torch.tensor(g)
        optimizer.step()
        return [p.detach().numpy() for p in parameters]

    def state():
        names = [n for n, v in optimizer.state.get(parameters[0], {}).items() if v is not None]
        return {n: [optimizer.state[p][n].numpy() for p in parameters] for n in names}

    used = {n: v for n, v in optimizer.param_groups[0].items() if n != "params"}
    return optimizers.run_case(name, used, used["lr"], lr_change, step, state)


classes = [c for c in vars(torch.optim).values() if isinstance(c, type) and issubclass(c, torch.optim.Optimizer)]
golden.update(
    "optimizers.safetensors",
    initial=dict(zip(optimizers.SHAPES, optimizers.initial())),
    gradients=optimizers.by_step(optimizers.gradients()),
    torch={name: run(*case) for name, case in CASES.items()},
    torch_defaults=optimizers.default_texts(c for c in classes if c is not torch.optim.Optimizer),
    torch_version=torch.__version__,
)

"""PyTorch's logits, losses and gradients of alexnet and vgg16, the first part of networks.safetensors."""

import torch
import torch.nn.functional as F

import golden
import networks

torch.set_num_threads(2)


def forward(layers, values, x):
    """The network on NCHW images; `values` are the parameters in order."""
    values = iter(values)
    for i, (kind, *rest) in enumerate(layers):
        if kind == "conv":
            x = F.relu(F.conv2d(x, next(values), next(values), stride=rest[1]))
        elif kind == "pad":
            x = F.pad(x, (1, 1, 1, 1))
        elif kind == "pool":
            x = F.max_pool2d(x, 2)
        else:
            x = F.linear(x.flatten(1), next(values), next(values))
            x = x if i + 1 == len(layers) else F.relu(x)
    return x


def run(layers, names, values, images, labels):
    """One forward and backward in float64, and its record."""
    logits = forward(layers, values, torch.tensor(images, dtype=torch.float64))
    loss = F.cross_entropy(logits, torch.tensor(labels))
    gradients = torch.autograd.grad(loss, values)
    return {
        "logits": logits.detach().numpy(),
        "loss": loss.item(),
        "gradients": {n: networks.summary(p, g.numpy()) for p, (n, g) in enumerate(zip(names, gradients))},
    }


for name, (layers, *_) in networks.NETWORKS.items():
    made = networks.parameters(name)
    names = [n for n, _ in made]
    values = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for _, v in made]
    record = {"parameters": networks.facts(made), "batches": {}}
    for batch, (images, labels, entry) in networks.batches(name).items():
        record["batches"][batch] = entry | {"torch": run(layers, names, values, images, labels)}
    golden.update("networks.safetensors", **{name: record})

"""Training steps in PyTorch: eager, eager with channels_last, or torch.compile."""

import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import load_file

from networks import NETWORKS
from protocol import serve


class Network(nn.Module):
    def __init__(self, model):
        super().__init__()
        convolutions, linears, _ = NETWORKS[model]
        self.layers = nn.Sequential()
        self.names = {}
        for name, inputs, outputs, stride, pooled in convolutions:
            convolution = nn.Conv2d(inputs, outputs, 3, stride)
            self.names[name] = convolution
            self.layers.append(nn.Sequential(convolution, nn.ReLU(), nn.ZeroPad2d(1)))
            if pooled:
                self.layers.append(nn.MaxPool2d(2))
        self.layers.append(nn.Flatten())
        for i, (name, inputs, outputs) in enumerate(linears):
            linear = nn.Linear(inputs, outputs)
            self.names[name] = linear
            self.layers.append(linear)
            if i + 1 < len(linears):
                self.layers.append(nn.ReLU())

    def load(self, weights):
        with torch.no_grad():
            for name, layer in self.names.items():
                layer.weight.copy_(weights[name + ".weight"])
                layer.bias.copy_(weights[name + ".bias"])

    def forward(self, x):
        return self.layers(x)


def make_optimizer(name, parameters, lr):
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=lr)
    if name == "rmsprop":
        return torch.optim.RMSprop(parameters, lr=lr)
    return torch.optim.Adam(parameters, lr=lr, fused=name == "adam-fused")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--batch-file", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--optimizer", default="sgd")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--mode", choices=["eager", "channels_last", "compile", "compile_channels_last"], default="eager")
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--threads", type=int, default=2)
    a = parser.parse_args()

    torch.set_num_threads(a.threads)
    torch.set_flush_denormal(True)
    network = Network(a.model)
    network.load(load_file(a.weights))
    data = load_file(a.batch_file)
    images, labels = data["images"], data["labels"]
    if "channels_last" in a.mode:
        network = network.to(memory_format=torch.channels_last)
        images = images.contiguous(memory_format=torch.channels_last)
    optimizer = make_optimizer(a.optimizer, network.parameters(), a.lr)

    def loss_of(x, y):
        with torch.autocast("cpu", torch.bfloat16, enabled=a.dtype == "bf16"):
            return F.cross_entropy(network(x), y)

    compiled = torch.compile(loss_of) if "compile" in a.mode else loss_of
    batches = len(labels) // a.batch
    count = 0

    def step():
        nonlocal count
        i = count % batches * a.batch
        count += 1
        optimizer.zero_grad(set_to_none=True)
        loss = compiled(images[i:i + a.batch], labels[i:i + a.batch])
        loss.backward()
        optimizer.step()
        return loss.item()

    allocator = os.path.basename(os.environ.get("LD_PRELOAD", "")) or "glibc"
    serve({"framework": f"PyTorch {torch.__version__}", "mode": a.mode, "allocator": allocator}, step)


if __name__ == "__main__":
    main()

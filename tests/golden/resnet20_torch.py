"""PyTorch's ResNet-20 for CIFAR-10 (option A shortcuts), batch norm in eval and in train mode: resnet20.safetensors."""

import torch.nn.functional as F
from torch import nn

import golden
import networks
from resnets_torch import generate, run


class Block(nn.Module):
    """Two 3x3 convolutions with batch norm; the shortcut subsamples and pads channels with zeros."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.stride, self.extra = stride, (outputs - inputs) // 2

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        shortcut = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.extra, self.extra))
        return F.relu(y + shortcut)


class ResNet20(nn.Module):
    """conv1, three layers of three blocks with 16, 32 and 64 filters, global average pooling, linear."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(Block(16, 16, 1), Block(16, 16, 1), Block(16, 16, 1))
        self.layer2 = nn.Sequential(Block(16, 32, 2), Block(32, 32, 1), Block(32, 32, 1))
        self.layer3 = nn.Sequential(Block(32, 64, 2), Block(64, 64, 1), Block(64, 64, 1))
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(F.relu(self.bn1(self.conv1(x))))))
        return self.linear(x.mean((2, 3)))


network = ResNet20()
assert sum(v.numel() for v in network.parameters()) == 269_722
data = {"generated": networks.generated_batch(10), "cifar": networks.cifar_batch(*networks.NETWORKS["alexnet"][-1])}
golden.update(
    "resnet20.safetensors",
    parameters=networks.facts(generate(network)),
    batches={
        batch: entry | {"eval": run(ResNet20, False, images, labels), "train": run(ResNet20, True, images, labels)}
        for batch, (images, labels, entry) in data.items()
    },
)

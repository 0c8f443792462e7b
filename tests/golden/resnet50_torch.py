"""PyTorch's ResNet-50 as torchvision has it, by its names, batch norm in eval and in train mode: resnet50.safetensors."""

import torch.nn.functional as F
from torch import nn

import golden
import networks
from resnets_torch import generate, run

SIDE, CLASSES = 64, 16  # of the images; of the 1000 logits of each image, so many are recorded
# A tensor of every kind: the records of all would be of the size of the images.
RECORDED = {"conv1.weight", "bn1.weight", "bn1.running_mean", "bn1.running_var", "layer1.0.conv1.weight", "layer1.0.downsample.0.weight",
            "layer1.0.downsample.1.weight", "layer1.0.downsample.1.running_mean", "layer1.2.bn2.bias", "layer2.0.conv2.weight",
            "layer2.0.downsample.0.weight", "layer3.5.conv3.weight", "layer4.0.conv2.weight", "layer4.2.bn3.weight",
            "layer4.2.bn3.running_var", "fc.weight", "fc.bias"}


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions with batch norm, the stride on the second; a convolution as shortcut where the shape changes."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        for i, (ic, oc, kernel, s) in enumerate([(inputs, width, 1, 1), (width, width, 3, stride), (width, 4 * width, 1, 1)], 1):
            setattr(self, f"conv{i}", nn.Conv2d(ic, oc, kernel, s, kernel // 2, bias=False))
            setattr(self, f"bn{i}", nn.BatchNorm2d(oc))
        self.downsample = None
        if stride != 1 or inputs != 4 * width:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))
        return F.relu(self.bn3(self.conv3(y)) + (self.downsample(x) if self.downsample else x))


class ResNet50(nn.Module):
    """conv1, a maximum of 3x3, four layers of 3, 4, 6 and 3 bottlenecks, global average pooling, fc."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        inputs = 64
        for i, blocks in enumerate([3, 4, 6, 3]):
            width = 64 << i
            rest = [Bottleneck(4 * width, width, 1) for _ in range(blocks - 1)]
            setattr(self, f"layer{i + 1}", nn.Sequential(Bottleneck(inputs, width, 2 if i else 1), *rest))
            inputs = 4 * width
        self.fc = nn.Linear(2048, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


if __name__ == "__main__":
    made = generate(ResNet50())
    assert sum(v.size for n, v in made if "running" not in n) == 25_557_032
    assert {name for name, _ in made} >= RECORDED
    images, labels, entry = networks.generated_batch(1000, SIDE)
    runs = {mode: run(ResNet50, mode == "train", images, labels, RECORDED) for mode in ("eval", "train")}
    for record in runs.values():
        record["logits"] = record["logits"][:, :CLASSES]
    golden.update("resnet50.safetensors", parameters=networks.facts(made), batches={"generated": entry | runs})

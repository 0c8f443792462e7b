"""PyTorch's DataLoader: in the process that trains, or in one worker, which is a process of its own."""

import torch
import torch.nn.functional as F

from ...problems.inputs import PADDING
from ..torch import DEVICE
from . import SCALE, SHIFT, split
from . import Pipeline as Common


class Images(torch.utils.data.Dataset):
    """An image at a time, as users of the DataLoader write it."""

    def __init__(self, pixels, labels):
        self.pixels, self.labels = torch.from_numpy(pixels), torch.from_numpy(labels)
        self.scale, self.shift = torch.from_numpy(SCALE)[:, None, None], torch.from_numpy(SHIFT)[:, None, None]

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, i):
        x = F.pad(self.pixels[i], [PADDING] * 4)
        top, left, flip = torch.randint(2 * PADDING + 1, (3,)).tolist()
        x = x[:, top:top + self.pixels.shape[2], left:left + self.pixels.shape[3]]
        return self.normalised(x.flip(2) if flip % 2 else x), self.labels[i]

    def normalised(self, x):
        return x.float() * self.scale - self.shift


def endless(loader):
    """Batches on the device; those of a GPU come from pinned memory, from where they are copied while the host goes on."""
    while True:
        for images, labels in loader:
            yield images.to(DEVICE, non_blocking=True), labels.to(DEVICE, non_blocking=True)


class Pipeline(Common):
    def __init__(self, framework, problem, tensors, mode):
        pixels, labels, step, values = split(problem, tensors)
        images, workers = Images(pixels, labels), int(mode == "overlapped")
        loader = torch.utils.data.DataLoader(images, problem["batch"], shuffle=True, drop_last=True, num_workers=workers,
                                             persistent_workers=bool(workers), pin_memory=DEVICE.type == "cuda")
        work = None if mode == "augment" else framework.Work(step, values, "eager")
        super().__init__(work, endless(loader), mode, images.normalised(images.pixels[:problem["batch"]]).numpy())

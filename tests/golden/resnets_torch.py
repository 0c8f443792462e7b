"""What the scripts of the residual networks share: generated weights and statistics, and the record of a run."""

import torch
import torch.nn.functional as F

import networks

torch.set_num_threads(2)


def generate(network):
    """Fills the network from the generator, numbered in the order of its state; returns (name, float32 value)s."""
    made = []
    for name, value in network.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        p, shape = len(made), tuple(value.shape)
        if len(shape) > 1:
            made.append((name, networks.weight(p, shape)))
        elif name.endswith(("weight", "running_var")):  # of a batch norm
            made.append((name, networks.scale(p, shape)))
        else:
            made.append((name, networks.bias(p, shape)))
    network.load_state_dict({n: torch.tensor(v) for n, v in made}, strict=False)
    return made


def run(make, training, images, labels, recorded=None):
    """One forward and backward of a freshly generated network, and its record, of these tensors alone if they are named;
    statistics only in train mode."""
    network = make().double().train(training)
    numbers = {name: p for p, (name, _) in enumerate(generate(network))}
    logits = network(torch.tensor(images, dtype=torch.float64))
    loss = F.cross_entropy(logits, torch.tensor(labels))
    loss.backward()
    recorded = numbers if recorded is None else recorded
    gradients = {n: networks.summary(numbers[n], v.grad.numpy()) for n, v in network.named_parameters() if n in recorded}
    record = {"logits": logits.detach().numpy(), "loss": loss.item(), "gradients": gradients}
    if training:
        buffers = {n: v for n, v in network.named_buffers() if n in numbers and n in recorded}
        record["statistics"] = {n: networks.summary(numbers[n], v.numpy()) for n, v in buffers.items()}
    return record

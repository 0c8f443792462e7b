"""PyTorch's outputs and gradients of every op case: section `cases` of ops.safetensors."""

import torch
import torch.nn.functional as F

import golden
import ops


def pad(x, padding, value=0.0):
    top, left, bottom, right = padding
    return F.pad(x, (left, right, top, bottom), value=value)


def conv2d(x, w, b=None, *, stride, padding, dilation, groups):
    return F.conv2d(pad(x, padding), w, b, stride, 0, dilation, groups)


def conv_transpose2d(x, w, b, *, stride, padding, output_padding):
    return F.conv_transpose2d(x, w, b, stride, padding[:2], output_padding)


def max_pool2d(x, *, kernel, stride, padding):
    return F.max_pool2d(x, kernel, stride, padding[:2])


def avg_pool2d(x, *, kernel, stride, padding, count_include_pad):
    return F.avg_pool2d(x, kernel, stride, padding[:2], count_include_pad=count_include_pad)


def batch_norm(x, gamma, beta, running_mean, running_var, *, training, momentum, eps):
    return F.batch_norm(x, running_mean, running_var, gamma, beta, training, momentum, eps)  # writes the running ones


def layer_norm(x, gamma, beta, *, eps):
    return F.layer_norm(x, gamma.shape, gamma, beta, eps)


def attention(q, k, v, *, causal):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def lstm(x, h0, c0, *weights):
    return torch.lstm(x, (h0[None], c0[None]), weights, True, 1, 0.0, False, False, False)[0]


def gru(x, h0, *weights):
    return torch.gru(x, h0[None], weights, True, 1, 0.0, False, False, False)[0]


OPS = {
    "conv2d": conv2d,
    "conv_transpose2d": conv_transpose2d,
    "max_pool2d": max_pool2d,
    "avg_pool2d": avg_pool2d,
    "global_avg_pool": lambda x: F.adaptive_avg_pool2d(x, 1),
    "pad2d": pad,
    "batch_norm": batch_norm,
    "layer_norm": layer_norm,
    "softmax": lambda x, axis: F.softmax(x, axis),
    "log_softmax": lambda x, axis: F.log_softmax(x, axis),
    "cross_entropy": F.cross_entropy,
    "mse_loss": F.mse_loss,
    "linear": F.linear,
    "matmul": torch.matmul,
    "embedding": lambda w, indices: F.embedding(indices, w),
    "attention": attention,
    "lstm": lstm,
    "gru": gru,
    "sum": lambda x, axes: x.sum(axes),
    "mean": lambda x, axes: x.mean(axes),
    "max": lambda x, axes: x.amax(axes),
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "leaky_relu": lambda x, slope: F.leaky_relu(x, slope),
    "elu": lambda x, alpha: F.elu(x, alpha),
    "silu": F.silu,
    "softplus": F.softplus,
}


def run(name, entry):
    """Runs one case and returns its record."""
    inputs = {n: torch.tensor(v) for n, v in entry["inputs"].items()}
    wanted = [inputs[n].requires_grad_() for n in ops.differentiable(entry)]
    op = OPS.get(entry["op"]) or getattr(torch, entry["op"])
    y = op(*inputs.values(), **entry["params"])
    dy = ops.cotangent(name, y.shape)
    gradients = torch.autograd.grad(y, wanted, torch.tensor(dy))
    written = entry["no_gradient"] if entry["op"] == "batch_norm" and entry["params"]["training"] else []
    return {
        "op": entry["op"],
        "params": golden.text(entry["params"]),
        "inputs": entry["inputs"],
        "outputs": {"y": y.detach().numpy()} | {n: inputs[n].numpy() for n in written},
        "dy": dy,
        "gradients": {n: g.numpy() for n, g in zip(ops.differentiable(entry), gradients)},
    }


golden.update("ops.safetensors", cases={name: run(name, entry) for name, entry in ops.CASES.items()})

"""PyTorch: eager, compiled, and on a GPU compiled for least overhead, which captures graphs; each with NCHW and with channels_last memory."""

import re
import types

import torch

from . import device
from .ops.torch import OPS
from .refusals import Absent

NAME, MODES = "torch", ("eager", "channels_last", "compile", "compile_channels_last", "reduce_overhead", "reduce_overhead_channels_last")
DEVICES = ("cpu", "cuda")
DENORMALS = "flushed to 0"  # by start()
DEVICE = torch.device("cuda" if device.NAME == "cuda" else "cpu")


def version():
    return torch.__version__


def libraries():
    """Those that it was built with, by name and version."""
    text = torch.__config__.show()
    found = {"oneDNN": re.search(r"MKL-DNN v([\d.]+)", text), "MKL": re.search(r"Math Kernel Library Version ([\d.]+)", text)}
    of_gpu = [f"CUDA {torch.version.cuda}", f"cuDNN {torch.backends.cudnn.version()}"] if torch.cuda.is_initialized() else []
    return [f"{name} {m[1]}" for name, m in found.items() if m] + of_gpu


def start(threads):
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    if DEVICE.type == "cuda":
        start_gpu()


def start_gpu():
    """Products in f32 without tensor cores, and convolutions by measuring, as Plumbline's are."""
    if torch.version.cuda is None:
        raise Absent(f"PyTorch {version()} is built without CUDA; --python torch=PATH names the Python of a build that has it")
    try:
        torch.cuda.init()
    except RuntimeError as e:
        raise Absent(f"PyTorch {version()} finds no GPU: {e}") from None
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True


def wait(work):
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def memory():
    return {"device": torch.cuda.max_memory_allocated()}


def forget_peak():
    torch.cuda.reset_peak_memory_stats()


class Work:
    def __init__(self, problem, tensors, mode):
        self.problem, self.last = problem, "channels_last" in mode
        self.dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[problem["dtype"]]
        self.is_network = problem["direction"] == "train"
        self.values = {name: self.tensor(name, value) for name, value in tensors.items()}
        self.dy = self.values.pop("dy", None)
        self.wanted = [self.values[name] for name in problem["gradients"]] if problem["direction"] != "forward" else []
        for x in self.wanted:
            x.requires_grad_()
        self.optimizer = self.make_optimizer() if self.is_network else None
        self.function = self.compiled(mode)

    def compiled(self, mode):
        if mode in ("eager", "channels_last"):
            return self.forward
        torch._dynamo.config.fail_on_recompile_limit_hit = True  # or it would go on without compiling, and without a word
        if "reduce_overhead" not in mode:
            return torch.compile(with_own_code(self.forward), dynamic=False)
        for parameter in self.wanted if self.is_network else ():  # a module's are known to stay where they are, and not copied into the graph
            torch._dynamo.mark_static_address(parameter)
        return torch.compile(with_own_code(self.forward), dynamic=False, mode="reduce-overhead")

    def tensor(self, name, array):
        x = torch.from_numpy(array).to(DEVICE)
        if x.is_floating_point() and not self.is_network and name not in self.problem["f32_inputs"]:
            x = x.to(self.dtype)
        return x.contiguous(memory_format=torch.channels_last) if self.last and x.dim() == 4 else x

    def make_optimizer(self):
        kind, rate = self.problem["optimizer"], self.problem["learning_rate"]
        if kind == "sgd":
            return torch.optim.SGD(self.wanted, lr=rate)
        if kind == "rmsprop":
            return torch.optim.RMSprop(self.wanted, lr=rate)
        return torch.optim.Adam(self.wanted, lr=rate, fused=True)

    def forward(self, nodes=None):
        """The output, or that of the last of these nodes."""
        nodes = nodes or self.problem["nodes"]
        if self.is_network and self.dtype == torch.bfloat16:
            with torch.autocast(DEVICE.type, torch.bfloat16):
                return self.output_of(nodes)
        return self.output_of(nodes)

    def output_of(self, nodes):
        values = dict(self.values)
        for node in nodes:
            inputs = {name: values[source] for name, source in node["inputs"].items()}
            values[node["output"]] = OPS[node["op"]](inputs, node["attributes"])
        return values[nodes[-1]["output"]]

    def feed(self, **arrays):
        """Other values of inputs, of the same shapes."""
        self.values.update({name: self.tensor(name, array) for name, array in arrays.items()})

    def weights(self):
        """As the steps so far have left them."""
        return {n: out(self.values[n]) for n in self.problem["gradients"]}

    def predicted(self):
        """The class that a network gives to each image."""
        with torch.no_grad():
            return self.forward(self.problem["nodes"][:-1]).argmax(1).cpu().numpy()

    def gradients(self):
        y = self.function()
        if self.dy is not None and self.dy.dtype != y.dtype:  # a loss is f32, whatever x is
            self.dy = self.dy.to(y.dtype)
        return y, torch.autograd.grad(y, self.wanted, self.dy)

    def train(self):
        """A training step, and its loss, which nobody has read."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.function()
        loss.backward()
        self.optimizer.step()
        return loss

    def step(self):
        self.y = self.dxs = None  # whose memory the next call may have
        if self.problem["direction"] == "forward":
            with torch.no_grad():
                self.y = self.function()
        elif self.is_network:
            self.y = self.train().item()
        else:
            self.y, self.dxs = self.gradients()

    def first(self):
        if self.problem["direction"] == "forward":
            self.step()
            return {self.problem["output"]: out(self.y)}
        y, gradients = self.gradients()
        return {self.problem["output"]: out(y), **{"d" + n: out(g) for n, g in zip(self.problem["gradients"], gradients)}}


def with_own_code(method):
    """The method with a copy of its code. What is compiled is kept by the code, only so many times, and for shapes of any size once there
    were several: each work is compiled as if there were no other."""
    f = method.__func__
    return types.MethodType(types.FunctionType(f.__code__.replace(), f.__globals__, f.__name__, f.__defaults__, f.__closure__), method.__self__)


def out(x):
    x = x.detach()
    return (x.float() if x.is_floating_point() else x).contiguous().cpu().numpy()

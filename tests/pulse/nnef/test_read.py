# ruff: noqa: E501
"""NNEF text as models: operators, expressions, fragments, tract's own; and what is wrong with a text, by line."""

from pathlib import Path

import numpy as np
import pytest

import pulse
from pulse.errors import LoadError
from pulse.facts import Array
from tests.formulas import sigmoid
from tests.noise import next_noise, normal_noise
from tests.pulse.nnef.folders import HEAD, archive, graph, load_text, outputs_of, pack

X = normal_noise(1, 2, 6, seed=7)
TRACT = "extension tract_registry tract_core;\n"


STATEMENTS = [
    ("y = x * 2.0 + 1.0;", X * 2 + 1),
    ("y = -x ^ 2.0;", (-X) ** 2),
    ("y = 1.0 - x / 4.0 - 1.0;", -X / 4),
    ("y = select(x < 0.0 && !(x < -1.0), 0.0, x);", np.where((X < 0) & (X >= -1), 0, X)),
    ("y = x if true else -x;", X),
    ("y = x if 3 in [1, 2, 3] else -x;", X),
    ("a = [x, -x]; y = a[1];", -X),
    ("a = [1, 2, 3]; y = transpose(x, axes = [0] + a[1:2] + [1]);", X.transpose(0, 2, 1)),
    ("y = reshape(x, shape = [for i in [3, 4] yield i]);", X.reshape(3, 4)),
    ("y = add_n([for i in range_of([x, x, x]) if i != 1 yield x * scalar(i + 1)]);", X * 4),
    ("y = reshape(x, shape = [0, -1]);", X.reshape(1, 12)),
    ("y = reshape(x, shape = [2, 3], axis_start = 2, axis_count = 1);", X.reshape(1, 2, 2, 3)),
    ("y = slice(x, axes = [2], begin = [1], end = [0]);", X[:, :, 1:]),
    ("y = slice(x, axes = [2, 1], begin = [-3, 0], end = [-1, 1]);", X[:, :1, -3:-1]),
    ("(a, b) = split(x, axis = 2, ratios = [1, 2]); y = b;", X[:, :, 2:]),
    ("[a, b] = unstack(x, axis = 1); y = stack([b, a], axis = 1);", X[:, ::-1]),
    ("y = concat([x, x], axis = 1);", np.concatenate([X, X], 1)),
    ("y = pad(x, padding = [(0, 0), (0, 0), (2, 1)], border = 'reflect');", np.pad(X, [(0, 0), (0, 0), (2, 1)], "reflect")),
    ("y = tile(x, repeats = [2, 1, 1]);", np.tile(X, (2, 1, 1))),
    ("y = squeeze(unsqueeze(x, axes = [0, 4]), axes = [0, 4]);", X),
    ("y = matmul(x, x, transposeB = true);", X @ X.transpose(0, 2, 1)),
    ("y = softmax(x);", np.exp(X) / np.exp(X).sum(1, keepdims=True)),
    ("y = mean_reduce(x, axes = [1, 2]);", X.mean((1, 2), keepdims=True)),
    ("y = select(any_reduce(x > 2.0, axes = [2]), 1.0, 0.0);", (X > 2).any(2, keepdims=True) * 1.0),
    ("(m, v) = moments(x, axes = [2]); y = (x - m) * rsqrt(v + 0.1);", (X - X.mean(2, keepdims=True)) / np.sqrt(X.var(2, keepdims=True) + 0.1)),
    ("y = round(x * 2.0);", np.sign(X) * np.floor(np.abs(X * 2) + 0.5)),
    ("y = round(x * 0.0 + 0.49999997) + round(x * 0.0 - 8388609.0);", X * 0 - np.float32(8388609)),
    ("y = leaky_relu(x, alpha = 0.1);", np.where(X < 0, X * 0.1, X)),
    ("y = clamp(x, -0.5, 0.5);", np.clip(X, -0.5, 0.5)),
    ("y = sigmoid(x) + tanh(x) + relu(x) + elu(x);", sigmoid(X) + np.tanh(X) + np.maximum(X, 0) + np.where(X < 0, np.expm1(X), X)),
    ("y = rms_pool(x, size = [1, 1, 2], padding = [(0, 0), (0, 0), (0, 0)]);", np.sqrt((X[..., :-1] ** 2 + X[..., 1:] ** 2) / 2)),
    ("y = box(x, size = [1, 1, 2], padding = [(0, 0), (0, 0), (1, 0)], normalize = true);", (np.pad(X, [(0, 0), (0, 0), (1, 0)])[..., :-1] + X) / 2),
    ("y = nearest_upsample(x, factor = [2]);", X.repeat(2, 2)),
    ("y = l2_normalization(x, axes = [1]);", X / np.sqrt((X**2).sum(1, keepdims=True))),
    ("b = constant(shape = [1, 2], value = [1.0, 2.0]); y = x + b;", X + np.array([1, 2], np.float32)[None, :, None]),
    ("y = x + [[1.0, 2.0]];", X + np.array([1, 2], np.float32)[None, :, None]),
    ("y, z = copy_n(x, times = 2);", X),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), STATEMENTS, ids=[body for body, _ in STATEMENTS])
def test_statements_give_what_numpy_gives(body: str, expected: Array) -> None:
    (output,) = outputs_of(body, X)
    np.testing.assert_allclose(output, expected, rtol=2e-6, atol=2e-6)


def test_operands_align_their_first_axes() -> None:
    """Unlike in ONNX: a tensor [1, 2] stands for all frames of [1, 2, 6]."""
    (output,) = outputs_of(
        "b = variable(shape = [1, 2], label = 'b'); y = x * b;", X, b=np.array([[3, 5]], np.float32)
    )
    np.testing.assert_array_equal(output, X * np.array([3, 5], np.float32)[None, :, None])


@pytest.mark.parametrize("groups", [1, 2])
def test_both_filter_layouts_read_as_the_same_deconvolution(groups: int) -> None:
    """The standard's filter has the input's channels first, tract's the output's."""
    rng = np.random.default_rng(groups)
    x = next_noise(rng, 1, 4, 5)
    filter = next_noise(rng, 4, 3, 2)
    turned = filter.reshape(groups, 4 // groups, 3, 2).swapaxes(1, 2).reshape(groups * 3, 4 // groups, 2)
    body = "w = variable(shape = [{}], label = 'w'); y = deconv(x, w, padding = [(1, 0)], stride = [2], groups = {});"
    (plain,) = outputs_of(body.format("4, 3, 2", groups), x, w=filter)
    shape = ", ".join(map(str, turned.shape))
    (tract,) = outputs_of(body.format(shape, groups), x, head=TRACT, w=np.ascontiguousarray(turned))
    np.testing.assert_array_equal(plain, tract)
    assert plain.shape == (1, 3 * groups, 9)


def test_fragments_of_the_file_are_called() -> None:
    """Compositions, defaults, several results, a fragment that calls another."""
    head = """
    # a comment
    fragment scaled(x: tensor<scalar>, by: scalar = 3.0) -> (y: tensor<scalar>) { y = x * by; }
    fragment both(x: tensor<scalar>) -> (a: tensor<scalar>, b: tensor<scalar>)
    {
        a = scaled(x);
        b = scaled(x, by = 2.0) + a;
    }
    """
    (output,) = outputs_of("(p, q) = both(x); y = q - p;", X, head=head)
    np.testing.assert_allclose(output, X * 2, rtol=1e-6)


def test_a_scan_streams() -> None:
    """A running sum as tract writes loops; time is a symbol."""
    head = f"""{TRACT}extension tract_symbol T;
    fragment body(s: tensor<scalar>, x: tensor<scalar>) -> (n: tensor<scalar>) {{ n = s + x; }}
    """
    text = graph(
        "x = external(shape = [1, 2, T]); zero = variable(shape = [1, 2, 1], label = 'z');"
        "y = tract_core_scan(body = 'body', scan = [('x', x, 2, 1)], full = [], state = [('s', zero, 'n')],"
        " output = [('n', 'full', 2, 1)], skip = 0);",
        head=head,
    )
    model = pulse.load(archive(text, z=np.zeros((1, 2, 1), np.float32)))
    np.testing.assert_allclose(model.analyse().run({"x": X})["y"], np.cumsum(X, 2), rtol=1e-6)
    assert pulse.verify(model, pulse=3, backend="numpy").equal


def test_sizes_may_depend_on_a_symbol() -> None:
    head = f"{TRACT}extension tract_symbol S;\n"
    body = (
        "x = external(shape = [1, 2, S]); a = slice(x, axes = [2], begin = [1], end = [S - 1]);"
        "n = tract_core_cast([[[2 * S]]], to = 'f32'); b = reshape(a, shape = [1, S - 2, 2]); y = b / n;"
    )
    output = load_text(graph(body, head=head)).run({"x": X})["y"]
    np.testing.assert_allclose(output, X[:, :, 1:5].reshape(1, 4, 2) / 12, rtol=1e-6)


FAILURES = [
    ("y = x +;", "line 5: a value is expected, not ;"),
    ("y = nothing(x);", r"line 5: the operator nothing is not supported; define it as a fragment"),
    ("y = z;", "line 5: z is not known; it must be assigned above"),
    ("y = x; y = x;", "line 5: y is assigned twice"),
    ("y = add(x);", r"line 5: add\(…\): the argument y is missing"),
    ("y = add(x, x, x);", r"line 5: add\(…\) takes 2 arguments, not 3"),
    ("y = add(x, x, w = 1);", r"line 5: add\(…\): the argument w is not known"),
    ("y = add(x, x, x = 1);", r"line 5: add\(…\): the argument x is given twice"),
    ("y = softmax(x, axes = [7]);", r"y = softmax\(…\): axes \[7\] are not distinct axes of a tensor of rank 3"),
    ("y = softmax(x, axes = [1, 2]);", "it is supported over one axis, not over 2"),
    ("y = transpose(x, axes = [0, 0]);", r"axes \[0, 0\] are not distinct axes"),
    ("y = reshape(x, shape = [-1, -1]);", "more than one open size"),
    ("y = conv(x, x, border = 'reflect');", "the border reflect is not supported; pad the input before"),
    ("y = max_pool(x, size = [1, 1, 2], padding = [(0, 0), (0, 0), (1, 0)]);", "use border = 'ignore'"),
    ("y = box(x, size = [1, 2, 2]);", "windows over the first two axes are not supported"),
    ("y = variable(shape = [2], label = 'w');", r"w\.dat: is missing; copy all files"),
    ("y = variable(shape = [2], label = '../../etc/passwd');", "is not a name inside the model"),
    ("y = variable(shape = [2], label = '/etc/passwd');", "is not a name inside the model"),
    ("y = external(shape = [2]);", "is not an input of the graph"),
    ("(a, b) = relu(x); y = a;", "2 names stand for 1 result"),
    ("y = [1] * 100000000 + x;", "a list is longer than 65536"),
    ("y = x + 2 ^ 100000;", r"\^ cannot be computed here"),
    ("y = x + 1 / 0;", "/ cannot be computed here"),
    ("y = x if x else x;", "the condition of if is not known before running; use select"),
    ("y = matmul(x, squeeze(sum_reduce(x, axes = [1, 2]), axes = [1, 2]));", "B has 1 axis; a matrix has at least two"),
    ("y = tract_core_cast(x, to = 'f99');", "the type f99 is not supported"),
    pytest.param("y = " + "(" * 100 + "x" + ")" * 100 + ";", "brackets are nested more than 60 deep", id="100 brackets"),
    pytest.param("y = x" + " + x" * 100 + ";", "more than 60 operators follow each other", id="100 operators"),
    ("y = reshape(x, shape = [5, 5]);", "reshape|Reshape"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "reason"), FAILURES)
def test_errors_in_a_text_are_named(body: str, reason: str) -> None:
    with pytest.raises(pulse.PulseError, match=reason):
        outputs_of(body, X)


ARCHIVES = [
    ({"graph.nnef": b"version 2.0;"}, "version 2.0 is not supported; NNEF 1.0 is"),
    ({"graph.nnef": b"\xff\xfe"}, "is not UTF-8 text"),
    ({"graph.nnef": b"version 1.0; graph g(x) -> (y) {}", "graph.quant": b""}, "quantisation files are not supported, but it has graph.quant"),
    ({"graph.nnef": b"version 1.0; extension magic; graph g(x) -> (y) {}"}, "the extension magic is not supported"),
    ({"graph.nnef": b"version 1.0; graph g(x) -> (y) {}"}, "the input x has no external"),
    ({"graph.nnef": b"version 1.0; graph g(x) -> (y) { x = external(shape = [1]); }"}, "the output y is not a tensor"),
    ({"graph.nnef": b"version 1.0; graph g(x) -> (y) { x = external(shape = [-1]); y = x; }"}, "its shape has the size -1"),
    ({"model/graph.nnef": b""}, "there is no graph.nnef in it"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "reason"), ARCHIVES)
@pytest.mark.parametrize("compressed", [True, False])
def test_errors_in_an_archive_are_named(files: dict[str, bytes], reason: str, compressed: bool) -> None:
    with pytest.raises(LoadError, match=reason):
        pulse.load(pack(files, compressed))


def test_fragments_that_unfold_without_end_are_refused() -> None:
    forever = "fragment f(x: tensor<scalar>) -> (y: tensor<scalar>) { y = f(x); }\n"
    with pytest.raises(LoadError, match="fragments call each other more than 60 deep"):
        outputs_of("y = f(x);", X, head=forever)
    twice = "".join(
        f"fragment f{n}(x: tensor<scalar>) -> (y: tensor<scalar>) {{ y = f{n + 1}(f{n + 1}(x)); }}\n"
        for n in range(20)
    )
    head = f"{twice}fragment f20(x: tensor<scalar>) -> (y: tensor<scalar>) {{ y = -x; }}\n"
    text = graph(f"x = external(shape = {[*X.shape]});\ny = f0(x);", head=head)
    with pytest.raises(LoadError, match="unfold to more than 2000 nodes"):
        pulse.load(archive(text), budget={"nodes": 2000}).model.analyse()


def test_folders_and_archives_are_recognised(tmp_path: Path) -> None:
    """The content decides, whatever the name; nothing outside of the folder is read."""
    folder = tmp_path / "anything"
    folder.mkdir()
    text = graph("x = external(shape = [1]); w = variable(shape = [1], label = 'w'); y = x + w;")
    (folder / "graph.nnef").write_text(text)
    from pulse.nnef.tensors import dump_tensor

    outside = tmp_path / "secret.dat"
    outside.write_bytes(dump_tensor(np.ones(1, np.float32), "w"))
    (folder / "w.dat").symlink_to(outside)
    with pytest.raises(LoadError, match=r"w\.dat leads out of the folder"):
        pulse.load(folder)
    (folder / "w.dat").unlink()
    (folder / "w.dat").write_bytes(outside.read_bytes())
    assert pulse.load(folder).model.analyse().run({"x": np.ones(1, np.float32)})["y"] == 2


def test_an_archive_that_unpacks_to_too_much_is_refused() -> None:
    content = pack({"graph.nnef": HEAD.encode(), "w.dat": bytes((1 << 28) + 1)})
    with pytest.raises(LoadError, match="it unpacks to more than 268435456 bytes; unpack it"):
        pulse.load(content)


def test_a_damaged_archive_is_refused() -> None:
    content = archive(graph("x = external(shape = [1]); y = x;"))
    for length in range(1, 60):
        with pytest.raises(LoadError, match="the archive is damaged"):
            pulse.load(content[:-length])

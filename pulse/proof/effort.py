"""An estimate of numpy's time for an offline model: counted, not measured, so that it is always the same."""

from pulse.dim import TDim
from pulse.pulsify.network import PulsedNetwork
from pulse.support.bounds import MAX_FRAMES


class Effort:
    """The seconds of one core that a run of a model's offline form takes, by the frames of the symbol.

    A file that was written in pulses has no offline form: it runs pulse by pulse, op by op (``pulse.proof.oracle``).
    """

    def __init__(self, model: PulsedNetwork) -> None:
        self._model = model
        self._seconds_by_frames: dict[int, float] = {}

    def seconds(self, frames: int) -> float:
        """Return the estimated seconds, interpolated linearly between powers of two."""
        low = 1 << max(0, frames.bit_length() - 1)
        return self._work_of(low) + (frames - low) / low * (self._work_of(2 * low) - self._work_of(low))

    def affordable_frames(self, seconds: float) -> int:
        """Return the most frames that take at most this long; at least one."""
        frames = 1
        while frames < MAX_FRAMES and self.seconds(2 * frames) <= seconds:
            frames *= 2
        per_frame = (self.seconds(2 * frames) - self.seconds(frames)) / frames
        extra = int((seconds - self.seconds(frames)) / per_frame) if per_frame > 0 else 0
        return frames + max(0, min(frames, extra))

    def _work_of(self, frames: int) -> float:
        if frames not in self._seconds_by_frames:
            pulse = self._model.pulse if self._model.is_reopened else frames
            self._seconds_by_frames[frames] = -(-frames // pulse) * _count(self._model, pulse)
        return self._seconds_by_frames[frames]


def _count(model: PulsedNetwork, frames: int) -> float:
    env = {model.symbol: frames}

    def size(dim: TDim) -> int:
        return max(0, dim.eval(env)) if dim.symbols <= env.keys() else 1

    total, graph = 0.0, model.typed.graph
    for node_id in graph.order():
        node = graph.nodes[node_id]
        outputs = [outlet.fact for outlet in node.outputs]
        total += node.op.eval_seconds(graph.input_facts(node), outputs, size)
    return total

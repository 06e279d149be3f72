"""What every model needs, imported once: the processes of the models are forks of one that has imported this.

PyTorch's exporter imports most of its parts in its first export, so there is a small one.
"""

import warnings

import torch  # pyright: ignore[reportMissingImports]

import pulse

torch.set_num_threads(1)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pulse.from_torch(torch.nn.Conv1d(1, 1, 2), torch.zeros(1, 1, 8)).analyse().declutter()

"""
A softmap layer inside a network
================================

A small PyTorch network looks at patches of a noisy picture and says what each label costs; the
last layer, `softmap.soft_map`, lets neighbouring pixels agree. Both are trained together:
gradients pass through the layer by one linear solve.
"""

# %%
# Noisy pictures of two materials
# -------------------------------

import matplotlib.pyplot as plt
import numpy as np
import torch

import softmap

size = 10
edges = softmap.generators.grid_edges(size, size)
torch.manual_seed(0)


def scenes(count, seed):
    """Pictures and their labels."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:size, 0:size]
    centre, radius = rng.uniform(2, size - 2, (2, count, 1, 1)), rng.uniform(2, 4, (count, 1, 1))
    labels = ((x - centre[0]) ** 2 + (y - centre[1]) ** 2 < radius**2).astype(int)
    pictures = labels + 1.0 * rng.normal(size=labels.shape)
    return torch.tensor(pictures)[:, None], torch.tensor(labels).reshape(count, -1)


pictures, labels = scenes(8, seed=1)
new_pictures, new_labels = scenes(40, seed=2)

# %%
# The network
# -----------
# Unary costs come from a convolution. The table of the edges is a parameter too: (2, 2) numbers,
# shared by all edges of all pictures.


class Segmenter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.look = torch.nn.Conv2d(1, 2, kernel_size=1, dtype=torch.float64)
        self.table = torch.nn.Parameter(torch.zeros(2, 2, dtype=torch.float64))

    def forward(self, pictures, with_layer=True):
        unary = self.look(pictures).flatten(2).transpose(1, 2)
        if not with_layer:
            return torch.softmax(-unary, dim=-1)
        return softmap.soft_map(unary, self.table, edges, eta=1.0).nodes


def trained(steps, **options):
    network = Segmenter()
    optimiser = torch.optim.Adam(network.parameters(), lr=0.4)
    losses = []
    for _ in range(steps):
        beliefs = network(pictures, **options)
        loss = torch.nn.functional.nll_loss(torch.log(beliefs).transpose(1, 2), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    right = (network(new_pictures, **options).argmax(dim=-1) == new_labels).double().mean()
    return network, losses, right.item()


network, losses, right = trained(15)
_, plain_losses, plain_right = trained(15, with_layer=False)
table = network.table.detach().numpy()
print(f"pixels of new pictures that are right: {plain_right:.1%} without, {right:.1%} with it")
print("where neighbours differ they pay", round(float((table[0, 1] + table[1, 0]) / 2), 2))
assert right > plain_right + 0.05

# %%
# What came out
# -------------

with torch.no_grad():
    beliefs = network(new_pictures[:1])[0, :, 1].reshape(size, size)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
axes[0].imshow(new_pictures[0, 0].numpy(), cmap="gray")
axes[1].imshow(beliefs.numpy(), cmap="gray", vmin=0, vmax=1)
axes[0].set(title="a new picture", xticks=[], yticks=[])
axes[1].set(title="beliefs of the layer", xticks=[], yticks=[])
axes[2].plot(plain_losses, label="without the layer")
axes[2].plot(losses, label="with it")
axes[2].set(xlabel="step", ylabel="loss")
axes[2].legend()

"""
A timetable
===========

Lessons that share a class or a teacher must not be at the same hour: hard constraints. Wishes are
costs. The result is a timetable and a proof that no other grants more wishes.
"""

# %%
# Lessons, hours and clashes
# --------------------------

import matplotlib.pyplot as plt
import numpy as np

import softmap

rng = np.random.default_rng(4)
teachers, classes, hours = 5, 4, 6
lessons = [(t, c) for t in range(teachers) for c in range(classes) if rng.random() < 0.85]
names = [f"teacher {t}, class {c}" for t, c in lessons]
clashes = [
    (a, b)
    for a in range(len(lessons))
    for b in range(a)
    if lessons[a][0] == lessons[b][0] or lessons[a][1] == lessons[b][1]
]
wishes = rng.integers(0, 4, (len(lessons), hours)) + np.arange(hours) // 4
never = np.where(np.eye(hours, dtype=bool), np.inf, 0.0)
model = softmap.Model(wishes, clashes, never).with_names(names)

# %%
# Solve it
# --------

result = softmap.solve(model, time_limit=10)
print(f"{len(lessons)} lessons, {len(clashes)} clashes; cost {result.energy:g}, {result.status}")
print("the first lesson is in hour", result[names[0]])

plan = np.full((classes, hours), np.nan)
for (t, c), hour in zip(lessons, result.labels, strict=True):
    plan[c, hour] = t
plt.figure(figsize=(5, 2.6), layout="constrained")
plt.imshow(plan, cmap="Set2", vmin=0, vmax=7)
for c, hour in np.argwhere(np.isfinite(plan)):
    plt.text(hour, c, f"T{plan[c, hour]:.0f}", ha="center", va="center")
plt.xticks(range(hours))
plt.xlabel("hour")
plt.yticks(range(classes), [f"class {c}" for c in range(classes)])

"""Which item comes when: the order of a training run as pure functions.

- `gulpio2.order.seeds`: seeds out of seeds, in whole numbers.
- `gulpio2.order.permutation`: a shuffle whose places can be asked for one at a time.
- `gulpio2.order.orders`: plain, repeated (class-balanced) and mixed orders.
- `gulpio2.order.balance`: how often to repeat items of rare classes.
- `gulpio2.order.cursor`: the order shared out among ranks; state and resume.
"""

from __future__ import annotations

from gulpio2.order.balance import repeat_counts, repeat_factors
from gulpio2.order.cursor import Draw, OrderCursor, augmentation_seeds, rank_positions
from gulpio2.order.orders import (
    MixedOrder,
    Order,
    PlainOrder,
    RepeatedOrder,
    SourceIndices,
)
from gulpio2.order.permutation import Permutation
from gulpio2.order.seeds import Purpose, derive_seed, derive_seeds

__all__ = [
    "Draw",
    "MixedOrder",
    "Order",
    "OrderCursor",
    "Permutation",
    "PlainOrder",
    "Purpose",
    "RepeatedOrder",
    "SourceIndices",
    "augmentation_seeds",
    "derive_seed",
    "derive_seeds",
    "rank_positions",
    "repeat_counts",
    "repeat_factors",
]

"""Which items a dry run looks at, and how well these tell of all: made-up items."""

import json

import numpy as np
import pytest

from gulpio2.adapters import TableAdapter
from gulpio2.codecs.jpeg import EncoderSettings
from gulpio2.ingest.extrapolation import Look, Seen, Varied, take_sample
from gulpio2.ingest.oddities import note_odd_lengths
from gulpio2.ingest.sample_plan import plan_of_sizes, plan_sample, sample_positions
from gulpio2.ingest.survey import survey
from gulpio2.testing import FrameAdapter


def lognormal(num_items, *, seed, sigma=1.0, noise=0.2):
    """Draw frames, bytes stored and bytes of files; either per frame with noise."""
    rng = np.random.default_rng(seed)
    frames = np.exp(rng.normal(5, sigma, num_items)).round().clip(1)
    stored = frames * 8000 * np.exp(rng.normal(0, noise, num_items))
    files = frames * 4000 * np.exp(rng.normal(0, noise, num_items))
    return frames, stored, files


def estimate(plan, frames, stored):
    def look(places):
        for place in places:
            yield Look(frames=int(frames[place]), num_bytes=float(stored[place]))

    return take_sample(plan, look)


@pytest.mark.parametrize(
    ("num_items", "sigma"), [(300, 1.0), (2000, 0.8), (2000, 1.0), (2000, 1.2)]
)
def test_the_size_of_lognormal_lengths_is_within_a_tenth(num_items, sigma):
    off, errors, frames_off, looks = [], [], [], []
    for seed in range(100):
        frames, stored, files = lognormal(num_items, seed=seed, sigma=sigma)
        seen = estimate(plan_of_sizes(files), frames, stored)
        total = seen.total("num_bytes")
        off.append(total.value / stored.sum() - 1)
        errors.append(total.error)
        frames_off.append(seen.total("frames").value / frames.sum() - 1)
        looks.append(len(seen.looks))
    amounts, told = np.abs(off), np.array(errors)
    assert np.mean(amounts > 0.1) <= 0.03
    assert np.mean(np.abs(frames_off) > 0.1) <= 0.01
    # The error that is told is that of these draws.
    assert np.mean(told) == pytest.approx(np.mean(amounts**2) ** 0.5, rel=0.25)
    assert 0.55 < np.mean(amounts <= told) < 0.82
    assert np.mean(amounts <= 2 * told) > 0.88
    assert max(looks) <= 5 * 26


def test_the_estimate_leans_to_no_side():
    off = []
    for seed in range(300):
        frames, stored, files = lognormal(400, seed=seed)
        seen = estimate(plan_of_sizes(files, seed=seed), frames, stored)
        off.append(seen.total("num_bytes").value / stored.sum() - 1)
    assert abs(np.mean(off)) < 0.006


def test_of_many_items_the_sizes_of_a_part_are_enough():
    off, errors = [], []
    for seed in range(30):
        frames, stored, files = lognormal(50_000, seed=seed)
        places = sample_positions(50_000, 10_000)
        plan = plan_of_sizes(files[places], places=places, num_items=50_000)
        assert 500 <= plan.first < 700
        total = estimate(plan, frames, stored).total("num_bytes")
        off.append(abs(total.value / stored.sum() - 1))
        errors.append(total.error)
    assert max(off) < 0.1
    assert 0.5 < np.mean(np.array(off) <= errors) < 0.9
    assert total.curable < total.error, "the part has another mean than the whole"


def test_without_sizes_the_items_are_as_those_of_the_sample():
    rng = np.random.default_rng(0)
    stored = rng.normal(1000, 300, 1000).clip(1)
    plan = plan_of_sizes([0] * 1000)
    seen = estimate(plan, np.ones(1000), stored)
    assert (plan.first, plan.most) == (20, 100)
    total = seen.total("num_bytes")
    assert abs(total.value / stored.sum() - 1) < 3 * total.error
    assert total.error == pytest.approx(0.3 / len(seen.looks) ** 0.5, rel=0.4)
    assert seen.stand_for().sum() == 1000


def test_where_all_are_looked_at_nothing_is_left_to_chance():
    frames, stored, files = lognormal(20, seed=0)
    seen = estimate(plan_of_sizes(files), frames, stored)
    total = seen.total("num_bytes")
    assert total.value == pytest.approx(stored.sum())
    assert (total.error, seen.total("frames").value) == (0, frames.sum())


def test_what_the_size_of_a_file_says_nothing_of_is_counted_by_items():
    """An image is one frame, however large its file is."""
    _, stored, files = lognormal(2000, seed=0)
    seen = estimate(plan_of_sizes(files), np.ones(2000), stored)
    assert seen.total("frames").value == pytest.approx(2000)


@pytest.mark.parametrize("num_long", [1, 2])
def test_one_of_the_few_that_are_far_larger_is_always_looked_at(num_long):
    for seed in range(20):
        frames, stored, files = lognormal(400, seed=seed, sigma=0.3)
        for values in (frames, stored, files):
            values[7 : 7 + num_long] = 300 * np.median(values)
        plan = plan_of_sizes(files, seed=seed)
        seen = estimate(plan, frames, stored)
        assert {*range(7, 7 + num_long)} & {*seen.places}
        assert abs(seen.total("num_bytes").value / stored.sum() - 1) < 0.1


def test_the_error_counts_what_is_in_the_few_that_are_far_larger():
    off, errors = [], []
    for seed in range(40):
        frames, stored, files = lognormal(2000, seed=seed, sigma=0.3)
        for values in (frames, stored, files):
            values[50:54] *= 300
        total = estimate(plan_of_sizes(files), frames, stored).total("num_bytes")
        off.append(total.value / stored.sum() - 1)
        errors.append(total.error)
    assert np.mean(errors) > 0.75 * np.mean(np.square(off)) ** 0.5


def test_each_item_has_at_least_the_chance_of_the_share():
    """What fails is often small: it must be met as often as it is there."""
    times, first = np.zeros(1000), 0
    _, _, files = lognormal(1000, seed=0)
    for seed in range(400):
        plan = plan_of_sizes(files, seed=seed)
        times[plan.places[plan.order[: plan.first]]] += 1
        first += plan.first
    small = files < np.median(files)
    assert times[small].mean() / 400 == pytest.approx(0.02, rel=0.1)
    assert times[files.argmax()] > 3 * times[small].mean()
    assert first / 400 < 30


@pytest.mark.parametrize("period", [2, 5, 8, 13])
def test_what_comes_in_turns_is_met_in_all_its_turns(period):
    met = np.zeros(period)
    for seed in range(60):
        plan = plan_of_sizes([0] * 1000, seed=seed)
        met += np.bincount(plan.places[plan.order[:20]] % period, minlength=period)
    assert met / met.sum() == pytest.approx(1 / period, rel=0.4)


def test_every_beginning_of_the_order_is_spread_over_the_sizes():
    _, _, files = lognormal(1024, seed=0, sigma=0.1)
    plan = plan_of_sizes(files)
    for count in (20, 40, 77):
        quarters = np.bincount(plan.order[:count] // 256, minlength=4)
        assert quarters.sum() == count
        assert quarters.max() - quarters.min() <= 5


def test_another_seed_is_another_choice_and_the_same_seed_the_same():
    _, _, files = lognormal(500, seed=0)
    first, same, other = (plan_of_sizes(files, seed=seed) for seed in (0, 0, 1))
    assert (first.order == same.order).all()
    assert (first.order != other.order).any()


def test_the_sample_grows_only_as_far_as_the_error_asks_for():
    frames, _, files = lognormal(2000, seed=0)
    told: list[int] = []
    plan = plan_of_sizes(files)

    def look(places):
        for place in places:
            yield Look(frames=int(frames[place]), num_bytes=2 * files[place])

    seen = take_sample(plan, look, expect=told.append)
    assert told == [plan.first] == [len(seen.looks)]
    _, stored, files = lognormal(2000, seed=0, noise=0.5)
    told.clear()
    plan = plan_of_sizes(files)
    seen = take_sample(
        plan,
        lambda places: [Look(num_bytes=stored[place]) for place in places],
        expect=told.append,
    )
    assert told[0] == plan.first < told[1] < told[-1] == plan.most == len(seen.looks)


def test_it_grows_where_nothing_of_it_can_be_stored():
    """Where few of the files are there, none of the first twenty may be."""
    sizes = np.full(2000, 100)
    plan = plan_of_sizes(sizes)
    first = {*plan.places[plan.order[: plan.first]].tolist()}
    seen = take_sample(
        plan,
        lambda places: [Look(num_bytes=100 * (place not in first)) for place in places],
    )
    assert len(seen.looks) > plan.first
    assert seen.total("num_bytes").value > 0
    nothing = take_sample(plan, lambda places: [Look() for _ in places])
    assert len(nothing.looks) == plan.most
    assert nothing.total("num_bytes").value == nothing.total("num_bytes").error == 0


def test_it_does_not_grow_for_what_only_more_sizes_would_tell():
    _, _, files = lognormal(10_000, seed=0, sigma=2)
    plan = plan_of_sizes(files, num_items=200_000)
    seen = estimate(plan, files, files)
    total = seen.total("num_bytes")
    assert total.error > 0.03 > total.curable
    assert len(seen.looks) == plan.first


def test_an_item_stands_for_those_that_are_nearest_in_size():
    plan = plan_of_sizes([10, 11, 12, 100, 110, 1000], least=3)
    seen = Seen(plan)
    for rank in (1, 3, 5):
        seen.add(rank, Look(num_bytes=plan.sizes[rank]))
    assert seen.stand_for().tolist() == [3, 2, 1]
    assert seen.total("num_bytes").value == pytest.approx(plan.sizes.sum())


def test_files_of_other_kinds_are_told_apart():
    """Of the same size, one becomes ten times as large as the other."""
    sizes = np.random.default_rng(0).uniform(500, 1500, 400)
    kinds = [2 + place % 2 for place in range(400)]
    stored = sizes * np.where(np.array(kinds) == 2, 10, 1)
    plan = plan_of_sizes(sizes, kinds=kinds)
    total = estimate(plan, np.ones(400), stored).total("num_bytes")
    assert total.value == pytest.approx(stored.sum(), rel=0.02)
    assert total.error < 0.01


@pytest.mark.parametrize("is_one_size", [True, False])
def test_what_other_settings_give_is_as_a_frame_or_in_proportion(is_one_size):
    sizes = np.random.default_rng(0).uniform(100, 900, 40)
    plan = plan_of_sizes(sizes, least=40)
    seen = Seen(plan)
    for rank, place in enumerate(plan.places):
        size = int(sizes[place])
        look = Look(frames=2, frame_bytes=2 * size, num_bytes=2 * size + 50)
        if rank % 5 == 0:
            look.others[1] = Varied(1, 50 if is_one_size else size // 2, size)
        seen.add(rank, look)
    expected = 2 * 40 * 50 if is_one_size else sizes.sum()
    assert seen.varied_total(1) == pytest.approx(expected + 40 * 50, rel=0.01)
    assert seen.varied_total(2) is None


def test_what_is_an_odd_length_does_not_hang_on_how_many_long_ones_are_looked_at():
    looks = [Look(id_=f"{n}", frames=n) for n in (10, 101, 102, 103)]
    note_odd_lengths(looks, np.array([50, 1, 1, 1]))
    assert [bool(look.odd) for look in looks] == [False, True, True, True]
    assert looks[1].odd["odd length"] == ["item '101': 101 frames, where 10 are usual"]


class Sources(FrameAdapter):
    """Items of one frame, whose files are others."""

    def __init__(self, sources):
        super().__init__(num_items=len(sources), num_frames=1)
        self.sources = sources
        self.asked = 0

    def item_source(self, position):
        self.asked += 1
        return self.sources[position]


def test_files_are_told_by_their_ending_and_only_files_have_a_size(tmp_path):
    (tmp_path / "folder.mp4").mkdir()
    sources = [str(tmp_path / "folder.mp4"), str(tmp_path / "no.mp4"), None, "http://x"]
    for number in range(20):
        path = tmp_path / f"{number}{('.mp4', '.MP4', '.avi')[number % 3]}"
        path.write_bytes(bytes(100 + number))
        sources.append(str(path))
    (tmp_path / "rare.ogv").write_bytes(bytes(5))
    (tmp_path / "empty.mp4").write_bytes(b"")
    sources += [str(tmp_path / "rare.ogv"), str(tmp_path / "empty.mp4")]
    plan = plan_sample(Sources(sources), range(len(sources)))
    by_place = dict(zip(plan.places.tolist(), plan.kinds.tolist(), strict=True))
    unknown = [place for place, kind in by_place.items() if kind == 0]
    assert sorted(unknown) == [0, 1, 2, 3]
    assert by_place[4] == by_place[5] != by_place[6], "the case does not count"
    assert by_place[24] == 1
    assert by_place[25] == by_place[4], "the size of an empty file is known"
    assert plan.sizes[plan.kinds == 0].tolist() == [1] * 4


def test_the_rows_of_a_table_have_the_sizes_of_their_files(tmp_path):
    rows = []
    for number in range(30):
        path = tmp_path / f"v (row {number}).mp4"
        path.write_bytes(bytes(100 * (number + 1)))
        rows.append({"path": path.name, "id": str(number)})
    (tmp_path / "t.json").write_text(json.dumps(rows))
    plan = plan_sample(TableAdapter(tmp_path / "t.json"), range(30))
    assert plan.places.tolist() == [*range(30)]
    assert plan.sizes[-1] / plan.sizes[0] == pytest.approx(30)


def test_folders_are_as_large_as_their_files(tmp_path):
    """Their lengths are very uneven, so that a sample by chance tells nothing."""
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "a.jpg").write_bytes(bytes(100))
    sources = [str(shared), str(shared), str(tmp_path / "empty")]
    for number in range(40):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        (folder / ".hidden").write_bytes(bytes(9000))
        (folder / "sub").mkdir()
        for place in range(number):
            (folder / f"{place}.jpg").write_bytes(bytes(200))
        sources.append(str(folder))
    (tmp_path / "empty").mkdir()
    plan = plan_sample(Sources(sources), range(len(sources)))
    by_place = dict(zip(plan.places.tolist(), plan.sizes.tolist(), strict=True))
    unknown = plan.places[plan.kinds == 0]
    assert sorted(unknown) == [0, 1, 2, 3], "shared, or without files"
    assert by_place[42] / by_place[7] == pytest.approx(39 / 4, rel=0.4)
    assert by_place[42] == max(by_place.values())


def test_no_more_files_are_asked_for_their_size_than_ten_thousand(tmp_path):
    (tmp_path / "a").write_bytes(bytes(7))
    adapter = Sources([str(tmp_path / "a")] * 25_000)
    plan = plan_sample(adapter, range(25_000))
    assert adapter.asked == 10_000 == len(plan.places)
    assert (plan.num_items, plan.first) == (25_000, 250)
    assert np.diff(np.sort(plan.places)).max() < 6
    found = survey(adapter, EncoderSettings(), share=0.001)
    assert (found.items, found.sampled, found.frames) == (25_000, 25, 25_000)


def test_as_many_are_asked_as_are_in_the_sample():
    adapter = Sources([None] * 20_000)
    assert len(plan_sample(adapter, range(20_000), share=0.75).places) == 15_000
    plan = plan_sample(adapter, range(20_000), least=16_000)
    assert plan.first == plan.most == len(plan.places) == 16_000


def test_how_many_are_looked_at_is_told_before_and_when_it_grows():
    class Uneven(FrameAdapter):
        def iter_data(self, slice_element=None):
            for item in super().iter_data(slice_element):
                number = item["meta"]["number"]
                yield {**item, "frames": [*item["frames"]][: 1 + number**2 % 30]}

    told: list[int] = []
    left: list[int] = []

    def note(**done):
        left.append(told[-1] - len(left) - done["items"])

    adapter = Uneven(num_items=400, num_frames=30)
    found = survey(adapter, EncoderSettings(), progress=note, expect=told.append)
    assert told[0] == 20
    assert told == sorted(told)
    assert told[-1] == found.sampled == len(left) > 20
    assert (min(left), left[-1]) == (0, 0)


def test_no_items_are_no_sample():
    plan = plan_of_sizes([])
    seen = take_sample(plan, lambda places: [Look() for _ in places])
    assert (plan.first, plan.most, seen.looks) == (0, 0, [])
    assert seen.total("num_bytes").value == 0
    assert len(seen.stand_for()) == 0


@pytest.mark.parametrize("rare", [0, 1])
def test_of_each_kind_one_is_looked_at(rare):
    """A few long .avi among .mp4 may hold most of the bytes; a file may be gone."""
    for seed in range(20):
        _, stored, files = lognormal(1000, seed=seed, sigma=0.3)
        kinds = np.full(1000, 2)
        kinds[500:503] = rare
        files[500:503] = 0 if rare == 0 else 400 * files.mean()
        stored[500:503] = 400 * stored.mean()
        plan = plan_of_sizes(files, kinds=kinds, seed=seed)
        assert {500, 501, 502} & {*plan.places[plan.order[: plan.first]].tolist()}
        assert plan.first <= 26
        total = estimate(plan, np.ones(1000), stored).total("num_bytes")
        assert total.value == pytest.approx(stored.sum(), rel=0.1)


def test_a_long_one_is_looked_at_also_where_its_kind_is_rare():
    """Beside other files of its kind, which are short, and of most other files."""
    for seed in range(20):
        _, stored, files = lognormal(1000, seed=seed, sigma=0.3)
        kinds = np.full(1000, 2)
        kinds[:20] = 1
        files[7], stored[7] = 300 * files.mean(), 300 * stored.mean()
        plan = plan_of_sizes(files, kinds=kinds, seed=seed)
        assert 7 in plan.places[plan.order[: plan.first]]


@pytest.mark.parametrize(("frames", "is_told"), [(0, False), (3, True)])
def test_what_is_not_there_is_not_told_as_what_may_be_far_larger(frames, is_told):
    sizes, kinds = [1000] * 150 + [0] * 50, [2] * 150 + [0] * 50
    seen = Seen(plan_of_sizes(sizes, kinds=kinds))
    for rank in (10, 20, 30, 60, 100):  # the first fifty are those without a size
        seen.add(rank, Look(frames=frames if rank < 50 else 5))
    assert (seen.unmet() > 0) == is_told

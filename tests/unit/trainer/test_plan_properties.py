"""What holds of every plan."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from services.core.errors import ConfigurationError
from services.trainer.plan import Hardware, Job, Shape, plan, priced
from services.trainer.plan.candidates import candidates, divisors
from services.trainer.recipes.recipe import Recipe

GB = 10**9
SHARDED = ("fsdp2", "zero2", "zero3")

shapes = st.builds(
    lambda heads, groups, head_dim, wider, layers, vocabulary, tied: Shape(
        heads * groups * head_dim, heads * groups * head_dim * wider // 2, layers, heads * groups, heads,
        head_dim, vocabulary, tied,
    ),
    st.integers(1, 8), st.integers(1, 8), st.sampled_from([32, 64, 128]), st.integers(2, 12),
    st.integers(1, 12), st.integers(100, 200_000), st.booleans(),
)  # fmt: skip


@st.composite
def recipes(draw) -> Recipe:
    method = draw(st.sampled_from(["lora", "qlora", "full"]))
    ways = {"qlora": ["auto", "ddp"], "lora": ["auto", "ddp", *SHARDED], "full": ["auto", *SHARDED]}[method]
    adapters = (
        {} if method == "full" else {"lora_r": draw(st.integers(1, 256)), "use_dora": draw(st.booleans())}
    )
    return Recipe(
        name="any",
        base_model="any/model",
        method=method,
        distributed=draw(st.sampled_from(ways)),
        max_length=draw(st.integers(64, 8192)),
        batch_size=draw(st.integers(1, 6)),
        gradient_accumulation_steps=draw(st.integers(1, 6)),
        compile=draw(st.booleans()),
        **adapters,
    )


hardware = st.builds(
    lambda memory, devices, name: Hardware.gpu(name, memory * GB, devices),
    st.integers(1, 200), st.sampled_from([1, 2, 8]), st.sampled_from(["H200", "RTX 4090", "unheard of"]),
)  # fmt: skip
jobs = st.builds(
    lambda shape, recipe, on: Job(shape, recipe, on, recipe.max_length), shapes, recipes(), hardware
)


def peak(job, micro_batch=1, layers=0, *, keep=False):
    return priced(job, micro_batch, layers, keep_merged=keep).peak_bytes


def changed(job, **fields):
    recipe = job.recipe.model_copy(update=fields)
    return Job(job.shape, recipe, job.hardware, job.mean_document_tokens)


@given(jobs, st.integers(1, 8))
def test_the_peak_grows_with_the_micro_batch(job, micro_batch):
    assert peak(job, micro_batch) <= peak(job, micro_batch + 1)


@given(jobs, st.integers(1, 4096))
def test_the_peak_grows_with_the_tokens(job, more):
    assert peak(job) <= peak(changed(job, max_length=job.recipe.max_length + more))


@given(jobs, st.integers(1, 256))
def test_the_peak_grows_with_the_rank(job, more):
    assert peak(job) <= peak(changed(job, lora_r=job.recipe.lora_r + more))


@given(jobs, st.integers(1, 8))
def test_recomputing_more_layers_never_raises_the_peak(job, micro_batch):
    rising = [peak(job, micro_batch, layers) for layers in range(job.shape.layers + 1)]
    assert all(after <= before + 1 for before, after in pairwise(rising))  # a rounded byte


@given(jobs, st.integers(1, 8))
def test_recomputing_more_layers_is_never_faster(job, micro_batch):
    speeds = [
        priced(job, micro_batch, layers, keep_merged=False).tokens_per_s
        for layers in range(job.shape.layers + 1)
    ]
    assert all(after <= before for before, after in pairwise(speeds))


@given(jobs)
def test_keeping_merged_weights_costs_memory_and_saves_time(job):
    kept, made = (priced(job, 1, 0, keep_merged=keep) for keep in (True, False))
    if job.can_keep_merged:
        assert kept.peak_bytes >= made.peak_bytes
        assert kept.tokens_per_s >= made.tokens_per_s


@given(jobs, st.integers(1, 8))
def test_keeping_less_of_a_layer_saves_memory_and_costs_time(job, micro_batch):
    light, whole = (priced(job, micro_batch, 0, keep_merged=False, kept_share=share) for share in (0.7, 1.0))
    assert light.memory.activations <= whole.memory.activations
    assert light.peak_bytes <= whole.peak_bytes + 1  # a rounded byte
    assert light.tokens_per_s <= whole.tokens_per_s


@given(jobs)
def test_the_parts_sum_to_the_peak(job):
    parts = priced(job, 1, 0, keep_merged=False).memory
    together = sum(vars(parts).values()) - min(parts.logits, parts.scratch)
    assert together == parts.total
    assert min(vars(parts).values()) >= 0


@given(jobs)
def test_a_plan_keeps_the_effective_batch_fits_and_is_the_fastest_that_does(job):
    fitting = [candidate for candidate in candidates(job) if candidate.fits]
    try:
        chosen = plan(job.shape, job.recipe, job.hardware)
    except ConfigurationError:
        assert not fitting
        return
    assert chosen.fits
    assert chosen.micro_batch * chosen.micro_batches == job.recipe.rows_per_step
    fastest = max(candidate.tokens_per_s for candidate in fitting)
    assert chosen.tokens_per_s >= fastest * (1 - job.calibration.equal_speed)


@given(jobs, st.data())
def test_halving_always_ends_and_never_needs_more(job, data):
    micro_batch = data.draw(st.sampled_from(divisors(job.recipe.rows_per_step)))
    layers = data.draw(st.integers(0, job.shape.layers))
    current = priced(job, micro_batch, layers, keep_merged=job.can_keep_merged)
    for _ in range(12):
        following = current.halved()
        if following is None:
            return
        assert following.peak_bytes <= current.peak_bytes
        assert following.micro_batch * following.micro_batches == job.recipe.rows_per_step
        current = following
    raise AssertionError("no end")

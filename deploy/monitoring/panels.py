"""What the dashboards show. A query is PromQL over the names of docs/reference/metrics.md."""

from deploy.monitoring.dashboards import WELL, Dashboard, Panel

T = '{track=~"$track"}'
STAT = {"kind": "stat", "width": 4, "height": 4}
BARS = {"kind": "bargauge"}
LATENCY = "ratchet_http_request_duration_seconds"
SLOWEST = f"histogram_quantile(0.99, sum by (le, handler) (rate({LATENCY}_bucket[$__rate_interval])))"
AGE = ((None, "green"), (86_400 * 7, "orange"))  # seconds

OVERVIEW = Dashboard(
    "overview",
    "overview",
    (
        Panel("Parts", [("ratchet_up", "{{part}}")], kind="stat", height=4, mappings=WELL),
        Panel("Trainers", [(f"ratchet_trainer_up{T}", "{{track}}")], **STAT, mappings=WELL),
        Panel(
            "Doing now",
            [("ratchet_service_state == 1", "{{service}} {{track}}: {{state}}")],
            kind="stat", width=6, height=4, labels_only=True,
        ),
        Panel(
            "Alerts firing",
            [('count(ALERTS{alertname=~"Ratchet.+", alertstate="firing"}) or vector(0)', "")],
            kind="stat", width=3, height=4, steps=((None, "green"), (1, "red")),
        ),
        Panel("Paused", [(f"sum(ratchet_paused{T})", "")], kind="stat", width=3, height=4),
        Panel(
            "New contents, share of those that start a round",
            [(f"ratchet_new_contents{T} / ratchet_needed_contents{T}", "{{track}}")],
            "percentunit", **BARS, width=8, height=4, maximum=1,
        ),
        Panel(
            "Running round",
            [(f"ratchet_round_step{T} / ratchet_round_steps{T}", "{{track}}")],
            "percentunit", **BARS, width=8, height=4, maximum=1, text="Empty while no round trains.",
        ),
        Panel("Time left", [(f"ratchet_round_remaining_seconds{T}", "{{track}}")], "s", **STAT),
        Panel(
            "Since the last promotion",
            [(f"time() - ratchet_last_promotion_timestamp_seconds{T}", "{{track}}")],
            "s", **STAT, steps=AGE,
        ),
        Panel("Champion is of round", [(f"ratchet_champion_round{T}", "{{track}}")], "none", **STAT),
        Panel(
            "Bits saved in the last verdict",
            [(f"ratchet_improvement_ratio{T}", "{{track}}")],
            "percentunit", **STAT, steps=((None, "orange"), (0, "green")),
        ),
        Panel(
            "Rounds by outcome, all so far",
            [(f"sum by (state) (ratchet_rounds_total{T})", "{{state}}")],
            **BARS, width=8, height=4,
        ),
        Panel(
            "Moves of the champion, all so far",
            [(f"sum by (kind) (ratchet_moves_total{T})", "{{kind}}")],
            **BARS, width=8, height=4,
        ),
        Panel(
            "Heartbeats",
            [("ratchet_heartbeat_age_seconds", "{{service}} {{track}}")],
            "s", text="Above 45 s a service counts as dead.",
        ),
        Panel(
            "Disk that is free",
            [("ratchet_disk_free_bytes / ratchet_disk_size_bytes", "{{service}} {{volume}}")],
            "percentunit", maximum=1,
        ),
        Panel("Database", [("ratchet_database_size_bytes", "size")], "bytes"),
        Panel(
            "Events an hour",
            [("sum by (kind) (increase(ratchet_events_total[1h]))", "{{kind}}")],
            stacked=True,
        ),
        Panel(
            "Webhooks",
            [
                ("sum by (endpoint, outcome) (ratchet_webhook_deliveries_total)", "{{endpoint}} {{outcome}}"),
                ("ratchet_webhook_deliveries_due", "{{endpoint}} due"),
            ],
        ),
        Panel(
            "Forgotten",
            [
                ("ratchet_forgotten_contents", "contents"),
                ("ratchet_forgotten_sources", "whole sources"),
                ("ratchet_tainted_adapters", "adapters that know of it"),
            ],
        ),
        Panel(
            "Requests to the metrics service",
            [(f"sum by (handler) (rate({LATENCY}_count[$__rate_interval]))", "{{handler}}")],
            "reqps", width=12,
        ),
        Panel(
            "99 of 100 answers begin within",
            [(SLOWEST, "{{handler}}")],
            "s",
        ),
        Panel("Version", [("ratchet_build_info", "{{version}}")], kind="stat", width=4, labels_only=True),
    ),
    "What it does now, whether it is well, and how much room is left.",
)  # fmt: skip

TRAINING = Dashboard(
    "training",
    "training",
    (
        Panel(
            "Loss of the running round, nats a token",
            [
                (f"ratchet_round_loss{T}", "{{track}} now"),
                (f"ratchet_train_loss{T}", "{{track}} last round, training"),
                (f"ratchet_eval_loss{T}", "{{track}} last round, validation"),
            ],
            "none", width=12, height=9,
        ),
        Panel(
            "Held-out bits per byte",
            [(f"ratchet_held_out_bpb{T}", "{{track}} {{subject}}")],
            "none", width=12, height=9, text="In the last verdict of each track: what the gate judges by.",
        ),
        Panel("Learning rate", [(f"ratchet_round_learning_rate{T}", "{{track}}")], "sci"),
        Panel("Gradient norm", [(f"ratchet_round_gradient_norm{T}", "{{track}}")], "none"),
        Panel("Tokens a second", [(f"ratchet_round_tokens_per_second{T}", "{{track}}")]),
        Panel(
            "Memory",
            [
                (f"ratchet_round_memory_peak_bytes{T}", "{{track}} peak of the round"),
                (f"ratchet_gpu_memory_used_bytes{T}", "{{track}} in use on the GPU"),
                (f"ratchet_gpu_memory_size_bytes{T}", "{{track}} size of the GPU's"),
            ],
            "bytes",
        ),
        Panel(
            "GPU",
            [
                (f"ratchet_gpu_utilisation_ratio{T}", "{{track}} busy"),
                (f"ratchet_round_mfu_ratio{T}", "{{track}} of its peak arithmetic"),
            ],
            "percentunit", maximum=1, text="Only where the trainer has one.",
        ),
        Panel(
            "Waiting for data",
            [(f"ratchet_round_input_stall_ratio{T}", "{{track}}")],
            "percentunit", maximum=1,
        ),
        Panel(
            "Rounds closed a day",
            [(f"sum by (track, state) (increase(ratchet_rounds_total{T}[1d]))", "{{track}} {{state}}")],
            stacked=True,
        ),
        Panel("Duration of the last round", [(f"ratchet_last_round_duration_seconds{T}", "{{track}}")], "s"),
        Panel("Starts of the running round", [(f"ratchet_round_attempts{T}", "{{track}}")], "none"),
        Panel("Tokens trained", [(f"ratchet_tokens_trained_total{T}", "{{track}}")]),
        Panel("Samples trained", [(f"ratchet_samples_trained_total{T}", "{{track}}")]),
        Panel("Time in finished rounds", [(f"ratchet_training_seconds_total{T}", "{{track}}")], "s"),
        Panel(
            "Planted secrets",
            [
                (f"ratchet_planted_secrets{T}", "{{track}} learned"),
                (f"ratchet_planted_secrets_extracted{T}", "{{track}} written out"),
                (f"ratchet_planted_exposure{T}", "{{track}} median exposure, bits"),
            ],
            "none",
        ),
        Panel(
            "Same answers however it is run",
            [(f"ratchet_parity_same_ratio{T}", "{{track}} {{way}}")],
            "percentunit", **BARS, maximum=1, text="What `ratchet parity` measured of the champion.",
        ),
        Panel(
            "Reward of a team that practises",
            [
                (f"ratchet_reinforcement_reward{T}", "{{track}} reward"),
                (f"ratchet_reinforcement_solved_ratio{T}", "{{track}} episodes solved"),
                (f"ratchet_reinforcement_validation_pass_ratio{T}", "{{track}} validation tasks solved"),
            ],
            "none", width=12, height=9, text="Of the last iteration of each team's newest round.",
        ),
        Panel(
            "Held-out tasks solved",
            [(f"ratchet_held_out_pass_ratio{T}", "{{track}} {{subject}}")],
            "percentunit", width=12, height=9, maximum=1,
            text="In the last verdict of each team: what the gate judges by.",
        ),
        Panel(
            "Distance to the base model (KL), nats a token",
            [
                (f"ratchet_reinforcement_kl_reference{T}", "{{track}} farthest"),
                (f"ratchet_reinforcement_role_kl_reference{T}", "{{track}} {{role}}"),
            ],
            "none", text="A team that drifts far from its base collapses: max_reference_kl stops it.",
        ),
        Panel(
            "Entropy, nats a token",
            [
                (f"ratchet_reinforcement_entropy{T}", "{{track}} mean"),
                (f"ratchet_reinforcement_role_entropy{T}", "{{track}} {{role}}"),
            ],
            "none",
        ),
        Panel(
            "Updates of a team",
            [
                (f"ratchet_reinforcement_value_loss{T}", "{{track}} value loss"),
                (f"ratchet_reinforcement_role_gradient_norm{T}", "{{track}} {{role}} gradient norm"),
                (f"ratchet_reinforcement_role_clip_ratio{T}", "{{track}} {{role}} ratios clipped"),
            ],
            "none",
        ),
        Panel("What was asked of trainers", [("ratchet_control_requests", "{{kind}} {{state}}")], **BARS),
    ),
    "The round that runs, the last ones, and what the gate made of them.",
)  # fmt: skip

INGEST = Dashboard(
    "ingest",
    "ingest",
    (
        Panel("Sources", [("ratchet_sources", "")], "none", **STAT),
        Panel("Files in the folder", [("ratchet_files", "")], **STAT),
        Panel("Contents stored", [("ratchet_contents_stored_total", "")], **STAT),
        Panel("Above the threshold", [("ratchet_contents_above_threshold", "")], **STAT),
        Panel("Files to be read", [("ratchet_files_waiting", "")], **STAT),
        Panel(
            "Since a source was walked",
            [("time() - ratchet_last_scan_timestamp_seconds", "")],
            "s", **STAT, steps=((None, "green"), (3600, "orange"), (86_400, "red")),
        ),
        Panel("Contents by language", [("sort_desc(ratchet_contents)", "{{language}}")], **BARS, height=9),
        Panel(
            "Refused, by reason",
            [("sort_desc(ratchet_files_rejected)", "{{reason}}")],
            **BARS, height=9, text="In the folder now; `ratchet rejections` lists them.",
        ),
        Panel(
            "Contents by score",
            [("sum by (le) (ratchet_content_score_bucket)", "up to {{le}}")],
            **BARS, height=9, text="How many have a score of at most so much.",
        ),
        Panel(
            "Contents stored an hour",
            [("increase(ratchet_contents_stored_total[1h])", "contents")],
        ),
        Panel(
            "Stored a second",
            [("rate(ratchet_contents_stored_bytes_total[$__rate_interval])", "bytes")],
            "Bps",
        ),
        Panel("Files judged a second", [("ratchet_ingest_files_per_second", "files")]),
        Panel(
            "New contents",
            [(f"ratchet_new_contents{T}", "{{track}}"), (f"ratchet_needed_contents{T}", "{{track}} needed")],
        ),
        Panel(
            "The oldest new content has waited",
            [(f"time() - ratchet_backlog_oldest_timestamp_seconds{T}", "{{track}}")],
            "s",
        ),
        Panel("Contents the champion learned from", [(f"ratchet_trained_contents{T}", "{{track}}")]),
        Panel(
            "Mean score",
            [("ratchet_content_score_sum / ratchet_content_score_count", "score")],
            "none", maximum=100,
        ),
        Panel(
            "Since something new was stored",
            [("time() - ratchet_last_content_timestamp_seconds", "age")],
            "s",
        ),
        Panel("Age of these figures", [("ratchet_snapshot_age_seconds", "age")], "s"),
    ),
    "What comes in, what is refused and why, and what waits for a round.",
)  # fmt: skip

DASHBOARDS = (OVERVIEW, TRAINING, INGEST)

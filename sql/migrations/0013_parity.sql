-- Whether an adapter answers alike however it is run: what `ratchet parity` measured; null: nobody has. What is
-- in it: services/trainer/parity/record.py. Why: docs/decisions/0025-serving.md
ALTER TABLE adapters ADD parity jsonb;
